"""Desired feedback under backlog: what is wanted first comes first (Feedback section 3.4).

    sensors ── IMPUTE ── speed map       every tuple needs a look-up, and they come three times
                  ▲                      faster than look-ups are made
                  └──  ?[segment = 3]    a driver on segment 3 of ten

The same stream goes through the plan twice, on the real clock, with the wish and without it: the
wish changes when results come, and not what they are.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from interpunct.api import Flow
from interpunct.engine.feeds import feed
from interpunct.engine.run import Driver, Engine
from interpunct.lab.isolated import Job, Report, run_jobs, silent
from interpunct.lab.speed_archive import ABOUT, QUERY, SCHEMA, SEGMENTS, sensors, speed_archive
from interpunct.model.feedback import Feedback
from interpunct.progress.clock import RealClock
from interpunct.progress.timestamps import external

WISHED = 3  # the segment
OVERLOAD = 3.0  # tuples that come in the time of a look-up
PROBE, PROBES = 50, 5  # tuples by which the plan is measured, and how often
SECOND = 1_000_000
MEASURE = "from a tuple's arrival until the sink is given it, on one clock"


@dataclass(frozen=True)
class Setup:
    tuples: int = 1500
    seed: int = 1
    rows: int = 40_000
    workers: int = 1


@dataclass(frozen=True)
class Outcome:
    rows: pl.DataFrame = field(repr=False)  # the result, sorted
    latencies: pl.DataFrame = field(repr=False)  # segment, latency_s
    seconds: float

    def median(self, wished: bool) -> float:
        chosen = (pl.col("segment") == WISHED) == wished
        return float(np.median(self.latencies.filter(chosen)["latency_s"]))


def run_plan(path: str, stream: pl.DataFrame, wish: bool) -> Outcome:
    """The plan over a stream that comes as its timestamps say."""
    flow = Flow("desired")
    source = flow.source("sensors", SCHEMA, time=external("ts", ordered=True))
    flow.sink("map", source.impute("speed", archive=path, query=QUERY, name="impute"))
    clock = RealClock()
    left: list[tuple[int, pl.DataFrame]] = []
    engine = Engine(
        flow.graph, clock, deliver={"map": lambda frame: left.append((clock.now(), frame))}
    )
    if wish:
        schema = flow.nodes["impute"].outputs[0].schema
        engine.feedback("map", Feedback.parse(f"?[segment = {WISHED}]", schema))
    began = clock.now()
    Driver(engine, {"sensors": feed(stream, arrival="ts")}).run()
    latencies = [
        frame.select(
            "segment", ((moment - began - pl.col("ts").to_physical()) / SECOND).alias("latency_s")
        )
        for moment, frame in left
    ]
    rows = pl.concat([frame for _, frame in left]).sort("id")
    return Outcome(rows, pl.concat(latencies), (clock.now() - began) / SECOND)


def time_of_a_tuple(path: str, seed: int) -> float:
    """Seconds that the plan needs for one when nothing makes it wait, the least of several."""
    stream = sensors(PROBE, 1, 1, seed)
    return min(run_plan(path, stream, False).seconds for _ in range(PROBES)) / PROBE


@dataclass(frozen=True)
class Desired:
    setup: Setup
    tuple_ms: float
    rate: float
    wished: Outcome = field(repr=False)
    plain: Outcome = field(repr=False)

    @property
    def ratio(self) -> float:
        return self.wished.median(True) / self.wished.median(False)

    def expected(self) -> dict[str, bool]:
        return {
            "the_desired_wait_at_most_a_fifth_as_long": self.ratio <= 0.2,
            "the_results_are_the_same": self.wished.rows.equals(self.plain.rows),
        }

    def to_json(self) -> dict[str, Any]:
        medians = {
            way: {"desired": round(o.median(True), 4), "rest": round(o.median(False), 4)}
            for way, o in (("with", self.wished), ("without", self.plain))
        }
        return {
            "experiment": "desired",
            "seed": self.setup.seed,
            "tuples": self.setup.tuples,
            "archive": ABOUT.format(rows=self.setup.rows),
            "feedback": f"?[segment = {WISHED}], one of {SEGMENTS} segments",
            "measured_ms_per_tuple": round(self.tuple_ms, 3),
            "rate_per_s": round(self.rate, 2),
            "measure": MEASURE,
            "median_latency_s": medians,
            "ratio": round(self.ratio, 4),
            "seconds": {
                "with": round(self.wished.seconds, 2), "without": round(self.plain.seconds, 2),
            },
            "expected": self.expected(),
        }  # fmt: skip


def desired(setup: Setup, report: Report = silent) -> Desired:
    """Measure the plan, then run it with the wish and without."""
    with speed_archive(setup.rows, setup.seed) as path:
        probe = Job("measuring", time_of_a_tuple, (path, setup.seed), 5.0)
        (each,) = run_jobs([probe], workers=setup.workers, report=report)
        rate = OVERLOAD / each
        stream = sensors(setup.tuples, max(1, round(SECOND / rate)), 1, setup.seed)
        jobs = [
            Job(f"{way} a wish", run_plan, (path, stream, way == "with"), setup.tuples * each)
            for way in ("with", "without")
        ]
        wished, plain = run_jobs(jobs, workers=setup.workers, report=report)
    return Desired(setup, 1000 * each, rate, wished, plain)
