"""The speed map with feedback (Feedback section 6, Experiment 2, Figure 7).

    sensors ── quality filter ── AVERAGE ── map            18 hours of 9 segments × 40 detectors,
                    ▲               ▲        │             20 seconds apart: 1.17 million tuples
                    └───── F3 ──────┴─ F1 F2 ┘  ¬[segment ≠ 3, ts ∈ [9:00, 9:02)]

A driver looks at one segment and switches to another every 2, 4 or 6 minutes of stream time. What
is looked at must be the same in every scheme; what differs is how much is done for the rest.

AVERAGE makes an average for each segment of every 20 seconds, so that the map is drawn anew with
every report. Half of the paper's time went by behind AVERAGE (F1 saves it), and so most of it does
here: the map draws. What the schemes save otherwise is not spread as it was there. NiagaraST
handles tuple by tuple, so that to guard an input saves what the input would have cost; here a page
costs about the same for forty tuples as for four hundred, until it is large, and guards have a cost
by the page too. Hence the two sizes of page: one report of all detectors, and six.
"""

from __future__ import annotations

import gc
import statistics
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from interpunct.engine.run import Engine
from interpunct.lab.detectors import (
    AARHUS,
    CITY,
    FREEWAY,
    PAGE_SIZES,
    Recording,
    aarhus,
    find_aarhus,
    freeway,
)
from interpunct.lab.isolated import Job, Report, run_jobs, silent
from interpunct.lab.map_pictures import ABOUT, SpeedMap
from interpunct.lab.schemes import FREQUENT, Case, Comparison, cases
from interpunct.lab.zooming import F0, F3, MEANING, SCHEMES, Drive, View, restrained
from interpunct.model.page import Page
from interpunct.progress.clock import ScriptedClock

if TYPE_CHECKING:
    from interpunct.lab.feedback_speed_map_spark import SparkSpeedMap

MEASURE = (
    "processor seconds of one thread, from the first page to the last picture; the median of turns "
    "in which all cases follow one another; savings are ratios within a turn"
)


@dataclass(frozen=True)
class Setup:
    """`data` is the recording of Aarhus or where it is; with no workers everything runs here."""

    hours: float = 18.0
    turns: int = 3
    seed: int = 1
    data: Path | None = None
    spark: bool = False
    workers: int = 1


@dataclass(frozen=True)
class Run:
    """What one run took, and came to."""

    seconds: float
    elapsed: float
    drawing: float
    pictures: int
    messages: int
    skipped: dict[str, int]
    results: pl.DataFrame = field(repr=False)


def run_case(recording: Recording, page_size: int, case: Case) -> Run:
    """The whole recording through the plan of a case, page by page as fast as it goes."""
    drawn = SpeedMap()
    graph = restrained(recording.flow(), case.scheme).graph
    engine = Engine(graph, ScriptedClock(), deliver={"map": drawn})
    pages = recording.pages(page_size)
    views: list[View] = []
    if case.scheme != F0:
        views += Drive(recording.segments, case.minutes, *recording.span).views()
    gc.collect()
    began, elapsed = time.process_time(), time.perf_counter()
    _through(engine, pages, views)
    seconds, elapsed = time.process_time() - began, time.perf_counter() - elapsed
    skipped = {name: sum(counts.values()) for name, counts in engine.skipped().items()}
    results = pl.concat(drawn.frames).sort("ts", "segment")
    return Run(seconds, elapsed, drawn.seconds, drawn.pictures, len(views), skipped, results)


def _through(engine: Engine, pages: list[Page], views: list[View]) -> None:
    """Feed the pages, and before each say what will be looked at from some time in it on."""
    told = 0
    for page in pages:
        until = int(page.frame["ts"].to_physical().max())  # type: ignore[arg-type]
        while told < len(views) and views[told].start <= until:
            engine.feedback("map", str(views[told]))
            told += 1
        engine.feed("sensors", page)
        engine.settle()
    engine.finish("sensors")
    engine.settle()


@dataclass(frozen=True)
class Outcome:
    """All cases of one recording and one size of page."""

    page_size: int
    minutes: tuple[int, ...]
    runs: dict[Case, list[Run]] = field(repr=False)  # by turn, without their results
    viewed: dict[Case, int]  # results that were looked at
    identical: bool  # these are those of F0, in every case and turn

    @property
    def compared(self) -> Comparison:
        return Comparison(self.minutes, self.runs)

    def to_json(self) -> dict[str, Any]:
        plain = self.runs[Case(F0)]
        drawing = statistics.median(run.drawing / run.seconds for run in plain)
        by_scheme = self.compared.by_scheme
        return {
            "page_tuples": self.page_size,
            **self.compared.to_json(),
            "elapsed_s": by_scheme(
                lambda case: round(statistics.median(r.elapsed for r in self.runs[case]), 2)
            ),
            "f0_drawing_pct": round(100 * drawing, 1),
            "turns_differ_pct": round(100 * self._spread(), 1),
            "pictures": by_scheme(lambda case: self.runs[case][0].pictures),
            "messages": by_scheme(lambda case: self.runs[case][0].messages),
            "skipped": by_scheme(lambda case: self.runs[case][0].skipped),
            "viewed_results": {f"{c.minutes}": n for c, n in self.viewed.items() if c.scheme == F3},
            "viewed_identical": self.identical,
        }

    def _spread(self) -> float:
        """By how much the turns of a case differ at most, in parts of F0's time."""
        spreads = (max(r.seconds for r in runs) - min(r.seconds for r in runs)
                   for runs in self.runs.values())  # fmt: skip
        return max(spreads) / self.compared.seconds(Case(F0))

    def expected(self) -> dict[str, bool]:
        return {**self.compared.expected(), "what_is_viewed_is_identical": self.identical}


