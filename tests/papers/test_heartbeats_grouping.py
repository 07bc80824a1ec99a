"""Heartbeats section 5.2: many streams as few, never wrong and never early."""

from __future__ import annotations

import numpy as np
import pytest
from heartbeats_oracle import Wish, arrivals, emit, matrices, timed, wishes
from hypothesis import given, settings
from hypothesis import strategies as st

from interpunct.model.errors import FlowError
from interpunct.progress.grouping import Groups, grouped, join, plus, propose_groups
from interpunct.progress.heartbeats import HeartbeatGenerator
from interpunct.progress.skew import Bounds, SkewBounds, TupleBounds, strongest
from interpunct.progress.skew_presets import distributed_sensors, global_counter

sets = st.lists(timed, max_size=4)


def test_plus_says_the_strongest_guarantee_at_every_delay() -> None:
    assert plus([Bounds(1, 2), Bounds(3, 1)], t_max=3) == [Bounds(1, 2), Bounds(2, 2), Bounds(3, 1)]
    assert plus([Bounds(1, 2), Bounds(3, 1)], t_max=6, unit=2) == [
        Bounds(2, 2), Bounds(4, 1), Bounds(6, 1),
    ]  # fmt: skip
    assert plus([], t_max=3) == []


@given(sets, sets)
def test_join_is_the_papers_definition_without_what_is_redundant(
    left: list[Bounds], right: list[Bounds]
) -> None:
    explicit = [
        Bounds(x.delay, max(x.skew, y.skew))
        for x in plus(left, 5)
        for y in plus(right, 5)
        if x.delay == y.delay
    ]
    assert tuple(join(left, right)) == strongest(explicit, "test")


@given(sets, sets, sets)
def test_join_does_not_care_about_order(a: list[Bounds], b: list[Bounds], c: list[Bounds]) -> None:
    assert join(a, b) == join(b, a)
    assert join(join(a, b), c) == join(a, join(b, c))
    assert tuple(join(a, a)) == strongest(a, "test")


@st.composite
def groupings(draw: st.DrawFn, names: tuple[str, ...]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(draw(st.sampled_from("xyz")), []).append(name)
    return groups


@settings(max_examples=300, deadline=None)
@given(data=st.data(), bounds=matrices(full=True), wanted=wishes)
def test_groups_are_never_wrong_and_never_ahead_of_their_members(
    data: st.DataObject, bounds: SkewBounds, wanted: list[Wish]
) -> None:
    members = data.draw(groupings(bounds.names))
    groups = Groups.of_members(bounds.names, members)
    single, many = HeartbeatGenerator(bounds), HeartbeatGenerator(grouped(bounds, groups))
    for sent in arrivals(bounds, emit(bounds, wanted), range(14)):
        single.advance(sent.arrives)
        many.advance(sent.arrives)
        group = groups.names[groups.of[sent.source]]
        assert sent.stamp > many.heartbeat(group)
        for name, names in members.items():
            assert many.heartbeat(name) <= min(single.heartbeat(n) for n in names)
        single.arrive(bounds.names[sent.source], sent.stamp, sent.stamp, 1, sent.arrives)
        many.arrive(group, sent.stamp, sent.stamp, 1, sent.arrives)


@settings(max_examples=100, deadline=None)
@given(bounds=matrices(full=True))
def test_groups_of_one_say_what_their_source_says(bounds: SkewBounds) -> None:
    alone = grouped(bounds, {name.upper(): [name] for name in bounds.names})
    for i in bounds.names:
        for j in bounds.names:
            assert alone.entry(i.upper(), j.upper()) == bounds.entry(i, j)
    assert alone.latencies.tolist() == bounds.latencies.tolist()


def test_a_group_has_the_longest_latency_and_no_bound_where_a_member_has_none() -> None:
    entries = {("a", "b"): Bounds(1, 2), ("a", "c"): Bounds(3, 1), ("b", "a"): Bounds()}
    b = grouped(SkewBounds("abc", entries, {"b": 4, "c": 9}), {"x": "a", "y": "bc"})
    assert b.entry("x", "y") == (Bounds(3, 2),)
    assert b.entry("y", "x") == b.entry("y", "y") == ()
    assert b.latencies.tolist() == [0, 9]


def test_tuple_bounds_stay_only_where_one_source_is_counted() -> None:
    entries = {(i, j): TupleBounds(2, 1) for i in "abc" for j in "abc"}
    b = grouped(SkewBounds("abc", entries), {"x": "a", "y": "bc"})
    assert b.entry("y", "x") == b.entry("x", "x") == (TupleBounds(2, 1),)
    assert b.entry("x", "y") == b.entry("y", "y") == ()


presets = st.one_of(
    st.lists(st.integers(0, 9), min_size=1, max_size=5).map(
        lambda ds: distributed_sensors({f"s{n}": d for n, d in enumerate(ds)})
    ),
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=5).map(
        lambda ts: global_counter({f"s{n}": (min(t), max(t)) for n, t in enumerate(ts)}, latency=2)
    ),
)


