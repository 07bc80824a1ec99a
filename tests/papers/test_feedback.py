"""The cases of *Feedback* sections 3.5 to 4.4, by the paper's own numbers."""

from __future__ import annotations

from typing import Any

import pytest

from interpunct.model.expression import aggregate, predicate
from interpunct.model.feedback import Feedback
from interpunct.model.page import Page
from interpunct.model.properties import Properties
from interpunct.model.punctuation import Punctuation
from interpunct.model.schema import Schema
from interpunct.operators.aggregate import Aggregate
from interpunct.operators.contract import Emission, Operator, Stream
from interpunct.operators.duplicate import Duplicate
from interpunct.operators.join import JoinSpec, WindowJoin
from interpunct.operators.select import Select
from interpunct.operators.tuple_window import TupleWindow
from interpunct.operators.windows import Windows

MINUTE = 60
READINGS = Schema.of("segment bigint, timestamp bigint, speed double", time="timestamp")
A = Schema.of("a bigint, t bigint, id bigint, ts bigint", time="ts")
B = Schema.of("t bigint, id bigint, b bigint, at bigint", time="at")


def over_minutes(function: str, by: tuple[str, ...] = ("segment",)) -> Aggregate:
    value = aggregate(function, READINGS, "test")
    return Aggregate("agg", Stream(READINGS), Windows(MINUTE, MINUTE), by, {"value": value})


def join(how: str = "inner") -> WindowJoin:
    """A(a, t, id) and B(t, id, b) of section 4.2, on t and id."""
    spec = JoinSpec(("t", "id"), (100, 100), how)
    return WindowJoin("join", [Stream(A), Stream(B)], spec)


def tell(operator: Operator, text: str, port: int = 0) -> list[tuple[int, str]]:
    """Send feedback; what it relays, as text."""
    streams = operator.outputs or operator.inputs
    emission = operator.on_feedback(Feedback.parse(text, streams[port].schema), port)
    return [(p, str(f)) for p, f in emission.relays]


def give(operator: Operator, rows: list[tuple[Any, ...]], port: int = 0) -> Emission:
    return operator.accept(port, Page.of_rows(operator.inputs[port].schema, rows))


def beat(operator: Operator, ticks: int, port: int = 0) -> list[tuple[Any, ...]]:
    """A heartbeat on an input, and the tuples that it lets out."""
    schema = operator.inputs[port].schema
    mark = Punctuation.heartbeat(schema, ticks)
    return rows(operator.accept(port, Page(schema, schema.empty(), (mark,))))


def rows(emission: Emission, port: int = 0) -> list[tuple[Any, ...]]:
    return [row for p, page in emission.pages if p == port for row in page.frame.rows()]


# Section 3.5 -------------------------------------------------------------------------------------


def test_average_without_the_minutes_before_0901_purges_guards_and_propagates() -> None:
    average = over_minutes("avg(speed)")
    give(average, [(1, 10, 40.0), (1, 70, 60.0)])
    assert tell(average, "¬[timestamp < 60]") == [(0, "¬[*, ≤ 59, *]")]
    assert average.held().tuples == 1, "the first minute is purged"
    give(average, [(1, 20, 99.0)])
    assert beat(average, 119) == [(1, 60, 60.0)]


def test_average_at_least_50_purges_nothing_and_window_4_survives() -> None:
    average = over_minutes("avg(speed)")
    give(average, [(1, 4 * MINUTE, 51.0)])
    assert tell(average, "¬[*, *, ≥ 50]") == [], "no assumption on unseen tuples can be made"
    assert average.held().tuples == 1
    give(average, [(1, 4 * MINUTE + 1, 41.0), (1, 5 * MINUTE, 51.0)])
    assert beat(average, 6 * MINUTE) == [(1, 4 * MINUTE, 46.0)], "window 5, at 51, is not made"


def test_max_at_least_50_closes_its_windows_and_guards_its_input() -> None:
    greatest = over_minutes("max(speed)")
    give(greatest, [(1, 10, 51.0), (2, 10, 30.0)])
    assert tell(greatest, "¬[*, *, ≥ 50]") == [(0, "¬[1, [0, 59], *]")]
    assert greatest.held().tuples == 1, "window 0 of segment 1 is closed"
    told = give(greatest, [(1, 20, 40.0), (2, 70, 55.0)])
    assert [str(f) for _, f in told.relays] == ["¬[2, [60, 119], *]"], (
        "it is prevented from forming"
    )
    give(greatest, [(2, 80, 20.0)])
    assert beat(greatest, 200) == [(2, 0, 30.0)], "40 made no window of its own"
    assert greatest.held().tuples == 0


