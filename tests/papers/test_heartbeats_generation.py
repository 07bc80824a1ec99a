"""Heartbeats section 3: the algorithm of Figure 2 gives true heartbeats, and the greatest ones."""

from __future__ import annotations

import json
from itertools import groupby

import numpy as np
import pytest
from heartbeats_oracle import (
    Sent,
    Wish,
    a_wish,
    arrivals,
    counted,
    emit,
    least_allowed,
    least_to_come,
    matrices,
    timed,
    wishes,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from interpunct.model.errors import FlowError
from interpunct.model.schema import START_OF_TIME
from interpunct.progress.heartbeats import HeartbeatGenerator
from interpunct.progress.skew import Bounds, SkewBounds, TupleBounds
from interpunct.progress.skew_presets import distributed_sensors, global_counter

ONE = ("s",)


def arrive(generator: HeartbeatGenerator, sent: Sent) -> None:
    name = generator.bounds.names[sent.source]
    generator.arrive(name, sent.stamp, sent.stamp, 1, sent.arrives)


def ordered(**latency: int) -> SkewBounds:
    return SkewBounds(ONE, {("s", "s"): Bounds()}, latency or 0)


# True: whatever sources that keep their bounds send, in whatever pages it arrives.


def pages(came: list[Sent], sizes: list[int]) -> list[list[Sent]]:
    """Tuples of one instant, cut into pages of these sizes."""
    cut = []
    for _, together in groupby(came, key=lambda s: s.arrives):
        rest, turn = list(together), 0
        while rest:
            size = sizes[turn % len(sizes)]
            cut.append(rest[:size])
            rest, turn = rest[size:], turn + 1
    return cut


@settings(max_examples=400, deadline=None)
@given(
    bounds=matrices(),
    wanted=wishes,
    shuffled=st.permutations(range(14)),
    sizes=st.lists(st.integers(1, 5), min_size=1, max_size=4),
    unit=st.integers(1, 4),
    mixed=st.booleans(),
)
def test_nothing_arrives_at_or_below_a_heartbeat(
    bounds: SkewBounds, wanted: list[Wish], shuffled: list[int], sizes: list[int], unit: int,
    mixed: bool,
) -> None:  # fmt: skip
    generator = HeartbeatGenerator(bounds, unit=unit)
    for page in pages(arrivals(bounds, emit(bounds, wanted), shuffled), sizes):
        now = page[0].arrives
        generator.advance(now)
        for sent in page:
            assert sent.stamp > generator.heartbeat(bounds.names[sent.source])
        if mixed:
            columns = np.array([[s.source, s.stamp] for s in page])
            generator.arrive_many(columns[:, 0], columns[:, 1], now)
            continue
        for source, run in groupby(page, key=lambda s: s.source):
            stamps = [s.stamp for s in run]
            generator.arrive(bounds.names[source], max(stamps), min(stamps), len(stamps), now)


# Greatest: an adversary who keeps bounds and latencies can break any greater heartbeat.


@settings(max_examples=300, deadline=None)
@given(bounds=matrices(latencies=st.just(0)), wanted=wishes, later=st.integers(0, 6))
def test_without_latency_the_next_greater_stamp_may_come(
    bounds: SkewBounds, wanted: list[Wish], later: int
) -> None:
    """Arrival is emission, so a tuple to come is the last, and only its floor matters.

    It is emitted at once: at the same instant, after what has come.
    """
    generator, sent = HeartbeatGenerator(bounds), emit(bounds, wanted)
    for one in sent:
        arrive(generator, one)
    now = (sent[-1].arrives if sent else 0) + later
    generator.advance(now)
    for target, name in enumerate(bounds.names):
        least = least_allowed(bounds, sent, target, now)
        assert generator.heartbeat(name) == (START_OF_TIME if least is None else least - 1)


@settings(max_examples=150, deadline=None)
@given(
    pairs=st.lists(timed | counted, min_size=1, max_size=3),
    latencies=st.tuples(st.integers(0, 2), st.integers(0, 2)),
    script=st.lists(st.tuples(st.integers(0, 1), st.integers(0, 3), st.integers(0, 9)), max_size=5),
    later=st.integers(0, 7),
)
def test_with_latency_the_next_greater_stamp_may_come(
    pairs: list[Bounds], latencies: tuple[int, int], script: list[tuple[int, int, int]], later: int
) -> None:
    """`a` talks of `b`, of which no tuple is bound yet but the one to come: all is tried."""
    latency = dict(zip("ab", latencies, strict=True))
    bounds = SkewBounds("ab", {("a", "b"): pairs}, latency)
    generator = HeartbeatGenerator(bounds)
    now, talker, listener = 0, [], []
    for number, (source, after, stamp) in enumerate(script):
        now += after
        sent = Sent(source, stamp + 1000 * source, now, number, now)
        (talker, listener)[source].append(sent)
        arrive(generator, sent)
    now += later
    generator.advance(now)
    least = least_to_come(bounds, talker, listener, now)
    assert generator.heartbeat("b") == (START_OF_TIME if least is None else least - 1)
    assert generator.heartbeat("a") == START_OF_TIME


# The paper's own sentences.


def test_a_guarantee_is_given_after_delay_and_latency_and_not_before() -> None:
    bounds = SkewBounds("ab", {("a", "b"): Bounds(10, 3)}, {"b": 5})
    generator = HeartbeatGenerator(bounds)
    generator.arrive("a", 50, 50, 1, now=100)
    assert generator.advance(115) == {}  # a tuple of b may take until then
    assert generator.next_moment() == 116
    assert generator.advance(116) == {"b": 47}
    assert generator.next_moment() is None


def test_a_set_of_pairs_tightens_with_time() -> None:
    bounds = SkewBounds(ONE, {("s", "s"): [Bounds(2, 10), Bounds(20, 1)]})
    generator = HeartbeatGenerator(bounds)
    generator.arrive("s", 100, 100, 1, now=0)
    assert [generator.advance(now) for now in (2, 3, 20, 21)] == [{}, {"s": 90}, {}, {"s": 99}]


def test_up_to_k_duplicates_need_both_pairs_of_the_example() -> None:
    """Section 3.1: (0, 1) for order, (k, 0) for at most k duplicates."""
    k = 3
    sorted_only, counted_only, both = (
        HeartbeatGenerator(SkewBounds(ONE, {("s", "s"): pairs}))
        for pairs in (
            [TupleBounds(0, 1)], [TupleBounds(k, 0)], [TupleBounds(0, 1), TupleBounds(k, 0)],
        )
    )  # fmt: skip
    given_by = {}
    for now, stamp in enumerate([7, 7, 7, 7, 8]):
        for name, generator in (("order", sorted_only), ("count", counted_only), ("both", both)):
            generator.arrive("s", stamp, stamp, 1, now)
            generator.advance(now)
            given_by.setdefault(name, []).append(generator.heartbeat("s"))
    assert given_by["order"] == [6, 6, 6, 6, 7]  # 7 only when an 8 is seen
    assert given_by["count"][2:] == [START_OF_TIME, 7, 7]  # nothing until 3 have followed
    assert given_by["both"] == [6, 6, 6, 7, 7]


def test_a_whole_page_counts_in_whatever_order_its_tuples_were_sent() -> None:
    bounds = SkewBounds(ONE, {("s", "s"): TupleBounds(2, 0)})
    generator = HeartbeatGenerator(bounds)
    generator.arrive("s", greatest=9, least=5, count=3, now=0)
    assert generator.advance(0) == {"s": 5}
    generator.arrive("s", 20, 20, 1, now=1)  # the 9 may have been the last of its page
    assert generator.advance(1) == {}
    generator.arrive("s", 21, 21, 1, now=2)
    assert generator.advance(2) == {"s": 9}


def test_a_page_too_small_to_complete_a_count_begins_it() -> None:
    generator = HeartbeatGenerator(SkewBounds(ONE, {("s", "s"): TupleBounds(2, 0)}))
    generator.arrive("s", greatest=9, least=5, count=2, now=0)
    assert generator.advance(0) == {}
    generator.arrive("s", 20, 20, 1, now=1)
    assert generator.advance(1) == {"s": 5}


def test_tuples_that_may_have_overtaken_are_not_counted() -> None:
    bounds = SkewBounds("ab", {("a", "b"): TupleBounds(1, 0)}, {"b": 10})
    generator = HeartbeatGenerator(bounds)
    generator.arrive("a", 50, 50, 1, now=0)
    generator.arrive("b", 60, 60, 1, now=10)  # may have been emitted before 0
    generator.arrive("b", 61, 61, 1, now=11)  # cannot have been
    assert generator.advance(21) == {}  # one that was before it may take until then
    assert generator.advance(22) == {"b": 50}


def test_a_stream_without_bounds_has_no_heartbeat() -> None:
    generator = HeartbeatGenerator(SkewBounds("ab", {("a", "a"): Bounds()}))
    generator.arrive("a", 5, 5, 1, now=0)
    generator.arrive("b", 9, 9, 1, now=0)
    assert generator.advance(1000) == {"a": 5}
    assert generator.overall() == START_OF_TIME


def test_heartbeats_never_fall() -> None:
    generator = HeartbeatGenerator(ordered())
    generator.arrive("s", 10, 10, 1, now=0)
    generator.advance(0)
    generator.arrive("s", 3, 3, 1, now=1)  # breaks its bound
    assert generator.advance(1) == {}
    assert generator.heartbeat("s") == 10


# Section 3.3: progress.


def paused() -> SkewBounds:
    entries = {("a", "a"): Bounds(), ("a", "b"): Bounds(0, 5), ("b", "b"): Bounds()}
    return SkewBounds("ab", entries)


@pytest.mark.parametrize("timeout", [None, 60])
def test_paused_streams_are_stuck_at_tau_minus_5_until_the_timeout(timeout: int | None) -> None:
    generator = HeartbeatGenerator(paused(), timeout=timeout)
    generator.arrive("a", 100, 100, 1, now=0)
    generator.arrive("b", 95, 95, 1, now=0)
    assert generator.advance(0) == {"a": 100, "b": 95}
    assert generator.next_moment() == (None if timeout is None else 61)
    assert generator.advance(60) == {}
    assert generator.advance(61) == ({} if timeout is None else {"b": 100})
    assert generator.overall() == (95 if timeout is None else 100)
    assert generator.next_moment() is None


def test_any_stream_that_speaks_puts_the_timeout_off() -> None:
    generator = HeartbeatGenerator(paused(), timeout=60)
    generator.arrive("a", 100, 100, 1, now=0)
    generator.arrive("b", 40, 40, 1, now=50)  # says nothing new
    generator.advance(50)
    assert generator.next_moment() == 111


def test_a_counter_needs_no_timeout_to_release_the_last_token() -> None:
    generator = HeartbeatGenerator(global_counter({"a": (1, 4), "b": (2, 9)}, latency=3))
    generator.arrive("a", 7, 7, 1, now=0)
    generator.advance(0)
    while (moment := generator.next_moment()) is not None:
        generator.advance(moment)
    assert generator.overall() == 7


# Section 5.1: bounded memory, a coarse clock.


@settings(max_examples=60, deadline=None)
@given(
    bounds=matrices(timed, full=True),
    wanted=st.lists(a_wish, min_size=20, max_size=60),
    unit=st.integers(1, 4),
)
def test_no_stream_holds_more_than_the_longest_wait_in_units(
    bounds: SkewBounds, wanted: list[Wish], unit: int
) -> None:
    generator = HeartbeatGenerator(bounds, unit=unit)
    most = len(bounds.names) * ((bounds.t_max + bounds.l_max) // unit + 2)
    for sent in arrivals(bounds, emit(bounds, wanted), [0]):
        generator.advance(sent.arrives)
        arrive(generator, sent)
        assert generator.held() <= most


def test_a_silent_target_does_not_make_tuple_bounds_grow() -> None:
    bounds = SkewBounds("ab", {("a", "b"): TupleBounds(4, 0)}, {"b": 8})
    generator = HeartbeatGenerator(bounds)
    for now in range(500):
        generator.arrive("a", now, now, 1, now)
        generator.advance(now)
    generator.arrive("b", 999, 999, 1, now=600)
    assert generator.held() <= 8 + 4 + 1


@settings(max_examples=100, deadline=None)
@given(bounds=matrices(timed), wanted=wishes, unit=st.integers(2, 5))
def test_a_coarse_clock_delays_by_less_than_a_unit(
    bounds: SkewBounds, wanted: list[Wish], unit: int
) -> None:
    fine, coarse = HeartbeatGenerator(bounds), HeartbeatGenerator(bounds, unit=unit)
    exact: list[list[int]] = []
    script = {}
    for sent in arrivals(bounds, emit(bounds, wanted), [0]):
        script.setdefault(sent.arrives, []).append(sent)
    for now in range(60):
        for sent in script.get(now, []):
            arrive(fine, sent)
            arrive(coarse, sent)
        fine.advance(now)
        coarse.advance(now)
        exact.append([fine.heartbeat(name) for name in bounds.names])
        rough = [coarse.heartbeat(name) for name in bounds.names]
        before = exact[max(0, now - unit + 1)] if now >= unit - 1 else [START_OF_TIME] * 3
        assert all(b <= r <= e for b, r, e in zip(before, rough, exact[-1], strict=False))


# State, bulk and refusal.


@settings(max_examples=150, deadline=None)
@given(bounds=matrices(), wanted=wishes, cut=st.integers(0, 14), timeout=st.sampled_from([None, 9]))
def test_restored_it_goes_on_as_if_nothing_had_happened(
    bounds: SkewBounds, wanted: list[Wish], cut: int, timeout: int | None
) -> None:
    generator, twin = (HeartbeatGenerator(bounds, timeout=timeout) for _ in range(2))
    came = arrivals(bounds, emit(bounds, wanted), [0])
    for sent in came[:cut]:
        generator.advance(sent.arrives)
        arrive(generator, sent)
    twin.restore(json.loads(json.dumps(generator.to_record())))
    for sent in came[cut:]:
        assert generator.next_moment() == twin.next_moment()
        assert generator.advance(sent.arrives) == twin.advance(sent.arrives)
        arrive(generator, sent)
        arrive(twin, sent)
    assert generator.advance(200) == twin.advance(200)
    assert generator.to_record() == twin.to_record()


@settings(max_examples=100, deadline=None)
@given(
    bounds=matrices(timed),
    page=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 20)), max_size=20),
)
def test_a_mixed_page_says_what_its_parts_say(
    bounds: SkewBounds, page: list[tuple[int, int]]
) -> None:
    bulk, single = HeartbeatGenerator(bounds), HeartbeatGenerator(bounds)
    rows = [(source % len(bounds.names), stamp) for source, stamp in page]
    columns = np.array(rows, np.int64).reshape(-1, 2)
    bulk.arrive_many(columns[:, 0], columns[:, 1], now=0)
    for source, stamp in rows:
        single.arrive(bounds.names[source], stamp, stamp, 1, now=0)
    for now in range(12):
        bulk.advance(now)
        single.advance(now)
        assert all(bulk.heartbeat(n) == single.heartbeat(n) for n in bounds.names)


