"""Heartbeats sections 2, 3.3 and 4: what bounds say, what they refuse, and two systems' bounds."""

from __future__ import annotations

from fractions import Fraction

import pytest
from heartbeats_oracle import matrices
from hypothesis import given, settings

from interpunct.model.errors import FlowError, InterpunctError
from interpunct.progress.heartbeats import HeartbeatGenerator
from interpunct.progress.skew import Bounds, SkewBounds, TupleBounds, needs_timeout
from interpunct.progress.skew_presets import distributed_sensors, global_counter
from interpunct.progress.timestamps import bounds

FULL = {(i, j): Bounds() for i in "ab" for j in "ab"}


def test_a_missing_entry_is_empty_and_a_missing_latency_zero() -> None:
    b = SkewBounds("ab", {("a", "b"): bounds(delay="1s", skew="2s")})
    assert b.entry("a", "b") == (Bounds(1_000_000, 2_000_000),)
    assert b.entry("b", "a") == b.entry("a", "a") == ()
    assert b.latencies.tolist() == [0, 0]
    assert (b.t_max, b.l_max) == (1_000_000, 0)


def test_pairs_that_wait_longer_for_no_smaller_skew_are_dropped() -> None:
    pairs = [Bounds(5, 3), Bounds(1, 3), Bounds(2, 9), Bounds(7, 1), Bounds(7, 2)]
    assert SkewBounds("a", {("a", "a"): pairs}).entry("a", "a") == (Bounds(1, 3), Bounds(7, 1))


def test_waiting_for_no_tuples_is_waiting_for_no_time() -> None:
    pairs = [TupleBounds(0, 2), TupleBounds(4, 2), TupleBounds(5, 1), TupleBounds(9, 1)]
    entry = SkewBounds("a", {("a", "a"): pairs}).entry("a", "a")
    assert entry == (Bounds(0, 2), TupleBounds(5, 1))


@pytest.mark.parametrize("pair", [Bounds(-1, 0), Bounds(0, -1), TupleBounds(-2, 0)])
def test_negative_bounds_are_refused_with_their_place(pair: Bounds | TupleBounds) -> None:
    with pytest.raises(FlowError) as refused:
        SkewBounds("ab", {("a", "b"): pair})
    assert refused.value.where == "SkewBounds entry ('a', 'b')"
    assert "at least 0" in refused.value.expected


def test_unknown_sources_are_refused() -> None:
    with pytest.raises(FlowError, match=r"\('a', 'c'\): expected one of the sources a, b, got 'c'"):
        SkewBounds("ab", {("a", "c"): Bounds()})
    with pytest.raises(FlowError, match="latency: expected one of the sources a, b, got 'x'"):
        SkewBounds("ab", {}, latency={"x": 3})


def test_bad_names_and_latencies_are_refused() -> None:
    for names in ("", "aa"):
        with pytest.raises(FlowError, match="each with a name of its own"):
            SkewBounds(names, {})
    with pytest.raises(InterpunctError, match="latency of 'a'"):
        SkewBounds("a", {}, latency={"a": -1})


@settings(max_examples=100, deadline=None)
@given(matrices())
def test_layers_and_counted_pairs_are_the_entries(b: SkewBounds) -> None:
    layers, counted = b.layers(), list(b.tuple_rules())
    for i in range(len(b.names)):
        for j in range(len(b.names)):
            timed = [Bounds(int(x.delay[i, j]), int(x.skew[i, j])) for x in layers if x.known[i, j]]
            tuples = [rule.bound for rule in counted if rule[:2] == (i, j)]
            assert (*timed, *tuples) == b.pairs(i, j)


def test_a_large_matrix_prints_its_first_sources() -> None:
    text = str(distributed_sensors({f"s{n}": n for n in range(1000)}))
    assert text.endswith("… and 992 more sources")
    assert len(text.splitlines()) == 10


# Theorem 3.3: a timeout is not needed iff every least δ is 0.


def test_no_timeout_is_needed_when_every_least_skew_is_zero() -> None:
    need = needs_timeout(SkewBounds("ab", {**FULL, ("a", "b"): [Bounds(0, 5), Bounds(90, 0)]}))
    assert not need
    assert str(need).startswith("No timeout is needed")


def test_a_timeout_is_needed_for_a_skew_that_stays() -> None:
    need = needs_timeout(SkewBounds("ab", {**FULL, ("a", "b"): [Bounds(0, 9), Bounds(90, 5)]}))
    assert need
    assert str(need) == (
        "A timeout is needed: 'a' may lead 'b' by 5us for good, so when every stream pauses, "
        "tuples of 'a' wait until one resumes. "
        "Give timeout=…, or a bound of ('a', 'b') with skew 0."
    )


