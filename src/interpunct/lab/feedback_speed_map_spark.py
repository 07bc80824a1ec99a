"""The speed map with feedback on Spark: the same recording, with the driver's switches and without.

    replay ── ingest: reading, quality filter, averages in part ── lanes: AVERAGE ── map
                 ▲                                                   ▲                │
                 └───────────── a batch later ───────────────────────┴── next batch ──┘

An hour of the stream makes a batch, taken as fast as it goes, so that feedback has to be ahead of
it: it is with the lanes in the next batch and with the source in the one after. The driver follows
a route, and after each batch the map tells what will be looked at until two batches later. The
first batch, in which everything is still being compiled, does not count, nor does a first run.

With F1 the lanes keep what nobody looks at from the map; with F2 they do not put its averages
together, though ingest has read and summed what they are made of; with F3 ingest, too, leaves it.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
from pyspark.sql import DataFrame, SparkSession

from interpunct.lab.detectors import DETECTORS, EVERY, SEGMENTS, Recording, freeway
from interpunct.lab.folders import fresh
from interpunct.lab.isolated import Report, silent
from interpunct.lab.map_pictures import SpeedMap
from interpunct.lab.schemes import Case, Comparison, cases
from interpunct.lab.throughput import trigger_seconds
from interpunct.lab.zooming import F0, F3, MINUTE, Drive, View, restrained
from interpunct.spark.query import FlowQuery
from interpunct.spark.replay import replay
from interpunct.spark.session import session

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
    spark: SparkSession, recording: Recording, setup: Setup, case: Case, checkpoint: Path
) -> Run:
    """The whole recording as one query."""
    stream = replay(spark, str(setup.folder / "sensors.parquet"), finish=True,
                    rows_per_batch=setup.batch_rows)  # fmt: skip
    views: list[View] = []
    if case.scheme != F0:
        views += Drive(recording.segments, case.minutes, *recording.span).views()
    navigator = Navigator(views, AHEAD * setup.batch_minutes * MINUTE)
    query = restrained(recording.flow(), case.scheme).start(
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
    runs: dict[Case, list[Run]]
    identical: bool = True  # what is looked at is that of F0, in every run

    @property
    def compared(self) -> Comparison:
        return Comparison(self.setup.minutes, self.runs)

    def to_json(self) -> dict[str, Any]:
        by_scheme = self.compared.by_scheme
        return {
            "rows_a_batch": self.setup.batch_rows,
            "measure": MEASURE,
            **self.compared.to_json(),
            "pictures": by_scheme(lambda case: self.runs[case][0].pictures),
            "messages": by_scheme(lambda case: self.runs[case][0].messages),
            "skipped": by_scheme(lambda case: self.runs[case][0].skipped),
            "viewed_identical": self.identical,
        }

    def expected(self) -> dict[str, bool]:
        return {**self.compared.expected(), "what_is_viewed_is_identical": self.identical}


def spark_speed_map(setup: Setup, report: Report = silent) -> SparkSpeedMap:
    """The cases take turns over one recording."""
    recording = freeway(setup.hours, setup.seed)
    fresh(setup.folder)
    recording.frame.write_parquet(
        setup.folder / "sensors.parquet", row_group_size=setup.batch_rows // 2
    )
    result = SparkSpeedMap(setup, {case: [] for case in cases(setup.minutes)})
    spark = session(2, spark__driver__memory="4g")
    try:
        report(0.0, "Spark, warming up")
        warming = Case(F3, setup.minutes[0])
        run_query(spark, recording, setup, warming, setup.folder / "warming")
        for turn in range(setup.turns):
            for at, (case, runs) in enumerate(result.runs.items()):
                doing = " ".join(("Spark,", case.scheme, f"{case.minutes or ''}"))
                report((turn + at / len(result.runs)) / setup.turns, doing)
                checkpoint = setup.folder / f"{case.scheme}-{case.minutes}-{turn}"
                runs.append(run_query(spark, recording, setup, case, checkpoint))
                result.identical &= alike(recording, case, runs[turn], result.runs[Case(F0)][turn])
    finally:
        spark.stop()
        shutil.rmtree(setup.folder, ignore_errors=True)
    return result


def alike(recording: Recording, case: Case, run: Run, plain: Run) -> bool:
    """Whether what is looked at is what it is without feedback."""
    if case.scheme == F0:
        return True
    drive = Drive(recording.segments, case.minutes, *recording.span)
    return same(drive.seen(run.results), drive.seen(plain.results))


def same(found: pl.DataFrame, expected: pl.DataFrame) -> bool:
    """But for the last digit: sums are put together from parts, in the order in which they come."""
    speed = pl.col("speed").round(9)
    return found.with_columns(speed).equals(expected.with_columns(speed))
