"""Impute: look-ups, their order, their budget, and what feedback spares (Feedback Example 3)."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field
from typing import Any

import polars as pl
import pytest
from case_streams import CLOCKED, DISORDERED, ORDERED, SCHEMA
from hypothesis import given
from hypothesis import strategies as st

from interpunct.model.errors import InterpunctError
from interpunct.model.feedback import Feedback
from interpunct.model.page import Page
from interpunct.model.punctuation import Punctuation
from interpunct.model.schema import END_OF_TIME
from interpunct.operators.backlog import Backlog
from interpunct.operators.contract import Emission, Stream
from interpunct.operators.impute import MOST_WISHES, Impute
from interpunct.operators.state import DictState
from interpunct.progress.clock import ScriptedClock


@dataclass
class Slow:
    """An archive in which a look-up takes 10 microseconds of a scripted clock."""

    clock: ScriptedClock = field(default_factory=ScriptedClock)
    asked: list[list[int]] = field(default_factory=list)
    parameters: tuple[str, ...] = ("k",)

    def look_up(self, keys: pl.DataFrame) -> pl.DataFrame:
        self.clock.advance(10)
        self.asked.append(keys["ts"].to_list())
        return keys.select((pl.col("k") * 10.0).alias("v"))


def imputing(stream: Stream = DISORDERED, archive: Any = None, **options: Any) -> Impute:
    return Impute("i", stream, ["v"], archive or Slow(), **options)


def page(*rows: tuple[int, int, float | None], heartbeat: int | None = None) -> Page:
    marks = [] if heartbeat is None else [Punctuation.heartbeat(SCHEMA, heartbeat)]
    return Page.of_rows(SCHEMA, list(rows), marks)


def lacking(*times: int, heartbeat: int | None = None) -> Page:
    return page(*((t % 3, t, None) for t in times), heartbeat=heartbeat)


def rows(emission: Emission) -> list[tuple[Any, ...]]:
    return [row for _, p in emission.pages for row in p.frame.rows()]


def marks(emission: Emission) -> list[str]:
    return [str(m) for _, p in emission.pages for m in p.punctuations]


def worked(operator: Impute, pieces: int = 1000) -> list[int]:
    """The timestamps that leave, in order."""
    times: list[int] = []
    while operator.backlog() and pieces:
        times += [row[1] for row in rows(operator.work())]
        pieces -= 1
    return times


def hear(operator: Impute, text: str) -> Emission:
    return operator.on_feedback(Feedback.parse(text, SCHEMA))


def test_nulls_are_filled_and_what_is_there_stays_and_passes_at_once() -> None:
    operator = imputing()
    assert rows(operator.accept(0, page((1, 5, None), (2, 6, 7.5)))) == [(2, 6, 7.5)]
    assert operator.backlog()
    assert rows(operator.work()) == [(1, 5, 10.0)]
    assert not operator.backlog()


def test_with_overwrite_every_tuple_is_looked_up() -> None:
    operator = imputing(overwrite=True)
    assert rows(operator.accept(0, page((2, 6, 7.5)))) == []
    assert rows(operator.work()) == [(2, 6, 20.0)]


def test_one_query_a_tuple_the_oldest_first_or_a_batch_in_one() -> None:
    for batch, expected in ((1, [[2], [3], [5], [8], [9]]), (2, [[2, 3], [5, 8], [9]])):
        archive = Slow()
        operator = imputing(archive=archive, batch=batch)
        operator.accept(0, lacking(5, 2, 9))
        operator.accept(0, lacking(8, 3))
        assert worked(operator) == [2, 3, 5, 8, 9]
        assert archive.asked == expected


def test_heartbeats_pass_up_to_what_waits() -> None:
    operator = imputing()
    assert marks(operator.accept(0, lacking(5, 8, heartbeat=10))) == ["[*, ≤ 4, *]"]
    assert marks(operator.work()) == ["[*, ≤ 7, *]"]
    assert marks(operator.work()) == ["[*, ≤ 10, *]"]


def test_other_promises_wait_for_what_matches_them_and_those_on_filled_values_go() -> None:
    operator = imputing()
    operator.accept(0, lacking(3, 4))
    for text in ("[0, *, *]", "[*, *, 5.0]"):
        mark = Punctuation.parse(text, SCHEMA)
        assert not operator.accept(0, Page(SCHEMA, SCHEMA.empty(), (mark,))).pages
    assert marks(operator.work()) == ["[0, *, *]"]
    assert marks(operator.work()) == []


def test_when_the_budget_of_a_batch_is_used_up_the_rest_waits_for_the_next() -> None:
    archive = Slow()
    operator = imputing(archive=archive, budget=25, clock=archive.clock)
    operator.accept(0, lacking(*range(6)))
    operator.begin()
    assert worked(operator) == [0, 1, 2]
    assert operator.held().tuples == 3
    operator.begin()
    assert worked(operator) == [3, 4, 5]


def test_where_there_are_no_batches_there_is_no_budget() -> None:
    archive = Slow()
    operator = imputing(archive=archive, budget=25, clock=archive.clock)
    operator.accept(0, lacking(*range(6)))
    assert worked(operator) == [*range(6)]


# Feedback ---------------------------------------------------------------------------------------


def test_what_is_assumed_away_by_carried_attributes_is_purged_and_told_upstream() -> None:
    operator = imputing()
    operator.accept(0, lacking(3, 4, 5, 6, heartbeat=6))
    emission = hear(operator, "¬[*, < 5, *]")
    assert [(p, str(f)) for p, f in emission.relays] == [(0, "¬[*, < 5, *]")]
    assert marks(emission) == ["[*, ≤ 4, *]"], "what was purged held time back"
    assert operator.held().tuples == 2
    assert worked(operator) == [5, 6]
    assert sum(operator.skipped().values()) == 2


def test_what_is_assumed_away_does_not_come_in() -> None:
    operator = imputing()
    hear(operator, "¬[1, *, *]")
    operator.accept(0, lacking(3, 4, 5))
    assert worked(operator) == [3, 5]


def test_what_is_assumed_away_by_filled_values_is_known_after_the_look_up() -> None:
    archive = Slow()
    operator = imputing(archive=archive)
    operator.accept(0, lacking(3, 4, 5))
    emission = hear(operator, "¬[*, *, ≥ 10.0]")
    assert emission.relays == []
    assert worked(operator) == [3]
    assert archive.asked == [[3], [4], [5]]


def test_what_is_desired_goes_first_what_waits_and_what_comes() -> None:
    operator = imputing()
    operator.accept(0, lacking(1, 2, 3, 4, 5, 6))
    emission = hear(operator, "?[2, *, *]")
    assert [(p, str(f)) for p, f in emission.relays] == [(0, "?[2, *, *]")]
    assert worked(operator, 1) == [2]
    operator.accept(0, lacking(7, 8))
    assert worked(operator) == [5, 8, 1, 3, 4, 6, 7]


def test_a_desire_for_a_filled_value_cannot_be_served_and_is_not_relayed() -> None:
    operator = imputing()
    operator.accept(0, lacking(1, 2))
    assert hear(operator, "?[*, *, 20.0]").relays == []
    assert operator.held().guards == 0
    assert worked(operator) == [1, 2]


def test_desires_go_when_punctuation_covers_them_and_are_bounded() -> None:
    operator = imputing()
    hear(operator, "?[2, ≤ 5, *]")
    hear(operator, "?[1, *, *]")
    assert operator.held().guards == 2
    operator.accept(0, lacking(heartbeat=5))
    assert operator.held().guards == 1
    for number in range(2 * MOST_WISHES):
        hear(operator, f"?[{number}, *, *]")
    assert operator.held().guards == MOST_WISHES
    operator.accept(0, lacking(heartbeat=END_OF_TIME))
    assert operator.held().guards == 0


def test_where_the_deadline_moves_what_it_will_have_passed_is_not_begun() -> None:
    operator = imputing()
    operator.accept(0, lacking(*range(40)))
    hear(operator, "¬[*, < 10, *]")
    assert worked(operator, 1) == [10], "nothing is known of the movement yet"
    hear(operator, "¬[*, < 13, *]")
    assert worked(operator, 1) == [16], "three ticks a piece: 13 would be late when it is done"
    hear(operator, "¬[*, < 16, *]")
    assert worked(operator, 1) == [19]
    rest = worked(operator)
    assert sorted(rest) == [17, 18, *range(20, 40)], "nobody loses what is not assumed away"
    assert rest[:9] == [*range(20, 27), 17, 18], "once it stands still, the oldest are first again"


@given(
    st.lists(st.integers(0, 30), max_size=30),
    st.lists(st.tuples(st.integers(1, 4), st.integers(0, 30)), max_size=12),
    st.integers(1, 5),
)
def test_a_backlog_gives_the_oldest_since_a_time_and_keeps_the_others(
    times: list[int], takes: list[tuple[int, int]], size: int
) -> None:
    state = DictState()
    backlog, left = Backlog(state, "b", SCHEMA), sorted(times)
    for start in range(0, len(times), size):
        backlog.add(lacking(*times[start : start + size]).frame)
    for count, since in takes:
        expected = [t for t in left if t >= since][:count]
        assert backlog.oldest(count, since)["ts"].to_list() == expected
        for t in expected:
            left.remove(t)
        backlog.save()
        backlog = Backlog(state, "b", SCHEMA)
        assert (backlog.rows, backlog.first) == (len(left), left[0] if left else None)
        assert sorted(backlog.all()["ts"].to_list()) == left


def test_the_backlog_and_the_desires_are_state() -> None:
    state = DictState()
    operator = imputing(state=state)
    operator.accept(0, lacking(1, 2, 3, 4))
    hear(operator, "?[2, *, *]")
    worked(operator, 1)
    operator.save()
    again = imputing(state=state)
    again.accept(0, lacking(5, 6))
    assert worked(again) == [5, 1, 3, 4, 6]


# What can go wrong ------------------------------------------------------------------------------


@dataclass
class Answers:
    columns: dict[str, Any]
    parameters: tuple[str, ...] = ("k",)

    def look_up(self, keys: pl.DataFrame) -> pl.DataFrame:
        return pl.DataFrame({n: [v] * keys.height for n, v in self.columns.items()})


def test_an_answer_without_the_column_or_of_another_type_is_told() -> None:
    operator = imputing(archive=Answers({"speed": 1.0}))
    operator.accept(0, lacking(1))
    with pytest.raises(InterpunctError, match=r"impute 'i': expected an answer with a column 'v'"):
        operator.work()
    operator = imputing(archive=Answers({"v": "fast"}))
    operator.accept(0, lacking(1))
    with pytest.raises(InterpunctError, match=r"answers as v double, got v String"):
        operator.work()


def test_numbers_are_taken_in_any_width() -> None:
    operator = imputing(archive=Answers({"v": 3}))
    operator.accept(0, lacking(1))
    assert rows(operator.work()) == [(1, 1, 3.0)]


@pytest.mark.parametrize(
    ("fills", "parameters", "options", "told"),
    [
        (["w"], ("k",), {}, "'w'"),
        (["v"], ("segment",), {}, "'segment'"),
        (["ts"], ("k",), {}, "the time not among them"),
        ([], ("k",), {}, "attributes to fill"),
        (["v"], ("k",), {"batch": 0}, "above 0"),
        (["v"], ("k",), {"budget": 0}, "above 0"),
    ],
)
def test_an_impute_that_makes_no_sense_is_refused(
    fills: list[str], parameters: tuple[str, ...], options: dict[str, Any], told: str
) -> None:
    with pytest.raises(InterpunctError, match=told):
        Impute("i", ORDERED, fills, Answers({}, parameters), **options)


def test_feedback_is_characterised_by_what_is_known_before_the_look_up() -> None:
    operator = Impute("i", Stream(CLOCKED), ["v"], Slow())
    table = {
        text: operator.characterise(Feedback.parse(f"¬{text}", CLOCKED).pattern, 0).case
        for text in ("[1, *, *]", "[*, ≤ '2008-12-08', *]", "[*, *, 3]", "[1, *, 3]")
    }
    assert list(table.values()) == ["¬[carried, *]"] * 2 + ["¬[…, filled, …]"] * 2


def test_the_description_of_a_flow_with_an_impute_travels() -> None:
    from interpunct import Flow, external

    flow = Flow("f")
    dirty = flow.source("dirty", "k bigint, ts bigint, v double", time=external("ts"))
    query = "select v from known where k = :k"
    flow.sink("out", dirty.impute("v", archive="known.db", query=query, batch=7, budget="1s"))
    copy = pickle.loads(pickle.dumps(flow.graph))
    assert "[v by k, 7 at a time, 1s a batch]" in flow.explain()
    assert copy.nodes["impute_1"].archive.parameters == ("k",)
