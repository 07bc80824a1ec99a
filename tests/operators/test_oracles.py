"""The operators, on pages, give what the papers' rules give tuple by tuple."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from operator_cases import (
    AGGREGATES,
    DISORDERED,
    JOINS,
    ORDERED,
    TUPLE_WINDOWS,
    aggregated,
    join,
    tuple_window,
    union,
)

from interpunct.model.schema import START_OF_TIME
from interpunct.operators.contract import Stream
from interpunct.operators.join import WindowJoin
from interpunct.operators.merge import Merge
from interpunct.testing import Arrival, Case, Event, Running
from interpunct.testing.reference import (
    Element,
    JoinByTuple,
    Row,
    SortByTuple,
    TsmOperator,
    UnionByTuple,
    counted,
    elements,
    equal_keys,
    joined,
    windowed,
)

few = settings(max_examples=settings().max_examples // 3)


def in_order(inputs: tuple[Stream, ...], oracle: TsmOperator) -> Any:
    """Feeds the oracle page by page; a disordered input is sorted by a literal sort first."""
    sorts = [SortByTuple() for _ in inputs]

    def see(arrival: Arrival) -> None:
        for element in elements(arrival.page):
            ordered = inputs[arrival.port].properties.ordered
            ready = [element] if ordered else sorts[arrival.port].arrive(element)
            for e in ready:
                oracle.arrive(arrival.port, e)

    return see


def heard(stream: Stream, events: list[Event], port: int = 0) -> int:
    """What is certain of one input after these events: nothing at or below it comes any more."""
    known = START_OF_TIME
    for event in events:
        if isinstance(event, Arrival) and event.port == port:
            for e in elements(event.page):
                if e.row is None:
                    known = max(known, e.time)
                elif stream.properties.ordered:
                    known = max(known, e.time - 1)
    return known


def tuples_of(events: list[Event], port: int) -> list[Element]:
    pages = [e.page for e in events if isinstance(e, Arrival) and e.port == port]
    return [e for page in pages for e in elements(page) if e.row is not None]


@pytest.mark.parametrize(
    ("inputs", "case"),
    [
        ((ORDERED, ORDERED), union("two", ORDERED, ORDERED)),
        ((ORDERED, DISORDERED), union("mixed", ORDERED, DISORDERED)),
        ((ORDERED,) * 3, union("three", *(ORDERED,) * 3)),
        ((ORDERED, ORDERED), union("merge", ORDERED, ORDERED, kind=Merge)),
        ((DISORDERED,), union("sort", DISORDERED)),
    ],
    ids=["two", "mixed", "three", "merge", "sort"],
)
@few
@given(data=st.data())
def test_union_on_pages_is_figure_6_tuple_by_tuple_after_every_page(
    inputs: tuple[Stream, ...], case: Case, data: st.DataObject
) -> None:
    events = data.draw(case.inputs)
    running, oracle = Running(case), UnionByTuple(len(inputs))
    see = in_order(inputs, oracle)
    for event in events:
        assert isinstance(event, Arrival)
        running.see([event])
        see(event)
        assert running.ticks(0) == [e.time for e in oracle.tuples()]
        assert running.bag(0) == Counter(e.row for e in oracle.tuples())


def match_of(operator: WindowJoin) -> Any:
    places = [[s.schema.names.index(k) for k in operator.spec.keys] for s in operator.inputs]
    return equal_keys(places) if operator.spec.keys else lambda rows: True


def flat(operator: WindowJoin, rows: tuple[Row | None, ...], time: int) -> Row:
    """A combination as the join's output writes it: keys once, then the rest, then the time."""
    keys = operator.spec.keys
    values: list[Any] = []
    for port, (stream, row) in enumerate(zip(operator.inputs, rows, strict=True)):
        for place, name in enumerate(stream.schema.names):
            if port == 0 or name not in keys:
                values.append(None if row is None else row[place])
    return (*values, time)


