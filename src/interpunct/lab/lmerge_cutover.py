"""Two plans for one query, each slow where the other is fast (LMerge Figure 9).

    elements ┬─ UDF0, expensive for small X ─┐
             └─ UDF1, expensive for large X ─┴ merge ── ¬[past] to whichever is behind

X is small and large in turn, for ten to thirty thousand elements each. A merge alone follows the
faster plan, but the slower one works through everything it is behind with and is not there when its
turn comes. With feedback it leaves out what the output has made stable (section V-D), and both are
always at the front.

Each plan has a processor of its own, whose seconds are counted, not spent: an element that reaches
the selection costs what it costs with this X, one that a guard keeps away costs nothing. The
selections, their guards and the merge are those of every flow.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from interpunct.flow.merge_nodes import select_events
from interpunct.lab.isolated import Report, silent
from interpunct.model.elements import INSERT, KIND, VE, VS, element_schema, framed, infinity
from interpunct.model.frames import stacked
from interpunct.model.page import Page
from interpunct.model.properties import Properties
from interpunct.model.schema import Schema
from interpunct.model.tdb import equivalent
from interpunct.operators.contract import Stream
from interpunct.operators.lmerge import lmerge
from interpunct.operators.lmerge_rows import Output
from interpunct.operators.select import Select

SCHEMA = element_schema(Schema.of("x bigint, number bigint"))
KEYED = Stream(SCHEMA, Properties(insert_only=False, keyed=True))
WANTED = "number % 3 <> 0"  # what both plans select
SMALL, LARGE = 0, 1
SMALLEST, LARGEST = 10_000, 30_000  # elements between two changes of X
TOGETHER, FEEDBACK = "LMR3+", "LMR3+ with feedback"


@dataclass(frozen=True)
class Setup:
    """`dear` and `cheap` are the seconds an element costs a plan where it is slow and fast."""

    elements: int = 200_000
    dear: float = 0.0016
    cheap: float = 0.0001
    page: int = 100
    life: int = 200  # ticks that an event lasts, one element beginning each tick
    seed: int = 1

    def batches(self, random: np.random.Generator) -> list[int]:
        """How many elements come with small X, then with large X, and so on."""
        scale = self.elements / 200_000
        sizes: list[int] = []
        while sum(sizes) < self.elements:
            sizes.append(max(1, int(random.integers(SMALLEST, LARGEST) * scale)))
        sizes[-1] -= sum(sizes) - self.elements
        return sizes


@dataclass(frozen=True)
class Outcome:
    """When the end of time came out, what came out by then, and which elements were spared."""

    seconds: float
    progress: list[tuple[float, int]] = field(repr=False)
    skipped: int
    table: pl.DataFrame = field(repr=False)


@dataclass(frozen=True)
class LmergeCutover:
    setup: Setup
    batches: int
    plans: dict[str, Outcome] = field(repr=False)
    equal: bool

    def expected(self) -> dict[str, bool]:
        alone = min(self.plans["UDF0"].seconds, self.plans["UDF1"].seconds)
        merged, told = self.plans[TOGETHER].seconds, self.plans[FEEDBACK].seconds
        return {
            "outputs_have_one_table": self.equal,
            "without_feedback_no_faster_than_the_better_plan": merged >= 0.9 * alone,
            "with_feedback_at_least_5_times_faster": merged >= 5 * told,
        }

    def to_json(self) -> dict[str, Any]:
        return {
            "experiment": "lmerge-cutover",
            "seed": self.setup.seed,
            "elements": self.setup.elements,
            "batches": self.batches,
            "seconds_per_element": {"dear": self.setup.dear, "cheap": self.setup.cheap},
            "rows": [
                {"plan": name, "seconds_counted": round(o.seconds, 3), "elements_spared": o.skipped}
                for name, o in self.plans.items()
            ],
            "expected": self.expected(),
        }


def lmerge_cutover(setup: Setup, report: Report = silent) -> LmergeCutover:
    """Each plan by itself, both merged, and both merged with feedback."""
    random = np.random.default_rng(setup.seed)
    batches = setup.batches(random)
    pages = _pages(setup, batches, random)
    runs = {"UDF0": ([0], False), "UDF1": ([1], False), TOGETHER: ([0, 1], False),
            FEEDBACK: ([0, 1], True)}  # fmt: skip
    plans = {}
    for number, (name, (udfs, told)) in enumerate(runs.items()):
        report(number / len(runs), name)
        plans[name] = _run(setup, pages, udfs, told)
    tables = [o.table for o in plans.values()]
    equal = all(equivalent(SCHEMA, tables[0], t) for t in tables[1:])
    return LmergeCutover(setup, len(batches), plans, equal)


class Plan:
    """A selection that takes its time."""

    def __init__(self, udf: int, setup: Setup, pages: list[Page]) -> None:
        condition = select_events(WANTED, SCHEMA, f"UDF{udf}")
        self.select = Select(f"UDF{udf}", KEYED, condition)
        self._slow, self._setup, self._pages = (SMALL, LARGE)[udf], setup, pages
        self._at = 0

    def next(self) -> tuple[float, list[Page]] | None:
        """The next page's output, and the seconds until it is there."""
        if self._at == len(self._pages):
            return None
        page = self._pages[self._at]
        self._at += 1
        reached = page.frame
        for guard in self.select.guards.inputs[0].guards:
            reached = guard.pattern.without(reached)
        slow = int((reached["x"] == self._slow).sum())
        fast = reached["x"].count() - slow  # stables have no X and cost nothing
        seconds = slow * self._setup.dear + fast * self._setup.cheap
        return seconds, [out for _, out in self.select.accept(0, page).pages]


