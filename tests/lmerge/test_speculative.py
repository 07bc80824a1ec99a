"""Aggregates that do not wait: their table is that of the aggregate which does."""

from __future__ import annotations

from random import Random

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interpunct.model.elements import VE, VS, describe, ticks_expr
from interpunct.model.expression import aggregate
from interpunct.model.feedback import Feedback
from interpunct.model.frames import stacked
from interpunct.model.page import Page
from interpunct.model.properties import Properties
from interpunct.model.punctuation import Punctuation
from interpunct.model.schema import END_OF_TIME, Schema
from interpunct.model.tdb import tdb, violations
from interpunct.operators.aggregate import Aggregate
from interpunct.operators.contract import Operator, Stream
from interpunct.operators.speculative_aggregate import SpeculativeAggregate
from interpunct.operators.state import DictState
from interpunct.operators.windows import Windows

INPUT = Schema.of("ts bigint, g string, v double", time="ts")
COMPUTED = {
    "n": aggregate("count(*)", INPUT, "test"),
    "mean": aggregate("avg(v)", INPUT, "test"),
    "middle": aggregate("median(v)", INPUT, "test"),
}
TUMBLING, SLIDING = Windows(10, 10), Windows(20, 5)
seeds = st.integers(0, 2**32)


def speculative(
    windows: Windows = TUMBLING, by: tuple[str, ...] = ("g",), names: tuple[str, ...] = ("n",),
    *, ordered: bool = False, state: DictState | None = None,
) -> SpeculativeAggregate:  # fmt: skip
    stream = Stream(INPUT, Properties(ordered=ordered))
    return SpeculativeAggregate(
        "early", stream, windows, by, {n: COMPUTED[n] for n in names}, state
    )


def page(*rows: tuple[int, str | None, float | None], upto: int | None = None) -> Page:
    marks = () if upto is None else (Punctuation.heartbeat(INPUT, upto),)
    return Page(INPUT, Page.of_rows(INPUT, rows).frame, marks)


def said(operator: Operator, arrived: Page) -> pl.DataFrame:
    frames = [p.frame for _, p in operator.accept(0, arrived).pages]
    return stacked([operator.output.empty(), *frames])


def arrivals(random: Random, count: int = 40) -> list[Page]:
    """Disordered tuples in pages, with heartbeats that are true of what follows."""
    rows = [
        (
            max(0, at - random.choice([0, 0, 3, 12])),
            random.choice(["a", "b", None]),
            random.random(),
        )
        for at in range(count)
    ]
    pages, start = [], 0
    while start < count:
        end = start + random.randint(1, 12)
        ahead = min((r[0] for r in rows[end:]), default=END_OF_TIME + 1)
        upto = ahead - 1 if random.random() < 0.5 or end >= count else None
        pages.append(page(*rows[start:end], upto=upto))
        start = end
    return pages


def test_a_late_tuple_takes_the_result_back_and_a_heartbeat_makes_it_final() -> None:
    early = speculative()
    shown = [
        describe(early.output, said(early, p))
        for p in (page((3, "a", 1.0), (14, "a", 1.0)), page((7, "a", 1.0)), page(upto=9))
    ]
    assert shown == [
        "insert(a, 1, 0, 10), insert(a, 1, 10, 20)",
        "adjust(a, 1, 0, 10, 0), insert(a, 2, 0, 10)",
        "stable(10)",
    ]


def test_on_an_ordered_stream_each_tuple_closes_what_is_before_it() -> None:
    early = speculative(ordered=True)
    assert describe(early.output, said(early, page((3, "a", 1.0), (21, "a", 1.0)))) == (
        "insert(a, 1, 0, 10), insert(a, 1, 20, 30), stable(20)"
    )


def test_a_result_that_does_not_change_is_not_said_again() -> None:
    early = speculative(names=("middle",))
    said(early, page((3, "a", 5.0)))
    assert not said(early, page((4, "a", 5.0))).height


