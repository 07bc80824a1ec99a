"""Any mutually consistent inputs: the output is compatible at every prefix, and equal at last."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from merging import CASES, Merging, as_stream, fed, named, plain, reference, told

from interpunct.model.elements import Row, elements
from interpunct.model.tdb import equivalent, violations
from interpunct.operators.lmerge import MergePolicy
from interpunct.testing.compatibility import merged_by_element
from interpunct.testing.revisable import SCHEMA, Event, mixed, paged

some = settings(max_examples=2)  # of a hundred and fifty cases
seeds = st.integers(0, 2**32)  # a seed shrinks at once, the draws of a Random hardly ever


def ways(variant: str, random: Random) -> tuple[list[Event], list[list[Row]], list[float]]:
    events = reference(variant, random)
    streams = [told(variant, events, random) for _ in range(random.choice([1, 2, 3, 4]))]
    return events, streams, [random.choice([0, 0, 3, 20]) for _ in streams]


@pytest.mark.parametrize(("variant", "policy"), CASES, ids=named)
@given(seed=seeds)
@some
def test_the_output_is_compatible_at_every_prefix_and_equal_at_the_end(
    variant: str, policy: MergePolicy, seed: int
) -> None:
    random = Random(seed)
    events, streams, lag = ways(variant, random)
    run = Merging(variant, len(streams), policy)
    fed(run, mixed(streams, random, lag))
    assert not run.merge.reports()
    assert not violations(SCHEMA, run.output, keyed=variant not in ("R1", "R4"))
    assert equivalent(SCHEMA, run.output, as_stream(events))
    assert run.merge.held().tuples == 0 or variant == "R2"  # which keeps the last Vs


@pytest.mark.parametrize(("variant", "policy"), CASES, ids=named)
@given(seed=seeds)
@some
def test_pages_cut_anywhere_give_what_single_elements_give(
    variant: str, policy: MergePolicy, seed: int
) -> None:
    random = Random(seed)
    _, streams, lag = ways(variant, random)
    arrived = mixed(streams, random, lag)
    single = Merging(variant, len(streams), policy)
    for port, row in arrived:
        single.rows(port, row)
    paging = Merging(variant, len(streams), policy)
    for port, frame in paged(arrived, random):
        paging.frame(port, frame)
    if variant == "R4" and policy.adjusts != "stable":
        assert equivalent(SCHEMA, paging.output, single.output)
    else:
        assert paging.output.rows() == single.output.rows()


@pytest.mark.parametrize(("variant", "policy"), CASES, ids=named)
@given(seed=seeds)
@some
def test_a_merge_that_restarts_from_its_state_goes_on_as_if_it_had_not(
    variant: str, policy: MergePolicy, seed: int
) -> None:
    random = Random(seed)
    _, streams, lag = ways(variant, random)
    pages = paged(mixed(streams, random, lag), random)
    steady = Merging(variant, len(streams), policy)
    restarted = Merging(variant, len(streams), policy)
    for port, frame in pages:
        steady.frame(port, frame)
        restarted.frame(port, frame)
        if random.random() < 0.4:
            restarted.merge.save()
            restarted.restart()
    assert restarted.output.rows() == steady.output.rows()


@pytest.mark.parametrize(
    ("adjusts", "inserts"), [("stable", "first"), ("every", "first"), ("stable", "half-frozen")]
)
@given(seed=seeds)
@settings(max_examples=15)
def test_in2t_as_columns_gives_what_algorithm_r3_gives_line_by_line(
    adjusts: str, inserts: str, seed: int
) -> None:
    random = Random(seed)
    _, streams, lag = ways("R3", random)
    arrived = [(port, plain(row)) for port, row in mixed(streams, random, lag)]
    run = Merging("R3", len(streams), MergePolicy(adjusts, inserts))
    for port, frame in paged(arrived, random):
        run.frame(port, frame)
    expected = [tuple(_flat(row)) for row in merged_by_element(arrived, adjusts, inserts)]
    assert run.output.rows() == elements(SCHEMA, expected).rows()


@given(seed=seeds)
@settings(max_examples=15)
def test_r3_minus_gives_the_output_of_r3_plus(seed: int) -> None:
    """The order of what one stable changes may differ, not what changes."""
    random = Random(seed)
    _, streams, lag = ways("R3", random)
    pages = paged(mixed(streams, random, lag), random)
    runs = [Merging(variant, len(streams)) for variant in ("R3", "R3-")]
    for port, frame in pages:
        found = [sorted(map(repr, run.frame(port, frame))) for run in runs]
        assert found[0] == found[1]


def _flat(row: Row) -> Row:
    return tuple(x for v in row for x in (v if isinstance(v, tuple) else (v,)))
