"""Rows per second on Spark: the same job as a flow, natively, and not at all.

| shape  | job                                                            | compared with      |
|--------|----------------------------------------------------------------|--------------------|
| fine   | tumbling average by key, 10 tuples in a group                  | native, identity   |
| coarse | the same with 1,000 tuples in a group                          | native, identity   |
| union  | two streams united in time order, which Spark has no word for  | identity           |
| join   | two streams, equal keys within 20 seconds                      | native             |

All ways read the same recordings with the same settings, and all are DataFrames that are written to
Spark's `noop`; `identity` is a pass through Python that does nothing. `interpunct` takes its rows
from a DataFrame as it would from any source; `fused` is given the replay itself, whose reader then
runs the first part of the flow. The ways take turns. A first one, in many small batches, does not
count, nor do a few whole ones after it and the first batches of the others: a query that runs for
days has long been compiled, Spark's planning too, which takes hundreds of batches. Each turn begins
with another way, since one is slowed by what the one before it leaves to be done; and a ratio is
the median of those within a turn, since the speed of a machine that others share changes from
minute to minute. Java runs with its parallel collector for all of them, which costs least where
millions of rows pass.
"""

from __future__ import annotations

import shutil
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from interpunct.api import Flow
from interpunct.lab.folders import fresh
from interpunct.lab.isolated import Report, silent
from interpunct.progress.timestamps import external
from interpunct.spark.replay import replay
from interpunct.spark.session import session

START = 1_700_000_000_000_000
SECOND = 1_000_000
GROUP = {"fine": 10, "coarse": 1_000}  # tuples of one window and key
WINDOWS = 40  # in a batch
WARMING, WARM_TURNS = 10, 3  # batches for one, in the first turn; turns that do not count
JOIN_KEYS, JOIN_WINDOW = 100_000, 20 * SECOND
SCHEMA = "key bigint, ts timestamp, value double"
SHAPES = ("fine", "coarse", "union", "join")
AGAINST = {"fine": ("native", "identity"), "coarse": ("native", "identity"),
           "union": ("identity",), "join": ("native",)}  # fmt: skip
TARGETS = {
    ("native", "fine"): 3.0, ("native", "coarse"): 1.0, ("native", "coarse_fused"): 2.0,
    ("native", "join"): 5.0, ("identity", "fine"): 0.6, ("identity", "union"): 0.4,
}  # fmt: skip


@dataclass(frozen=True)
class Setup:
    """`rows` in each of `batches`, of which the first half does not count, `turns` times over after
    `WARM_TURNS` that do not count, the first with a `WARMING`th of the rows in each of as many more
    batches; of the join, which is slow natively, `join_rows` in a batch."""

    rows: int = 4_000_000
    join_rows: int = 400_000
    batches: int = 10
    turns: int = 2
    seed: int = 1
    shapes: tuple[str, ...] = SHAPES
    folder: Path = Path("out/throughput")

    def rows_of(self, shape: str) -> int:
        return self.join_rows if shape == "join" else self.rows


@dataclass
class Throughput:
    setup: Setup
    # shape → way → rows per second of each batch, turn by turn
    measured: dict[str, dict[str, list[list[float]]]] = field(default_factory=dict)

    def median(self, shape: str, way: str) -> float:
        return statistics.median(chain.from_iterable(self.measured[shape][way]))

    def ratio(self, shape: str, way: str, against: str) -> float:
        """How many times faster one way is than another: the median over the turns."""
        ways = self.measured[shape]
        pairs = zip(ways[way], ways[against], strict=True)
        return statistics.median(statistics.median(a) / statistics.median(b) for a, b in pairs)

    def ratios(self) -> dict[str, dict[str, float]]:
        found: dict[str, dict[str, float]] = {"native": {}, "identity": {}}
        for shape in self.measured:
            for against in AGAINST[shape]:
                found[against][shape] = self.ratio(shape, "interpunct", against)
                found[against][f"{shape}_fused"] = self.ratio(shape, "fused", against)
        return found

    def to_json(self) -> dict[str, Any]:
        ratios = self.ratios()
        return {
            "experiment": "throughput",
            "seed": self.setup.seed,
            "rows_a_batch": {shape: self.setup.rows_of(shape) for shape in self.measured},
            "rows_per_s": {
                s: {way: self.median(s, way) for way in ways} for s, ways in self.measured.items()
            },
            "ratio": ratios,
            "expected": {
                f"{against}_{shape}_at_least_{target:g}": ratios[against][shape] >= target
                for (against, shape), target in TARGETS.items()
                if shape in ratios[against]
            },
        }