@settings(max_examples=200, deadline=None)
@given(st.data(), presets)
def test_presets_are_grouped_by_their_extremes_as_pair_by_pair(data: st.DataObject, b) -> None:  # type: ignore[no-untyped-def]
    groups = data.draw(groupings(b.names))
    explicit = SkewBounds(b.names, {(i, j): b.entry(i, j) for i in b.names for j in b.names}, 2)
    quick, slow = grouped(b, groups), grouped(explicit, groups)
    assert all(quick.entry(x, y) == slow.entry(x, y) for x in groups for y in groups)


@settings(max_examples=100, deadline=None)
@given(st.data(), st.lists(st.tuples(st.integers(0, 9), st.integers(1, 4)), min_size=1, max_size=5))
def test_sensors_with_rates_are_grouped_no_stronger_than_pair_by_pair(
    data: st.DataObject, sensors: list[tuple[int, int]]
) -> None:
    deviations = {f"s{n}": d for n, (d, _) in enumerate(sensors)}
    b = distributed_sensors(deviations, {f"s{n}": r for n, (_, r) in enumerate(sensors)})
    groups = data.draw(groupings(b.names))
    explicit = SkewBounds(b.names, {(i, j): b.entry(i, j) for i in b.names for j in b.names})
    quick, slow = grouped(b, groups), grouped(explicit, groups)
    for x in groups:
        for y in groups:
            weak, strong = quick.entry(x, y), slow.entry(x, y)
            assert tuple(join(weak, strong)) == weak
            assert weak[0] == strong[0]
            assert weak[-1].skew == strong[-1].skew == 0


def test_groups_must_part_the_sources() -> None:
    bounds = SkewBounds("abc", {})
    for groups, got in (
        ({"x": "ab"}, "'c' is in no group"),
        ({"x": "ab", "y": "bc"}, "'b' is unknown, or in two groups"),
        ({"x": "abcd"}, "'d' is unknown, or in two groups"),
    ):
        with pytest.raises(FlowError, match=got):
            grouped(bounds, groups)


# Which groups.


def test_similar_sources_share_a_group() -> None:
    groups = propose_groups({"a": 100, "b": 7, "c": 101, "d": 9, "e": 55}, 3)
    assert groups.of.tolist() == [2, 0, 2, 0, 1]


@settings(max_examples=150, deadline=None)
@given(st.lists(st.integers(0, 30), min_size=1, max_size=7), st.integers(1, 4))
def test_no_other_cut_makes_the_widest_group_narrower(values: list[int], count: int) -> None:
    groups = propose_groups({f"s{n}": v for n, v in enumerate(values)}, count)
    assert len(groups.names) <= count
    assert all(len(members) for members in groups.members())
    width = max(np.ptp(np.array(values)[members]) for members in groups.members())
    assert width == _narrowest(sorted(values), count)


def _narrowest(values: list[int], count: int) -> int:
    if not values:
        return 0
    if count == 1:
        return values[-1] - values[0]
    return min(
        max(values[at - 1] - values[0], _narrowest(values[at:], count - 1))
        for at in range(1, len(values) + 1)
    )


def test_any_matrix_can_be_grouped_by_its_worst_bounds() -> None:
    entries = {(i, j): Bounds(0, 1) for i in "abc" for j in "abc"}
    entries |= {("a", "c"): Bounds(5, 90), ("b", "c"): Bounds(5, 90), ("c", "c"): Bounds(5, 90)}
    groups = propose_groups(SkewBounds("abc", entries, {"a": 2}), 2)
    assert len(groups.names) == 2


def test_asking_for_no_groups_is_refused() -> None:
    with pytest.raises(FlowError, match="at least one group"):
        propose_groups({"a": 1}, 0)


def test_a_hundred_thousand_sensors_become_a_small_matrix() -> None:
    """None of this may make an entry for each pair of sources: there are 10¹⁰."""
    deviations = np.random.default_rng(1).integers(1_000, 50_000, 100_000).tolist()
    sensors = distributed_sensors({f"s{n}": d for n, d in enumerate(deviations)}, latency="20ms")
    groups = propose_groups(sensors, 16)
    b = grouped(sensors, groups)
    assert len(b.names) == 16
    assert b.entry("g15", "g15")[0].skew <= 100_000
    assert b.entry("g0", "g0")[0].skew <= 2 * (1_000 + 49_000 // 16 + 1)
    generator = HeartbeatGenerator(b)
    generator.arrive_many(groups.of[[0, 1, 2]], np.array([10, 20, 30]), now=0)
    assert generator.next_moment() == 20_001
