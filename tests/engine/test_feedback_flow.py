"""Feedback through a running flow: from a sink to the sources, checked where it enters."""

from __future__ import annotations

import random
from pathlib import Path

import polars as pl
import pytest

import interpunct as ip
from interpunct.engine.run import Engine
from interpunct.flow.feedback import MOST_UNDELIMITED, explain_feedback
from interpunct.model.errors import FeedbackError, PatternError
from interpunct.operators.state import DictState
from interpunct.spark.channel import Channel, Message

READINGS = "segment bigint, ts bigint, speed double"


def speed_map(partial: bool = False) -> ip.Flow:
    """Figure 4 (b): a quality filter, an average, a map."""
    flow = ip.Flow("speed-map")
    sensors = flow.source("sensors", READINGS, time=ip.external("ts", bounds=ip.bounds(skew=0)))
    good = sensors.where("speed between 0 and 120", name="quality")
    average = good.aggregate(by="segment", every=20, speed="avg(speed)", name="average")
    flow.sink("map", average)
    if partial:
        flow.sink("now", average.partial)
    return flow


class Session:
    """An engine that is fed by hand."""

    def __init__(self, flow: ip.Flow, state: DictState | None = None) -> None:
        self.got: dict[str, list[pl.DataFrame]] = {n.name: [] for n in flow.graph.sinks}
        deliver = {name: frames.append for name, frames in self.got.items()}
        clock = ip.ScriptedClock()
        self.engine = Engine(flow.graph, clock, deliver=deliver, state=state or DictState())
        self.flow = flow

    def feed(self, source: str, rows: list[tuple[object, ...]]) -> None:
        raw = next(n.raw for n in self.flow.graph.sources if n.name == source)
        self.engine.feed(source, ip.Page.of_rows(raw, rows))
        self.engine.settle()

    def rows(self, sink: str) -> list[tuple[object, ...]]:
        return [row for frame in self.got[sink] for row in frame.rows()]


def minute(first: int, segments: int = 9) -> list[tuple[object, ...]]:
    return [(s, first + t, 50.0 + s) for t in range(0, 60, 10) for s in range(segments)]


def test_zooming_in_spares_the_whole_plan() -> None:
    session = Session(speed_map())
    session.feed("sensors", minute(0))
    session.engine.feedback("map", "¬[segment ∉ {3}]", lasting=1000)
    session.feed("sensors", minute(60))
    session.feed("sensors", minute(120))
    late = [row for row in session.rows("map") if row[1] >= 60]  # type: ignore[operator]
    assert {row[0] for row in late} == {3}
    skipped = session.engine.skipped()
    assert sum(skipped["sensors"].values()) == 2 * 6 * 8, "what is avoided is avoided at the source"
    assert "quality" not in skipped


def test_guards_end_with_the_time_they_speak_of() -> None:
    session = Session(speed_map())
    session.feed("sensors", minute(0))
    session.engine.feedback("map", "¬[segment ∉ {3}, ts ≤ 100]")
    session.feed("sensors", minute(60))
    assert sum(h.guards for h in session.engine.held().values()) > 0
    session.feed("sensors", minute(120) + minute(180))
    assert sum(h.guards for h in session.engine.held().values()) == 0
    assert {row[0] for row in session.rows("map") if row[1] == 120} == set(range(9))


def test_guards_survive_a_restart() -> None:
    first = Session(speed_map())
    first.feed("sensors", minute(0))
    first.engine.feedback("map", "¬[segment ∉ {3}, ts ≤ 1000]")
    first.engine.settle()
    state = first.engine.save()
    assert isinstance(state, DictState)
    second = Session(speed_map(), DictState(dict(state.entries)))
    second.feed("sensors", minute(60))
    second.feed("sensors", minute(120))
    assert {row[0] for row in second.rows("map") if row[1] >= 60} == {3}  # type: ignore[operator]


def test_an_output_with_two_readers_does_without_what_both_do_without() -> None:
    flow = ip.Flow("two-maps")
    cars = flow.source("cars", READINGS, time=ip.external("ts", bounds=ip.bounds(skew=0)))
    flow.sink("left", cars.where("speed > 0", name="one"))
    flow.sink("right", cars.where("speed > 0", name="two"))
    session = Session(flow)
    session.engine.feedback("left", "¬[segment ∈ {1, 2}, ts ≤ 100]")
    session.feed("cars", [(1, 1, 5.0), (2, 1, 5.0), (3, 1, 5.0)])
    assert [row[0] for row in session.rows("left")] == [3]
    assert [row[0] for row in session.rows("right")] == [1, 2, 3]
    assert "cars" not in session.engine.skipped()
    session.engine.feedback("right", "¬[segment ∈ {2, 3}, ts ≤ 100]")
    session.feed("cars", [(1, 2, 5.0), (2, 2, 5.0), (3, 2, 5.0)])
    assert [row[0] for row in session.rows("right")] == [1, 2, 3, 1]
    assert sum(session.engine.skipped()["cars"].values()) == 1, "segment 2, which neither wants"
    state = session.engine.save()
    assert isinstance(state, DictState)
    again = Session(flow, DictState(dict(state.entries)))
    assert again.engine.held()["cars"].guards > 0
    again.feed("cars", [(2, 200, 5.0), (2, 201, 5.0)])
    assert again.engine.held()["cars"].guards == 0


