"""The load of ETS section 6: two Poisson streams, a selection each, a union.

    fast   50/s    ─ where keep < 0.95 ─┐
                                        ├ union ─ out
    sparse 0.05/s  ─ where keep < 0.95 ─┘

Latency is measured the same way in every case: from the moment the driver hands a tuple's page to
its source until the sink is given the tuple, on one clock. What the operating system adds before
it lets the driver hand the page over is not part of it. A tuple that still waits in the union when
the run ends counts with the age it has reached, so the latency of case A is a lower bound.

At 50 tuples per second a process sleeps most of the time, and what it then measures is largely how
cold the caches of the machine have become meanwhile. The paper's server iterates its cycle for
ever; so does this one unless told to sleep: between tuples it runs a twin of the query, which is
not measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta

import numpy as np
import polars as pl

from interpunct.api import Flow
from interpunct.engine.feeds import feed
from interpunct.engine.run import Driver, Engine
from interpunct.model.page import Page
from interpunct.progress.clock import Clock, RealClock, ScriptedClock
from interpunct.progress.timestamps import TimeSpec, internal, latent, periodic

RATES = {"fast": 50.0, "sparse": 0.05}  # tuples per second (ETS section 6)
SELECTIVITY = 0.95
SCHEMA = "id bigint, keep double"
UNION = "union"


@dataclass(frozen=True)
class Case:
    """A: no ETS. B: periodic, at `rate` per second on the sparser stream. C: on demand. D: latent
    timestamps."""

    letter: str
    rate: float | None = None

    def __str__(self) -> str:
        return self.letter if self.rate is None else f"B at {self.rate:g}/s"

    def time(self, stream: str) -> TimeSpec:
        if self.letter == "D":
            return latent()
        if self.letter == "C":
            return internal("entered", ets="on-demand")
        if self.letter == "B" and stream == "sparse":
            assert self.rate is not None
            return internal("entered", ets=periodic(timedelta(seconds=1 / self.rate)))
        return internal("entered", ets="never")


def cases(rates: tuple[float, ...]) -> list[Case]:
    """A, B at each of these rates, C and D."""
    return [Case("A"), *(Case("B", rate) for rate in rates), Case("C"), Case("D")]


def query(case: Case) -> Flow:
    """The query graph of ETS Figure 4."""
    flow = Flow("ets")
    kept = [
        flow.source(name, SCHEMA, time=case.time(name)).where(f"keep < {SELECTIVITY}")
        for name in RATES
    ]
    flow.sink("out", flow.union(*kept, name=UNION))
    return flow


def arrivals(stream: str, seed: int, chunk: int = 1024) -> Iterator[pl.DataFrame]:
    """Poisson arrivals without end; the ids of both streams are odd or even numbers in order."""
    number = list(RATES).index(stream)
    random = np.random.default_rng([seed, number])
    count, moment = 0, 0.0
    while True:
        moments = moment + random.exponential(1 / RATES[stream], chunk).cumsum()
        yield pl.DataFrame(
            {
                "id": np.arange(count, count + chunk) * len(RATES) + number,
                "keep": random.random(chunk),
                "arrival": (moments * 1e6).astype(np.int64),
            }
        )
        count, moment = count + chunk, float(moments[-1])


@dataclass
class _Watch:
    """When tuples entered, by stream and in order, and when they came out."""

    clock: Clock
    entries: dict[str, list[int]] = field(default_factory=lambda: {name: [] for name in RATES})
    exits: list[tuple[int, pl.Series]] = field(default_factory=list)

    def entering(self, stream: str, page: Page) -> None:
        self.entries[stream] += [self.clock.now()] * page.height

    def deliver(self, frame: pl.DataFrame) -> None:
        self.exits.append((self.clock.now(), frame.get_column("id")))


class BusyClock(RealClock):
    """A real clock that waits at work: it repeats `work` until the moment is near."""

    NEAR = 500  # microseconds before the moment in which no new work is begun

    def __init__(self, work: Callable[[], None]) -> None:
        super().__init__()
        self._work = work

    def wait_until(self, moment: int) -> None:
        while self.now() + self.NEAR < moment:
            self._work()
        while self.now() < moment:
            pass


def twin(case: Case) -> Callable[[], None]:
    """One tuple through a query like this case's that holds nothing back."""
    flow = query(Case("D") if case.letter == "D" else Case("C"))
    engine = Engine(flow.graph, RealClock())
    page = Page(flow.graph.sources[0].raw, _sent("fast", 0, 1))

    def work() -> None:
        engine.feed("fast", page)
        engine.settle()

    return work


@dataclass(frozen=True)
class Outcome:
    """What one case showed. Times in milliseconds, shares in percent of the run."""

    mean_ms: float
    median_ms: float
    p99_ms: float
    entered: int
    delivered: int
    waiting: int
    idle_waiting_pct: float
    held_back_pct: float
    peak_queue: int
    steps: int


@dataclass(frozen=True)
class Sample:
    """One run of a case: the ages its tuples reached and the times kept, in microseconds."""

    ages: np.ndarray
    entered: int
    delivered: int
    span: int
    idle_waiting: int
    held_back: int
    peak_queue: int
    steps: int


