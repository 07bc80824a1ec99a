"""Pace: a union with a bound on divergence (Feedback Example 3 and section 3.3)."""

from __future__ import annotations

from typing import Any

import pytest
from case_streams import DISORDERED, ORDERED, SCHEMA, UNTIMED
from feedback_cases import PACES, pace
from hypothesis import given, settings
from hypothesis import strategies as st

from interpunct.model.errors import InterpunctError
from interpunct.model.feedback import Feedback
from interpunct.model.late import Reason
from interpunct.model.page import Page
from interpunct.model.punctuation import Punctuation
from interpunct.operators.contract import Stream
from interpunct.operators.pace import LATE, Pace
from interpunct.testing import LAWS, Arrival, Case, Law, Running
from interpunct.testing.laws import propagation_is_safe

few = settings(max_examples=settings().max_examples // 3)


def page(*times: int, heartbeat: int | None = None) -> Page:
    marks = [] if heartbeat is None else [Punctuation.heartbeat(SCHEMA, heartbeat)]
    return Page.of_rows(SCHEMA, [(1, t, 0.5) for t in times], marks)


def paced(*inputs: Stream, **options: Any) -> Running:
    case = pace("p", *inputs, **{"tolerance": 15, "feedback": True, **options})
    return Running(case)


def see(running: Running, port: int, *times: int, heartbeat: int | None = None) -> list[str]:
    """The feedback that a page causes, as `input: pattern`."""
    before = len(running.relays)
    running.see([Arrival(port, page(*times, heartbeat=heartbeat))])
    return [f"{p}: {f}" for p, f in running.relays[before:]]


def test_tuples_pass_in_arrival_order_until_they_are_further_behind_than_tolerated() -> None:
    running = paced(DISORDERED, DISORDERED)
    for port, time in [(0, 10), (0, 20), (0, 30), (1, 15), (0, 40), (1, 25), (1, 24)]:
        see(running, port, time)
    assert running.ticks(0) == [10, 20, 30, 15, 40, 25]
    (late,) = running.pages(LATE)
    assert late.frame.row(0, named=True) == {
        "k": 1, "ts": 24, "v": 0.5,
        "_source": "p", "_reason": Reason.DIVERGED.value, "_lateness": 0, "_heartbeat": 24,
    }  # fmt: skip


def test_the_high_watermark_never_regresses() -> None:
    running = paced(DISORDERED, DISORDERED)
    operator = running.operator
    assert isinstance(operator, Pace)
    marks = []
    for port, time in [(0, 30), (1, 50), (0, 10), (0, 49), (1, 20)]:
        see(running, port, time)
        marks.append(operator.high)
    assert marks == [30, 50, 50, 50, 50]


def test_the_output_promises_what_is_enforced_or_what_all_inputs_promise_if_that_is_more() -> None:
    running = paced(DISORDERED, DISORDERED)
    see(running, 0, 40)
    assert running.heartbeat(0) == 24
    see(running, 0, heartbeat=60)
    assert running.heartbeat(0) == 24
    see(running, 1, heartbeat=50)
    assert running.heartbeat(0) == 50


def test_only_the_inputs_named_set_the_pace() -> None:
    running = paced(DISORDERED, DISORDERED, on=(0,))
    see(running, 1, 100)
    see(running, 0, 10)
    assert running.ticks(0) == [100, 10]
    assert running.ticks(LATE) == [] if running.pages(LATE) else True
    see(running, 0, 40)
    see(running, 1, 20)
    assert len(running.pages(LATE)) == 1


def test_who_has_fallen_behind_is_told_and_nobody_else() -> None:
    running = paced(DISORDERED, DISORDERED)
    assert see(running, 0, 10) == []
    assert see(running, 1, 5) == []
    assert see(running, 0, 20) == []
    assert see(running, 0, 30) == ["1: ¬[*, ≤ 14, *]"]
    assert see(running, 0, 30) == [], "nothing new is said"
    assert see(running, 1, 14) == [], "late, but told already"
    assert see(running, 0, 32) == ["1: ¬[*, ≤ 16, *]"]
    assert see(running, 1, 31) == []
    assert see(running, 0, 33, 40) == [], "input 1 has caught up"
    assert see(running, 1, 20) == ["1: ¬[*, ≤ 24, *]"], "but goes on with what is late"


def test_a_page_is_worth_one_message_at_most() -> None:
    running = paced(DISORDERED, DISORDERED)
    see(running, 1, 1)
    assert see(running, 0, *range(10, 100)) == ["1: ¬[*, ≤ 83, *]"]


def test_who_has_promised_to_send_nothing_late_is_not_told() -> None:
    running = paced(DISORDERED, DISORDERED)
    see(running, 1, 1, heartbeat=90)
    assert see(running, 0, 10, 100) == []
    assert see(running, 0, 110) == ["1: ¬[*, ≤ 94, *]"]


def test_an_input_never_heard_of_is_behind_once_time_has_gone_on_past_the_tolerance() -> None:
    running = paced(DISORDERED, DISORDERED)
    assert see(running, 0, 10) == []
    assert see(running, 0, 25) == []
    assert see(running, 0, 26) == ["1: ¬[*, ≤ 10, *]"]


def test_without_feedback_nobody_is_told() -> None:
    running = paced(DISORDERED, DISORDERED, feedback=False)
    see(running, 1, 1)
    assert see(running, 0, 10, 100) == []
    see(running, 1, 2)
    assert len(running.pages(LATE)) == 1


def heard(running: Running, text: str) -> list[str]:
    emission = running.operator.on_feedback(Feedback.parse(text, SCHEMA))
    return [f"{p}: {f}" for p, f in emission.relays]


def test_what_is_below_the_high_watermark_is_passed_on_to_every_input() -> None:
    running = paced(DISORDERED, DISORDERED)
    see(running, 0, 20)
    assert heard(running, "¬[1, ≤ 20, *]") == ["0: ¬[1, ≤ 20, *]", "1: ¬[1, ≤ 20, *]"]


def test_tuples_that_may_move_the_high_watermark_are_kept_from_the_output_alone() -> None:
    running = paced(DISORDERED, DISORDERED)
    assert heard(running, "¬[1, *, *]") == []
    see(running, 0, 20)
    see(running, 1, 4)
    assert running.ticks(0) == []
    assert len(running.pages(LATE)) == 1, "the tuple stamped 20 has moved the high-watermark"


def test_inputs_that_do_not_set_the_pace_are_told() -> None:
    running = paced(DISORDERED, DISORDERED, on=(0,))
    assert heard(running, "¬[1, *, *]") == ["1: ¬[1, *, *]"]
    assert heard(running, "?[2, *, *]") == ["0: ?[2, *, *]", "1: ?[2, *, *]"]


@pytest.mark.parametrize("case", PACES, ids=str)
@few
@given(data=st.data())
def test_what_pace_tells_upstream_costs_its_output_nothing(case: Case, data: st.DataObject) -> None:
    """Tuples dropped upstream because pace said so are missing from the late output alone."""
    operator = Running(case).operator
    assert isinstance(operator, Pace)
    options = {"tolerance": operator._tolerance, "on": sorted(operator._on), "feedback": True}
    telling = pace("telling", *operator.inputs, **options)
    events = data.draw(case.inputs)
    everything, thinned = Running(telling), Running(telling)
    for event in events:
        assert isinstance(event, Arrival)
        everything.see([event])
        frame = event.page.frame
        for port, said in thinned.relays:
            if port == event.port:
                frame = frame.filter(~said.pattern.mask(frame))
        thinned.see([Arrival(event.port, Page(event.page.schema, frame, event.page.punctuations))])
    assert thinned.rows(0) == everything.rows(0)
    assert thinned.heartbeat(0) == everything.heartbeat(0)
    assert thinned.bag(LATE) <= everything.bag(LATE)


@pytest.mark.parametrize("law", [law for law in LAWS.values() if law is not propagation_is_safe])
@few
@given(data=st.data())
def test_a_pace_that_tells_keeps_the_other_laws(law: Law, data: st.DataObject) -> None:
    law(pace("telling", ORDERED, DISORDERED, feedback=True), data)


@pytest.mark.parametrize(
    ("inputs", "tolerance", "on", "told"),
    [
        ([ORDERED], 1, None, "two or more streams"),
        ([ORDERED, ORDERED], -1, None, "tolerance of 0 or more"),
        ([ORDERED, ORDERED], 1, (2,), "to name some of its 2 inputs"),
        ([ORDERED, ORDERED], 1, (), "to name some of its 2 inputs"),
        ([Stream(UNTIMED), Stream(UNTIMED)], 1, None, "time"),
        ([ORDERED, Stream(UNTIMED)], 1, None, "Give them one shape first"),
    ],
)
def test_a_pace_that_makes_no_sense_is_refused(
    inputs: list[Stream], tolerance: int, on: tuple[int, ...] | None, told: str
) -> None:
    with pytest.raises(InterpunctError, match=told):
        Pace("p", inputs, tolerance, on=on)
