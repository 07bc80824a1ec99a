"""Inputs that keep their promises: pages, ordered and disordered streams, true punctuations.

Values come from small domains, so that keys meet, times tie and nulls occur; doubles are multiples
of a quarter, so that sums are exact in any order.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import polars as pl
from hypothesis import strategies as st

from interpunct.model.condition import Range
from interpunct.model.page import Page
from interpunct.model.pattern import Pattern
from interpunct.model.punctuation import Punctuation
from interpunct.model.schema import END_OF_TIME, START_OF_TIME, Attribute, Schema, to_datetime
from interpunct.model.ticks import within
from interpunct.operators.contract import Stream
from interpunct.testing.cases import Arrival, Event, split

SPAN = 24  # ticks a stream's timestamps are drawn from
MOST = 10  # tuples of one input


def columns(attribute: Attribute, *, nulls: bool = True) -> st.SearchStrategy[Any]:
    """Values of one attribute."""
    dtype = attribute.dtype
    some: st.SearchStrategy[Any]
    if dtype.is_integer():
        some = st.integers(0, 3)
    elif dtype.is_float():
        some = st.integers(-8, 8).map(lambda n: n / 4)
    elif isinstance(dtype, pl.Boolean):
        some = st.booleans()
    elif isinstance(dtype, pl.Datetime):
        aware = dtype.time_zone is not None
        some = st.integers(0, SPAN).map(lambda t: to_datetime(t, aware=aware))
    elif isinstance(dtype, pl.String):
        some = st.sampled_from(["a", "b", "c"])
    else:
        raise NotImplementedError(f"no values for {attribute.name} {attribute.type}")
    return st.one_of(some, st.none()) if nulls else some


@st.composite
def frames(
    draw: st.DrawFn, schema: Schema, ticks: Sequence[int] | None, *, nulls: bool = True
) -> pl.DataFrame:
    """Tuples with these timestamps (or, for a schema without time, up to MOST of them)."""
    rows = draw(st.integers(0, MOST)) if ticks is None else len(ticks)
    values: dict[str, list[Any]] = {}
    for attribute in schema.attributes:
        if attribute.name == schema.time and ticks is not None:
            values[attribute.name] = [schema.value_of(t) for t in ticks]
        else:
            column = columns(attribute, nulls=nulls)
            values[attribute.name] = draw(st.lists(column, min_size=rows, max_size=rows))
    return pl.DataFrame(values, schema=schema.polars)


@st.composite
def timestamps(draw: st.DrawFn, stream: Stream, most: int = MOST, span: int = SPAN) -> list[int]:
    """As declared: never decreasing when ordered, always increasing when strict."""
    strict = stream.properties.strict
    drawn = draw(st.lists(st.integers(0, span), max_size=most, unique=strict))
    return sorted(drawn) if stream.properties.ordered or strict else drawn


@st.composite
def streams(
    draw: st.DrawFn,
    stream: Stream,
    *,
    punctuated: Sequence[str] = (),
    heartbeats: bool = True,
    ends: bool | None = None,
    nulls: bool = True,
    most: int = MOST,
) -> list[Page]:
    """The pages of one input, with punctuations that are true of all its later tuples.

    `punctuated` names attributes that punctuations may speak of besides time; `ends` says whether
    the end of time comes at the end (None: sometimes).
    """
    schema = stream.schema
    ticks = None if schema.time is None else draw(timestamps(stream, most))
    frame = draw(frames(schema, ticks, nulls=nulls))
    cuts = draw(st.lists(st.integers(0, frame.height), max_size=4))
    edges = [0, *sorted(cuts), frame.height]
    pages = []
    given = START_OF_TIME
    for start, end in itertools.pairwise(edges):
        later = frame.slice(end)
        marks = list(draw(general(schema, later, punctuated)))
        if heartbeats and schema.time is not None and draw(st.booleans()):
            beat = draw(true_heartbeat(schema, later))
            if beat > given:
                given = beat
                marks.append(Punctuation.heartbeat(schema, beat))
        pages.append(Page(schema, frame.slice(start, end - start), tuple(marks)))
    if schema.time is not None and (draw(st.booleans()) if ends is None else ends):
        pages.append(ending(schema))
    return [p for p in pages if len(p)]


@st.composite
def true_heartbeat(draw: st.DrawFn, schema: Schema, later: pl.DataFrame) -> int:
    """A heartbeat below everything that comes later."""
    least = schema.ticks(later).min() if later.height else SPAN + 4
    assert isinstance(least, int)
    return draw(st.integers(max(-1, least - 6), least - 1))


@st.composite
def general(
    draw: st.DrawFn, schema: Schema, later: pl.DataFrame, names: Sequence[str]
) -> list[Punctuation]:
    """Up to two punctuations on these attributes, some bounded in time as well, all true."""
    if not names:
        return []
    kept = []
    for _ in range(draw(st.integers(0, 2))):
        pattern = draw(patterns(schema, names))
        if not pattern.is_wild and not pattern.is_empty and not pattern.matches_any(later):
            kept.append(Punctuation(pattern))
    return kept


@st.composite
def patterns(draw: st.DrawFn, schema: Schema, names: Sequence[str]) -> Pattern:
    """Values, sets and bounds on some of these attributes, and sometimes a bound on time."""
    conditions: dict[str, Any] = {}
    for name in names:
        if name == schema.time:
            continue
        value = columns(schema[name], nulls=False)
        kinds = [
            st.none(),
            value,
            st.sets(value, min_size=1, max_size=3),
            st.tuples(st.sampled_from(["≤", ">", "≠"]), value),
        ]
        chosen = draw(st.one_of(kinds))
        if chosen is not None:
            conditions[name] = chosen
    if schema.time is not None and draw(st.integers(0, 3)) == 0:
        bound = draw(st.integers(0, SPAN))
        conditions[schema.time] = Range(high=schema.value_of(bound))
    return Pattern.of(schema, conditions)


@st.composite
def assumptions(draw: st.DrawFn, schema: Schema) -> Pattern:
    """Patterns of feedback: on one or two attributes, the time among them or not."""
    plain = [a.name for a in schema.attributes if not a.dtype.is_nested()]
    chosen = draw(st.lists(st.sampled_from(plain), min_size=1, max_size=2, unique=True))
    conditions: dict[str, Any] = {}
    for name in chosen:
        if name == schema.time:
            low, high = draw(st.integers(0, SPAN)), draw(st.integers(0, SPAN))
            ends = draw(st.sampled_from([(None, high), (low, None), (low, high), (low, low)]))
            conditions[name] = within(schema, *ends)
            continue
        value, known = (columns(schema[name], nulls=n) for n in (True, False))
        kinds = [
            value,
            st.sets(value, min_size=1, max_size=3),
            st.tuples(st.sampled_from(["≤", "<", ">", "≥", "≠"]), known),
        ]
        conditions[name] = draw(st.one_of(kinds))
    return Pattern.of(schema, conditions)


def ending(schema: Schema) -> Page:
    """The end of time."""
    return Page(schema, schema.empty(), (Punctuation.heartbeat(schema, END_OF_TIME),))


@st.composite
def arrivals(
    draw: st.DrawFn,
    inputs: Sequence[Stream],
    *,
    punctuated: Sequence[str] = (),
    ends: bool | None = None,
    nulls: bool = True,
    most: int = MOST,
) -> list[Event]:
    """The pages of all inputs in any interleaving that keeps each input's own order."""
    pages = [
        draw(streams(s, punctuated=punctuated, ends=ends, nulls=nulls, most=most)) for s in inputs
    ]
    turns = [port for port, own in enumerate(pages) for _ in own]
    order = draw(st.permutations(turns)) if len(inputs) > 1 else turns
    queues = [iter(own) for own in pages]
    return [Arrival(port, next(queues[port])) for port in order]


@st.composite
def splits(draw: st.DrawFn, events: Sequence[Event]) -> list[Event]:
    """The same events with every page cut anywhere."""
    cut: list[Event] = []
    for event in events:
        height = event.page.height if isinstance(event, Arrival) else 0
        cuts = draw(st.lists(st.integers(1, height - 1), max_size=3)) if height > 1 else []
        cut += split(event, cuts)
    return cut


def shifted(page: Page, by: int) -> Page:
    """The page with its time moved; punctuations on anything but time are left out."""
    schema = page.schema
    if schema.time is None:
        return replace(page, punctuations=())
    moved = (pl.col(schema.time).to_physical().cast(pl.Int64) + by).cast(schema[schema.time].dtype)
    beats = [p.heartbeat_ticks for p in page.punctuations]
    marks = [Punctuation.heartbeat(schema, b + by) for b in beats if b is not None and b < SPAN * 4]
    return Page(schema, page.frame.with_columns(moved.alias(schema.time)), tuple(marks))
