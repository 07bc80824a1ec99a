"""Imputation with and without feedback (Feedback section 6, Experiment 1, Figures 5 and 6).

              ┌─ clean ──────────────┐
    sensors ──┤                      ├─ PACE ── speed map          5,000 tuples, clean and dirty
              └─ dirty ── IMPUTE ────┘                             in turns, on the real clock

One query is issued for each dirty tuple. The paper names neither the rate nor the tolerance. Here
the plan is first measured without pauses, and tuples then come so fast that IMPUTE can look up
about nine tenths of the dirty ones: overload that no patience cures, and yet work worth doing. By
default PACE tolerates the time in which 12 dirty tuples come.

Dropped is an imputed tuple that is not in the result because it was beyond the tolerance, whether
PACE ignored it or IMPUTE was told in time. Without feedback it is the same plan, and the same PACE,
which tells nobody.

Mind what is ours in the numbers. At least those tuples are dropped for which there was no time to
look them up, so with feedback the share dropped follows from the rate, which is chosen here, and
from whatever else the machine does meanwhile: on a busy one it is higher. `useful_look_ups_pct`,
how many look-ups were for a tuple that came in time, depends on neither so much.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from interpunct.api import Flow
from interpunct.engine.feeds import feed
from interpunct.engine.run import Driver, Engine
from interpunct.lab.isolated import Job, Report, run_jobs, silent
from interpunct.lab.speed_archive import ABOUT, QUERY, SCHEMA, sensors, speed_archive
from interpunct.progress.clock import RealClock
from interpunct.progress.timestamps import external

WITHOUT, WITH = WAYS = ("without", "with")
SHARE = 0.91  # of the time that the whole plan needs for a pair of tuples, between two pairs
TOLERATED = 12  # dirty tuples
PROBE, PROBES = 40, 8  # tuples by which the plan is measured, and how often
SECOND = 1_000_000


@dataclass(frozen=True)
class Setup:
    """Without `rate` (tuples a second) or `tolerance` (seconds) they are chosen as said above;
    with no workers everything runs in this process."""

    tuples: int = 5000
    rate: float | None = None
    tolerance: float | None = None
    seed: int = 1
    rows: int = 400_000
    workers: int = 1


@dataclass(frozen=True)
class Outcome:
    """What left the plan, and when, in seconds: timely tuples and late ones."""

    timely: pl.DataFrame = field(repr=False)  # id, ts_s, left_s
    late: pl.DataFrame = field(repr=False)
    dirty: int
    looked_up: int
    purged: int
    seconds: float

    @property
    def imputed(self) -> pl.DataFrame:
        return self.timely.filter(pl.col("id") % 2 == 1)

    @property
    def dropped_pct(self) -> float:
        return 100 * (1 - self.imputed.height / self.dirty)

    @property
    def useful_pct(self) -> float:
        return 100 * self.imputed.height / max(1, self.looked_up)


def run_plan(path: str, stream: pl.DataFrame, tolerance: int, feedback: bool) -> Outcome:
    """The plan of Figure 4 (a) over a stream that comes as its timestamps say."""
    flow = Flow("imputation")
    source = flow.source("sensors", SCHEMA, time=external("ts", ordered=True))
    dirty, clean = source.split("speed is null", name="quality")
    imputed = dirty.impute("speed", archive=path, query=QUERY, name="impute")
    united = clean.pace(imputed, within=tolerance, feedback=feedback, name="pace")
    flow.sink("map", united)
    flow.sink("late", united.late)
    clock = RealClock()
    left: dict[str, list[tuple[int, pl.DataFrame]]] = {"map": [], "late": []}
    deliver = {
        name: lambda frame, kept=kept: kept.append((clock.now(), frame))
        for name, kept in left.items()
    }
    engine = Engine(flow.graph, clock, deliver=deliver)
    began = clock.now()
    Driver(engine, {"sensors": feed(stream, arrival="ts")}).run()
    timely, late = (_points(kept, began) for kept in left.values())
    purged = sum(engine.skipped().get("impute", {}).values())
    answered = timely.filter(pl.col("id") % 2 == 1).height + late.height
    return Outcome(
        timely, late, stream.get_column("speed").null_count(), answered, purged,
        (clock.now() - began) / SECOND,
    )  # fmt: skip


def _points(kept: list[tuple[int, pl.DataFrame]], began: int) -> pl.DataFrame:
    parts = [
        frame.select(
            "id",
            (pl.col("ts").to_physical() / SECOND).alias("ts_s"),
            pl.lit((moment - began) / SECOND).alias("left_s"),
        )
        for moment, frame in kept
    ]
    empty = pl.DataFrame(schema={"id": pl.Int64, "ts_s": pl.Float64, "left_s": pl.Float64})
    return pl.concat([empty, *parts])


def time_of_a_pair(path: str, seed: int) -> float:
    """Seconds of the processor that the plan needs for a clean and a dirty tuple when nothing makes
    it wait: what else the machine does at that moment is not counted."""
    stream = sensors(PROBE, 1, 2, seed)
    taken = []
    for _ in range(PROBES):
        began = time.process_time()
        run_plan(path, stream, SECOND, feedback=False)
        taken.append(time.process_time() - began)
    return min(taken) / (PROBE / 2)


@dataclass(frozen=True)
class Imputation:
    setup: Setup
    pair_ms: float
    rate: float
    tolerance: float
    outcomes: dict[str, Outcome] = field(repr=False)

    @property
    def dropped(self) -> dict[str, float]:
        return {way: round(o.dropped_pct, 2) for way, o in self.outcomes.items()}

    def expected(self) -> dict[str, bool]:
        """What the paper found: 97 % without feedback, 29 % with it."""
        return {
            "without_feedback_more_than_90_pct_are_dropped": self.dropped[WITHOUT] > 90,
            "with_feedback_at_most_29_pct_are_dropped": self.dropped[WITH] <= 29,
            "with_feedback_fewer_look_ups_are_made": (
                self.outcomes[WITH].looked_up < self.outcomes[WITHOUT].looked_up
            ),
        }

    def to_json(self) -> dict[str, Any]:
        return {
            "experiment": "imputation",
            "seed": self.setup.seed,
            "tuples": self.setup.tuples,
            "archive": ABOUT.format(rows=self.setup.rows),
            "cpu_ms_per_clean_and_dirty_tuple": round(self.pair_ms, 3),
            "rate_per_s": round(self.rate, 3),
            "tolerance_s": round(self.tolerance, 4),
            "dropped_pct": self.dropped,
            "useful_look_ups_pct": {
                way: round(o.useful_pct, 2) for way, o in self.outcomes.items()
            },
            "dirty": {way: o.dirty for way, o in self.outcomes.items()},
            "looked_up": {way: o.looked_up for way, o in self.outcomes.items()},
            "looked_up_in_vain": {way: o.late.height for way, o in self.outcomes.items()},
            "purged": {way: o.purged for way, o in self.outcomes.items()},
            "seconds": {way: round(o.seconds, 2) for way, o in self.outcomes.items()},
            "expected": self.expected(),
        }


def imputation(setup: Setup, report: Report = silent) -> Imputation:
    """Measure the plan, then run it both ways, one after the other."""
    with speed_archive(setup.rows, setup.seed) as path:
        probe = Job("measuring", time_of_a_pair, (path, setup.seed), 10.0)
        (pair,) = run_jobs([probe], workers=setup.workers, report=report)
        rate = setup.rate or 2 / (SHARE * pair)
        tolerance = setup.tolerance or TOLERATED * 2 / rate
        stream = sensors(setup.tuples, round(SECOND / rate), 2, setup.seed)
        jobs = [
            Job(f"{way} feedback", run_plan, (path, stream, round(tolerance * SECOND), way == WITH),
                setup.tuples / rate)
            for way in WAYS
        ]  # fmt: skip
        outcomes = run_jobs(jobs, workers=setup.workers, report=report)
    by_way = dict(zip(WAYS, outcomes, strict=True))
    return Imputation(setup, 1000 * pair, rate, tolerance, by_way)


def plot_imputation(result: Imputation, path: Path) -> None:
    """Figures 5 and 6: when each tuple left, over its timestamp."""
    from interpunct.lab.figures import figure, saved

    drawing, axes = figure(2, "Imputation query plan")
    for panel, (way, outcome) in zip(axes, result.outcomes.items(), strict=True):
        clean = outcome.timely.filter(pl.col("id") % 2 == 0)
        shown = {
            "clean": (clean, "tab:blue"),
            "imputed, in time": (outcome.imputed, "tab:green"),
            "imputed, too late": (outcome.late, "tab:red"),
        }
        for label, (points, colour) in shown.items():
            panel.scatter(points["left_s"], points["ts_s"], s=2, color=colour, label=label)
        panel.set(
            title=f"{way} feedback: {outcome.dropped_pct:.0f} % of imputed tuples dropped",
            xlabel="left the plan at (s)", ylabel="timestamp (s)",
        )  # fmt: skip
        panel.legend(markerscale=4)
    saved(drawing, path)