def test_sensors_by_their_values_say_what_their_entries_say() -> None:
    deviations = {"a": 3, "b": 0, "c": 7}
    lazy = distributed_sensors(deviations, rates={"a": 1, "b": 0.5, "c": 2}, latency=4)
    entries = {(i, j): lazy.entry(i, j) for i in lazy.names for j in lazy.names}
    explicit = SkewBounds(lazy.names, entries, 4)
    one, other = HeartbeatGenerator(lazy), HeartbeatGenerator(explicit)
    for now in range(40):
        for generator in (one, other):
            generator.arrive(lazy.names[now % 3], 10 * now, 10 * now, 1, now)
        assert one.advance(now) == other.advance(now)


@pytest.mark.parametrize(("argument", "value"), [("unit", 0), ("timeout", 0), ("timeout", -5)])
def test_a_unit_or_timeout_of_nothing_is_refused(argument: str, value: int) -> None:
    with pytest.raises(FlowError, match=f"HeartbeatGenerator {argument}: expected at least"):
        HeartbeatGenerator(ordered(), **{argument: value})


def test_a_page_of_an_unknown_source_is_refused() -> None:
    with pytest.raises(FlowError, match="one of the sources s, got 't'"):
        HeartbeatGenerator(ordered()).arrive("t", 1, 1, 1, now=0)
