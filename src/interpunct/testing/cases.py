"""A case: an operator and the inputs its laws are tried on; and an operator that runs on them."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl
from hypothesis import strategies as st

from interpunct.flow.nodes import Context
from interpunct.model.feedback import Feedback
from interpunct.model.page import Page
from interpunct.model.schema import START_OF_TIME
from interpunct.operators.contract import Emission, Operator
from interpunct.operators.source import SourceOperator
from interpunct.operators.state import DictState, State
from interpunct.progress.clock import ScriptedClock
from interpunct.progress.source_time import NotBefore

DELIVERED = -1  # the port under which a sink's frames are found


@dataclass(frozen=True)
class Arrival:
    """A page reaches an input, at a moment of the clock."""

    port: int
    page: Page
    at: int = 0

    def __repr__(self) -> str:
        marks = " ".join(map(str, self.page.punctuations)) or "no punctuation"
        return f"Arrival({self.port}, {self.page.frame.rows()} {marks}, at {self.at})"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """What hypothesis shows: the tuples, not the frame around them."""
        del cycle
        printer.text(repr(self))


@dataclass(frozen=True)
class Wait:
    """Time passes until `at`; a source with something to say by then says it."""

    at: int


@dataclass(frozen=True)
class Ask:
    """A source is asked for the heartbeat `wanted`, as when execution backtracks to it."""

    wanted: int
    at: int = 0


Event = Arrival | Wait | Ask
Build = Callable[[Context], Operator]


@dataclass(frozen=True)
class Case:
    """An operator under test.

    `build` makes it from a context (state, clock, where a sink delivers), exactly as a node of a
    flow does, so `node.build` is one. `inputs` makes lists of events that keep what the inputs
    declare: ordered inputs are ordered, and punctuations are true. `keeps_open` says that it may
    hold tuples at the end of time, as windows that count tuples do.
    """

    name: str
    build: Build
    inputs: st.SearchStrategy[list[Event]]
    keeps_open: bool = False

    def __str__(self) -> str:
        return self.name

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        del cycle
        printer.text(f"Case({self.name!r})")


@dataclass
class Running:
    """An operator of a case, running by itself; `log` is everything it has put out."""

    case: Case
    state: State = field(default_factory=DictState)
    clock: ScriptedClock = field(default_factory=ScriptedClock)
    log: list[tuple[int, Page]] = field(default_factory=list)
    relays: list[tuple[int, Feedback]] = field(default_factory=list)
    peak: int = 0

    def __post_init__(self) -> None:
        self.operator = self.case.build(Context(self.clock, self.state, self._deliver))

    @classmethod
    def over(cls, case: Case, events: Iterable[Event]) -> Running:
        """A fresh operator that has seen all the events."""
        running = cls(case)
        running.see(events)
        return running

    def see(self, events: Iterable[Event]) -> None:
        for event in events:
            self._log(self._react(event))
            self.peak = max(self.peak, self.operator.held().tuples)

    def hear(self, feedback: Feedback, port: int = 0) -> None:
        """Feedback from downstream, about one output."""
        self._log(self.operator.on_feedback(feedback, port))

    def ports(self) -> list[int]:
        return [DELIVERED, *range(len(self.operator.outputs))]

    def pages(self, port: int) -> list[Page]:
        return [page for p, page in self.log if p == port]

    def rows(self, port: int) -> list[tuple[Any, ...]]:
        """The tuples of one output, in the order they came."""
        return [hashable(row) for page in self.pages(port) for row in page.frame.rows()]

    def bag(self, port: int) -> Counter[tuple[Any, ...]]:
        """The tuples of one output as a multiset."""
        return Counter(self.rows(port))

    def ticks(self, port: int) -> list[int]:
        """The timestamps of one output, in the order they came."""
        pages = [p for p in self.pages(port) if p.height]
        return [t for page in pages for t in page.schema.ticks(page.frame).to_list()]

    def heartbeat(self, port: int) -> int:
        """The greatest heartbeat one output has given."""
        beats = (p.heartbeat_ticks for page in self.pages(port) for p in page.punctuations)
        return max((b for b in beats if b is not None), default=START_OF_TIME)

    def progress(self, port: int) -> int:
        """How far time has come on one output: its heartbeats say so, and its order."""
        if not self.operator.outputs[port].properties.ordered:
            return self.heartbeat(port)
        return max(self.heartbeat(port), *(t - 1 for t in self.ticks(port)), START_OF_TIME)

    def _react(self, event: Event) -> Emission:
        if isinstance(event, Arrival):
            self.clock.wait_until(event.at)
            return self.operator.accept(event.port, event.page)
        self.clock.wait_until(event.at)
        assert isinstance(self.operator, SourceOperator)
        if isinstance(event, Ask):
            answer = self.operator.on_demand(event.wanted)
            return Emission() if isinstance(answer, NotBefore) else answer
        moment = self.operator.wake_at()
        due = moment is not None and moment <= self.clock.now()
        return self.operator.on_wake() if due else Emission()

    def _log(self, emission: Emission) -> None:
        self.log += emission.pages
        self.relays += emission.relays

    def _deliver(self, frame: pl.DataFrame) -> None:
        schema = self.operator.inputs[0].schema
        self.log.append((DELIVERED, Page(schema, frame)))


def hashable(row: Iterable[Any]) -> tuple[Any, ...]:
    """A row as a value that can be counted."""
    return tuple(_frozen(value) for value in row)


def _frozen(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return tuple(_frozen(v) for v in value)
    if isinstance(value, dict):
        return tuple((k, _frozen(v)) for k, v in value.items())
    return value


def split(event: Event, cuts: Iterable[int]) -> list[Event]:
    """An arrival in several pages cut at these rows; its punctuations stay behind the last."""
    if not isinstance(event, Arrival) or event.page.height < 2:
        return [event]
    page = event.page
    edges = [0, *sorted({c for c in cuts if 0 < c < page.height}), page.height]
    parts = [
        replace(page, frame=page.frame.slice(start, end - start), punctuations=())
        for start, end in itertools.pairwise(edges)
    ]
    parts[-1] = replace(parts[-1], punctuations=page.punctuations)
    return [replace(event, page=part) for part in parts]


def one_by_one(event: Event) -> list[Event]:
    """An arrival tuple by tuple."""
    height = event.page.height if isinstance(event, Arrival) else 0
    return split(event, range(1, height))
