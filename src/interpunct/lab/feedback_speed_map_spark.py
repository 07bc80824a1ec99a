"""The speed map with feedback on Spark: the same recording, with the driver's switches and without.

    replay ── ingest: reading, quality filter, averages in part ── lanes: AVERAGE ── map
                 ▲                                                   ▲                │
                 └───────────── a batch later ───────────────────────┴── next batch ──┘

An hour of the stream makes a batch, taken as fast as it goes, so that feedback has to be ahead of
it: it is with the lanes in the next batch and with the source in the one after. The driver follows
a route, and after each batch the map tells what will be looked at until two batches later. The
first batch, in which everything is still being compiled, does not count.
"""

from __future__ import annotations

import shutil
import statistics
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
from pyspark.sql import DataFrame, SparkSession

from interpunct.lab.detectors import DETECTORS, EVERY, SEGMENTS, Recording, freeway
from interpunct.lab.isolated import Report, silent
from interpunct.lab.map_pictures import SpeedMap
from interpunct.lab.throughput import trigger_seconds
from interpunct.lab.zooming import F0, F3, MINUTE, Drive, View
from interpunct.spark.query import FlowQuery
from interpunct.spark.replay import replay
from interpunct.spark.session import session

LEAST = 65.0  # per cent of F0's time that F3 saves
FREQUENT = 5.0  # per cent of F0's time that the most frequent switches may cost beyond the fewest
AHEAD = 2  # batches
WARM = 1  # batches that do not count
MEASURE = (
    "seconds that the query's batches took, drawing included, but for the first; the median of "
    "turns, and savings as ratios within a turn"
)


@dataclass(frozen=True)
class Setup:
    """`batch_minutes` of the stream in each batch."""

    hours: float = 18.0
    batch_minutes: int = 60
    turns: int = 2
    seed: int = 1
    minutes: tuple[int, ...] = (2, 4, 6)
    folder: Path = Path("out/speedmap")

    @property
    def batch_rows(self) -> int:
        return self.batch_minutes * 60 // EVERY * SEGMENTS * DETECTORS


@dataclass
class Navigator:
    """Draws what a batch has for the map, and tells the query what will be looked at next."""

    views: list[View]
    ahead: int  # ticks
    drawn: SpeedMap = field(default_factory=SpeedMap)
    query: FlowQuery | None = None
    messages: int = 0

    def __call__(self, rows: DataFrame, batch: int) -> None:
        del batch
        frame = pl.from_arrow(rows.toArrow())
        assert isinstance(frame, pl.DataFrame)
        self.drawn(frame)
        if self.query is None or not frame.height:
            return
        reached = int(frame["ts"].to_physical().max())  # type: ignore[arg-type]
        while self.views and self.views[0].start <= reached + self.ahead:
            self.query.feedback("map", str(self.views.pop(0)))
            self.messages += 1


@dataclass(frozen=True)
class Run:
    seconds: float
    pictures: int
    messages: int
    skipped: dict[str, int]
    results: pl.DataFrame = field(repr=False)


def run_query(
    spark: SparkSession, recording: Recording, setup: Setup, views: list[View], checkpoint: Path
) -> Run:
    """The whole recording as one query."""
    stream = replay(spark, str(setup.folder / "sensors.parquet"), finish=True,
                    rows_per_batch=setup.batch_rows)  # fmt: skip
    navigator = Navigator(views, AHEAD * setup.batch_minutes * MINUTE)
    query = recording.flow().start(
        spark, {"sensors": stream}, checkpoint=str(checkpoint),
        sinks={"map": navigator}, trigger={"availableNow": True},
    )  # fmt: skip
    navigator.query = query
    query.await_termination()
    skipped = {name: sum(counts.values()) for name, counts in query.skipped().items()}
    drawn = navigator.drawn
    results = pl.concat(drawn.frames).sort("ts", "segment")
    seconds = sum(trigger_seconds(query.progress)[WARM:])
    return Run(seconds, drawn.pictures, navigator.messages, skipped, results)


@dataclass
class SparkSpeedMap:
    setup: Setup
    runs: dict[int, list[Run]] = field(default_factory=dict)  # by minutes, 0 without feedback
    identical: bool = True  # what is looked at is that of F0, in every run

    def ratio(self, minutes: int) -> float:
        turns = zip(self.runs[minutes], self.runs[0], strict=True)
        return statistics.median(run.seconds / plain.seconds for run, plain in turns)

    def saved_pct(self) -> dict[str, float]:
        return {f"{m}": round(100 - 100 * self.ratio(m), 1) for m in self.setup.minutes}

    @property
    def frequency_pct(self) -> float:
        """What the most frequent switches cost more than the fewest, in per cent of F0's time."""
        most, fewest = min(self.setup.minutes), max(self.setup.minutes)
        return round(100 * (self.ratio(most) - self.ratio(fewest)), 1)

    def to_json(self) -> dict[str, Any]:
        def each(value: Any) -> dict[str, Any]:
            told = {f"{m}": value(self.runs[m]) for m in self.setup.minutes}
            return {F0: value(self.runs[0]), F3: told}

        return {
            "rows_a_batch": self.setup.batch_rows,
            "measure": MEASURE,
            "seconds": each(lambda runs: round(statistics.median(r.seconds for r in runs), 2)),
            "saved_pct": {F3: self.saved_pct()},
            "frequency_costs_pct": {F3: self.frequency_pct},
            "pictures": each(lambda runs: runs[0].pictures),
            "messages": each(lambda runs: runs[0].messages),
            "skipped": each(lambda runs: runs[0].skipped),
            "viewed_identical": self.identical,
        }

    def expected(self) -> dict[str, bool]:
        return {
            f"{F3}_saves_{LEAST:g}_pct": min(self.saved_pct().values()) >= LEAST,
            "what_is_viewed_is_identical": self.identical,
            f"frequency_costs_at_most_{FREQUENT:g}_pct": self.frequency_pct <= FREQUENT,
        }


def spark_speed_map(setup: Setup, report: Report = silent) -> SparkSpeedMap:
    """The ways take turns over one recording."""
    recording = freeway(setup.hours, setup.seed)
    setup.folder.mkdir(parents=True, exist_ok=True)
    recording.frame.write_parquet(
        setup.folder / "sensors.parquet", row_group_size=setup.batch_rows // 2
    )
    result = SparkSpeedMap(setup, {minutes: [] for minutes in (0, *setup.minutes)})
    spark = session(2, spark__driver__memory="4g")
    try:
        for turn in range(setup.turns):
            for at, (minutes, runs) in enumerate(result.runs.items()):
                report((turn + at / len(result.runs)) / setup.turns, f"Spark, {minutes or 'no'}")
                drive = Drive(recording.segments, minutes or setup.minutes[0], *recording.span)
                views = list(drive.views()) if minutes else []
                checkpoint = setup.folder / f"{minutes}-{turn}"
                runs.append(run_query(spark, recording, setup, views, checkpoint))
                seen = drive.seen(result.runs[0][turn].results)
                result.identical &= same(drive.seen(runs[turn].results), seen)
    finally:
        spark.stop()
        shutil.rmtree(setup.folder, ignore_errors=True)
    return result


def same(found: pl.DataFrame, expected: pl.DataFrame) -> bool:
    """But for the last digit: sums are put together from parts, in the order in which they come."""
    speed = pl.col("speed").round(9)
    return found.with_columns(speed).equals(expected.with_columns(speed))
