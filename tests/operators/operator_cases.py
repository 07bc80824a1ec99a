"""Every operator, in the shapes that differ, with inputs it may get."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
from case_streams import (
    CLOCKED,
    DISORDERED,
    LATENT,
    ORDERED,
    SCHEMA,
    SIDE,
    STRICT,
    THIRD,
    TIMED,
    UNTIMED,
)
from feedback_cases import PACES, WORKERS
from hypothesis import strategies as st

from interpunct.model.expression import aggregate, predicate, scalar
from interpunct.model.page import Page
from interpunct.model.pattern import Pattern
from interpunct.model.properties import Properties
from interpunct.model.punctuation import Punctuation
from interpunct.model.schema import Schema
from interpunct.operators.aggregate import Aggregate
from interpunct.operators.contract import Stream
from interpunct.operators.duplicate import Duplicate
from interpunct.operators.gate import Gate
from interpunct.operators.join import JoinSpec, WindowJoin
from interpunct.operators.merge import Merge
from interpunct.operators.project import Project
from interpunct.operators.punctuate import Punctuate
from interpunct.operators.select import Select
from interpunct.operators.sink import Sink
from interpunct.operators.slack import Slack
from interpunct.operators.sort import Sort
from interpunct.operators.source import Source
from interpunct.operators.split import Split
from interpunct.operators.timer import TIMER_SCHEMA, Timer
from interpunct.operators.tuple_window import TupleWindow
from interpunct.operators.union import ArrivalUnion, Union
from interpunct.operators.windows import Windows
from interpunct.progress.timestamps import Bounds, TimeSpec, external, internal, latent, periodic
from interpunct.testing import Arrival, Ask, Case, Event, Wait, arrivals
from interpunct.testing.strategies import SPAN, columns, patterns, streams

# Stateless --------------------------------------------------------------------------------------


def select(stream: Stream) -> Case:
    test = predicate("v > 0 or k = 1", stream.schema, "where")
    return Case(
        "select", lambda c: Select("s", stream, test, c.state), arrivals([stream], punctuated="kv")
    )


def project(name: str, stream: Stream = ORDERED, **sources: str) -> Case:
    columns = {out: scalar(s, stream.schema, "select") for out, s in sources.items()}
    inputs = arrivals([stream], punctuated="kv")
    return Case(f"project {name}", lambda c: Project("p", stream, columns, c.state), inputs)


def split(stream: Stream) -> Case:
    tests = [predicate(t, stream.schema, "split") for t in ("v > 0", "k = 1")]
    inputs = arrivals([stream], punctuated="kv")
    return Case("split", lambda c: Split("s", stream, tests, c.state), inputs)


STATELESS = [
    select(ORDERED),
    project("rename", key="k", t="ts", value="v"),
    project("drop", t="ts"),
    project("derive", k="k", ts="ts", twice="v * 2"),
    project("time twice", stream=DISORDERED, ts="ts", t="ts", k="k"),
    split(DISORDERED),
    Case(
        "duplicate",
        lambda c: Duplicate("d", STRICT, 3, c.state),
        arrivals([STRICT], punctuated="kv"),
    ),
    Case(
        "sink",
        lambda c: Sink("out", ORDERED, c.deliver, c.state),
        arrivals([ORDERED], punctuated="k"),
    ),
]


# Unions and sort --------------------------------------------------------------------------------


def union(name: str, *inputs: Stream, kind: type[Union] | type[ArrivalUnion] = Union) -> Case:
    drawn = arrivals(inputs, punctuated="k")
    return Case(name, lambda c: kind("u", inputs, c.state), drawn)


UNIONS = [
    union("union of ordered", ORDERED, ORDERED),
    union("union of clocked", TIMED, TIMED),
    union("union of disordered", DISORDERED, DISORDERED),
    union("union of mixed", ORDERED, DISORDERED, STRICT),
    union("merge", ORDERED, STRICT, kind=Merge),
    Case(
        "sort",
        lambda c: Sort("s", DISORDERED, c.state),
        arrivals([DISORDERED], punctuated="k"),
    ),
]


def gate(name: str, stream: Stream, *pacers: Stream) -> Case:
    drawn = arrivals([stream, *pacers], punctuated="k")
    return Case(name, lambda c: Gate("g", stream, pacers, c.state), drawn)


GATES = [
    gate("gate of ordered", ORDERED, SIDE),
    gate("gate of disordered", DISORDERED, ORDERED, DISORDERED),
    gate("gate of strict", STRICT, DISORDERED),
]
ARRIVAL_UNIONS = [
    union("arrival union of mixed", ORDERED, DISORDERED, kind=ArrivalUnion),
    union("arrival union of latent", LATENT, LATENT, LATENT, kind=ArrivalUnion),
]


# Joins ------------------------------------------------------------------------------------------

JOINS: dict[str, tuple[tuple[Stream, ...], JoinSpec]] = {
    "join inner": ((ORDERED, SIDE), JoinSpec(("k",), (4, 4))),
    "join asymmetric": ((ORDERED, SIDE), JoinSpec(("k",), (0, 7))),
    "join disordered": ((DISORDERED, SIDE), JoinSpec(("k",), (3, 5))),
    "join left": ((ORDERED, SIDE), JoinSpec(("k",), (4, 2), "left")),
    "join left disordered": ((DISORDERED, THIRD), JoinSpec(("k",), (2, 6), "left")),
    "join 3-way": ((ORDERED, SIDE, THIRD), JoinSpec(("k",), (5, 3, 4))),
    "join 3-way left": ((ORDERED, SIDE, ORDERED), JoinSpec(("k",), (5, 3, 4), "left")),
    "join without keys": ((ORDERED, SIDE), JoinSpec((), (2, 1))),
    "join without keys, left": ((ORDERED, SIDE), JoinSpec((), (1, 1), "left")),
}


def join(name: str) -> Case:
    inputs, spec = JOINS[name]
    return Case(
        name,
        lambda c: WindowJoin("j", inputs, spec, c.state),
        arrivals(inputs, punctuated="k", most=8),
    )


# Aggregates -------------------------------------------------------------------------------------

DECOMPOSABLE = {
    "n": "count(*)", "m": "count(v)", "s": "sum(v)", "a": "avg(v)", "lo": "min(v)", "hi": "max(v)",
}  # fmt: skip
AGGREGATES: dict[str, tuple[Stream, Windows, tuple[str, ...], dict[str, str]]] = {
    "aggregate tumbling": (ORDERED, Windows(6, 6), ("k",), DECOMPOSABLE),
    "aggregate tumbling disordered": (DISORDERED, Windows(6, 6), ("k",), DECOMPOSABLE),
    "aggregate clocked": (TIMED, Windows(5, 5), ("k",), {"n": "count(*)"}),
    "aggregate sliding": (ORDERED, Windows(8, 4), ("k",), DECOMPOSABLE),
    "aggregate size not a multiple of slide": (DISORDERED, Windows(7, 3), ("k",), DECOMPOSABLE),
    "aggregate no groups": (ORDERED, Windows(9, 6), (), DECOMPOSABLE),
    "aggregate median": (ORDERED, Windows(5, 2), ("k",), {"med": "median(v)", "n": "count(*)"}),
    "aggregate median disordered": (DISORDERED, Windows(5, 5), (), {"med": "median(v)"}),
    "aggregate first and last": (ORDERED, Windows(6, 2), ("k",), {"f": "first(v)", "l": "last(v)"}),
    "aggregate first and last, no groups": (
        ORDERED, Windows(6, 6), (), {"f": "first(v)", "l": "last(v)"},
    ),
    "aggregate first and last over many panes": (
        ORDERED, Windows(9, 5), (), {"f": "first(v)", "l": "last(v)"},
    ),
}  # fmt: skip


def aggregated(name: str) -> Case:
    stream, windows, by, sources = (AGGREGATES | DISORDERED_FIRST)[name]
    built = {n: aggregate(s, stream.schema, name) for n, s in sources.items()}
    return Case(
        name,
        lambda c: Aggregate("a", stream, windows, by, built, c.state),
        arrivals([stream], punctuated="k", most=14),
    )


# Which of two disordered tuples is first is for the operator to say; it must say it in any split.
DISORDERED_FIRST = {
    "aggregate first and last, disordered": (
        DISORDERED, Windows(9, 5), ("k",), {"f": "first(v)", "l": "last(v)"},
    ),
}  # fmt: skip


TUPLE_WINDOWS: dict[str, tuple[int, int, tuple[str, ...], dict[str, str]]] = {
    "tuple window": (3, 1, ("k",), {"s": "sum(v)", "f": "first(v)", "l": "last(v)"}),
    "tuple window that jumps": (3, 2, ("k",), {"s": "sum(v)", "med": "median(v)"}),
    "tuple window that tumbles": (2, 2, (), {"n": "count(v)", "hi": "max(v)"}),
    "tuple window of one": (1, 1, (), {"s": "sum(v)"}),
    "tuple window without groups": (4, 3, (), {"s": "sum(v)", "f": "first(v)"}),
}


def tuple_window(name: str) -> Case:
    rows, slide, by, sources = TUPLE_WINDOWS[name]
    built = {n: aggregate(s, SCHEMA, name) for n, s in sources.items()}
    return Case(
        name,
        lambda c: TupleWindow("t", ORDERED, rows, slide, by, built, c.state),
        arrivals([ORDERED], punctuated="k", most=14),
        keeps_open=True,
    )


# Time: sources, timer, punctuate, slack ---------------------------------------------------------


@st.composite
def feeds(draw: st.DrawFn, raw: Schema, time: str | None, *, most: int = 12) -> list[Event]:
    """Whatever a feed may bring: disorder, nulls, lateness, promises it then breaks; and time
    passing, and demands. A source has to make an honest stream of it."""
    events: list[Event] = []
    at = 0
    for _ in range(draw(st.integers(0, 5))):
        at += draw(st.integers(0, 3))
        match draw(st.sampled_from(["page", "page", "page", "wait", "ask"])):
            case "wait":
                events.append(Wait(at))
            case "ask":
                events.append(Ask(draw(st.integers(0, SPAN)), at))
            case _:
                events.append(Arrival(0, draw(raw_pages(raw, time)), at))
    return events


@st.composite
def raw_pages(draw: st.DrawFn, raw: Schema, time: str | None) -> Page:
    rows = draw(st.integers(0, 5))
    values = {}
    for a in raw.attributes:
        column = columns(a)
        if a.name == time:
            tick = st.integers(0, SPAN)
            column = st.one_of(tick, tick, tick, st.none())
        values[a.name] = draw(st.lists(column, min_size=rows, max_size=rows))
    drawn = {n: pl.Series(n, v).cast(raw.polars[n]) for n, v in values.items()}
    marks = []
    if draw(st.integers(0, 2)) == 0:
        names = ["k"] if time is None or draw(st.booleans()) else []
        pattern: Pattern = draw(patterns(raw, names))
        if time is not None and draw(st.booleans()):
            bound = draw(st.integers(0, SPAN))
            with_time = raw.with_time(time)
            pattern = pattern.intersect(Punctuation.heartbeat(with_time, bound).pattern)
        if not pattern.is_wild:
            marks.append(Punctuation(pattern))
    return Page(raw, pl.DataFrame(drawn), tuple(marks))


def source(name: str, raw: Schema, spec: TimeSpec) -> Case:
    raw = replace(raw, time=None)
    inputs = feeds(raw, spec.attribute if spec.attribute in raw else None)
    return Case(f"source {name}", lambda c: Source("s", raw, spec, c.clock, c.state), inputs)


SOURCES = [
    source("external ordered", CLOCKED, external("ts", ordered=True)),
    source("external ordered sequence", SCHEMA, external("ts", ordered=True)),
    source("external bounded", CLOCKED, external("ts", Bounds(0, 3))),
    source("external bounded sequence", SCHEMA, external("ts", Bounds(0, 3))),
    source("external delayed", CLOCKED, external("ts", Bounds(2, 1))),
    source("external periodic", CLOCKED, external("ts", Bounds(0, 2), ets=periodic(2))),
    source("external never", CLOCKED, external("ts", Bounds(1, 0), ets="never")),
    source("internal", UNTIMED, internal("at")),
    source("internal periodic", UNTIMED, internal("at", ets=periodic(2))),
    source("latent", UNTIMED, latent()),
]

TICKS = Stream(TIMER_SCHEMA, Properties(ordered=True, strict=True))


@st.composite
def punctuated(draw: st.DrawFn, data: Stream) -> list[Event]:
    """Data, and a timer that pays no heed to it."""
    readings = sorted(draw(st.sets(st.integers(0, SPAN), max_size=4)))
    pages = [Page.of_rows(TIMER_SCHEMA, [(TIMER_SCHEMA.value_of(t),)]) for t in readings]
    own = draw(streams(data, punctuated="k"))
    turns = draw(st.permutations([0] * len(own) + [1] * len(pages)))
    queues = [iter(own), iter(pages)]
    return [Arrival(port, next(queues[port])) for port in turns]


WAITS = st.lists(st.integers(0, 40), max_size=8).map(lambda ts: [Wait(t) for t in sorted(ts)])

TIME = [
    Case("timer", lambda c: Timer("t", 5, 12, c.clock, c.state), WAITS),
    Case(
        "punctuate",
        lambda c: Punctuate("p", Stream(CLOCKED), TICKS, c.state),
        punctuated(Stream(CLOCKED)),
    ),
    Case(
        "punctuate ordered",
        lambda c: Punctuate("p", TIMED, TICKS, c.state),
        punctuated(TIMED),
    ),
    Case(
        "slack",
        lambda c: Slack("s", DISORDERED, 6, 2, c.state),
        streams(DISORDERED, heartbeats=False, ends=False).map(
            lambda pages: [Arrival(0, p) for p in pages]
        ),
    ),
    Case(
        "slack of none",
        lambda c: Slack("s", DISORDERED, 4, 0, c.state),
        streams(DISORDERED, heartbeats=False, ends=False).map(
            lambda pages: [Arrival(0, p) for p in pages]
        ),
    ),
]

CASES: list[Case] = [
    *STATELESS,
    *UNIONS,
    *GATES,
    *ARRIVAL_UNIONS,
    *PACES,
    *WORKERS,
    *map(join, JOINS),
    *map(aggregated, AGGREGATES | DISORDERED_FIRST),
    *map(tuple_window, TUPLE_WINDOWS),
    *SOURCES,
    *TIME,
]