def _run(setup: Setup, pages: list[Page], udfs: list[int], told: bool) -> Outcome:
    """Whichever plan is done first goes on first, until the end of time has come out."""
    plans = [Plan(udf, setup, pages) for udf in udfs]
    merge = lmerge("merge", [KEYED] * len(plans), "R3", fast_forward=told)
    working: list[tuple[float, int, list[Page]]] = []
    for port, plan in enumerate(plans):
        _go_on(working, 0.0, port, plan)
    out, progress, events, clock = [SCHEMA.empty()], [(0.0, 0)], 0, 0.0
    while working and merge.max_stable < infinity(SCHEMA):
        clock, port, made = heapq.heappop(working)
        for page in made:
            emission = merge.accept(port, page)
            frames = [p.frame for _, p in emission.pages]
            events += sum(int((f[KIND] == INSERT).sum()) for f in frames)
            out += frames
            for slower, feedback in emission.relays:
                plans[slower].select.on_feedback(feedback)
        progress.append((clock, events))
        _go_on(working, clock, port, plans[port])
    skipped = sum(sum(p.select.skipped().values()) for p in plans)
    return Outcome(clock, progress, skipped, stacked(out))


def _go_on(
    working: list[tuple[float, int, list[Page]]], clock: float, port: int, plan: Plan
) -> None:
    found = plan.next()
    if found is not None:
        heapq.heappush(working, (clock + found[0], port, found[1]))


def _pages(setup: Setup, batches: list[int], random: np.random.Generator) -> list[Page]:
    """The elements both plans are given: ordered inserts, a stable at the end of each page."""
    x = np.repeat(np.arange(len(batches)) % 2, batches)
    count = len(x)
    values = {VS: np.arange(count), "x": x, "number": random.integers(0, 400, count)}
    inserts = framed(SCHEMA, pl.DataFrame(values), [
        pl.lit(INSERT).alias(KIND), pl.col(VS), pl.lit(None, pl.Int64).alias("vold"),
        (pl.col(VS) + setup.life).alias(VE), pl.col("x"), pl.col("number"),
    ])  # fmt: skip
    pages = []
    for start in range(0, count, setup.page):
        end = min(start + setup.page, count)
        mark = Output(SCHEMA)
        mark.stable(end if end < count else infinity(SCHEMA))
        pages.append(Page(SCHEMA, inserts.slice(start, end - start).vstack(mark.taken())))
    return pages


def plot_cutover(result: LmergeCutover, path: Path) -> None:
    """Figure 9: how much has come out by when."""
    from interpunct.lab.figures import figure, saved

    drawing, axes = figure(1, "Plan switching with fast-forward")
    for name, outcome in result.plans.items():
        seconds, events = zip(*outcome.progress, strict=True)
        axes.plot(seconds, events, label=f"{name} ({outcome.seconds:.0f} s)")
    axes.set(xlabel="seconds (counted)", ylabel="events that have come out")
    axes.legend()
    saved(drawing, path)
