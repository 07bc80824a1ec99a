"""What a small batch costs on Spark: a thousand rows, natively and as a flow of one or two stages.

    native      window average by key, Spark's own, on the same state store and settings
    one stage   the same windows and averages as a flow
    two stages  and behind it an average over all keys, which is in other lanes: one more shuffle

Each is measured twice, like beside like: as a DataFrame that is written to Spark's `noop`
(`flow.to_df`), and as a query with several sinks has to be run, through `foreachBatch`
(`flow.start`, which brings a clock, feedback and reports with it).

With so few rows all of it is overhead: planning, tasks, Python, state, commits. The ways take turns
over one recording and throw their rows away; the first batches of a turn do not count, nor does a
first turn, in which Java is still compiling what a query that runs for days has compiled. And what
costs most is what need not run: a flow whose stream has ended is watched for a while, and its
batches are counted.
"""

from __future__ import annotations

import shutil
import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from interpunct.api import Flow
from interpunct.lab.folders import fresh
from interpunct.lab.isolated import Report, silent
from interpunct.lab.throughput import SCHEMA, START, to_noop, trigger_seconds
from interpunct.progress.timestamps import external
from interpunct.spark.query import FlowQuery
from interpunct.spark.replay import replay
from interpunct.spark.session import session
from interpunct.spark.writers import Discard

WINDOW = 250  # microseconds, and as many rows: a row comes each microsecond
KEYS = 50
TARGETS = {"one_stage": 1.25, "two_stage": 1.8}  # times the native trigger, at most
STARTED = "_started"  # ends the names of the ways through `foreachBatch`
SETTLING = 3  # seconds in which a flow whose stream has ended may still close its windows


@dataclass(frozen=True)
class Setup:
    """`rows` in each of `batches`, of which the first `warm` do not count, `turns` times over after
    one that does not count; then `idle_seconds` without rows."""

    rows: int = 1_000
    batches: int = 30
    warm: int = 12
    turns: int = 4
    idle_seconds: int = 15
    seed: int = 1
    folder: Path = Path("out/trigger-cost")


@dataclass
class TriggerCost:
    setup: Setup
    measured: dict[str, list[float]] = field(default_factory=dict)  # way → milliseconds
    idle_batches: int = 0

    def median(self, way: str) -> float:
        return statistics.median(self.measured[way])

    def to_json(self) -> dict[str, Any]:
        ratio = {
            way + how: self.median(way + how) / self.median("native" + how)
            for how in ("", STARTED)
            for way in TARGETS
        }
        expected = {
            f"{way}_at_most_{TARGETS[way.removesuffix(STARTED)]:g}": found
            <= TARGETS[way.removesuffix(STARTED)]
            for way, found in ratio.items()
        }
        return {
            "experiment": "trigger-cost",
            "seed": self.setup.seed,
            "rows_a_batch": self.setup.rows,
            "trigger_ms": {way: self.median(way) for way in self.measured},
            "ratio": ratio,
            "idle": {"seconds": self.setup.idle_seconds, "batches": self.idle_batches},
            "expected": {**expected, "idle_runs_no_batches": self.idle_batches == 0},
        }


