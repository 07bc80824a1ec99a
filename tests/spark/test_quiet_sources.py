"""Kinds of silence: a source that is idle, one that is held up, one finished, one never seen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

import interpunct as ip
from interpunct.spark.query import FlowQuery

T0 = datetime(2026, 1, 1, tzinfo=UTC)
TIMES = {"finished": [0, 100, 200], "idle": [50], "unseen": []}  # milliseconds after T0
HELD_UP = "held_up"
WAITING = ("idle", HELD_UP, "unseen")


def flow(*, strict: bool) -> ip.Flow:
    """One union for each source that is silent, with the one that has finished."""
    flow = ip.Flow("quiet", strict=strict)
    time = ip.external("ts", ip.bounds(skew="500ms"))
    names = (*TIMES, HELD_UP)
    sources = {n: flow.source(n, "v bigint, ts timestamp", time=time) for n in names}
    for name in WAITING:
        union = flow.union(sources["finished"], sources[name], name=f"with_{name}")
        flow.sink(f"out_{name}", union)
    return flow


def held_up(spark: SparkSession) -> DataFrame:
    """A source that hands out one row and says that it has ten, as Kafka does with a least number
    of offsets for a batch."""
    first = T0 + timedelta(milliseconds=50)

    class Reader(DataSourceStreamReader):
        def initialOffset(self) -> dict[str, int]:
            return {"row": 0}

        def latestOffset(self, start: dict[str, int], limit: object) -> dict[str, int]:
            del start, limit
            return {"row": 1}

        def reportLatestOffset(self) -> dict[str, int]:
            return {"row": 10}

        def partitions(
            self, start: dict[str, int], end: dict[str, int]
        ) -> Sequence[InputPartition]:
            return [InputPartition(0)] if end != start else []

        def read(self, partition: InputPartition) -> Iterator[tuple[int, datetime]]:
            yield 0, first

    class HeldUp(DataSource):
        @classmethod
        def name(cls) -> str:
            return "held-up"

        def schema(self) -> str:
            return "v bigint, ts timestamp"

        def streamReader(self, schema: object) -> Reader:
            del schema
            return Reader()

    spark.dataSource.register(HeldUp)
    return spark.readStream.format("held-up").load()


def started(spark: SparkSession, folder: Path, *, strict: bool) -> FlowQuery:
    feeds = {HELD_UP: held_up(spark)}
    for name, offsets in TIMES.items():
        stamps = [T0 + timedelta(milliseconds=o) for o in offsets]
        rows = {"v": list(range(len(stamps))), "ts": stamps}
        types = {"v": pl.Int64, "ts": pl.Datetime("us", "UTC")}
        pl.DataFrame(rows, schema=types).write_parquet(folder / f"{name}.parquet")
        path = str(folder / f"{name}.parquet")
        feeds[name] = ip.replay(spark, path, rows_per_batch=1, finish=name == "finished")
    sinks = {f"out_{n}": folder / f"out_{n}" for n in WAITING}
    return flow(strict=strict).start(spark, feeds, checkpoint=str(folder / "c"), sinks=sinks)


def rows(folder: Path) -> int:
    files = [f for f in folder.rglob("*.parquet") if f.with_name("_SUCCESS").exists()]
    return sum(pl.read_parquet(f).height for f in files)


def after(query: FlowQuery, seconds: int, folder: Path, wanted: int) -> int:
    """The rows there are once there are as many as wanted, or the time is over."""
    for _ in range(seconds):
        if rows(folder) >= wanted:
            break
        assert not query.await_termination(1)
    return rows(folder)


@pytest.mark.parametrize("strict", [False, True])
def test_an_idle_source_goes_on_and_blame_names_those_that_do_not(
    spark: SparkSession, tmp_path: Path, strict: bool
) -> None:
    query = started(spark, tmp_path, strict=strict)
    try:
        everything = len(TIMES["finished"]) + len(TIMES["idle"])
        # By the clock, or strictly because Spark says that it had nothing to read.
        assert after(query, 120, tmp_path / "out_idle", everything) == everything
        query.query.processAllAvailable()
        assert rows(tmp_path / "out_unseen") == 0
        blamed = {
            line["operator"]: (line["source"], line["quiet"])
            for line in query.blame().iter_rows(named=True)
        }
        assert blamed["with_unseen"] == ("unseen", "never seen")
        assert "with_idle" not in blamed
        if strict:  # nothing is known of it but that it has more
            assert rows(tmp_path / f"out_{HELD_UP}") < everything
            assert blamed[f"with_{HELD_UP}"] == (HELD_UP, "has something unread")
    finally:
        query.stop()
    assert not query.wake.path.parent.exists()