def outcome(samples: list[Sample]) -> Outcome:
    """What one run, or several of the same case, showed."""
    ages = np.concatenate([s.ages for s in samples]) / 1e3
    delivered = sum(s.delivered for s in samples)
    share = 100 / sum(s.span for s in samples)
    return Outcome(
        mean_ms=float(ages.mean()) if len(ages) else 0.0,
        median_ms=float(np.median(ages)) if len(ages) else 0.0,
        p99_ms=float(np.quantile(ages, 0.99)) if len(ages) else 0.0,
        entered=sum(s.entered for s in samples),
        delivered=delivered,
        waiting=len(ages) - delivered,
        idle_waiting_pct=sum(s.idle_waiting for s in samples) * share,
        held_back_pct=sum(s.held_back for s in samples) * share,
        peak_queue=max(s.peak_queue for s in samples),
        steps=sum(s.steps for s in samples),
    )


def measure(
    case: Case, seconds: float, seed: int, cost: int | None = None, *, asleep: bool = False
) -> Outcome:
    """Run a case for so many seconds: of the real clock, at work or `asleep` between tuples, or
    with a cost per step (in microseconds) of scripted time."""
    return outcome([_sample(case, seconds, seed, cost, asleep)])


def measure_in_turns(
    compared: list[Case], seconds: float, seed: int, *, turns: int, asleep: bool = False
) -> list[Outcome]:
    """Cases that differ by microseconds, each for so many seconds of the real clock, in turns: the
    speed of a machine that is not ours alone drifts by more than they differ."""
    samples: dict[Case, list[Sample]] = {case: [] for case in compared}
    for turn in range(turns):
        for case in compared:
            samples[case].append(_sample(case, seconds / turns, seed + turn, None, asleep))
    return [outcome(samples[case]) for case in compared]


def _sample(case: Case, seconds: float, seed: int, cost: int | None, asleep: bool) -> Sample:
    clock = _clock(case, cost, asleep)
    watch = _Watch(clock)
    engine = Engine(query(case).graph, clock, deliver={"out": watch.deliver})
    feeds = {name: feed(arrivals(name, seed), arrival="arrival") for name in RATES}
    driver = Driver(engine, feeds, cost=cost or 0, entering=watch.entering)
    start = clock.now()
    end = start + int(seconds * 1e6)
    driver.run(until=end)
    ages, delivered = _ages(watch, seed, end)
    metrics = engine.metrics
    return Sample(
        ages, sum(len(moments) for moments in watch.entries.values()), delivered,
        clock.now() - start, metrics.idle_waiting.get(UNION, 0), metrics.held_back.get(UNION, 0),
        metrics.peak_queue, metrics.steps,
    )  # fmt: skip


def _clock(case: Case, cost: int | None, asleep: bool) -> Clock:
    if cost is not None:
        return ScriptedClock()
    return RealClock() if asleep else BusyClock(twin(case))


def _ages(watch: _Watch, seed: int, end: int) -> tuple[np.ndarray, int]:
    """How old each tuple that passes its selection became, and how many were delivered."""
    frames = []
    for name, moments in watch.entries.items():
        sent = _sent(name, seed, len(moments)).with_columns(
            entry=pl.Series(moments, dtype=pl.Int64)
        )
        frames.append(sent.filter(pl.col("keep") < SELECTIVITY))
    out = pl.DataFrame(
        {
            "id": pl.concat([ids for _, ids in watch.exits]) if watch.exits else [],
            "exit": np.repeat([at for at, _ in watch.exits], [len(ids) for _, ids in watch.exits]),
        },
        schema={"id": pl.Int64, "exit": pl.Int64},
    )
    joined = pl.concat(frames).join(out, on="id", how="left")
    age = pl.col("exit").fill_null(end) - pl.col("entry")
    ages = joined.select(age.clip(lower_bound=0)).to_series()
    return ages.to_numpy(), out.height


def _sent(stream: str, seed: int, count: int) -> pl.DataFrame:
    """The first tuples of a stream, made again."""
    made = arrivals(stream, seed)
    frames = [next(made)]
    while sum(f.height for f in frames) < count:
        frames.append(next(made))
    return pl.concat(frames).head(count).select("id", "keep")


def step_cost(tuples: int = 2000, rounds: int = 5) -> int:
    """What a step of one tuple or punctuation costs on this machine, in microseconds: case C fed
    without a pause, the median of some rounds."""
    flow = query(Case("C"))
    clock = RealClock()
    engine = Engine(flow.graph, clock)
    schema = flow.graph.sources[0].raw
    sent = _sent("fast", 0, tuples)
    pages = [Page(schema, sent[i]) for i in range(tuples)]
    costs = []
    for _ in range(rounds):
        before, began = engine.metrics.steps, clock.now()
        for page in pages:
            engine.feed("fast", page)
            engine.settle()
        costs.append((clock.now() - began) / (engine.metrics.steps - before))
    return max(1, round(float(np.median(costs))))