def test_min_closes_at_most_and_never_at_least() -> None:
    least = over_minutes("min(speed)")
    give(least, [(1, 10, 20.0)])
    assert tell(least, "¬[*, *, ≥ 20]") == []
    give(least, [(1, 11, 10.0)])
    assert tell(least, "¬[*, *, ≤ 10]") == [(0, "¬[1, [0, 59], *]")]
    assert beat(least, 60) == []


def test_sum_may_fall_again_and_stays() -> None:
    total = over_minutes("sum(speed)")
    give(total, [(1, 10, 60.0)])
    assert tell(total, "¬[*, *, ≥ 50]") == []
    give(total, [(1, 11, -20.0)])
    assert beat(total, 60) == [(1, 0, 40.0)]


# Table 1 -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("feedback", "case", "relayed", "left", "result"),
    [
        ("¬[1, *, *]", "¬[g, *]", [(0, "¬[1, *, *]")], 1, [(2, 0, 1)]),
        ("¬[*, *, 3]", "¬[*, a]", [], 2, [(2, 0, 1)]),
        ("¬[*, *, ≥ 2]", "¬[*, ≥ a]", [(0, "¬[1, [0, 59], *]")], 1, [(2, 0, 1)]),
        ("¬[*, *, > 1]", "¬[*, ≥ a]", [(0, "¬[1, [0, 59], *]")], 1, [(2, 0, 1)]),
        ("¬[*, *, ≤ 1]", "¬[*, a]", [], 2, [(1, 0, 3)]),
        ("¬[*, *, < 2]", "¬[*, a]", [], 2, [(1, 0, 3)]),
    ],
)
def test_table_1_count(
    feedback: str, case: str, relayed: list[Any], left: int, result: list[Any]
) -> None:
    count = over_minutes("count(*)")
    give(count, [(1, 1, 0.0), (1, 2, 0.0), (2, 3, 0.0)])
    response = count.characterise(Feedback.parse(feedback, count.output).pattern, 0)
    assert response.case == case
    assert tell(count, feedback) == relayed
    assert count.held().tuples == left
    give(count, [(1, 4, 0.0)])
    assert beat(count, 59) == result


# Section 4.2 and Table 2 -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("feedback", "case", "relayed"),
    [
        ("¬[*, 3, 4, *, *, *, *]", "¬[*, j, *]", [(0, "¬[*, 3, 4, *]"), (1, "¬[3, 4, *, *]")]),
        ("¬[50, *, *, *, *, *, *]", "¬[l, *, *]", [(0, "¬[50, *, *, *]")]),
        ("¬[*, *, *, *, 50, *, *]", "¬[*, *, r]", [(1, "¬[*, *, 50, *]")]),
        ("¬[50, *, *, *, 50, *, *]", "¬[l, *, r]", []),
    ],
)
def test_table_2_join(feedback: str, case: str, relayed: list[Any]) -> None:
    joined = join()
    response = joined.characterise(Feedback.parse(feedback, joined.output).pattern, 0)
    assert response.case == case
    assert tell(joined, feedback) == relayed


def test_50_and_50_propagates_nowhere_and_49_2_3_50_is_still_produced() -> None:
    joined = join()
    assert tell(joined, "¬[50, *, *, *, 50, *, *]") == []
    give(joined, [(49, 2, 3, 1), (50, 2, 3, 1)])
    give(joined, [(2, 3, 50, 1)], port=1)
    beat(joined, 1)
    assert beat(joined, 1, port=1) == [(49, 2, 3, 1, 50, 1, 1)]


def test_table_2_purges_what_the_join_has_stored() -> None:
    joined = join()
    give(joined, [(50, 2, 3, 1), (49, 2, 3, 1)])
    beat(joined, 1), beat(joined, 1, port=1)
    assert joined.held().tuples == 2
    tell(joined, "¬[50, *, *, *, *, *, *]")
    assert joined.held().tuples == 1


