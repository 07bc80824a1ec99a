"""Query-level, operator-level and memory-aware heartbeats (Heartbeats section 7, Figure 5).

    S1  20/s ─┐
              O1 ─┐             S3 lags: a tuple stamped t arrives 30 s after t
    S2  20/s ─┘   O2 ─ out
    S3   5/s ─────┘

O1 joins within a second. With few keys it makes more tuples than it takes (proliferative), with
many it makes fewer (selective). The paper has the plan and no numbers; these are ours.

The cost model: an operator that consumes a page, of tuples or of a punctuation, takes `step_cost`,
and nothing else takes time. Work that is put off is done in fewer and larger pages, so the model
flatters the query-level heartbeat.

Latency of a result stamped T is measured from when the last tuple it needs has arrived: on each
stream the first one stamped T or later, which brings that stream's time to T. Memory is the
greatest number of tuples and punctuations in the buffers of all arcs, in gates and in joins that
wait; not the windows of the joins, which hold what the last second brought in every mode.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from interpunct.api import Flow
from interpunct.engine.feeds import Feed, feed
from interpunct.engine.run import Driver, Engine
from interpunct.flow.labels import MODES
from interpunct.lab.isolated import Job, Report, run_jobs, silent
from interpunct.progress.clock import ScriptedClock
from interpunct.progress.timestamps import external

RATES = {"S1": 20.0, "S2": 20.0, "S3": 5.0}  # tuples per second
KEYS = {"proliferative": 4, "selective": 40}  # of which each tuple has one
WITHIN = "1 second"
STEP_COST_MS = 0.4  # as in ets-memory
SCHEMA = "k bigint, ts timestamp"

Moments = npt.NDArray[np.int64]  # in microseconds


@dataclass(frozen=True)
class Setup:
    seconds: float = 120.0
    lag: float = 30.0
    step_cost_ms: float = STEP_COST_MS
    seed: int = 1
    workers: int = 2


@dataclass(frozen=True)
class Outcome:
    """What one plan showed."""

    mean_ms: float
    p99_ms: float
    peak: int
    results: int
    steps: int
    label: tuple[str, ...]  # of O1
    selectivities: dict[str, float]


@dataclass(frozen=True)
class PlanHeartbeats:
    setup: Setup
    outcomes: dict[str, dict[str, Outcome]] = field(repr=False)  # by case, by mode

    def by_mode(self, attribute: str) -> dict[str, dict[str, Any]]:
        """One measure, by case and mode."""
        return {
            case: {mode: getattr(o, attribute) for mode, o in modes.items()}
            for case, modes in self.outcomes.items()
        }

    def expected(self) -> dict[str, bool]:
        """What the paper leads one to expect, and whether it came out so."""
        many, few = self.outcomes["proliferative"], self.outcomes["selective"]
        cases = (many, few)
        return {
            "operator_level_peak_above_query_level_when_proliferative": (
                many["operator"].peak > many["query"].peak
            ),
            "memory_aware_peak_at_most_query_level_when_proliferative": (
                many["memory"].peak <= many["query"].peak
            ),
            "memory_aware_peak_at_most_operator_level_when_selective": (
                few["memory"].peak <= few["operator"].peak
            ),
            "operator_level_latency_at_least_1.5_times_below_query_level": all(
                c["query"].mean_ms >= 1.5 * c["operator"].mean_ms for c in cases
            ),
            "all_modes_give_as_many_results": all(
                len({o.results for o in c.values()}) == 1 for c in cases
            ),
        }

    def to_json(self) -> dict[str, Any]:
        setup = self.setup
        return {
            "experiment": "plan-heartbeats",
            "seed": setup.seed,
            "seconds": setup.seconds,
            "lag_s": setup.lag,
            "step_cost_ms": setup.step_cost_ms,
            "rates_per_s": RATES,
            "selectivity": {c: m["operator"].selectivities for c, m in self.outcomes.items()},
            "label_of_o1": self.by_mode("label"),
            "mean_ms": self.by_mode("mean_ms"),
            "p99_ms": self.by_mode("p99_ms"),
            "peak": self.by_mode("peak"),
            "results": self.by_mode("results"),
            "steps": self.by_mode("steps"),
            "expected": self.expected(),
        }


def query(heartbeats: str = "operator", selectivity: dict[str, float] | None = None) -> Flow:
    """The plan of Figure 5."""
    flow = Flow("figure-5", heartbeats=heartbeats, selectivity=selectivity)
    one, two, three = (
        flow.source(name, SCHEMA, time=external("ts", ordered=True)) for name in RATES
    )
    matched = one.join(two, on="k", within=WITHIN, name="O1")
    shaped = matched.select("k", at="joined_at", name="π")  # order-insensitive, never buffered
    flow.sink("out", shaped.join(three, on="k", within=WITHIN, name="O2"))
    return flow


def tuples(stream: str, keys: int, setup: Setup) -> pl.DataFrame:
    """A Poisson stream by its own time, and when each tuple arrives."""
    random = np.random.default_rng([setup.seed, list(RATES).index(stream)])
    gaps = random.exponential(1e6 / RATES[stream], int(setup.seconds * RATES[stream] * 1.2) + 50)
    stamps = gaps.cumsum().astype(np.int64)
    stamps = stamps[stamps < setup.seconds * 1e6]
    lag = round(setup.lag * 1e6) if stream == "S3" else 0
    columns = {"k": random.integers(0, keys, len(stamps)), "ts": stamps, "arrival": stamps + lag}
    return pl.DataFrame(columns).with_columns(pl.col("ts").cast(pl.Datetime("us", "UTC")))


def measure(
    case: str, heartbeats: str, setup: Setup, selectivity: dict[str, float] | None = None
) -> Outcome:
    """One plan on one case, in scripted time."""
    flow = query(heartbeats, selectivity)
    sent = {name: tuples(name, KEYS[case], setup) for name in RATES}
    clock = ScriptedClock()
    left: list[tuple[int, pl.DataFrame]] = []
    engine = Engine(
        flow.graph, clock, deliver={"out": lambda frame: left.append((clock.now(), frame))}
    )
    cost = max(1, round(setup.step_cost_ms * 1000))
    Driver(engine, {n: _feed(frame) for n, frame in sent.items()}, cost=cost).run()
    waited = _latencies(left, sent) / 1e3
    return Outcome(
        mean_ms=float(waited.mean()) if len(waited) else 0.0,
        p99_ms=float(np.quantile(waited, 0.99)) if len(waited) else 0.0,
        peak=engine.metrics.peak_queue,
        results=sum(frame.height for _, frame in left),
        steps=engine.metrics.steps,
        label=tuple(sorted(flow.labels()["O1"])),
        selectivities=engine.selectivities(),
    )


def _feed(frame: pl.DataFrame) -> Feed:
    return feed(frame, arrival="arrival")


def _latencies(left: list[tuple[int, pl.DataFrame]], sent: dict[str, pl.DataFrame]) -> Moments:
    """Of every result for which each stream has a tuple that brings its time there."""
    if not left:
        return np.zeros(0, np.int64)
    stamps = pl.concat([f.get_column("joined_at") for _, f in left]).to_physical().to_numpy()
    exits = np.repeat([at for at, _ in left], [f.height for _, f in left])
    ready, enough = np.zeros(len(stamps), np.int64), np.ones(len(stamps), bool)
    for frame in sent.values():
        first = np.searchsorted(frame["ts"].to_physical().to_numpy(), stamps)
        enough &= first < frame.height
        arrivals = frame["arrival"].to_numpy()
        ready = np.maximum(ready, arrivals[np.minimum(first, frame.height - 1)])
    return (exits - ready)[enough]


def plan_heartbeats(setup: Setup, report: Report = silent) -> PlanHeartbeats:
    """Run the experiment: memory-aware plans use what the operator-level ones have measured."""
    first = [(case, mode) for case in KEYS for mode in ("operator", "query")]
    known = dict(zip(first, _run(first, {}, setup, _part(report, 0, 2 / 3)), strict=True))
    last = [(case, "memory") for case in KEYS]
    measured = {case: known[case, "operator"].selectivities for case in KEYS}
    known |= zip(last, _run(last, measured, setup, _part(report, 2 / 3, 1)), strict=True)
    return PlanHeartbeats(setup, {c: {m: known[c, m] for m in MODES} for c in KEYS})


def _run(
    runs: list[tuple[str, str]],
    selectivity: dict[str, dict[str, float]],
    setup: Setup,
    report: Report,
) -> list[Outcome]:
    jobs = [
        Job(f"{case}, {mode}", measure, (case, mode, setup, selectivity.get(case)))
        for case, mode in runs
    ]
    return run_jobs(jobs, workers=setup.workers, report=report)


def _part(report: Report, start: float, end: float) -> Report:
    """A report on a part of the work."""

    def told(done: float, doing: str) -> None:
        report(start + (end - start) * done, doing)

    return told


def plot_plan(result: PlanHeartbeats, path: Path) -> None:
    """Mean latency and peak memory, side by side for the two kinds of O1."""
    from interpunct.lab.figures import figure, saved

    drawing, (left, right) = figure(2, "Heartbeats in a query plan: S3 lags behind S1 and S2")
    panels = (
        (left, "mean_ms", "mean latency, ms", "%.1f"),
        (right, "peak", "peak, tuples and punctuations", "%d"),
    )
    places = np.arange(len(KEYS))
    for axes, attribute, name, shown in panels:
        values = result.by_mode(attribute)
        for number, mode in enumerate(MODES):
            heights = [values[case][mode] for case in KEYS]
            bars = axes.bar(places + 0.27 * (number - 1), heights, 0.25, label=mode)
            axes.bar_label(bars, fmt=shown)
        axes.set(xticks=places, xticklabels=[f"O1 {case}" for case in KEYS], ylabel=name)
    bars, names = left.get_legend_handles_labels()
    drawing.legend(bars, names, loc="outside lower center", ncols=len(MODES))
    saved(drawing, path)
