"""Is it worth while to put streams in order first? (LMerge Figure 6)

    R3+, R3-     replicas ──────────────────── merge
    C+R1         replicas ── a Cleanse each ── merge by counting

Half of the tuples are late, about a third of the elements are adjusts, one in a thousand is a
stable. Cleanse keeps each input's elements until they are final, with their payloads, and so does
every further input; R3+ keeps every event once.

Latency is how long after an event was first shown by an input it comes out: pages come at 5,000
elements a second on each input, which is counted, and what a merge takes to deal with a page is
measured and added. The seconds are those of the processor, on one thread.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from interpunct.lab.isolated import Job, Report, run_jobs, silent
from interpunct.lab.lmerge_streams import KEYED, SCHEMA, Shape, replicas
from interpunct.lab.lmerge_variants import ONE_THREAD
from interpunct.model.elements import ADJUST, INSERT, KIND, VS
from interpunct.model.frames import stacked
from interpunct.model.page import Page
from interpunct.model.tdb import equivalent
from interpunct.operators.contract import Held
from interpunct.operators.lmerge import lmerge
from interpunct.operators.lmerge_cleanse import Cleanse

WAYS = ("C+R1", "R3", "R3-")
PER_SECOND = 5_000
CLOCK = "_clock"


@dataclass(frozen=True)
class Setup:
    """`tuples` of each input."""

    tuples: int = 40_000
    inputs: tuple[int, ...] = (2, 4, 6, 8, 10)
    seed: int = 1
    workers: int = 1

    @property
    def shape(self) -> Shape:
        return Shape(
            self.tuples, disorder=0.5, delay=1_000, stables=0.001, window=1_000, groups=400,
            life=min(10_000, self.tuples // 4), page=1_000,
        )  # fmt: skip


@dataclass(frozen=True)
class Measured:
    elements_per_s: float
    nbytes: int
    latency_s: float
    adjusts: float  # as a share of the input's elements
    equal: bool


@dataclass(frozen=True)
class LmergeCleanse:
    setup: Setup
    measured: dict[tuple[str, int], Measured] = field(repr=False)

    def expected(self) -> dict[str, bool]:
        few, most = min(self.setup.inputs), max(self.setup.inputs)
        found = self.measured
        cleansed, direct = found["C+R1", most], found["R3", most]
        return {
            "outputs_have_the_table_of_the_inputs": all(m.equal for m in found.values()),
            "C+R1_memory_at_least_5_times_R3+": cleansed.nbytes >= 5 * direct.nbytes,
            "R3+_memory_nearly_independent_of_inputs": direct.nbytes
            <= 1.5 * found["R3", few].nbytes,
            "C+R1_latency_at_least_100_times_R3+": cleansed.latency_s >= 100 * direct.latency_s,
            "R3+_faster_than_C+R1": direct.elements_per_s > cleansed.elements_per_s,
        }

    def to_json(self) -> dict[str, Any]:
        return {
            "experiment": "lmerge-cleanse",
            "seed": self.setup.seed,
            "tuples": self.setup.tuples,
            "rows": [
                {
                    "way": way,
                    "inputs": inputs,
                    "elements_per_s": round(m.elements_per_s),
                    "peak_bytes": m.nbytes,
                    "latency_s": m.latency_s,
                    "input_adjusts": round(m.adjusts, 3),
                }
                for (way, inputs), m in self.measured.items()
            ],
            "expected": self.expected(),
        }


class Merging:
    """One way to merge: its operators, behind one call."""

    def __init__(self, way: str, inputs: int) -> None:
        cleansed = way == "C+R1"
        self._cleanses = [Cleanse(f"cleanse {i}", KEYED) for i in range(inputs)] if cleansed else []
        streams = [c.outputs[0] for c in self._cleanses] or [KEYED] * inputs
        self._merge = lmerge("merge", streams, "R1" if cleansed else way)

    def put(self, port: int, page: Page) -> list[pl.DataFrame]:
        ordered = [page]
        if self._cleanses:
            ordered = [out for _, out in self._cleanses[port].accept(0, page).pages]
        merged = [out for p in ordered for _, out in self._merge.accept(port, p).pages]
        return [page.frame for page in merged]

    def held(self) -> Held:
        return sum((c.held() for c in self._cleanses), self._merge.held())


def lmerge_cleanse(setup: Setup, report: Report = silent) -> LmergeCleanse:
    """Every way with every number of inputs, each in a process of its own."""
    cases = [(way, n) for way in WAYS for n in setup.inputs]
    jobs = [Job(f"{way}, {n} inputs", measure, (way, n, setup), 5.0) for way, n in cases]
    results = run_jobs(jobs, workers=setup.workers, report=report, environment=ONE_THREAD)
    return LmergeCleanse(setup, dict(zip(cases, results, strict=True)))


def measure(way: str, inputs: int, setup: Setup) -> Measured:
    """Memory, speed and latency of one way with so many inputs."""
    streams = replicas(setup.shape, inputs, setup.seed)
    merging, busy, most = Merging(way, inputs), 0.0, 0
    shown, came = [], [SCHEMA.empty()]
    times: list[pl.DataFrame] = []
    for clock, port, page in _timed(streams):
        began = time.process_time()
        out = merging.put(port, page)
        spent = time.process_time() - began
        busy += spent
        shown.append(_inserts(page.frame, clock))
        came += out
        times += [_inserts(frame, clock + spent) for frame in out]
        most = max(most, merging.held().bytes)
    first = stacked([p.frame for p in streams[0]])
    equal = equivalent(SCHEMA, first, stacked(came))
    elements = sum(p.height for s in streams for p in s)
    adjusts = int((first[KIND] == ADJUST).sum()) / first.height
    latency = _latency(stacked(shown), stacked(times))
    return Measured(elements / busy, most, latency, adjusts, equal)


def _timed(streams: list[list[Page]]) -> list[tuple[float, int, Page]]:
    """Pages with the second they come at, in that order: an input sends at an even rate."""
    arrivals = []
    for port, pages in enumerate(streams):
        sent = 0
        for page in pages:
            sent += page.height
            arrivals.append((sent / PER_SECOND, port, page))
    return sorted(arrivals, key=lambda a: a[:2])


def _inserts(frame: pl.DataFrame, clock: float) -> pl.DataFrame:
    return frame.filter(pl.col(KIND) == INSERT).with_columns(pl.lit(clock).alias(CLOCK))


def _latency(shown: pl.DataFrame, came: pl.DataFrame) -> float:
    """Seconds from when an event was first shown to when it came out, on average."""
    keys = [VS, "number"]
    first, out = (f.group_by(keys).agg(pl.col(CLOCK).min()) for f in (shown, came))
    both = first.join(out, on=keys, suffix="_out")
    late = (both[f"{CLOCK}_out"] - both[CLOCK]).mean()
    assert isinstance(late, float)
    return late


def plot_cleanse(result: LmergeCleanse, path: Path) -> None:
    """Figure 6, and latency."""
    from interpunct.lab.figures import figure, saved

    drawing, panels = figure(3, "Putting streams in order first, or merging them as they are")
    shown = {
        "nbytes": "bytes held at most",
        "elements_per_s": "input elements per second",
        "latency_s": "latency (s)",
    }
    inputs = result.setup.inputs
    for axes, (number, label) in zip(panels, shown.items(), strict=True):
        for way in WAYS:
            found = [getattr(result.measured[way, n], number) for n in inputs]
            axes.plot(inputs, found, marker="o", label=way)
        axes.set(xlabel="inputs", ylabel=label, yscale="log")
    panels[0].legend()
    saved(drawing, path)