def test_a_timeout_is_needed_for_an_empty_entry() -> None:
    entries = {key: pairs for key, pairs in FULL.items() if key != ("b", "a")}
    need = needs_timeout(SkewBounds("ab", entries))
    assert need
    assert "nothing bounds how far 'b' leads 'a'" in str(need)


def test_tuples_that_never_come_do_not_spare_a_timeout() -> None:
    assert needs_timeout(SkewBounds("a", {("a", "a"): [Bounds(0, 1), TupleBounds(1, 0)]}))


@settings(max_examples=200, deadline=None)
@given(matrices())
def test_the_theorem_agrees_with_what_the_generator_releases(b: SkewBounds) -> None:
    """Every source in turn speaks last and highest; then all pause for ever."""
    stuck = False
    for last in b.names:
        generator = HeartbeatGenerator(b)
        for name in b.names:
            generator.arrive(name, 100, 100, 1, now=0)
        generator.arrive(last, 1000, 1000, 1, now=50)
        generator.advance(10_000)
        stuck |= generator.overall() < 1000
    assert stuck == bool(needs_timeout(b))


# Section 4.1.


def test_a_global_counter_delays_by_the_slowest_against_the_fastest() -> None:
    b = global_counter({"i": (2, 5), "j": (3, 9), "k": (10, 12)}, latency={"j": 4})
    assert b.entry("i", "j") == (Bounds(9 - 2, 0), TupleBounds(1, 0))
    assert b.entry("j", "i") == (Bounds(5 - 3, 0), TupleBounds(1, 0))
    assert b.entry("k", "i") == (Bounds(0, 0),)  # tmax of i is below tmin of k
    assert b.entry("i", "i") == (Bounds(0, 0),)
    assert (b.t_max, b.l_max) == (12 - 2, 4)
    assert not needs_timeout(b)


def test_one_more_token_of_a_source_proves_it_has_caught_up() -> None:
    generator = HeartbeatGenerator(global_counter({"i": (1, 100), "j": (1, 1000)}))
    generator.arrive("i", 7, 7, 1, now=0)
    assert generator.advance(0) == {"i": 7}
    generator.arrive("j", 6, 6, 1, now=10)  # held its token while i took the next
    assert generator.advance(10) == {"j": 7}


def test_the_time_over_a_token_must_be_a_range() -> None:
    with pytest.raises(FlowError, match="tmin ≤ tmax"):
        global_counter({"a": (5, 2)})


# Section 4.2.


def test_sensors_are_apart_by_the_sum_of_their_deviations() -> None:
    b = distributed_sensors({"i": 30, "j": 50}, latency=7)
    assert b.entry("i", "j") == b.entry("j", "i") == (Bounds(0, 80),)
    assert b.entry("i", "i") == (Bounds(0, 30),)
    assert (b.t_max, b.l_max) == (0, 7)
    assert "'i' may lead its own later tuples by 30us for good" in str(needs_timeout(b))
    assert not needs_timeout(distributed_sensors({"i": 0, "j": 0}))


def test_rates_add_the_time_to_catch_up_and_spare_the_timeout() -> None:
    b = distributed_sensors({"i": 30, "j": 50}, rates={"i": 1, "j": 3})
    assert b.entry("i", "j") == (Bounds(0, 80), Bounds(27, 0))  # ⌈80 / 3⌉
    assert b.entry("j", "i") == (Bounds(0, 80), Bounds(80, 0))
    assert b.entry("j", "j") == (Bounds(0, 50), Bounds(17, 0))  # ⌈50 / 3⌉
    assert b.t_max == 80
    assert not needs_timeout(b)


def test_the_longest_delay_of_sensors_is_that_of_their_entries() -> None:
    for deviations in ({"a": 9}, {"a": 9, "b": 4, "c": 9}, {"a": 1, "b": 8, "c": 3}):
        b = distributed_sensors(deviations, rates=dict.fromkeys(deviations, Fraction(1, 3)))
        delays = [p.delay for i in b.names for j in b.names for p in b.entry(i, j)]
        assert b.t_max == max(delays)


@pytest.mark.parametrize(
    ("rates", "message"),
    [
        ({"i": 1}, "a rate for every source"),
        ({"i": 1, "j": 0}, "rates of 'j': expected at least"),
        ({"i": 1, "j": -2}, "rates of 'j': expected at least"),
    ],
)
def test_rates_that_are_missing_or_stand_still_are_refused(
    rates: dict[str, float], message: str
) -> None:
    with pytest.raises(FlowError, match=message):
        distributed_sensors({"i": 1, "j": 2}, rates=rates)


def test_deviations_beyond_what_a_rate_can_divide_are_refused() -> None:
    with pytest.raises(FlowError, match="deviations up to"):
        distributed_sensors({"i": "9000 days"}, rates={"i": 1})