def measure(recording: Recording, page_size: int, turns: int) -> Outcome:
    """The cases, one after another, so many times over."""
    runs: dict[Case, list[Run]] = {case: [] for case in cases(recording.minutes)}
    viewed: dict[Case, int] = {}
    identical = True
    for _ in range(turns):
        everything = pl.DataFrame()
        for case, found in runs.items():
            run = run_case(recording, page_size, case)
            if case.scheme == F0:
                everything = run.results
            else:
                drive = Drive(recording.segments, case.minutes, *recording.span)
                seen = drive.seen(run.results)
                viewed[case] = seen.height
                identical &= seen.equals(drive.seen(everything))
            found.append(replace(run, results=run.results.clear()))
    return Outcome(page_size, recording.minutes, runs, viewed, identical)


def measure_freeway(setup: Setup, page_size: int) -> Outcome:
    return measure(freeway(setup.hours, setup.seed), page_size, setup.turns)


def measure_aarhus(setup: Setup, path: Path) -> Outcome:
    """Pages of one report of all segments: there are few reports, and a picture of each segment."""
    recording = aarhus(path, setup.hours)
    return measure(recording, recording.page_sizes[0], setup.turns)


@dataclass(frozen=True)
class FeedbackSpeedMap:
    setup: Setup
    outcomes: dict[str, Outcome] = field(repr=False)  # by recording and tuples in a page
    left_out: tuple[str, ...] = ()
    spark: SparkSpeedMap | None = field(default=None, repr=False)

    def expected(self) -> dict[str, bool]:
        found = {
            f"{name}_{k}": v for name, o in self.outcomes.items() for k, v in o.expected().items()
        }
        more = {} if self.spark is None else self.spark.expected()
        return {**found, **{f"spark_{k}": v for k, v in more.items()}}

    def to_json(self) -> dict[str, Any]:
        first = next(iter(self.outcomes.values())).to_json()
        return {
            "experiment": "speedmap",
            "seed": self.setup.seed,
            "hours": self.setup.hours,
            "turns": self.setup.turns,
            "schemes": MEANING,
            "quality_filter": {"freeway": FREEWAY, "aarhus": CITY},
            "map": ABOUT,
            "measure": MEASURE,
            "seconds": first["seconds"],
            "saved_pct": first["saved_pct"],
            "frequency_may_cost_pct": FREQUENT,
            "streams": {name: outcome.to_json() for name, outcome in self.outcomes.items()},
            "left_out": list(self.left_out),
            "spark": None if self.spark is None else self.spark.to_json(),
            "expected": self.expected(),
        }


def feedback_speed_map(setup: Setup, report: Report = silent) -> FeedbackSpeedMap:
    """The simulated freeway with pages of both sizes, Aarhus if it is there, Spark if asked for."""
    jobs = {
        f"freeway_{size}": Job(f"pages of {size}", measure_freeway, (setup, size), 70 * setup.hours)
        for size in PAGE_SIZES
    }
    path = find_aarhus(setup.data)
    if path is not None:
        jobs["aarhus"] = Job("Aarhus", measure_aarhus, (setup, path), 15 * setup.hours)
    part = 0.6 if setup.spark else 1.0
    outcomes = run_jobs(
        list(jobs.values()), workers=setup.workers, environment={"POLARS_MAX_THREADS": "1"},
        report=lambda done, doing: report(part * done, doing),
    )  # fmt: skip
    left_out = () if path is not None else (f"aarhus: no {AARHUS}; give --data",)
    named = dict(zip(jobs, outcomes, strict=True))
    spark = _on_spark(setup, lambda d, doing: report(part + (1 - part) * d, doing))
    return FeedbackSpeedMap(setup, named, left_out, spark)


def _on_spark(setup: Setup, report: Report) -> SparkSpeedMap | None:
    if not setup.spark:
        return None
    from interpunct.lab import feedback_speed_map_spark as on_spark

    minutes = min(60, max(6, round(setup.hours * 60 / 5)))  # a short stream has short batches
    return on_spark.spark_speed_map(
        on_spark.Setup(setup.hours, minutes, setup.turns, setup.seed), report
    )


def plot_speed_map(result: FeedbackSpeedMap, path: Path) -> None:
    """Figure 7: the schemes side by side, by how often the driver switches."""
    from interpunct.lab.figures import figure, saved

    drawing, axes = figure(len(result.outcomes), "Speed map: comparison of feedback schemes")
    panels = [axes] if len(result.outcomes) == 1 else list(axes)
    for panel, (name, outcome) in zip(panels, result.outcomes.items(), strict=True):
        for at, scheme in enumerate(SCHEMES):
            found = [Case(scheme, m if scheme != F0 else 0) for m in outcome.minutes]
            places = [n + 0.2 * (at - 1.5) for n in range(len(found))]
            bars = panel.bar(
                places, [outcome.compared.seconds(c) for c in found], 0.18, label=scheme
            )
            panel.bar_label(bars, fmt="%.0f", fontsize=7)
        panel.set_xticks(range(len(outcome.minutes)), [f"{m}" for m in outcome.minutes])
        panel.set(title=f"{name.split('_')[0]}, pages of {outcome.page_size}",
                  xlabel="minutes between switches", ylabel="execution time (s)")  # fmt: skip
        panel.legend()
    saved(drawing, path)
