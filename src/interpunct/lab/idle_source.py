"""A quiet source in plain Spark and through `synchronize`: the same streams, the same native jobs.

Two made-up streams, `readings` and `alerts`, out of order by up to a second. After a while alerts
are quiet. Spark counts both by windows of two seconds, and joins each reading with the alerts
around it (left outer). A batch is one second of both streams, so that every count is the same on
any machine; only the trigger times are this machine's.

*During the quiet*: from `SETTLE` seconds into it, when all that the alerts explain has come out,
to its end. *Latency*: a window is covered by the batch after which the heartbeat (the greatest
timestamp seen on either stream, less the skew) has reached its end. Spark applies what a batch
says of time in the next one, so a native operator cannot deliver a window less than one batch
after it is covered; the latency counts those batches.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from interpunct.lab.folders import passing
from interpunct.lab.isolated import Report, silent
from interpunct.progress.timestamps import bounds
from interpunct.spark.options import Options
from interpunct.spark.session import session
from interpunct.spark.synchronize import synchronize
from interpunct.spark.workloads import SECOND, SLOT, Workload, workload

SETTLE = 3
SKEW, DISORDER = 2, 1  # seconds
WINDOW = 2
RATES = {"readings": 50, "alerts": 20}  # rows per second
WAYS = ("plain", "interpunct")

Streams = tuple[DataFrame, DataFrame]


@dataclass(frozen=True)
class Setup:
    quiet_seconds: int = 30
    seed: int = 1
    lead: int = 8  # seconds before the quiet
    tail: int = 6  # and after it

    @property
    def seconds(self) -> int:
        return self.lead + self.quiet_seconds + self.tail

    def options(self, stream: str) -> dict[str, str]:
        """Of the workload source: one second a batch."""
        rate = RATES[stream]
        options: dict[str, Any] = {
            "seed": self.seed * 10 + len(stream), "rate": rate, "rowsPerBatch": rate,
            "seconds": self.seconds, "disorder": f"{DISORDER}s", "disordered": 0.2,
        }  # fmt: skip
        if stream == "alerts":
            options |= {"quietFrom": self.lead, "quietFor": self.quiet_seconds}
        return {name: str(value) for name, value in options.items()}

    def heartbeats(self) -> list[int]:
        """After each batch, in microseconds."""
        made = [Workload.of(Options("workload", {"kind": "poisson", **self.options(s)}))
                for s in RATES]  # fmt: skip
        slots = SECOND // SLOT
        reached: list[int] = []
        for second in range(self.seconds):
            rows = pl.concat([w.rows(second * slots, (second + 1) * slots) for w in made])
            greatest: Any = rows["ts"].cast(pl.Int64).max()
            last = greatest - SKEW * SECOND if rows.height else 0
            reached.append(max(last, reached[-1] if reached else 0))
        return reached


@dataclass
class Delivered:
    """What one query gave, by batch."""

    rows: dict[int, list[Any]] = field(default_factory=dict)
    trigger_ms: list[int] = field(default_factory=list)
    dropped: int = 0  # rows that Spark threw away as late

    def between(self, first: int, last: int) -> int:
        return sum(len(rows) for batch, rows in self.rows.items() if first <= batch < last)


@dataclass(frozen=True)
class IdleSource:
    setup: Setup
    windows: Mapping[str, Delivered] = field(repr=False)  # by way
    joined: Mapping[str, Delivered] = field(repr=False)

    def during_quiet(self, delivered: Delivered) -> int:
        quiet_from = self.setup.lead
        return delivered.between(quiet_from + SETTLE, quiet_from + self.setup.quiet_seconds)

    def latencies(self, way: str) -> list[int]:
        """Batches from the heartbeat that covers a window to the window, for each of them."""
        heartbeats = self.setup.heartbeats()
        found = []
        for batch, rows in sorted(self.windows[way].rows.items()):
            for row in rows:
                covered = next(n for n, reached in enumerate(heartbeats) if reached >= row["end"])
                found.append(batch - covered)
        return found

    def same(self) -> bool:
        """Whether every window that plain Spark delivered in the end came out the same."""
        counted = {way: {tuple(r) for rows in self.windows[way].rows.values() for r in rows}
                   for way in WAYS}  # fmt: skip
        return counted["plain"] <= counted["interpunct"]

    def expected(self) -> dict[str, bool]:
        found = self.to_dict()
        plain, ours = found["plain"], found["interpunct"]
        return {
            "plain_spark_delivers_nothing_during_the_quiet": plain["rows_during_quiet"] == 0,
            "interpunct_delivers_windows_during_the_quiet": ours["windows_during_quiet"] > 0,
            "interpunct_delivers_join_rows_during_the_quiet": ours["joined_during_quiet"] > 0,
            "latency_p50_at_most_1_batch": ours["latency_batches"]["p50"] <= 1,
            "nothing_dropped": ours["rows_dropped"] == 0,
            "same_windows_in_the_end": self.same(),
        }

    def to_dict(self) -> dict[str, Any]:
        return {way: self._way(way) for way in WAYS}

    def _way(self, way: str) -> dict[str, Any]:
        windows, joined = self.windows[way], self.joined[way]
        quiet = [self.during_quiet(d) for d in (windows, joined)]
        latencies = self.latencies(way)
        triggers = {"windows": windows.trigger_ms, "join": joined.trigger_ms}
        return {
            "rows_during_quiet": sum(quiet),
            "windows_during_quiet": quiet[0],
            "joined_during_quiet": quiet[1],
            "rows_total": windows.between(0, 10**9) + joined.between(0, 10**9),
            "rows_dropped": windows.dropped + joined.dropped,
            "latency_batches": {
                "p50": statistics.median(latencies) if latencies else None,
                "max": max(latencies, default=None),
            },
            "trigger_ms_p50": {job: statistics.median(t) for job, t in triggers.items()},
        }

    def to_json(self) -> dict[str, Any]:
        return {
            "experiment": "idle-source",
            "seed": self.setup.seed,
            "quiet_seconds": self.setup.quiet_seconds,
            "skew_seconds": SKEW,
            "rates_per_s": RATES,
            **self.to_dict(),
            "expected": self.expected(),
        }


# The jobs, in PySpark and nothing else --------------------------------------------------------


def plainly(readings: DataFrame, alerts: DataFrame) -> Streams:
    delay = f"{SKEW} seconds"
    return readings.withWatermark("ts", delay), alerts.withWatermark("ts", delay)


def synchronized(readings: DataFrame, alerts: DataFrame) -> Streams:
    first, second = synchronize(readings, alerts, time="ts", bounds=bounds(skew=f"{SKEW}s"))
    return first, second


def counted(readings: DataFrame, alerts: DataFrame) -> DataFrame:
    """Rows of both streams by window and key."""
    window = F.window("ts", f"{WINDOW} seconds")
    counts = readings.union(alerts).groupBy(window, "key").agg(F.count("*").alias("n"))
    return counts.select(F.unix_micros("window.end").alias("end"), "key", "n")


def matched(readings: DataFrame, alerts: DataFrame) -> DataFrame:
    """Each reading with the alerts of its key in the second around it, or alone."""
    near = F.expr(
        "r.key = a.key AND a.ts BETWEEN r.ts - INTERVAL 500 MILLISECONDS "
        "AND r.ts + INTERVAL 500 MILLISECONDS"
    )
    pairs = readings.alias("r").join(alerts.alias("a"), near, "left_outer")
    return pairs.select("r.value", F.col("a.value").alias("alert"))


_WAYS: dict[str, Callable[[DataFrame, DataFrame], Streams]] = {
    "plain": plainly,
    "interpunct": synchronized,
}


def idle_source(
    setup: Setup, report: Report = silent, spark: SparkSession | None = None
) -> IdleSource:
    """Run the experiment, in a Spark session of its own unless one is given or there."""
    found = spark or SparkSession.getActiveSession()
    used = found or session(2, name="idle-source")
    try:
        windows = {way: _run(used, setup, way, counted, report, i / 4)
                   for i, way in enumerate(WAYS)}  # fmt: skip
        joined = {way: _run(used, setup, way, matched, report, (2 + i) / 4)
                  for i, way in enumerate(WAYS)}  # fmt: skip
    finally:
        if found is None:
            used.stop()
    return IdleSource(setup, windows, joined)


def _run(
    spark: SparkSession,
    setup: Setup,
    way: str,
    job: Callable[[DataFrame, DataFrame], DataFrame],
    report: Report,
    done: float,
) -> Delivered:
    """One query over all batches."""
    readings, alerts = (workload(spark, "poisson", **setup.options(s)) for s in RATES)
    delivered = Delivered()

    def keep(rows: DataFrame, batch: int) -> None:
        delivered.rows[batch] = rows.collect()
        report(done + min(1.0, batch / setup.seconds) / 4, f"{way}, {job.__name__}")

    report(done, f"{way}, {job.__name__}")
    with passing() as checkpoint:
        query = (
            job(*_WAYS[way](readings, alerts))
            .writeStream.foreachBatch(keep)
            .option("checkpointLocation", str(checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        try:
            query.awaitTermination()
        finally:
            query.stop()
        for progress in query.recentProgress:
            delivered.trigger_ms.append(progress["durationMs"]["triggerExecution"])
            operators = progress["stateOperators"]
            delivered.dropped += sum(o["numRowsDroppedByWatermark"] for o in operators)
    return delivered


def plot_idle(result: IdleSource, path: Path) -> None:
    """Rows delivered so far, second by second."""
    from interpunct.lab.figures import figure, saved

    drawing, panels = figure(2, "A source goes quiet")
    jobs: Sequence[tuple[str, Mapping[str, Delivered]]] = (
        ("windows over a union", result.windows), ("left outer join", result.joined),
    )  # fmt: skip
    for axes, (title, ways) in zip(panels, jobs, strict=True):
        for way, colour in (("plain", "tab:red"), ("interpunct", "tab:green")):
            batches = range(result.setup.seconds + 1)
            axes.plot(batches, [ways[way].between(0, n + 1) for n in batches],
                      color=colour, label=way)  # fmt: skip
        axes.axvspan(
            result.setup.lead, result.setup.seconds - result.setup.tail,
            color="0.9", label="alerts quiet",
        )  # fmt: skip
        axes.set(title=title, xlabel="batch (one second of the streams)", ylabel="rows delivered")
        axes.legend()
    saved(drawing, path)