@dataclass(frozen=True)
class Job:
    """The ways of averaging one recording; each returns the milliseconds of its batches."""

    spark: SparkSession
    recording: Path
    rows: int

    def stream(self) -> DataFrame:
        return replay(self.spark, str(self.recording), rows_per_batch=self.rows)

    def native(self) -> DataFrame:
        marked = self.stream().withWatermark("ts", "0 seconds")
        windows = marked.groupBy(F.window("ts", f"{WINDOW} microseconds"), "key")
        return windows.agg(F.avg("value").alias("average"))

    def frame(self, checkpoint: str, *, stages: int) -> list[float]:
        """The native query where there are no stages."""
        rows = averages(stages).to_df({"rows": self.stream()}) if stages else self.native()
        return _milliseconds(to_noop(rows, checkpoint))

    def native_started(self, checkpoint: str) -> list[float]:
        options = self.native().writeStream.option("checkpointLocation", checkpoint)
        query = options.foreachBatch(Discard()).trigger(availableNow=True).start()
        query.awaitTermination()
        return _milliseconds(trigger_seconds(list(query.recentProgress)))

    def started(self, checkpoint: str, *, stages: int) -> list[float]:
        query = self._started(stages, checkpoint, {"availableNow": True})
        query.await_termination()
        return _milliseconds(trigger_seconds(query.progress))

    def ways(self) -> dict[str, Callable[[str], list[float]]]:
        return {
            "native": partial(self.frame, stages=0),
            "one_stage": partial(self.frame, stages=1),
            "two_stage": partial(self.frame, stages=2),
            f"native{STARTED}": self.native_started,
            f"one_stage{STARTED}": partial(self.started, stages=1),
            f"two_stage{STARTED}": partial(self.started, stages=2),
        }

    def idle(self, checkpoint: str, seconds: int) -> int:
        """How many batches a running flow makes in so many seconds after its stream has ended."""
        query = self._started(1, checkpoint, {"processingTime": "0 seconds"})
        try:
            query.query.processAllAvailable()
            query.await_termination(SETTLING)
            before = _batches(query)
            query.await_termination(seconds)
            return _batches(query) - before
        finally:
            query.stop()

    def _started(self, stages: int, checkpoint: str, trigger: dict[str, Any]) -> FlowQuery:
        return averages(stages).start(
            self.spark, {"rows": self.stream()},
            checkpoint=checkpoint, sinks={"out": Discard()}, trigger=trigger,
        )  # fmt: skip


def averages(stages: int) -> Flow:
    """Averages by window and key; with a second stage, over all keys behind them."""
    flow = Flow("trigger-cost")
    rows = flow.source("rows", SCHEMA, time=external("ts", ordered=True))
    length = timedelta(microseconds=WINDOW)
    found = rows.aggregate(by="key", every=length, average="avg(value)")
    if stages == 2:
        found = found.aggregate(every=2 * length, average="avg(average)")
    flow.sink("out", found)
    return flow


def record(setup: Setup) -> Path:
    """The recording: in time order, a row each microsecond."""
    total = setup.rows * setup.batches
    random = np.random.default_rng(setup.seed)
    ticks = pl.Series(START + np.arange(total, dtype=np.int64)).cast(pl.Datetime("us", "UTC"))
    keys, values = random.integers(0, KEYS, total), random.random(total)
    setup.folder.mkdir(parents=True, exist_ok=True)
    path = setup.folder / "rows.parquet"
    frame = pl.DataFrame({"key": keys, "ts": ticks, "value": values})
    frame.write_parquet(path, row_group_size=setup.rows)
    return path


def trigger_cost(setup: Setup, report: Report = silent) -> TriggerCost:
    """Run the experiment."""
    fresh(setup.folder)
    result = TriggerCost(setup)
    spark = session(2)
    try:
        job = Job(spark, record(setup), setup.rows)
        ways = job.ways()
        result.measured = {way: [] for way in ways}
        for turn in range(setup.turns + 1):
            for at, (way, measure) in enumerate(ways.items()):
                report((turn + at / len(ways)) / (setup.turns + 2), way.replace("_", " "))
                found = measure(str(setup.folder / f"{way}-{turn}"))
                if turn:
                    result.measured[way] += found[setup.warm : setup.batches]
        report((setup.turns + 1) / (setup.turns + 2), "idle")
        result.idle_batches = job.idle(str(setup.folder / "idle"), setup.idle_seconds)
    finally:
        spark.stop()
        shutil.rmtree(setup.folder, ignore_errors=True)
    return result


def _milliseconds(seconds: list[float]) -> list[float]:
    return [1000 * s for s in seconds]


def _batches(query: FlowQuery) -> int:
    """How many batches have run; progress is also reported now and then when none has."""
    return sum("addBatch" in p["durationMs"] for p in query.progress)
