"""Three ways with disorder: slack, sorting, punctuation (Punctuate sections 1, 3 and 4).

    slack          ─ slack n ────────────────── count, max by auction and window
    sort           ─ punctuate δ ─── sort ───── the same
    punctuation    ─ punctuate δ ────────────── the same

The paper has arguments and no numbers; these are ours. Sort and punctuation are given the same
punctuations, a timer's at the end of each window less δ, so that they lose the same tuples and
differ in nothing but the order. Slack counts tuples and has no δ; for each one it is compared at
two sizes that hindsight chose: the greatest that does not wait longer in the mean (`same wait`),
and the least that does not lose more (`same loss`).

What is measured is in `MEASURE`. Sizes of slack are computed from the closing rule of
`operators/slack.py`; what is reported of them comes from the run, as for the other ways.

What to keep in mind of it:

- Punctuation holds less than the sort because the aggregate keeps a row for each key of a page
  instead of the tuples. Where parts cannot be combined (a median) it holds just as much.
- Slack loses by a change of rate. At a constant one a number of tuples is a time, and it is nearly
  as good; how much worse it comes out is set by `swing`, which is ours. At the same mean wait it
  holds less than punctuation, for it closes the large windows first.
- The logs have a quarter of their tuples in ten seconds, and the peaks are those of that burst.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from interpunct.api import Flow
from interpunct.engine.feeds import feed
from interpunct.engine.run import Driver, Engine
from interpunct.flow.stream import FlowStream
from interpunct.lab.disorder_streams import SECOND, Disordered, Ints, bids, logs
from interpunct.lab.heartbeat_streams import ZEEK, find_zeek
from interpunct.lab.isolated import Job, Report, run_jobs, silent
from interpunct.progress.clock import ScriptedClock
from interpunct.progress.timestamps import bounds, external

SCHEMA = "key bigint, ts timestamp, arrived bigint, value double"
PUNCTUATION, SORT, SAME_WAIT, SAME_LOSS = WAYS = (
    "punctuation", "sort", "slack, same wait", "slack, same loss",
)  # fmt: skip
MEASURE = {
    "latency": "from the end of a window, on the clock, until its results leave; each window "
    "counts once, but for those that end within the greatest delay of the end of the stream; one "
    "that only the end of the stream closes counts with the age it has reached",
    "tuple_wait": "from the arrival of a tuple until the aggregate is given it, in the mean",
    "peak": "greatest sum over all operators of the rows they hold after a step: tuples in the "
    "sort, one row for each key of a page in the open windows of the aggregate",
    "loss": "share of tuples that came too late and left by a late output",
}


@dataclass(frozen=True)
class Setup:
    seconds: float = 300.0
    swing: float = 10.0
    seed: int = 1
    data: Path | None = None
    workers: int = 2


@dataclass(frozen=True)
class Outcome:
    mean_s: float
    p99_s: float
    tuple_wait_s: float
    peak: int
    loss: float
    slack: int | None = None  # tuples


@dataclass(frozen=True)
class Run:
    """What left, and when."""

    results: pl.DataFrame
    exits: tuple[tuple[int, Ints], ...] = field(repr=False)  # moment, starts of windows
    tuple_wait: float
    peak: int
    late: int


class Watched(Engine):
    """Looks after every step how much is held."""

    peak = 0

    def step(self) -> bool:
        moved = super().step()
        held = sum(operator.held().tuples for operator in self.operators.values())
        self.peak = max(self.peak, held)
        return moved


Way = Callable[[FlowStream], FlowStream]


def punctuated(window: int, delay: int) -> Way:
    return lambda stream: stream.punctuate(every=window, delay=delay)


def sorted_(window: int, delay: int) -> Way:
    return lambda stream: stream.punctuate(every=window, delay=delay).sort()


def slacked(window: int, size: int) -> Way:
    return lambda stream: stream.slack(size, window=window)


def run(stream: Disordered, way: Way, most: str | pl.Expr = "max(value)") -> Run:
    """One way over one stream, on a scripted clock."""
    flow = Flow("disorder")
    nothing = external("ts", bounds=bounds(delay="1d"), ets="never")  # promised by the stream
    handled = way(flow.source("in", SCHEMA, time=nothing))
    flow.sink("handled", handled)
    flow.sink(
        "out",
        handled.aggregate(by="key", every=stream.window, n="count(*)", most=most),
    )
    clock = ScriptedClock()
    left: list[tuple[int, pl.DataFrame]] = []
    waits: list[int] = []

    def pass_on(frame: pl.DataFrame) -> None:
        waits.append(int((clock.now() - frame.get_column("arrived")).sum()))

    deliver = {"handled": pass_on, "out": lambda frame: left.append((clock.now(), frame))}
    engine = Watched(flow.graph, clock, deliver=deliver)
    Driver(engine, {"in": feed(stream.frame, arrival="arrived")}).run()
    late = sum(frame.height for frames in engine.late.values() for frame in frames)
    return Run(
        pl.concat([frame for _, frame in left]),
        tuple((at, frame["ts"].unique().to_physical().to_numpy()) for at, frame in left),
        sum(waits) / (stream.frame.height - late), engine.peak, late,
    )  # fmt: skip


def measured(stream: Disordered, way: Way, slack: int | None = None) -> Outcome:
    """A run in numbers."""
    ran = run(stream, way)
    starts = np.concatenate([s for _, s in ran.exits])
    moments = np.repeat([at for at, _ in ran.exits], [len(s) for _, s in ran.exits])
    ends = starts + stream.window
    waits = (moments - ends)[ends <= _judged_until(stream)]
    return Outcome(
        float(waits.mean()) / SECOND, float(np.quantile(waits, 0.99)) / SECOND,
        ran.tuple_wait / SECOND,
        ran.peak, ran.late / stream.frame.height, slack,
    )  # fmt: skip


def _judged_until(stream: Disordered) -> int:
    """Later windows may be closed by the end of the stream instead of a punctuation."""
    return int(stream.moments[-1]) - max(stream.delays) - stream.window


class Hindsight:
    """What each size of slack comes to, without a run: a window is closed by the tuple that is
    `size` after the first of a later window, and later tuples of it are late."""

    def __init__(self, stream: Disordered) -> None:
        self._moments, self._ticks, self._window = stream.moments, stream.ticks, stream.window
        self._greatest = np.maximum.accumulate(self._ticks)
        ends = np.unique(self._ticks // stream.window + 1) * stream.window
        self._ends = ends[ends <= _judged_until(stream)]
        self._first = np.searchsorted(self._greatest, self._ends)

    def mean_wait(self, size: int) -> float:
        closing = np.minimum(self._first + size, len(self._moments) - 1)
        return float((self._moments[closing] - self._ends).mean()) / SECOND

    def late(self, size: int) -> int:
        closed = self._greatest[: -size - 1] // self._window * self._window
        return int((self._ticks[size + 1 :] < closed).sum())

    def longest_within(self, wait: float) -> int:
        """The greatest size that does not wait longer; 0 where all do."""
        return max(0, self._least(lambda size: self.mean_wait(size) > wait) - 1)

    def least_losing(self, tuples: int) -> int:
        """The least size that does not lose more."""
        return self._least(lambda size: self.late(size) <= tuples)

    def _least(self, holds: Callable[[int], bool]) -> int:
        """By halving: what holds of a size holds of all greater ones."""
        low, high = 0, len(self._ticks) - 1
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if holds(middle) else (middle + 1, high)
        return low


@dataclass(frozen=True)
class Disorder:
    setup: Setup
    streams: dict[str, Disordered] = field(repr=False)
    outcomes: dict[str, dict[int, dict[str, Outcome]]] = field(repr=False)  # stream, δ, way

    def expected(self) -> dict[str, bool]:
        """What the paper leads one to expect, and whether it came out so at every δ."""
        claims: dict[str, Callable[[dict[str, Outcome]], bool]] = {
            "punctuation_holds_less_than_sort_at_the_same_loss": lambda o: (
                o[PUNCTUATION].loss == o[SORT].loss and o[PUNCTUATION].peak < o[SORT].peak
            ),
            "tuples_wait_in_the_sort_and_not_for_punctuation": lambda o: (
                o[SORT].tuple_wait_s > 0 == o[PUNCTUATION].tuple_wait_s
            ),
            "slack_that_waits_no_longer_loses_more": lambda o: (
                o[SAME_WAIT].mean_s <= o[PUNCTUATION].mean_s
                and o[SAME_WAIT].loss > o[PUNCTUATION].loss
            ),
            "slack_that_loses_no_more_waits_longer": lambda o: (
                o[SAME_LOSS].loss <= o[PUNCTUATION].loss
                and o[SAME_LOSS].mean_s > o[PUNCTUATION].mean_s
            ),
        }
        return {
            f"{stream}_{name}": all(holds(ways) for ways in by_delay.values())
            for stream, by_delay in self.outcomes.items()
            for name, holds in claims.items()
        }

    def to_json(self) -> dict[str, Any]:
        return {
            "experiment": "disorder",
            "seed": self.setup.seed,
            "seconds": self.setup.seconds,
            "swing": self.setup.swing,
            "measure": MEASURE,
            "streams": {name: self._stream(name) for name in self.streams},
            "left_out": [] if "zeek" in self.streams else [f"zeek: no {ZEEK}; give --data"],
            "expected": self.expected(),
        }

    def _stream(self, name: str) -> dict[str, Any]:
        stream = self.streams[name]
        return {
            "tuples": stream.frame.height,
            "window_s": stream.window / SECOND,
            "delays_s": {
                f"{delay / SECOND:g}": {way: asdict(outcome) for way, outcome in ways.items()}
                for delay, ways in self.outcomes[name].items()
            },
        }


def disorder(setup: Setup, report: Report = silent) -> Disorder:
    """All ways over the generated stream, and over the logs where they can be found."""
    path = find_zeek(setup.data)
    recorded = [] if path is None else [logs(path)]
    generated = bids(setup.seconds, setup.swing, setup.seed)
    streams = {stream.name: stream for stream in (generated, *recorded)}
    rounds = [(stream, delay) for stream in streams.values() for delay in stream.delays]
    jobs = [Job(f"{s.name}, {d / SECOND:g} s", compared, (s, d)) for s, d in rounds]
    found = run_jobs(jobs, workers=setup.workers, report=report)
    outcomes: dict[str, dict[int, dict[str, Outcome]]] = {name: {} for name in streams}
    for (stream, delay), ways in zip(rounds, found, strict=True):
        outcomes[stream.name][delay] = ways
    return Disorder(setup, streams, outcomes)


def compared(stream: Disordered, delay: int) -> dict[str, Outcome]:
    """The four ways at one δ."""
    window, hindsight = stream.window, Hindsight(stream)
    aim = measured(stream, punctuated(window, delay))
    sizes = {
        SAME_WAIT: hindsight.longest_within(aim.mean_s),
        SAME_LOSS: hindsight.least_losing(round(aim.loss * stream.frame.height)),
    }
    return {
        PUNCTUATION: aim,
        SORT: measured(stream, sorted_(window, delay)),
        **{name: measured(stream, slacked(window, n), n) for name, n in sizes.items()},
    }


def plot_disorder(result: Disorder, path: Path) -> None:
    """For each stream: loss over latency, and rows held over latency."""
    from interpunct.lab.figures import figure, saved

    drawing, panels = figure(2 * len(result.outcomes), "Disorder: slack, sorting, punctuation")
    for number, (stream, by_delay) in enumerate(result.outcomes.items()):
        lost, held = panels[2 * number : 2 * number + 2]
        for way, marker in zip(WAYS, "osv^", strict=True):
            found = [ways[way] for ways in by_delay.values()]
            waits = [o.mean_s for o in found]
            lost.plot(
                waits, [100 * max(o.loss, 1e-6) for o in found], marker=marker, label=way, alpha=0.7
            )
            held.plot(waits, [o.peak for o in found], marker=marker, label=way, alpha=0.7)
        lost.set(yscale="log", xscale="log", ylabel="lost, %", title=stream)
        held.set(yscale="log", xscale="log", ylabel="rows held at most", title=stream)
        for axes in (lost, held):
            axes.set_xlabel("mean latency of a window, s")
    panels[-1].legend(fontsize="small")
    saved(drawing, path)
