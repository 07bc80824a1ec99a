"""Inputs that stall and an output that does not (LMerge Figures 7 and 8).

    bursty       each of four inputs stops now and then for about 20 ms and then catches up
    congestion   each of three inputs is slow for some seconds, two of them at once for a while

Elements come into being 5,000 a second, 20 % of them out of order, and each input brings them in
its own order. When one is held up the next ones queue behind it and come in a spike when it is
over. The merge is real, the clock is not: when each element arrives is computed from the delays,
and what arrives in the same hundredth of a second is one page. The payload is an integer alone,
since what is of interest is when events come out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from interpunct.lab.isolated import Report, silent
from interpunct.model.elements import INSERT, KIND, STABLE, VE, VS, element_schema, framed
from interpunct.model.page import Page
from interpunct.model.properties import Properties
from interpunct.model.schema import Schema
from interpunct.operators.contract import Stream
from interpunct.operators.lmerge import lmerge

SCHEMA = element_schema(Schema.of("number bigint"))
KEYED = Stream(SCHEMA, Properties(insert_only=False, keyed=True))
RATE = 5_000  # elements a second
SERVED = 20_000  # elements a second that an input can bring when it catches up
DISORDER, BACK = 0.2, 200  # the share that comes late, and by how many elements at most
STABLES = 0.01
LIFE = 10_000
SLOT, BIN = 0.01, 0.1  # seconds of a page, and of a point of the figure
CONGESTION = 0.001  # seconds from element to element on a congested input
CONGESTED = ((5.0, 8.0), (12.0, 19.0), (17.0, 22.0))  # seconds, by input
Seconds = NDArray[np.float64]


@dataclass(frozen=True)
class Setup:
    scenario: str = "bursty"
    seconds: int = 30
    seed: int = 1
    congested: tuple[tuple[float, float], ...] = CONGESTED

    @property
    def inputs(self) -> int:
        return 4 if self.scenario == "bursty" else len(self.congested)


@dataclass(frozen=True)
class LmergeDelays:
    """Events by tenth of a second, of each input and of the output."""

    setup: Setup
    inputs: list[Seconds] = field(repr=False)
    output: Seconds = field(repr=False)
    events: int

    def expected(self) -> dict[str, bool]:
        complete = {"every_event_came_out_once": int(self.output.sum()) == self.events}
        if self.setup.scenario == "bursty":
            steadiest = min(variation(counts) for counts in self.inputs)
            return {
                **complete,
                "output_varies_less_than_half_as_much_as_any_input": (
                    2 * variation(self.output) < steadiest
                ),
            }
        return {
            **complete,
            "every_input_falls_below_half_its_rate": all(slow(c) > 0 for c in self.inputs),
            "output_never_falls_below_half_its_rate": slow(self.output) == 0.0,
        }

    def to_json(self) -> dict[str, Any]:
        streams = [(f"input {n}", c) for n, c in enumerate(self.inputs)] + [("output", self.output)]
        return {
            "experiment": f"lmerge-{self.setup.scenario}",
            "seed": self.setup.seed,
            "seconds": self.setup.seconds,
            "events": self.events,
            "rows": [
                {
                    "stream": name,
                    "least_per_s": float(_inside(counts).min() / BIN),
                    "most_per_s": float(_inside(counts).max() / BIN),
                    "variation": variation(counts),
                    "seconds_below_half": slow(counts),
                }
                for name, counts in streams
            ],
            "per_s": {name: (counts / BIN).tolist() for name, counts in streams},
            "expected": self.expected(),
        }


def variation(counts: Seconds) -> float:
    """Standard deviation over mean, without the first and the last moment."""
    inside = _inside(counts)
    return float(inside.std() / inside.mean())


def slow(counts: Seconds) -> float:
    """For how many seconds fewer than half of the usual events came."""
    return float((_inside(counts) < RATE * BIN / 2).sum() * BIN)


def _inside(counts: Seconds) -> Seconds:
    return counts[2:-4]


def lmerge_delays(setup: Setup, report: Report = silent) -> LmergeDelays:
    """All inputs at their moments through one merge."""
    random = np.random.default_rng(setup.seed)
    count = setup.seconds * RATE
    streams = [_stream(count, random) for _ in range(setup.inputs)]
    moments = [
        arrivals(_delays(setup, port, frame.height, random), setup.seconds)
        for port, frame in enumerate(streams)
    ]
    bins = int(setup.seconds / BIN)
    inputs = [_binned(t[(f[KIND] == INSERT).to_numpy()], bins)
              for f, t in zip(streams, moments, strict=True)]  # fmt: skip
    return LmergeDelays(setup, inputs, _output(streams, moments, bins, report), count)


def arrivals(delays: Seconds, seconds: float) -> Seconds:
    """When each element arrives: not before it is there, not before the one ahead of it has been
    served, and its own delay later."""
    there = np.linspace(0.0, seconds, len(delays), endpoint=False)
    work = np.cumsum(delays + 1 / SERVED)
    before = np.concatenate(([0.0], work[:-1]))
    last: Seconds = work + np.maximum.accumulate(there - before)
    return last


def _delays(setup: Setup, port: int, count: int, random: np.random.Generator) -> Seconds:
    if setup.scenario == "bursty":
        chance = random.uniform(0.003, 0.005)
        lengths = np.maximum(random.normal(0.020, 0.005, count), 0.0)
        return np.where(random.random(count) < chance, lengths, 0.0)
    start, end = setup.congested[port]
    there = np.linspace(0.0, setup.seconds, count, endpoint=False)
    spacing = np.maximum(random.normal(CONGESTION, CONGESTION / 4, count), 0.0)
    held_up = start + (end - start) / (CONGESTION * RATE)  # what comes into being until then takes
    return np.where((there >= start) & (there < held_up), spacing, 0.0)  # until the end to arrive


def _stream(count: int, random: np.random.Generator) -> pl.DataFrame:
    """The events in an order of the input's own, with stables that are true."""
    vs = np.arange(count)
    late = (random.random(count) < DISORDER) * random.integers(1, BACK, count)
    vs = vs[np.argsort(vs + late, kind="stable")]
    ahead = np.append(np.minimum.accumulate(vs[::-1])[::-1][1:], count)
    inserts = pl.DataFrame({KIND: pl.repeat(INSERT, count, eager=True), VS: vs, "at": vs * 0})
    inserts = inserts.with_columns(at=pl.int_range(pl.len()), number=pl.col(VS) % 400)
    after = np.flatnonzero(random.random(count) < STABLES)
    stables = pl.DataFrame({KIND: pl.repeat(STABLE, len(after), eager=True), VS: ahead[after],
                            "at": after})  # fmt: skip
    rows = pl.concat([inserts, stables], how="diagonal").sort("at", maintain_order=True)
    ends = pl.when(pl.col(KIND) == INSERT).then(pl.col(VS) + LIFE).alias(VE)
    none = pl.lit(None, pl.Int64).alias("vold")
    return framed(SCHEMA, rows, [pl.col(KIND), pl.col(VS), none, ends, pl.col("number")])


