"""What each policy of section V-A puts out, and when."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from merging import Merging
from test_random import ways

from interpunct.model.elements import adjust, elements, insert, stable
from interpunct.operators.lmerge import MergePolicy
from interpunct.testing.compatibility import chattiness
from interpunct.testing.revisable import SCHEMA, mixed


def rows_of(*rows):
    return elements(SCHEMA, rows).rows()


both = pytest.mark.parametrize("variant", ["R3", "R4"])


@both
@given(seed=st.integers(0, 2**32))
@settings(max_examples=8)
def test_half_frozen_events_are_never_removed_again(variant: str, seed: int) -> None:
    random = Random(seed)
    _, streams, lag = ways(variant, random)
    run = Merging(variant, len(streams), MergePolicy(inserts="half-frozen"))
    for port, row in mixed(streams, random, lag):
        run.rows(port, row)
    assert chattiness(run.output).removals == 0


@both
def test_a_quorum_waits_for_its_share_of_the_inputs_that_are_joined(variant: str) -> None:
    run = Merging(variant, 4, MergePolicy(inserts=0.5))
    assert run.rows(0, insert("A", 1, 5)) == []
    assert run.rows(2, insert("A", 1, 6)) == rows_of(insert("A", 1, 6))
    assert run.rows(3, insert("A", 1, 6), insert("B", 2, 6)) == []
    run.merge.detach(2)
    run.merge.detach(1)
    assert run.rows(0, insert("C", 3, 6)) == rows_of(insert("C", 3, 6))
    assert run.rows(0, stable(3)) == rows_of(stable(3))


def test_a_quorum_counts_copies() -> None:
    run = Merging("R4", 3, MergePolicy(inserts=0.6))
    assert run.rows(0, insert("A", 1, 5), insert("A", 1, 5)) == []
    assert run.rows(1, insert("A", 1, 5)) == rows_of(insert("A", 1, 5))
    assert run.rows(2, insert("A", 1, 5)) == []
    assert run.rows(2, insert("A", 1, 5)) == rows_of(insert("A", 1, 5))
    assert run.rows(1, insert("A", 1, 5)) == []


@both
def test_only_the_leaders_inserts_come_out_and_a_new_leader_shows_what_it_has(variant: str) -> None:
    run = Merging(variant, 2, MergePolicy(inserts="leader"))
    assert run.rows(1, insert("A", 9, 15)) == []
    assert run.rows(0, insert("B", 8, 15)) == rows_of(insert("B", 8, 15))
    assert run.rows(1, stable(3)) == rows_of(insert("A", 9, 15), stable(3))
    assert run.merge.leader == 1
    assert run.rows(0, insert("C", 9, 14)) == []
    run.merge.detach(1)
    assert run.merge.leader == 0
    assert run.rows(0, insert("D", 9, 14)) == rows_of(insert("D", 9, 14))


def test_following_the_leader_takes_over_its_revisions_and_its_view() -> None:
    run = Merging("R3", 2, MergePolicy(adjusts="leader", inserts="leader"))
    run.rows(0, insert("A", 9, 15))
    assert run.rows(0, adjust("A", 9, 15, 17)) == rows_of(adjust("A", 9, 15, 17))
    run.rows(1, insert("B", 8, 12))
    assert run.rows(1, adjust("B", 8, 12, 13)) == []
    assert sorted(run.rows(1, stable(2))) == sorted(
        rows_of(adjust("A", 9, 17, 9), insert("B", 8, 13), stable(2))
    )
    assert run.rows(0, adjust("A", 9, 17, 18)) == []
    assert run.rows(1, adjust("B", 8, 13, 14)) == rows_of(adjust("B", 8, 13, 14))


def test_every_adjust_comes_out_unless_it_is_too_late_for_the_output() -> None:
    run = Merging("R3", 2, MergePolicy(adjusts="every"))
    run.rows(0, insert("A", 1, 15), stable(10))
    assert run.rows(1, insert("A", 1, 6)) == []  # the output cannot go back to 6
    assert run.rows(1, adjust("A", 1, 6, 20)) == rows_of(adjust("A", 1, 15, 20))
    page = run.rows(0, adjust("A", 1, 15, 16), adjust("A", 1, 16, 17))
    assert page == rows_of(adjust("A", 1, 20, 16), adjust("A", 1, 16, 17))


def test_an_event_that_is_removed_and_inserted_again_is_inserted_again() -> None:
    run = Merging("R3", 1, MergePolicy(adjusts="every"))
    rows = [insert("A", 1, 5), adjust("A", 1, 5, 1), insert("A", 1, 7)]
    assert run.rows(0, *rows) == rows_of(*rows)


@pytest.mark.parametrize("variant", ["R0", "R1", "R2", "R3", "R3-", "R4"])
def test_the_output_lags_the_leading_stable_until_the_end_of_time(variant: str) -> None:
    run = Merging(variant, 2, MergePolicy(stable_lag=3))
    run.rows(0, insert("A", 1, 5))
    assert run.rows(0, stable(10)) == rows_of(stable(7))
    assert run.rows(1, insert("A", 1, 5), insert("B", 6, 7), stable(9)) == []
    assert run.rows(0, stable("∞")) == rows_of(stable("∞"))