@pytest.mark.parametrize("windows", [TUMBLING, SLIDING])
@pytest.mark.parametrize("by", [("g",), ()])
@given(seed=seeds)
@settings(max_examples=6)
def test_the_table_is_that_of_the_aggregate_that_waits(
    windows: Windows, by: tuple[str, ...], seed: int
) -> None:
    random = Random(seed)
    pages = arrivals(random)
    early = speculative(windows, by, tuple(COMPUTED))
    final = Aggregate("final", Stream(INPUT), windows, by, COMPUTED)
    out = stacked([said(early, p) for p in pages])
    results = stacked([said(final, p) for p in pages])
    assert not violations(early.output, out, keyed=True)
    payload = [*by, *COMPUTED]
    expected = results.select(
        pl.col("ts").alias(VS), (pl.col("ts") + windows.size).alias(VE), *payload
    )
    found = tdb(early.output, out).select(VS, VE, *payload)
    assert _rounded(found) == _rounded(expected)
    assert early.held().tuples == 0


@pytest.mark.parametrize("windows", [TUMBLING, SLIDING])
@given(seed=seeds)
@settings(max_examples=4)
def test_it_goes_on_from_its_state_as_if_it_had_not_stopped(windows: Windows, seed: int) -> None:
    random = Random(seed)
    steady, state = speculative(windows), DictState()
    restarted = speculative(windows, state=state)
    for arrived in arrivals(random):
        assert said(restarted, arrived).rows() == said(steady, arrived).rows()
        restarted.save()
        restarted = speculative(windows, state=state)


@pytest.mark.parametrize("windows", [TUMBLING, SLIDING])
@given(seed=seeds)
@settings(max_examples=6)
def test_what_nobody_wants_of_the_past_is_all_that_is_left_out(windows: Windows, seed: int) -> None:
    """¬[vs ≤ s, ve ≤ s] leaves the table of all other events as it was."""
    random = Random(seed)
    pages = arrivals(random)
    full, told = speculative(windows), speculative(windows)
    past, at = random.randint(5, 40), random.randrange(len(pages))
    outs: list[list[pl.DataFrame]] = [[], []]
    for number, arrived in enumerate(pages):
        if number == at:
            feedback = Feedback.parse(f"¬[vs≤{past}, ve≤{past}]", told.output)
            emission = told.on_feedback(feedback)
            assert emission.relays or past < windows.size
        for out, operator in zip(outs, (full, told), strict=True):
            out.append(said(operator, arrived))
    wanted, found = (
        tdb(full.output, stacked(o)).filter(ticks_expr(VE) > past).rows() for o in outs
    )
    assert sorted(map(repr, found)) == sorted(map(repr, wanted))


def test_windows_of_the_past_are_purged_and_kept_out() -> None:
    early = speculative()
    said(early, page((3, "a", 1.0), (14, "a", 1.0), (27, "a", 1.0)))
    before = early.held().tuples
    emission = early.on_feedback(Feedback.parse("¬[vs≤24, ve≤24]", early.output))
    assert [str(f) for _, f in emission.relays] == ["¬[≤ 19, *, *]"]  # [20, 30) is still wanted
    assert early.held().tuples == before - 4  # two windows: what is held and what was shown
    assert describe(early.output, said(early, page((5, "a", 1.0), (22, "a", 1.0)))) == (
        "adjust(a, 1, 20, 30, 20), insert(a, 2, 20, 30)"
    )


def test_groups_nobody_wants_are_not_computed() -> None:
    early = speculative()
    said(early, page((3, "a", 1.0), (3, "b", 1.0)))
    early.on_feedback(Feedback.parse("¬[g='a']", early.output))
    assert describe(early.output, said(early, page((4, "a", 1.0), (5, "b", 1.0)))) == (
        "adjust(b, 1, 0, 10, 0), insert(b, 2, 0, 10)"
    )


def _rounded(frame: pl.DataFrame) -> list[str]:
    plain = frame.with_columns(pl.col(pl.Float64).round(9))
    return sorted(map(repr, plain.rows()))