def _output(
    streams: list[pl.DataFrame], moments: list[Seconds], bins: int, report: Report
) -> Seconds:
    """Events that come out in each tenth of a second."""
    merge = lmerge("merge", [KEYED] * len(streams))
    slots = [np.floor(m / SLOT).astype(np.int64) for m in moments]
    out = np.zeros(bins)
    last = max(int(s[-1]) for s in slots)
    for slot in range(last + 1):
        report(slot / last, "merging")
        for port, stream in enumerate(streams):
            start, end = np.searchsorted(slots[port], (slot, slot + 1))
            if start < end:
                page = Page(SCHEMA, stream.slice(int(start), int(end - start)))
                pages = [p.frame for _, p in merge.accept(port, page).pages]
                new = sum(int((frame[KIND] == INSERT).sum()) for frame in pages)
                out[min(int(slot * SLOT / BIN + 1e-9), bins - 1)] += new
    return out


def _binned(moments: Seconds, bins: int) -> Seconds:
    places = np.minimum((moments / BIN).astype(np.int64), bins - 1)
    return np.bincount(places, minlength=bins).astype(np.float64)


def plot_delays(result: LmergeDelays, path: Path) -> None:
    """Figures 7 and 8: events per second over time, of the inputs and of the output."""
    from interpunct.lab.figures import figure, saved

    bursty = result.setup.scenario == "bursty"
    drawing, axes = figure(1, "Bursty inputs" if bursty else "Congested inputs")
    at = np.arange(len(result.output)) * BIN
    shown = result.inputs[:1] if bursty else result.inputs
    for number, counts in enumerate(shown):
        axes.plot(at, counts / BIN, linewidth=0.8, alpha=0.7, label=f"input {number}")
    axes.plot(at, result.output / BIN, color="black", linewidth=1.2, label="output")
    axes.set(xlabel="seconds", ylabel="events per second")
    axes.legend()
    saved(drawing, path)
