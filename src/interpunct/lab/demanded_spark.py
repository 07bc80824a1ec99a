"""Demanded feedback on Spark: each report is a batch, and a demand is answered in the next one."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
from pyspark.sql import DataFrame, SparkSession

from interpunct.lab.demanded import Demands, with_demands
from interpunct.lab.detectors import SCHEMA, Recording
from interpunct.lab.folders import passing
from interpunct.spark.files import put
from interpunct.spark.session import session


@dataclass
class Gathered:
    """A writer that keeps the rows of a sink, and in which batch they came."""

    frames: list[pl.DataFrame]
    batches: list[int] = field(default_factory=list)

    def __call__(self, rows: DataFrame, batch: int) -> None:
        frame = pl.from_arrow(rows.toArrow())
        assert isinstance(frame, pl.DataFrame)
        if frame.height:
            self.frames.append(frame)
            self.batches.append(batch)


@dataclass(frozen=True)
class SparkDemands:
    demands: Demands = field(repr=False)
    unchanged: bool

    def expected(self) -> dict[str, bool]:
        waited = self.demands.waited
        return {
            "every_answer_is_there_in_the_next_batch": len(waited) == self.demands.asked
            and max(waited) == 1,
            "final_answers_are_unchanged": self.unchanged,
        }

    def to_json(self) -> dict[str, Any]:
        return self.demands.to_json()


def demanded_spark(recording: Recording) -> SparkDemands:
    """The recording as files that come one by one, with demands between them and without."""
    spark = session(2)
    try:
        with passing() as folder:
            asked, plain = (
                run_query(spark, recording, folder / f"{demanding}", demanding)
                for demanding in (True, False)
            )
    finally:
        spark.stop()
    return SparkDemands(asked, asked.finals.equals(plain.finals))


def run_query(spark: SparkSession, recording: Recording, folder: Path, demanding: bool) -> Demands:
    """The recording as one query that waits for its files."""
    found = Demands("batches")
    now = Gathered(found.partial)
    (folder / "in").mkdir(parents=True)
    query = recording.flow(partial=True).start(
        spark, {"sensors": spark.readStream.schema(SCHEMA).parquet(str(folder / "in"))},
        checkpoint=str(folder / "checkpoint"), sinks={"map": Gathered(found.final), "now": now},
    )  # fmt: skip
    try:
        for number, (page, text) in enumerate(with_demands(recording)):
            put(folder / "in" / f"{number:05d}.parquet", page.frame.write_parquet)
            query.query.processAllAvailable()
            if text is None or not demanding:
                continue
            before, began = query.progress[-1]["batchId"], time.perf_counter()
            query.feedback("map", text)
            query.query.processAllAvailable()
            found.asked += 1
            later = [batch - before for batch in now.batches if batch > before]
            if later:
                found.waited.append(later[0])
                found.milliseconds.append(1000 * (time.perf_counter() - began))
    finally:
        query.stop()
    return found