@dataclass(frozen=True)
class Job:
    """One way of doing one shape's job over its recordings; returns seconds per batch."""

    spark: SparkSession
    shape: str
    recordings: tuple[Path, ...]
    rows: int  # of a batch, in all recordings together
    split: int = 1  # batches in which the rows of one are read

    def streams(self) -> list[DataFrame]:
        each = self.rows // len(self.recordings) // self.split
        return [replay(self.spark, str(p), rows_per_batch=each) for p in self.recordings]

    def identity(self, checkpoint: str) -> list[float]:
        streams = self.streams()
        rows = streams[0] if len(streams) == 1 else streams[0].union(streams[1])
        return to_noop(rows.mapInArrow(_unchanged, rows.schema), checkpoint)

    def native(self, checkpoint: str) -> list[float]:
        marked = [s.withWatermark("ts", "0 seconds") for s in self.streams()]
        if self.shape == "join":
            return to_noop(_native_join(*marked), checkpoint)
        length = f"{self.rows // WINDOWS} microseconds"
        windows = marked[0].groupBy(F.window("ts", length), "key")
        return to_noop(windows.agg(F.avg("value").alias("average")), checkpoint)

    def interpunct(self, checkpoint: str, *, fused: bool = False) -> list[float]:
        streams = self.streams()
        feeds = {f"s{i}": s if fused else s.select("*") for i, s in enumerate(streams)}
        rows = flow(self.shape, self.rows // WINDOWS).to_df(feeds, checkpoint=checkpoint)
        return to_noop(rows, checkpoint)

    def ways(self) -> dict[str, Callable[[str], list[float]]]:
        every = {"identity": self.identity, "native": self.native}
        compared = {way: every[way] for way in AGAINST[self.shape]}
        return {**compared, "interpunct": self.interpunct,
                "fused": partial(self.interpunct, fused=True)}  # fmt: skip


def flow(shape: str, window: int) -> Flow:
    """The job of a shape as a flow."""
    flow = Flow("throughput")
    first = flow.source("s0", SCHEMA, time=external("ts", ordered=True))
    if shape in GROUP:
        every = timedelta(microseconds=window)
        flow.sink("out", first.aggregate(by="key", every=every, average="avg(value)"))
        return flow
    second = flow.source("s1", SCHEMA, time=external("ts", ordered=True))
    united = flow.union(first, second) if shape == "union" else None
    flow.sink("out", united or first.join(second, on="key", within=JOIN_WINDOW))
    return flow


def record(setup: Setup, shape: str) -> tuple[Path, ...]:
    """The recordings of a shape, in time order. A batch of the join takes as long as its window;
    of the others there is a tuple each microsecond."""
    streams = 1 if shape in GROUP else 2
    total = setup.rows_of(shape) * setup.batches // streams
    keys = setup.rows // WINDOWS // GROUP[shape] if shape in GROUP else JOIN_KEYS
    step = JOIN_WINDOW * setup.batches // total if shape == "join" else streams
    setup.folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for number in range(streams):
        random = np.random.default_rng([setup.seed, number])
        ticks = START + number + step * np.arange(total, dtype=np.int64)
        frame = pl.DataFrame({"key": random.integers(0, keys, total), "ts": ticks,
                              "value": random.random(total)})  # fmt: skip
        stamped = frame.with_columns(pl.col("ts").cast(pl.Datetime("us", "UTC")))
        paths.append(setup.folder / f"{shape}-{number}.parquet")
        half = setup.rows_of(shape) // streams // 2
        stamped.write_parquet(paths[-1], row_group_size=half, compression="uncompressed")
    return tuple(paths)


def throughput(setup: Setup, report: Report = silent) -> Throughput:
    """Run the experiment."""
    fresh(setup.folder)
    result = Throughput(setup)
    spark = session(
        2, spark__driver__memory="6g", spark__driver__extraJavaOptions="-XX:+UseParallelGC"
    )
    try:
        for number, shape in enumerate(setup.shapes):
            job = Job(spark, shape, record(setup, shape), setup.rows_of(shape))
            warming = replace(job, split=WARMING)
            found = result.measured.setdefault(shape, {way: [] for way in job.ways()})
            turns = WARM_TURNS + setup.turns
            for turn in range(turns):
                ways = job.ways() if turn else warming.ways()
                order = [*ways][turn % len(ways) :] + [*ways][: turn % len(ways)]
                for at, way in enumerate(order):
                    done = number + (turn + at / len(ways)) / turns
                    report(done / len(setup.shapes), f"{shape}, {way}")
                    seconds = ways[way](str(setup.folder / f"{shape}-{way}-{turn}"))
                    if turn >= WARM_TURNS:
                        counted = seconds[setup.batches // 2 : setup.batches]
                        found[way].append([job.rows / s for s in counted])
            for path in job.recordings:
                path.unlink()
    finally:
        spark.stop()
        shutil.rmtree(setup.folder, ignore_errors=True)
    return result


def _native_join(left: DataFrame, right: DataFrame) -> DataFrame:
    a, b = left.alias("a"), right.alias("b")
    length = F.expr(f"INTERVAL {JOIN_WINDOW} MICROSECONDS")
    near = F.col("a.ts").between(F.col("b.ts") - length, F.col("b.ts") + length)
    return a.join(b, (F.col("a.key") == F.col("b.key")) & near)


def _unchanged(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def to_noop(rows: DataFrame, checkpoint: str) -> list[float]:
    """Compute a stream and keep nothing of it; the seconds each batch took."""
    query = (
        rows.writeStream.format("noop")
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return trigger_seconds(list(query.recentProgress))


def trigger_seconds(progress: list[Any]) -> list[float]:
    """How long each batch that had rows took."""
    return [p["durationMs"]["triggerExecution"] / 1000 for p in progress if p["numInputRows"]]
