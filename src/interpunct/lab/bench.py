"""Tuples per second through the engine, by operator and page size, on one thread.

Pages are built before the clock starts; the flow is a source (or two), one operator and a sink.
The least of some repetitions counts. `growth` is the time of four times as many tuples divided by
four times the time: 1 means that the length of a stream does not matter.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from interpunct.api import Flow
from interpunct.engine.run import Driver, Engine
from interpunct.flow.stream import FlowStream
from interpunct.lab.isolated import Job, Report, run_jobs, silent
from interpunct.model.page import Page
from interpunct.progress.clock import RealClock, ScriptedClock
from interpunct.progress.timestamps import external

SCHEMA = "k bigint, ts timestamp, v double"
GROUPS = 1000
SPACING = 1000  # microseconds between tuples of one stream
ONE_THREAD = {"POLARS_MAX_THREADS": "1"}

Query = Callable[[Flow, list[FlowStream]], FlowStream]


def _select(flow: Flow, streams: list[FlowStream]) -> FlowStream:
    del flow
    return streams[0].where("v < 0.95")


def _union(flow: Flow, streams: list[FlowStream]) -> FlowStream:
    return flow.union(*streams)


def _join(flow: Flow, streams: list[FlowStream]) -> FlowStream:
    """On average a tuple meets one of the thousand that lie in the window."""
    del flow
    return streams[0].join(streams[1], on="k", within=f"{GROUPS * SPACING}us")


def _average(flow: Flow, streams: list[FlowStream]) -> FlowStream:
    """A window holds a hundred tuples of each group."""
    del flow
    return streams[0].aggregate(by="k", every=f"{100 * GROUPS * SPACING}us", mean="avg(v)")


# The operator, and how many streams it reads.
OPERATORS: dict[str, tuple[Query, int]] = {
    "select": (_select, 1),
    "union": (_union, 2),
    "join": (_join, 2),
    "average": (_average, 1),
}


@dataclass(frozen=True)
class Setup:
    """`tuples` go through at the greatest page size, and four times as many for `growth`."""

    tuples: int = 1_000_000
    page_sizes: tuple[int, ...] = (1, 100, 10_000)
    repeat: int = 3
    seed: int = 1
    workers: int = 1

    def tuples_at(self, page_size: int) -> int:
        """Fewer in small pages, so that it ends: about as many pages as tuples allow."""
        share = {1: 200, 100: 5}.get(page_size, 1)
        return max(page_size, self.tuples // share)


@dataclass(frozen=True)
class Timing:
    tuples: int
    output: int
    seconds: float
    threads: int


@dataclass(frozen=True)
class Bench:
    setup: Setup
    timings: dict[tuple[str, int], Timing] = field(repr=False)
    long: dict[str, Timing] = field(repr=False)

    def tuples_per_s(self, operator: str, page_size: int) -> float:
        timing = self.timings[operator, page_size]
        return timing.tuples / timing.seconds

    def output_per_s(self, operator: str, page_size: int) -> float:
        timing = self.timings[operator, page_size]
        return timing.output / timing.seconds

    def growth(self, operator: str) -> float:
        short = self.timings[operator, self.setup.page_sizes[-1]]
        long = self.long[operator]
        return (long.seconds / long.tuples) / (short.seconds / short.tuples)

    def expected(self) -> dict[str, bool]:
        """At the greatest page size, on one core."""
        size = self.setup.page_sizes[-1]
        fast = {
            f"{op}_at_least_2_million_per_s": self.tuples_per_s(op, size) >= 2e6
            for op in OPERATORS
            if op != "join"
        }
        return {
            **fast,
            "join_at_least_half_a_million_results_per_s": self.output_per_s("join", size) >= 5e5,
            "growth_at_most_1.3": all(self.growth(op) <= 1.3 for op in OPERATORS),
        }

    def to_json(self) -> dict[str, Any]:
        sizes = self.setup.page_sizes
        return {
            "experiment": "bench",
            "seed": self.setup.seed,
            "tuples": self.setup.tuples,
            "threads": next(iter(self.timings.values())).threads,
            "tuples_per_s": {
                op: {str(s): self.tuples_per_s(op, s) for s in sizes} for op in OPERATORS
            },
            "output_tuples_per_s": {"join": {str(s): self.output_per_s("join", s) for s in sizes}},
            "growth": {op: self.growth(op) for op in OPERATORS},
            "expected": self.expected(),
        }


def bench(setup: Setup, report: Report = silent) -> Bench:
    """Run every operator at every page size, and the longer run."""
    largest = setup.page_sizes[-1]
    keys = [(op, size, setup.tuples_at(size)) for op in OPERATORS for size in setup.page_sizes]
    keys += [(op, largest, 4 * setup.tuples_at(largest)) for op in OPERATORS]
    jobs = [
        Job(f"{op}, pages of {size}", timed, (op, size, count, setup.repeat, setup.seed),
            3 + setup.repeat * (count / 1e6 + count / size / 4000))
        for op, size, count in keys
    ]  # fmt: skip
    timings = run_jobs(jobs, workers=setup.workers, report=report, environment=ONE_THREAD)
    short = len(OPERATORS) * len(setup.page_sizes)
    return Bench(
        setup,
        {(op, size): t for (op, size, _), t in zip(keys[:short], timings[:short], strict=True)},
        {op: t for (op, _, _), t in zip(keys[short:], timings[short:], strict=True)},
    )


def timed(operator: str, page_size: int, tuples: int, repeat: int, seed: int) -> Timing:
    """The best of `repeat` runs over the same pages."""
    query, inputs = OPERATORS[operator]
    feeds = {f"in{i}": _pages(tuples // inputs, page_size, i, seed) for i in range(inputs)}
    runs = [_run(query, feeds) for _ in range(repeat)]
    seconds, output = min(runs)
    return Timing(tuples // inputs * inputs, output, seconds, pl.thread_pool_size())


def _run(query: Query, feeds: dict[str, list[Page]]) -> tuple[float, int]:
    flow = Flow("bench")
    streams = [flow.source(name, SCHEMA, time=external("ts", ordered=True)) for name in feeds]
    flow.sink("out", query(flow, streams))
    heights: list[int] = []
    engine = Engine(
        flow.graph, ScriptedClock(), deliver={"out": lambda frame: heights.append(frame.height)}
    )
    driver = Driver(engine, feeds)
    clock = RealClock()
    began = clock.now()
    driver.run()
    return (clock.now() - began) / 1e6, sum(heights)


def _pages(tuples: int, page_size: int, number: int, seed: int) -> list[Page]:
    """Random keys and values at regular times; two streams alternate."""
    random = np.random.default_rng([seed, number])
    moments = pl.Series(np.arange(tuples) * SPACING + number * SPACING // 2)
    frame = pl.DataFrame(
        {
            "k": random.integers(0, GROUPS, tuples),
            "ts": moments.cast(pl.Datetime("us", "UTC")),
            "v": random.random(tuples),
        }
    )
    flow = Flow("pages")
    flow.source("in", SCHEMA, time=external("ts", ordered=True))
    schema = flow.graph.sources[0].raw
    return [Page(schema, frame.slice(at, page_size)) for at in range(0, tuples, page_size)]


def plot_bench(result: Bench, path: Path) -> None:
    """Tuples per second over the page size."""
    from interpunct.lab.figures import figure, saved

    drawing, axes = figure(1, "Throughput on one thread")
    for operator in OPERATORS:
        speeds = [result.tuples_per_s(operator, size) for size in result.setup.page_sizes]
        axes.plot(result.setup.page_sizes, speeds, marker="o", label=operator)
    axes.axhline(2e6, color="gray", linestyle=":", label="2 million")
    axes.set(xscale="log", yscale="log", xlabel="tuples per page", ylabel="input tuples per second")
    axes.legend()
    saved(drawing, path)
