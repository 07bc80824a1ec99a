"""Inputs that come and go, that lack elements, and that cannot be believed."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from merging import CASES, Merging, as_stream, attended, named, played

from interpunct.model.elements import adjust, elements, insert, stable
from interpunct.model.errors import FlowError
from interpunct.model.schema import END_OF_TIME
from interpunct.model.tdb import equivalent, tdb, violations
from interpunct.operators.lmerge import MergePolicy
from interpunct.testing.revisable import SCHEMA

VARIANTS = ("R0", "R1", "R2", "R3", "R3-", "R4")
INCOMPLETE = "that it is an insert, adjust or stable with its times"


def rows_of(*rows):
    return elements(SCHEMA, rows).rows()


@pytest.mark.parametrize(("variant", "policy"), CASES, ids=named)
@given(seed=st.integers(0, 2**32))
@settings(max_examples=4)
def test_inputs_fail_and_return_at_random_and_nothing_is_lost_or_repeated(
    variant: str, policy: MergePolicy, seed: int
) -> None:
    """Each input carries one stream after another, guaranteed from a time that may still be to
    come, some of them without some elements; sometimes all have failed."""
    events, turns = attended(variant, policy.stable_lag, Random(seed))
    run = Merging(variant, 3, policy)
    played(run, turns)
    assert not run.merge.reports()
    assert not violations(SCHEMA, run.output, keyed=variant not in ("R1", "R4"))
    assert equivalent(SCHEMA, run.output, as_stream(events))


@pytest.mark.parametrize("variant", VARIANTS)
def test_an_input_joins_when_max_stable_reaches_what_it_is_guaranteed_from(variant: str) -> None:
    run = Merging(variant, 2)
    run.merge.detach(1)
    run.rows(0, insert("A", 1, 30), stable(2))
    run.merge.attach(1, 10)
    assert run.merge.status(1) == "joining"
    assert run.rows(1, stable(4)) == []  # it knows nothing of what ended before 10
    run.rows(0, insert("B", 5, 8), stable(9))
    assert run.merge.status(1) == "joining"
    run.rows(0, insert("C", 9, 12), stable(10))
    assert run.merge.status(1) == "joined"


@pytest.mark.parametrize("variant", VARIANTS)
def test_when_it_has_joined_all_others_may_fail_at_once(variant: str) -> None:
    run = Merging(variant, 2)
    run.merge.detach(1)
    run.rows(0, insert("A", 1, 30), stable(2))
    run.merge.attach(1, 5)
    run.rows(1, insert("A", 1, 30), insert("C", 6, 9), insert("D", 7, 9), stable(7))
    assert tdb(SCHEMA, run.output).rows() == [(1, 30, "A")]
    run.rows(0, stable(5))
    run.merge.detach(0)
    run.rows(1, stable("∞"))
    assert run.merge.max_stable == END_OF_TIME
    assert tdb(SCHEMA, run.output).rows() == [(1, 30, "A"), (6, 9, "C"), (7, 9, "D")]


@pytest.mark.parametrize("variant", VARIANTS)
def test_an_event_before_max_stable_does_not_come_out_again(variant: str) -> None:
    """Its node is gone because it is final; it comes again from a slow and a joining input."""
    run = Merging(variant, 2)
    run.rows(0, insert("A", 1, 3), stable(10))
    assert run.rows(1, insert("A", 1, 3)) == []
    run.merge.detach(1)
    run.merge.attach(1, 12)
    assert run.rows(1, insert("A", 1, 3), insert("B", 4, 20), stable(12)) == []
    run.rows(0, insert("C", 11, 13), stable(12))
    assert tdb(SCHEMA, run.output).rows() == [(1, 3, "A"), (11, 13, "C")]


@pytest.mark.parametrize("variant", VARIANTS)
def test_all_inputs_go_and_the_first_that_is_guaranteed_goes_on(variant: str) -> None:
    run = Merging(variant, 2)
    run.rows(0, insert("A", 1, 30), stable(5))
    run.merge.detach(0)
    run.merge.detach(1)
    run.merge.attach(1, 20)  # it would leave a gap: it waits
    run.rows(1, insert("A", 1, 30), insert("C", 21, 22), stable(25))
    assert run.merge.max_stable == 5
    run.merge.attach(0, 5)
    assert run.merge.status(0) == "joined"
    run.rows(0, insert("A", 1, 30), insert("B", 6, 12), stable(20))
    assert run.merge.status(1) == "joined"
    assert run.merge.max_stable == 25
    assert tdb(SCHEMA, run.output).rows() == [(1, 30, "A"), (6, 12, "B"), (21, 22, "C")]


@pytest.mark.parametrize("variant", VARIANTS)
def test_inputs_that_have_all_returned_without_a_word_do_not_let_the_output_begin_anew(
    variant: str,
) -> None:
    """It goes on where it was left, though none of those that are there had a part in that."""
    run = Merging(variant, 2)
    run.rows(0, insert("A", 1, 30), stable(2))
    for port in (0, 1):
        run.merge.detach(port)
        run.merge.attach(port, 20)
        run.merge.detach(port)
    run.merge.attach(0, 20)
    assert run.merge.status(0) == "joining"
    run.rows(0, insert("A", 1, 30), stable(25))
    run.merge.attach(1, 2)
    run.rows(1, insert("A", 1, 30), insert("B", 3, 5), stable(20))
    assert tdb(SCHEMA, run.output).rows() == [(1, 30, "A"), (3, 5, "B")]
    assert run.merge.max_stable == 25


@pytest.mark.parametrize("variant", VARIANTS)
def test_where_nothing_has_been_said_the_output_begins_with_the_first_input(variant: str) -> None:
    run = Merging(variant, 2)
    run.merge.detach(0)
    run.merge.detach(1)
    run.merge.attach(1, 20)
    assert run.merge.status(1) == "joined"


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_new_input_takes_the_next_number(variant: str) -> None:
    run = Merging(variant, 2)
    run.rows(0, insert("A", 1, 3))
    run.merge.attach(2)
    assert run.rows(2, insert("A", 1, 3)) == []
    assert run.rows(2, insert("B", 2, 4), stable(3)) == rows_of(insert("B", 2, 4), stable(3))
    run.merge.save()
    run.restart()
    assert run.rows(2, insert("C", 5, 6)) == rows_of(insert("C", 5, 6))
    with pytest.raises(FlowError, match="Detach it first"):
        run.merge.attach(2)
    with pytest.raises(FlowError, match="from 0 to 3"):
        run.merge.attach(7)


# Missing elements (section V-C) -----------------------------------------------------------------


@pytest.mark.parametrize("variant", ["R0", "R1", "R2"])
def test_what_one_input_lacks_comes_from_another_that_is_not_behind(variant: str) -> None:
    run = Merging(variant, 2)
    run.rows(0, insert("A", 1, 5))
    assert run.rows(1, insert("B", 3, 5)) == rows_of(insert("B", 3, 5))
    run.rows(0, insert("C", 4, 5))
    assert run.rows(1, insert("D", 3, 6)) == []  # too late: C has passed it


@pytest.mark.parametrize("variant", ["R0", "R1", "R2"])
def test_what_the_input_lacks_that_declared_it_stable_does_not_come(variant: str) -> None:
    run = Merging(variant, 2)
    run.rows(0, insert("A", 1, 5), stable(10))
    assert run.rows(1, insert("A", 1, 5), insert("B", 3, 5), stable(4)) == []


@pytest.mark.parametrize("variant", ["R3", "R3-", "R4"])
def test_the_input_that_makes_it_stable_decides_whether_an_event_is_there(variant: str) -> None:
    run = Merging(variant, 2)
    run.rows(0, insert("A", 1, 5), insert("B", 3, 5))
    assert run.rows(1, insert("A", 1, 5), stable(10)) == rows_of(adjust("B", 3, 5, 3), stable(10))
    run = Merging(variant, 2)
    run.rows(0, insert("A", 1, 5), insert("B", 3, 5), stable(10))
    assert run.rows(1, insert("A", 1, 5), stable(11)) == rows_of(stable(11))
    assert tdb(SCHEMA, run.output).rows() == [(1, 5, "A"), (3, 5, "B")]


# Quarantine -------------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", ["R3", "R3-", "R4"])
@pytest.mark.parametrize("claim", [[], [insert("A", 1, 6)]])
def test_a_stable_that_denies_a_half_frozen_event_quarantines_its_input(variant, claim) -> None:
    run = Merging(variant, 3)
    run.rows(0, insert("A", 1, 30), stable(10))
    assert run.rows(1, *claim, stable(20), insert("B", 25, 27)) == []
    assert run.merge.status(1) == "quarantined"
    (report,) = run.merge.reports()
    assert (report.input, report.element, report.max_stable) == (1, "stable(20)", 10)
    assert "half-frozen event" in report.contradicts
    assert "A" in report.contradicts
    assert run.rows(1, insert("C", 25, 26)) == []
    assert run.merge.ignored == 1
    assert run.rows(2, insert("A", 1, 40), stable(20)) == rows_of(stable(20))
    run.merge.attach(1, 20)
    assert run.merge.status(1) == "joined"
    assert run.rows(1, insert("A", 1, 40), stable(50)) == rows_of(
        adjust("A", 1, 30, 40), stable(50)
    )


@pytest.mark.parametrize("variant", VARIANTS)
def test_an_input_that_breaks_its_own_stable_is_heard_up_to_there(variant: str) -> None:
    run = Merging(variant, 2)
    run.rows(0, insert("A", 1, 5), stable(4), insert("B", 6, 8), insert("C", 3, 9), stable(20))
    assert tdb(SCHEMA, run.output).rows() == [(1, 5, "A"), (6, 8, "B")]
    (report,) = run.merge.reports()
    assert (report.element, report.contradicts) == ("insert(C, 3, 9)", "its own stable")
    assert run.merge.max_stable == 4


@pytest.mark.parametrize(
    ("variant", "row", "rule"),
    [
        ("R0", insert("B", 6, 8), "its order"),
        ("R1", insert("B", 5, 8), "its order"),
        ("R2", insert("B", 5, 8), "its order"),
        ("R0", adjust("A", 6, 8, 9), "that it never revises"),
        ("R3", insert("B", 7, 7), "that an event ends after it starts"),
        ("R4", insert("B", 7, None), INCOMPLETE),
        ("R3", adjust("A", 6, None, 7), INCOMPLETE),
        ("R3", ("upsert", 7, None, 9, "B"), INCOMPLETE),
        ("R2", stable(None), INCOMPLETE),
    ],
)
def test_an_input_that_breaks_its_declared_properties_is_quarantined(variant, row, rule) -> None:
    run = Merging(variant, 2)
    run.rows(0, insert("A", 6, 8))
    run.rows(0, row)
    assert [r.contradicts for r in run.merge.reports()] == [rule]


def test_reports_and_what_is_ignored_survive_a_restart() -> None:
    run = Merging("R3", 2)
    run.rows(0, insert("A", 6, 8), stable(7), insert("B", 1, 3))
    run.rows(0, stable(9))
    before = run.merge.reports()
    run.merge.save()
    run.restart()
    assert run.merge.reports() == before
    assert run.merge.ignored == 1
    assert run.merge.status(0) == "quarantined"
