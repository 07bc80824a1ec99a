"""Joins that send feedback of their own: thrifty and impatient (Feedback sections 3.3 and 3.4)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from operator_cases import CASES

from interpunct.model.page import Page
from interpunct.model.punctuation import Punctuation
from interpunct.model.schema import Schema
from interpunct.operators.contract import Emission, Stream
from interpunct.operators.eager_join import EagerJoin
from interpunct.operators.impatient_join import ImpatientJoin
from interpunct.operators.join import JoinSpec, WindowJoin
from interpunct.operators.thrifty_join import ThriftyJoin
from interpunct.testing import LAWS, Case, Law, Running

VEHICLES = Schema.of("segment bigint, period bigint, mph double", time="period")
SENSORS = Schema.of("segment bigint, at bigint, speed double", time="at")


def joined(kind: type[WindowJoin], how: str = "inner", within: int = 0) -> WindowJoin:
    spec = JoinSpec(("segment",), (within, within), how)
    return kind("join", [Stream(VEHICLES), Stream(SENSORS)], spec)


def see(join: WindowJoin, port: int, rows: list[Any], heartbeat: int | None = None) -> list[str]:
    """A page, and a heartbeat with it; what the join relays, as text."""
    schema = join.inputs[port].schema
    marks = () if heartbeat is None else (Punctuation.heartbeat(schema, heartbeat),)
    page = Page(schema, Page.of_rows(schema, rows).frame, marks)
    emission: Emission = join.accept(port, page)
    return [f"{port} {feedback}" for port, feedback in emission.relays]


def test_window_4_is_empty_on_the_vehicle_stream_so_the_sensors_are_told() -> None:
    join = joined(ThriftyJoin)
    assert see(join, 0, [(7, 3, 50.0)], 3) == ["1 ¬[≠ 7, ≤ 3, *]"], "of window 3 all but segment 7"
    assert see(join, 0, [], 4) == ["1 ¬[*, 4, *]"], "of window 4 everything"


def test_a_thrifty_left_join_never_tells_its_left_input() -> None:
    join = joined(ThriftyJoin, "left")
    assert see(join, 1, [], 4) == []
    assert see(join, 0, [], 4) == [], "the sensors have come as far: nothing of them is to come"
    assert see(join, 0, [], 9) == ["1 ¬[*, [5, 9], *]"]


def test_i_have_vehicle_data_for_segment_3_and_period_7() -> None:
    join = joined(ImpatientJoin)
    assert see(join, 0, [(3, 7, 50.0)]) == ["1 ?[3, 7, *]"]
    see(join, 1, [], 7)
    assert see(join, 0, [(3, 7, 51.0)]) == [], "no partner can come any more"


def test_an_eager_join_does_both() -> None:
    join = joined(EagerJoin)
    assert see(join, 0, [(3, 7, 50.0)], 7) == ["1 ?[3, 7, *]", "1 ¬[≠ 3, ≤ 7, *]"]


JOINS = [c for c in CASES if c.name.startswith("join")]
KINDS = {"thrifty": ThriftyJoin, "impatient": ImpatientJoin, "eager": EagerJoin}


def of_kind(case: Case, kind: type[WindowJoin]) -> Case:
    """The same join, with feedback of its own."""

    def build(context: Any) -> WindowJoin:
        plain = case.build(context)
        assert isinstance(plain, WindowJoin)
        return kind(plain.name, plain.inputs, plain.spec, context.state)

    return Case(f"{kind.__name__} {case.name}", build, case.inputs, case.keeps_open)


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS.keys())
@pytest.mark.parametrize("kind", [ThriftyJoin, EagerJoin], ids=lambda k: k.__name__)
@given(data=st.data())
def test_joins_with_feedback_of_their_own_keep_every_law(
    kind: type[WindowJoin], law: Law, data: st.DataObject
) -> None:
    law(of_kind(data.draw(st.sampled_from(JOINS)), kind), data)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
@given(data=st.data())
def test_feedback_of_its_own_costs_no_result(kind: type[WindowJoin], data: st.DataObject) -> None:
    case = data.draw(st.sampled_from(JOINS))
    events = data.draw(case.inputs)
    eager = Running.over(of_kind(case, kind), events)
    assert eager.bag(0) == Running.over(case, events).bag(0)
