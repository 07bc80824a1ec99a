"""Throughput and memory of the logical merges on ordered streams (LMerge Figures 2 and 3).

An ordered stream of inserts suits every variant. Each event has an integer and a string of 1,000
bytes, one element in a hundred is a stable, and about ten thousand events are alive at any time.
Every input has all the events, in pages of its own, with stables at places of its own; the pages
come in turn. Pages are built before the clock starts, and one thread does all the work. The seconds
are those of the processor, so that what else goes on in the machine counts little.

`elements_per_s` counts the elements of all inputs, which is what the merge has to work through;
`output_per_s` counts the events that came out, as the paper does. Memory is the greatest that the
operator said it held at the end of a page.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from interpunct.lab.isolated import Job, Report, run_jobs, silent
from interpunct.model.elements import INSERT, KIND, STABLE, VS, element_schema
from interpunct.model.page import Page
from interpunct.model.properties import Properties
from interpunct.model.schema import Schema
from interpunct.operators.contract import Stream
from interpunct.operators.lmerge import LogicalMerge, lmerge

VARIANTS = ("R0", "R1", "R2", "R3", "R4", "R3-")
SCHEMA = element_schema(Schema.of("number int, text string"))
KNOWN = Properties(strict=True, insert_only=True)
STABLE_SHARE = 0.01
ALIVE = 10_000
MOST_GAP = 20  # ticks from event to event, at most
NUMBERS, TEXT_BYTES = 400, 1000
ONE_THREAD = {"POLARS_MAX_THREADS": "1"}
LEAST_PER_S = {"R0": 1e6, "R1": 1e6, "R2": 5e5, "R3": 3e5, "R4": 2e5}


@dataclass(frozen=True)
class Setup:
    """`elements` of all inputs together, whose number does not change the work to be done."""

    elements: int = 200_000
    inputs: tuple[int, ...] = (2, 4, 6, 8, 10)
    page: int = 1000
    repeat: int = 3
    seed: int = 1
    workers: int = 1
    stables: float = STABLE_SHARE  # the chance of one after an element

    def cases(self) -> list[tuple[str, int]]:
        return [(variant, n) for variant in VARIANTS for n in self.inputs]


@dataclass(frozen=True)
class Measured:
    elements_per_s: float
    output_per_s: float
    nbytes: int
    events: int  # in memory, when it held most


@dataclass(frozen=True)
class LmergeVariants:
    setup: Setup
    measured: dict[tuple[str, int], Measured] = field(repr=False)

    def by_variant(self, number: str) -> dict[str, dict[str, Any]]:
        return {
            variant: {str(n): getattr(self.measured[variant, n], number) for n in self.setup.inputs}
            for variant in VARIANTS
        }

    def growth(self, variant: str) -> float:
        """Memory with the most inputs over memory with the fewest."""
        few, most = min(self.setup.inputs), max(self.setup.inputs)
        return self.measured[variant, most].nbytes / max(1, self.measured[variant, few].nbytes)

    def expected(self) -> dict[str, bool]:
        """What the paper leads one to expect, in the numbers of this time."""
        few, most = min(self.setup.inputs), max(self.setup.inputs)
        fast = {
            f"{variant}_at_least_{int(least / 1000)}_thousand_per_s": all(
                self.measured[variant, n].elements_per_s >= least for n in self.setup.inputs
            )
            for variant, least in LEAST_PER_S.items()
        }
        return {
            **fast,
            "R3_memory_at_most_1.3_times_that_of_fewest_inputs": self.growth("R3") <= 1.3,
            "R3-_memory_grows_with_the_inputs": (
                self.growth("R3-") >= 0.7 * (most + 1) / (few + 1)
            ),
            "R0_R1_R2_memory_negligible": all(
                self.measured[v, n].nbytes * 100 < self.measured["R3", n].nbytes
                for v in ("R0", "R1", "R2")
                for n in self.setup.inputs
            ),
            "R3_faster_than_R3-": all(
                self.measured["R3", n].elements_per_s > self.measured["R3-", n].elements_per_s
                for n in self.setup.inputs
            ),
        }

    def to_json(self) -> dict[str, Any]:
        return {
            "experiment": "lmerge-variants",
            "seed": self.setup.seed,
            "elements": self.setup.elements,
            "page_elements": self.setup.page,
            "inputs": list(self.setup.inputs),
            "elements_per_s": self.by_variant("elements_per_s"),
            "output_per_s": self.by_variant("output_per_s"),
            "peak_bytes": self.by_variant("nbytes"),
            "peak_events": self.by_variant("events"),
            "memory_growth": {v: self.growth(v) for v in VARIANTS},
            "expected": self.expected(),
        }


def lmerge_variants(setup: Setup, report: Report = silent) -> LmergeVariants:
    """Run every variant with every number of inputs, each in a process of its own."""
    cases = setup.cases()
    jobs = [Job(f"{v}, {n} inputs", measure, (v, n, setup), 4.0) for v, n in cases]
    results = run_jobs(jobs, workers=setup.workers, report=report, environment=ONE_THREAD)
    return LmergeVariants(setup, dict(zip(cases, results, strict=True)))


def measure(variant: str, inputs: int, setup: Setup) -> Measured:
    """The best of some timed runs, and one in which memory is looked at after every page."""
    pages = list(_arrivals(inputs, setup))
    elements = sum(page.height for _, page in pages)
    seconds, events = np.inf, 0
    for _ in range(setup.repeat):
        merge = _merge(variant, inputs)
        began = time.process_time()
        events = sum(_put_through(merge, port, page) for port, page in pages)
        seconds = min(seconds, time.process_time() - began)
    nbytes, held = _most_memory(_merge(variant, inputs), pages)
    return Measured(elements / seconds, events / seconds, nbytes, held)


def _merge(variant: str, inputs: int) -> LogicalMerge:
    return lmerge("merge", [Stream(SCHEMA, KNOWN)] * inputs, variant)


def _put_through(merge: LogicalMerge, port: int, page: Page) -> int:
    return sum(out.height for _, out in merge.on_page(port, page).pages)


def _most_memory(merge: LogicalMerge, pages: list[tuple[int, Page]]) -> tuple[int, int]:
    most = (0, 0)
    for port, page in pages:
        merge.on_page(port, page)
        held = merge.held()
        most = max(most, (held.bytes, held.tuples))
    return most


def _arrivals(inputs: int, setup: Setup) -> Iterator[tuple[int, Page]]:
    """The pages of all inputs in turn."""
    random = np.random.default_rng(setup.seed)
    events = _events(setup.elements // inputs, random)
    streams = [_with_stables(events, setup.stables, random) for _ in range(inputs)]
    for at in range(0, max(s.height for s in streams), setup.page):
        for port, stream in enumerate(streams):
            part = stream.slice(at, setup.page)
            if part.height:
                yield port, Page.from_ipc(Page(SCHEMA, part).to_ipc())  # in memory of its own


def _events(count: int, random: np.random.Generator) -> pl.DataFrame:
    """Inserts with growing Vs; each lives until about ALIVE others have begun."""
    vs = np.cumsum(random.integers(1, MOST_GAP, count, endpoint=True))
    life = random.integers(ALIVE // 2, 3 * ALIVE // 2, count) * MOST_GAP // 2
    texts = [random.bytes(TEXT_BYTES // 2).hex() for _ in range(count)]
    kinds, none = (pl.repeat(value, count, eager=True) for value in (INSERT, None))
    numbers = random.integers(0, NUMBERS, count, endpoint=True)
    values = (kinds, vs, none, vs + life, numbers, texts)
    columns = dict(zip(SCHEMA.names, values, strict=True))
    return pl.DataFrame(columns).cast(SCHEMA.polars)  # type: ignore[arg-type]


def _with_stables(events: pl.DataFrame, share: float, random: np.random.Generator) -> pl.DataFrame:
    """The stream with stables after some of its elements, at the Vs that these have."""
    places = np.flatnonzero(random.random(events.height) < share)
    times = events[VS].to_numpy()[places]
    stables = pl.DataFrame({KIND: pl.repeat(STABLE, len(places), eager=True), VS: times})
    rows = pl.concat([events, stables], how="diagonal")
    order = np.argsort(np.concatenate((np.arange(events.height), places)), kind="stable")
    return rows[order].rechunk()


def plot_variants(result: LmergeVariants, path: Path) -> None:
    """Figures 2 and 3: memory and throughput over the number of inputs."""
    from interpunct.lab.figures import figure, saved

    drawing, panels = figure(2, "Logical merge of ordered streams")
    shown = (("nbytes", "bytes held at most"), ("elements_per_s", "input elements per second"))
    for axes, (number, label) in zip(panels, shown, strict=True):
        for variant, found in result.by_variant(number).items():
            axes.plot([int(n) for n in found], list(found.values()), marker="o", label=variant)
        axes.set(yscale="log", xlabel="inputs", ylabel=label)
    panels[0].legend()
    saved(drawing, path)
