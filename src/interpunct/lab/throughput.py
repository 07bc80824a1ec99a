"""Rows per second on Spark: a tumbling average by key, as a flow, natively, and not at all.

The same recording is read by all three: the flow, native Structured Streaming with the same
settings and RocksDB, and a pass-through in Python that does nothing (`identity`). They take turns,
and the first batches of each turn, in which everything is still being compiled, do not count.
"""

from __future__ import annotations

import shutil
import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from interpunct.api import Flow
from interpunct.lab.isolated import Report, silent
from interpunct.progress.timestamps import external
from interpunct.spark.replay import replay
from interpunct.spark.session import session

START = 1_700_000_000_000_000
SECOND = 1_000_000
SHAPES = {"fine": 10, "coarse": 1_000}  # tuples in a group of one window
WINDOWS = 40  # in a batch


@dataclass(frozen=True)
class Setup:
    """`rows` in each of `batches`, of which the first `warm` do not count, `turns` times over."""

    rows: int = 4_000_000
    batches: int = 4
    warm: int = 2
    turns: int = 2
    seed: int = 1
    folder: Path = Path("out/throughput")


@dataclass
class Throughput:
    setup: Setup
    measured: dict[str, dict[str, list[float]]] = field(
        default_factory=dict
    )  # shape → way → rows/s

    def median(self, shape: str, way: str) -> float:
        return statistics.median(self.measured[shape][way])

    def to_json(self) -> dict[str, Any]:
        shapes = list(self.measured)
        ratios = {
            against: {s: self.median(s, "interpunct") / self.median(s, against) for s in shapes}
            for against in ("native", "identity")
        }
        expected = {
            "native_fine_at_least_3": ratios["native"].get("fine", 0) >= 3.0,
            "native_coarse_at_least_1": ratios["native"].get("coarse", 0) >= 1.0,
            "identity_fine_at_least_0.6": ratios["identity"].get("fine", 0) >= 0.6,
        }
        return {
            "experiment": "throughput",
            "seed": self.setup.seed,
            "rows_a_batch": self.setup.rows,
            "rows_per_s": {s: {w: self.median(s, w) for w in self.measured[s]} for s in shapes},
            "ratio": ratios,
            "expected": expected,
        }


def flow(window: int) -> Flow:
    """The job as a flow."""
    flow = Flow("throughput")
    rows = flow.source("rows", "key bigint, ts timestamp, value double", time=external("ts"))
    flow.sink("averages", rows.aggregate(by="key", every=window, average="avg(value)"))
    return flow


def record(setup: Setup, shape: str) -> tuple[Path, int]:
    """A recording in time order, and the length of a window of it."""
    total = setup.rows * setup.batches
    keys = setup.rows // WINDOWS // SHAPES[shape]
    random = np.random.default_rng(setup.seed)
    ticks = START + np.arange(total, dtype=np.int64)  # a tuple each microsecond
    frame = pl.DataFrame({"key": random.integers(0, keys, total), "ts": ticks,
                          "value": random.random(total)})  # fmt: skip
    path = setup.folder / f"{shape}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    stamped = frame.with_columns(pl.col("ts").cast(pl.Datetime("us", "UTC")))
    stamped.write_parquet(path, row_group_size=setup.rows // 2, compression="uncompressed")
    return path, setup.rows // WINDOWS


def throughput(setup: Setup, report: Report = silent) -> Throughput:
    """Run the experiment."""
    result = Throughput(setup)
    ways: dict[str, Callable[..., list[float]]] = {
        "identity": _identity, "native": _native, "interpunct": _interpunct
    }  # fmt: skip
    spark = session(2, spark__driver__memory="6g")
    try:
        steps = len(SHAPES) * setup.turns * len(ways)
        for number, shape in enumerate(SHAPES):
            path, window = record(setup, shape)
            found = result.measured.setdefault(shape, {way: [] for way in ways})
            for turn in range(setup.turns):
                for at, (way, measure) in enumerate(ways.items()):
                    done = (number * setup.turns + turn) * len(ways) + at
                    report(done / steps, f"{shape}, {way}")
                    rows = replay(spark, str(path), rows_per_batch=setup.rows)
                    folder = setup.folder / f"{shape}-{way}-{turn}"
                    found[way] += measure(rows, window, str(folder))[setup.warm :]
            path.unlink()
    finally:
        spark.stop()
        shutil.rmtree(setup.folder, ignore_errors=True)
    return result


def _interpunct(rows: DataFrame, window: int, checkpoint: str) -> list[float]:
    spark = rows.sparkSession
    query = flow(window).start(
        spark, {"rows": rows}, checkpoint=checkpoint,
        sinks={"averages": _discard}, trigger={"availableNow": True},
    )  # fmt: skip
    query.await_termination()
    return _rates(query.progress)


def _discard(rows: DataFrame, batch: int) -> None:
    del batch
    rows.write.format("noop").mode("overwrite").save()


def _native(rows: DataFrame, window: int, checkpoint: str) -> list[float]:
    length = f"{window} microseconds"
    averages = (
        rows.withWatermark("ts", "0 seconds")
        .groupBy(F.window("ts", length), "key")
        .agg(F.avg("value").alias("average"))
    )
    return _to_noop(averages, checkpoint)


def _identity(rows: DataFrame, window: int, checkpoint: str) -> list[float]:
    del window

    def unchanged(batches: Any) -> Any:
        yield from batches

    return _to_noop(rows.mapInArrow(unchanged, rows.schema), checkpoint)


def _to_noop(rows: DataFrame, checkpoint: str) -> list[float]:
    query = (
        rows.writeStream.format("noop")
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return _rates(list(query.recentProgress))


def _rates(progress: list[Any]) -> list[float]:
    """Rows per second of each batch that had rows."""
    return [
        p["numInputRows"] / p["durationMs"]["triggerExecution"] * 1000
        for p in progress
        if p["numInputRows"]
    ]