def test_a_demand_is_answered_with_partial_results_and_changes_no_final_one() -> None:
    plain, asked = Session(speed_map(partial=True)), Session(speed_map(partial=True))
    for session in (plain, asked):
        session.feed("sensors", [(3, 1, 40.0), (4, 1, 60.0), (3, 5, 50.0)])
    asked.engine.feedback("map", "![segment=3]")
    asked.engine.settle()
    assert asked.rows("now") == [(3, 0, 45.0, 5)]
    for session in (plain, asked):
        session.feed("sensors", [(3, 7, 60.0), (3, 21, 1.0)])
    assert asked.rows("map") == plain.rows("map") == [(3, 0, 50.0), (4, 0, 60.0)]


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ("¬[lane=3]", PatternError, "lane"),
        ("[segment=3]", PatternError, "an intent"),
        ("¬[segment=3]", FeedbackError, "punctuation will cover"),
        ("¬[speed > 1.00]", FeedbackError, "undelimited=True"),
        ("¬[segment ∈ {}, ts ≤ 5]", FeedbackError, "some tuple matches"),
        ("![segment=3]", FeedbackError, "answers demands"),
    ],
)
def test_feedback_that_makes_no_sense_is_an_error_to_its_sender(
    text: str, error: type[Exception], said: str
) -> None:
    session = Session(speed_map())
    with pytest.raises(error, match=said):
        session.engine.feedback("map", text)


def test_a_wish_for_what_was_assumed_away_is_refused() -> None:
    session = Session(speed_map())
    session.engine.feedback("map", "¬[segment ∈ {1, 2}, ts ≤ 100]")
    with pytest.raises(FeedbackError, match="assumed away stays away"):
        session.engine.feedback("map", "?[segment=2, ts ≤ 50]")
    session.engine.feedback("map", "?[segment=3]")


def test_an_unknown_sink_is_named_with_those_there_are() -> None:
    with pytest.raises(FeedbackError, match="map"):
        Session(speed_map()).engine.feedback("mpa", "¬[segment=3, ts ≤ 5]")


def test_undelimited_feedback_is_accepted_with_a_warning_up_to_a_cap() -> None:
    session = Session(speed_map())
    for segment in range(MOST_UNDELIMITED):
        with pytest.warns(UserWarning, match="stay for ever"):
            session.engine.feedback("map", f"¬[segment={segment}]", undelimited=True)
    with pytest.raises(FeedbackError, match="at most"):
        session.engine.feedback("map", "¬[segment=99]", undelimited=True)


def test_ten_thousand_messages_over_a_thousand_windows_leave_nothing_behind(
    tmp_path: Path,
) -> None:
    """The soak: messages and guards come and go with their windows, and never pile up."""
    rng = random.Random(7)
    session, channel = Session(speed_map()), Channel.of(str(tmp_path))
    schema = session.flow.graph.nodes["map"].streams[0].schema
    most = taken = 0
    for window in range(1000):
        for _ in range(10):
            segment, span = rng.randrange(9), rng.randrange(1, 60)
            until = 20 * window + span
            said = ip.Feedback.parse(f"¬[segment={segment}, ts ≤ {until}]", schema)
            channel.send(Message.of("map", said))
        number = channel.take(taken)
        for message in channel.messages(taken, number):
            session.engine.feedback(message.target, message.text)
        channel.forget(number)
        taken = number
        session.feed("sensors", [(s, 20 * window, 50.0) for s in range(9)])
        most = max(most, sum(h.guards for h in session.engine.held().values()))
    session.feed("sensors", [(0, 20 * 1010, 50.0), (0, 20 * 1020, 50.0)])
    assert sum(h.guards for h in session.engine.held().values()) == 0
    assert most < 100, "no more than the open windows and segments call for"
    assert channel.waiting() == 0
    assert not session.engine._desk.said["map"] or len(session.engine._desk.said["map"]) <= 60


def test_explain_says_what_each_operator_would_do() -> None:
    graph = speed_map().graph
    schema = graph.nodes["map"].streams[0].schema
    text = explain_feedback(graph, "map", ip.Feedback.parse("¬[segment=3, ts < 60]", schema))
    assert text.splitlines() == [
        "¬[3, < 60, *] at map",
        "  map (sink) ¬[…]: guard input 0 with [3, < 60, *]; propagate [3, < 60, *] to input 0",
        "  average (aggregate) ¬[g, *]: purge [3, ≤ 59, *] of input 0; "
        "guard input 0 with [3, ≤ 59, *]; propagate [3, ≤ 59, *] to input 0",
        "  quality (select) ¬[…]: guard input 0 with [3, ≤ 59, *]; "
        "propagate [3, ≤ 59, *] to input 0",
        "  sensors (source) ¬[…]: guard output 0 with [3, ≤ 59, *]",
    ]


def test_explain_says_where_feedback_ends_and_that_it_would_be_refused() -> None:
    graph = speed_map().graph
    schema = graph.nodes["map"].streams[0].schema
    lines = explain_feedback(graph, "map", ip.Feedback.parse("¬[*, *, ≥ 5]", schema)).splitlines()
    why = "of its tuples alone nothing follows that could be left out"
    assert f"    quality is not told: {why}" in lines
    assert lines[-1].startswith("It has no end in ts, so it is refused")
