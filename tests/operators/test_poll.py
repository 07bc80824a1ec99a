"""Poll: results when they are asked for (Feedback Example 4)."""

from __future__ import annotations

import pytest
from case_streams import DISORDERED, ORDERED, SCHEMA, UNTIMED
from feedback_cases import poll

from interpunct.model.errors import InterpunctError
from interpunct.model.feedback import Feedback
from interpunct.model.page import Page
from interpunct.model.punctuation import Punctuation
from interpunct.operators.contract import Stream
from interpunct.operators.poll import Poll
from interpunct.testing import Arrival, Running


def polled(stream: Stream = DISORDERED, keep: int = 5) -> Running:
    return Running(poll("p", stream, Poll, keep))


def see(running: Running, *times: int, heartbeat: int | None = None) -> None:
    marks = [] if heartbeat is None else [Punctuation.heartbeat(SCHEMA, heartbeat)]
    page = Page.of_rows(SCHEMA, [(t % 2, t, 0.5) for t in times], marks)
    running.see([Arrival(0, page)])


def ask(running: Running, text: str) -> list[int]:
    before = len(running.ticks(0))
    running.hear(Feedback.parse(text, SCHEMA))
    return sorted(running.ticks(0)[before:])


def test_nothing_leaves_until_it_is_demanded_and_then_once() -> None:
    running = polled()
    see(running, 4, 6, 9)
    assert running.ticks(0) == []
    assert ask(running, "![*, ≤ 6, *]") == [4, 6]
    assert ask(running, "![*, *, *]") == [9]
    assert ask(running, "![*, *, *]") == []
    assert running.operator.held().tuples == 0


def test_what_is_older_than_it_keeps_is_forgotten_and_that_is_its_promise() -> None:
    running = polled()
    see(running, 1, 2, 4, 6, heartbeat=7)
    assert running.operator.held().tuples == 2
    assert running.heartbeat(0) == 2
    assert ask(running, "![*, *, *]") == [4, 6]


def test_on_an_ordered_stream_a_tuple_tells_the_time() -> None:
    running = polled(ORDERED)
    see(running, 1, 4, 9)
    assert ask(running, "![*, *, *]") == [4, 9]
    assert running.heartbeat(0) == 3


def test_a_demand_goes_on_upstream_and_a_desire_lets_nothing_out() -> None:
    running = polled()
    see(running, 1)
    assert ask(running, "?[1, *, *]") == []
    assert ask(running, "![1, *, *]") == [1]
    assert [str(f) for _, f in running.relays] == ["?[1, *, *]", "![1, *, *]"]


def test_what_is_assumed_away_is_purged_kept_out_and_told_upstream() -> None:
    running = polled()
    see(running, 1, 2)
    running.hear(Feedback.parse("¬[1, *, *]", SCHEMA))
    see(running, 3, 4)
    assert running.operator.held().tuples == 2
    assert ask(running, "![*, *, *]") == [2, 4]
    assert str(running.relays[0][1]) == "¬[1, *, *]"


def test_a_promise_of_the_input_waits_for_what_is_held() -> None:
    running = polled()
    see(running, 1, 2)
    mark = Punctuation.parse("[1, *, *]", SCHEMA)
    running.see([Arrival(0, Page(SCHEMA, SCHEMA.empty(), (mark,)))])
    assert running.pages(0) == []
    assert ask(running, "![1, *, *]") == [1]
    assert [str(p) for page in running.pages(0) for p in page.punctuations] == ["[1, *, *]"]


def test_a_poll_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(InterpunctError, match="0 or more"):
        Poll("p", ORDERED, -1)
    with pytest.raises(InterpunctError, match="time"):
        Poll("p", Stream(UNTIMED), 1)
