"""Heartbeats for ever more sources, each by itself and in groups (Heartbeats section 5.2).

    10 … 100,000 sensors ─ pages that mix them ─▶ a heartbeat for each    O(n) a source that rises
                                               └▶ a heartbeat a group     O(groups), whatever n is

The sensors of section 4.2: clocks that deviate by a bounded amount, and a network latency. A page
is 10,000 tuples of sensors drawn at random. What is measured is the generator alone: finding each
tuple's group, taking the page in, and letting heartbeats mature.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from interpunct.lab.isolated import Job, Report, run_jobs, silent
from interpunct.progress.grouping import Groups, grouped, propose_groups
from interpunct.progress.heartbeats import HeartbeatGenerator
from interpunct.progress.skew import Ticks
from interpunct.progress.skew_presets import SensorBounds, distributed_sensors

WAYS = ("grouped", "each")
LATENCY = 20_000  # microseconds
PAGE_TIME = 10_000  # microseconds from page to page
LEAST_DEVIATION, MOST_DEVIATION = 1_000, 50_000
KEPT_PAGES = 16  # drawn beforehand and used in turn, each time at a later time


@dataclass(frozen=True)
class Setup:
    """`each_up_to`: with more sources than this, a heartbeat for each is not tried."""

    sources: tuple[int, ...] = (10, 100, 1_000, 10_000, 100_000)
    groups: int = 16
    pages: int = 500
    page_tuples: int = 10_000
    each_up_to: int = 1_000
    repeat: int = 3
    seed: int = 1
    workers: int = 1

    def cases(self) -> list[tuple[str, int]]:
        return [
            (way, n) for n in self.sources for way in WAYS if way != "each" or n <= self.each_up_to
        ]


@dataclass(frozen=True)
class Measured:
    tuples_per_s: float
    nbytes: int  # bounds, registers, what waits and, with groups, each source's group
    groups: int
    lag_ms: float  # how far the least heartbeat is behind the sensors' clock in the end


@dataclass(frozen=True)
class ManySources:
    setup: Setup
    measured: dict[tuple[str, int], Measured] = field(repr=False)

    def by_way(self, number: str) -> dict[str, dict[str, Any]]:
        return {
            way: {str(n): getattr(m, number) for (w, n), m in self.measured.items() if w == way}
            for way in WAYS
        }

    def cost_growth(self) -> float:
        """What a tuple costs with the most sources, over what it costs with the fewest."""
        few, *_, many = sorted(self.setup.sources)
        few_speed, many_speed = (self.measured["grouped", n].tuples_per_s for n in (few, many))
        return few_speed / many_speed

    def expected(self) -> dict[str, bool]:
        """What the paper leads one to expect, and whether it came out so."""
        most = max(self.setup.sources)
        return {
            f"grouped_cost_a_tuple_at_{most}_at_most_twice_the_least": self.cost_growth() <= 2,
            f"grouped_a_million_tuples_per_s_at_{most}": (
                self.measured["grouped", most].tuples_per_s >= 1e6
            ),
        }

    def to_json(self) -> dict[str, Any]:
        return {
            "experiment": "many-sources",
            "seed": self.setup.seed,
            "sources": list(self.setup.sources),
            "page_tuples": self.setup.page_tuples,
            "pages": self.setup.pages,
            "groups": {str(n): m.groups for (w, n), m in self.measured.items() if w == "grouped"},
            "tuples_per_s": self.by_way("tuples_per_s"),
            "state_bytes": self.by_way("nbytes"),
            "lag_ms": self.by_way("lag_ms"),
            "cost_growth": self.cost_growth(),
            "expected": self.expected(),
        }


def many_sources(setup: Setup, report: Report = silent) -> ManySources:
    """Run the experiment: every number of sources, in groups and, where feasible, each alone."""
    cases = setup.cases()
    jobs = [Job(f"{n:,} sources, {way}", measure, (way, n, setup)) for way, n in cases]
    results = run_jobs(jobs, workers=setup.workers, report=report)
    return ManySources(setup, dict(zip(cases, results, strict=True)))


def measure(way: str, sources: int, setup: Setup) -> Measured:
    """The best of some runs over the same pages."""
    random = np.random.default_rng(setup.seed)
    sensors = _sensors(sources, random)
    pages = [_page(sensors, setup.page_tuples, random) for _ in range(KEPT_PAGES)]
    groups = propose_groups(sensors, setup.groups) if way == "grouped" else None
    bounds = sensors if groups is None else grouped(sensors, groups)
    seconds = np.inf
    for _ in range(setup.repeat):
        generator = HeartbeatGenerator(bounds)
        began = time.perf_counter()
        end = _run(generator, groups, pages, setup.pages)
        seconds = min(seconds, time.perf_counter() - began)
    return Measured(
        setup.pages * setup.page_tuples / seconds,
        generator.nbytes() + (0 if groups is None else groups.of.nbytes),
        len(bounds.names),
        (end - generator.overall()) / 1e3,
    )


def _sensors(count: int, random: np.random.Generator) -> SensorBounds:
    deviations = random.integers(LEAST_DEVIATION, MOST_DEVIATION, count, endpoint=True).tolist()
    return distributed_sensors({f"s{n}": d for n, d in enumerate(deviations)}, latency=LATENCY)


def _page(sensors: SensorBounds, tuples: int, random: np.random.Generator) -> tuple[Ticks, Ticks]:
    """Who speaks, and what each one's clock shows at time 0; half a deviation keeps the bounds."""
    sources = random.integers(0, len(sensors.names), tuples)
    spread = sensors.deviations[sources] // 2
    return sources, random.integers(-spread, spread, endpoint=True)


def _run(
    generator: HeartbeatGenerator,
    groups: Groups | None,
    pages: list[tuple[Ticks, Ticks]],
    count: int,
) -> int:
    now = 0
    for number in range(count):
        now += PAGE_TIME
        sources, ticks = pages[number % len(pages)]
        streams = sources if groups is None else groups.of[sources]
        generator.arrive_many(streams, ticks + now, now)
        generator.advance(now)
    return now


def plot_many(result: ManySources, path: Path) -> None:
    """Tuples per second and bytes of state, over the number of sources."""
    from interpunct.lab.figures import figure, saved

    drawing, panels = figure(2, "Heartbeats for many sources")
    names = {"grouped": f"in {result.setup.groups} groups", "each": "each by itself"}
    numbers = ("tuples_per_s", "nbytes")
    for axes, number, label in zip(panels, numbers, ("tuples per second", "bytes"), strict=True):
        for way, found in result.by_way(number).items():
            axes.plot([int(n) for n in found], list(found.values()), marker="o", label=names[way])
        axes.set(xscale="log", yscale="log", xlabel="sources", ylabel=label)
    panels[0].axhline(1e6, color="gray", linestyle=":", label="1 million")
    panels[0].legend()
    saved(drawing, path)