@pytest.mark.parametrize("name", [n for n in JOINS if "left" not in n])
@few
@given(data=st.data())
def test_window_join_on_pages_is_figure_6_tuple_by_tuple_after_every_page(
    name: str, data: st.DataObject
) -> None:
    case = join(name)
    events = data.draw(case.inputs)
    running = Running(case)
    operator = running.operator
    assert isinstance(operator, WindowJoin)
    oracle = JoinByTuple(operator.spec.windows, match_of(operator))
    see = in_order(operator.inputs, oracle)
    for event in events:
        assert isinstance(event, Arrival)
        running.see([event])
        see(event)
        expected = [flat(operator, e.row, e.time) for e in oracle.tuples() if e.row is not None]
        assert running.bag(0) == Counter(expected)


@pytest.mark.parametrize("name", JOINS)
@few
@given(data=st.data())
def test_window_join_is_what_its_definition_says_at_every_moment(
    name: str, data: st.DataObject
) -> None:
    case = join(name)
    events = data.draw(case.inputs)
    running = Running(case)
    operator = running.operator
    assert isinstance(operator, WindowJoin)
    running.see(events)
    inputs = [tuples_of(events, p) for p in range(len(operator.inputs))]
    left = operator.spec.how == "left"
    results = joined(inputs, operator.spec.windows, match_of(operator), left=left)
    sure = min(heard(s, events, p) for p, s in enumerate(operator.inputs))
    everything = Counter(flat(operator, e.row, e.time) for e in results if e.row is not None)
    certain = Counter(
        flat(operator, e.row, e.time) for e in results if e.row is not None and e.time <= sure
    )
    # A match with the time of an open register may come out before that time is certain to be
    # over; a lonely tuple must not.
    lonely = Counter(
        flat(operator, e.row, e.time)
        for e in results
        if e.row is not None and None in e.row and e.time > sure
    )
    got = running.bag(0)
    assert certain <= got
    assert not got & lonely
    assert got - lonely <= everything


@pytest.mark.parametrize("name", AGGREGATES)
@few
@given(data=st.data())
def test_windows_are_put_out_when_closed_and_not_before(name: str, data: st.DataObject) -> None:
    stream, windows, by, sources = AGGREGATES[name]
    case = aggregated(name)
    events = data.draw(case.inputs)
    running = Running(case)
    groups = [stream.schema.names.index(k) for k in by]
    computed = [_place(stream, s) for s in sources.values()]
    for seen in range(len(events)):
        running.see([events[seen]])
        past = events[: seen + 1]
        closed = heard(stream, past)
        results = windowed(tuples_of(past, 0), windows.size, windows.slide, groups, computed)
        expected = Counter(
            (*group, stream.schema.value_of(start), *values)
            for (start, group), values in results.items()
            if start + windows.size - 1 <= closed
        )
        assert running.bag(0) == expected


@pytest.mark.parametrize("name", TUPLE_WINDOWS)
@few
@given(data=st.data())
def test_tuple_windows_are_put_out_with_their_last_tuple(name: str, data: st.DataObject) -> None:
    rows, slide, by, sources = TUPLE_WINDOWS[name]
    case = tuple_window(name)
    # A punctuation on a group ends it, and its numbering: here groups go on.
    events = [e for e in data.draw(case.inputs) if isinstance(e, Arrival) and e.page.height]
    events = [Arrival(0, type(e.page)(e.page.schema, e.page.frame)) for e in events]
    groups = [ORDERED.schema.names.index(k) for k in by]
    running = Running.over(case, events)
    results = counted(
        tuples_of([*events], 0), rows, slide, groups, [_place(ORDERED, s) for s in sources.values()]
    )
    expected = Counter(
        (*group, number, time, *values) for (group, number), (time, values) in results.items()
    )
    assert running.bag(0) == expected


def _place(stream: Stream, source: str) -> tuple[str, int]:
    """``sum(v)`` as the oracle's (name, place)."""
    name, argument = source.rstrip(")").split("(")
    return ("count(*)", 0) if argument == "*" else (name, stream.schema.names.index(argument))