def test_a_left_join_keeps_its_right_tuples_lest_left_ones_come_out_alone() -> None:
    joined = join("left")
    assert tell(joined, "¬[*, *, *, *, 50, *, *]") == []
    give(joined, [(1, 2, 3, 1)])
    give(joined, [(2, 3, 50, 1)], port=1)
    beat(joined, 500)
    assert beat(joined, 500, port=1) == []


def test_probe_and_detector_on_freeway_milepost_and_time() -> None:
    ddl = "id bigint, freeway bigint, milepost bigint, ts bigint, speed double"
    probe, detector = Schema.of(ddl, time="ts"), Schema.of(ddl, time="ts")
    spec = JoinSpec(("freeway", "milepost", "ts"), (0, 0))
    joined = WindowJoin("join", [Stream(probe), Stream(detector)], spec)
    assert tell(joined, "¬[freeway=11, milepost=30, ts≤600]") == [
        (0, "¬[*, 11, 30, ≤ 600, *]"),
        (1, "¬[*, 11, 30, ≤ 600, *]"),
    ]
    assert tell(joined, "¬[speed≥50]") == [(0, "¬[*, *, *, *, ≥ 50.0]")]


# Section 4.1, Example 2, section 5 ---------------------------------------------------------------


def test_duplicate_exploits_for_all_outputs_or_none() -> None:
    twice = Duplicate("twice", Stream(READINGS))
    assert tell(twice, "¬[segment ∈ {1, 2}]", port=0) == []
    both = give(twice, [(1, 1, 50.0)])
    assert rows(both, 0) == rows(both, 1) == [(1, 1, 50.0)]
    assert tell(twice, "¬[segment ∈ {2, 3}]", port=1) == [(0, "¬[2, *, *]")]
    both = give(twice, [(1, 2, 50.0), (2, 2, 50.0), (3, 2, 50.0)])
    assert rows(both, 0) == rows(both, 1) == [(1, 2, 50.0), (3, 2, 50.0)]


def test_example_2_windows_w3_and_w4_go_and_their_tuples_stay() -> None:
    ordered = Stream(READINGS, Properties(ordered=True))
    total = aggregate("sum(speed)", READINGS, "test")
    windows = TupleWindow("w", ordered, 3, 1, (), {"total": total})
    assert tell(windows, "¬[window ∈ {3, 4}]") == [], "those tuples are part of other windows"
    out = give(windows, [(1, n, float(n)) for n in range(8)])
    assert [row[0] for row in rows(out)] == [0, 1, 2, 5]
    assert rows(out)[-1][-1] == 5 + 6 + 7


def test_an_operator_unaware_of_feedback_ignores_it_and_does_not_relay_it() -> None:
    class Unaware(Select):
        def characterise(self, pattern: Any, port: int) -> None:  # type: ignore[override]
            del pattern, port

    deaf = Unaware("deaf", Stream(READINGS), predicate("speed > 0", READINGS, "test"))
    assert tell(deaf, "¬[segment=1]") == []
    assert len(rows(give(deaf, [(1, 1, 5.0)]))) == 1


# Section 4.4 -------------------------------------------------------------------------------------


def test_a_guard_expires_when_punctuation_covers_its_pattern() -> None:
    select = Select("s", Stream(READINGS), predicate("speed > 0", READINGS, "test"))
    tell(select, "¬[segment=1, timestamp ≤ 100]")
    assert select.held().guards == 1
    give(select, [(1, 50, 9.0), (2, 50, 9.0)])
    assert sum(select.skipped().values()) == 1
    beat(select, 99)
    assert select.held().guards == 1
    beat(select, 100)
    assert select.held().guards == 0
    assert sum(select.skipped().values()) == 1, "what it spared is not forgotten"


@pytest.mark.parametrize("ordered", [True, False])
def test_tuples_that_a_guard_keeps_away_still_show_that_time_goes_on(ordered: bool) -> None:
    stream = Stream(READINGS, Properties(ordered=ordered))
    average = Aggregate(
        "agg", stream, Windows(MINUTE, MINUTE), (), {"n": aggregate("count(*)", READINGS, "t")}
    )
    give(average, [(1, 10, 1.0)])
    tell(average, "¬[timestamp ≥ 300]")
    closed = rows(give(average, [(1, 400, 1.0)]))
    assert closed == ([(0, 1)] if ordered else [])
