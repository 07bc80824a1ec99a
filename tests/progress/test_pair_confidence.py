"""Bounds with a confidence for each pair of streams, against all that arrived, one by one."""

from __future__ import annotations

import json
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpunct.model.errors import FlowError
from interpunct.progress.estimation import SkewEstimator
from interpunct.progress.heartbeats import HeartbeatGenerator
from interpunct.progress.pair_confidence import PairConfidence

NAMES = ["a", "b", "c"]
UNIT, T_MAX = 4, 12

ticks = st.lists(st.integers(-40, 40), min_size=1, max_size=12)
pages = st.lists(st.tuples(st.integers(0, 2), ticks, st.integers(0, 9)), min_size=1, max_size=12)
Stream = list[
    tuple[int, list[int], int]
]  # (source, timestamps, microseconds since the page before)


def arrived(pairs: PairConfidence | SkewEstimator, stream: Stream) -> None:
    now = 0
    for source, taus, passed in stream:
        now += passed
        pairs.arrive(NAMES[source], np.array(taus), now)


def oracle(stream: Stream) -> dict[tuple[int, int, int], list[int]]:
    """δest of section 6.1 for every tuple, pair and t, straight from its definition."""
    late = defaultdict(list)
    seen: list[tuple[int, int, int]] = []
    now = 0
    for j, taus, passed in stream:
        now += passed
        for lag in range(0, T_MAX + 1, UNIT):
            for i in range(3):
                before = [
                    tau for k, at, tau in seen if k == i and at // UNIT <= now // UNIT - lag // UNIT
                ]
                if before:
                    late[i, j, lag] += [max(max(before) - tau + 1, 0) for tau in taus]
        seen += [(j, now, tau) for tau in taus]
    return late


@given(pages, st.sampled_from([0.5, 0.8]))
def test_at_most_the_share_that_may_be_is_beyond_the_bound_of_a_pair(
    stream: Stream, confidence: float
) -> None:
    pairs = PairConfidence(NAMES, confidence, T_MAX, UNIT, window=10**6)
    arrived(pairs, stream)
    for (i, j, lag), late in oracle(stream).items():
        delta = pairs.estimate(NAMES[i], NAMES[j])[lag // UNIT]
        if delta is None:
            assert len(late) < pairs.least_rows
            continue
        beyond = sum(x > delta for x in late)
        assert beyond <= (1 - confidence) * len(late) + 1
        # And it is no greater than need be: a quantile, up to one tuple.
        assert sum(x >= delta for x in late) + 1 >= (1 - confidence) * len(late) - 1


@given(pages)
def test_confidence_1_is_the_greatest_skew_ever_seen(stream: Stream) -> None:
    pairs, section_6_1 = PairConfidence(NAMES, 1.0, T_MAX, UNIT), SkewEstimator(NAMES, T_MAX, UNIT)
    arrived(pairs, stream)
    arrived(section_6_1, stream)
    compared = oracle(stream)
    for i, first in enumerate(NAMES):
        for j, second in enumerate(NAMES):
            exact = section_6_1.estimate(first, second)
            for lag, delta in enumerate(pairs.estimate(first, second)):
                known = (i, j, lag * UNIT) in compared
                assert delta == (exact[lag] if known else None)


def skewed(seed: int, count: int) -> Stream:
    """Three sources that take turns; each is behind the first by its own exponential."""
    random = np.random.default_rng(seed)
    behind = [(random.exponential(scale, count) * 10).astype(int) for scale in (1, 20, 5)]
    return [
        (j, [int(100 * n - behind[j][n])], 100 // 3) for n in range(count) for j in range(3)
    ]  # fmt: skip


@pytest.mark.parametrize("confidence", [0.9, 0.99])
def test_heartbeats_from_it_are_broken_by_as_few_tuples_as_was_said(confidence: float) -> None:
    """B learned on one stretch, heartbeats generated from it on another of the same kind."""
    pairs = PairConfidence(NAMES, confidence)
    arrived(pairs, skewed(1, 6000))
    generator = HeartbeatGenerator(pairs.matrix())
    late, rows, now, reached = 0, 0, 0, dict.fromkeys(NAMES, -(2**62))
    for source, taus, passed in skewed(2, 6000):
        now += passed
        late += sum(tau <= reached[NAMES[source]] for tau in taus)
        rows += len(taus)
        generator.arrive(NAMES[source], max(taus), min(taus), len(taus), now)
        reached |= generator.advance(now)
    assert late <= 3 * (1 - confidence) * rows * 1.2  # n sources, n times the share
    assert late >= 0.2 * (1 - confidence) * rows  # and it does not wait for ever


def test_what_it_says_of_a_pair_is_about_its_last_windows() -> None:
    pairs = PairConfidence(["a", "b"], 0.9, window=100)
    for now in range(1000):
        pairs.arrive("a", np.array([10 * now]), now)
        pairs.arrive("b", np.array([10 * now - (5000 if now < 500 else 10)]), now)
    assert pairs.estimate("a", "b") == [11]


def test_a_pair_of_which_too_little_is_known_promises_nothing() -> None:
    pairs = PairConfidence(["a", "b"], 0.99)
    pairs.arrive("a", np.array([5]), 0)
    for now in range(99):
        pairs.arrive("b", np.array([now]), now)
    assert pairs.estimate("a", "b") == [None]
    assert pairs.matrix().entry("a", "b") == ()
    pairs.arrive("b", np.array([200]), 100)
    assert pairs.estimate("a", "b") != [None]


@given(pages, st.integers(0, 12))
def test_restored_it_goes_on_as_if_nothing_had_happened(stream: Stream, cut: int) -> None:
    one = PairConfidence(NAMES, 0.9, T_MAX, UNIT, window=20)
    arrived(one, stream[:cut])
    two = PairConfidence(NAMES, 0.9, T_MAX, UNIT, window=20)
    two.restore(json.loads(json.dumps(one.to_record())))
    for pairs in (one, two):
        arrived(pairs, stream[cut:])
    assert one.to_record() == two.to_record()


def test_its_size_has_a_bound() -> None:
    pairs = PairConfidence(["a", "b"], 0.99)
    for now in range(300):
        for name in pairs.sources:
            pairs.arrive(name, np.arange(now, now + 50), now)
    assert pairs.held() < 4 * 10_000


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"sources": ["a", "a"]}, "distinct"),
        ({"confidence": 0.0}, "above 0"),
        ({"confidence": 99.9}, "above 0"),
        ({"unit": 0}, "unit of at least 1"),
        ({"t_max": -1}, "t_max of at least 0"),
    ],
)
def test_what_means_nothing_is_refused(settings: dict[str, object], told: str) -> None:
    with pytest.raises(FlowError, match=told):
        PairConfidence(**{"sources": ["a"], **settings})  # type: ignore[arg-type]
    with pytest.raises(FlowError, match="one of the sources a"):
        PairConfidence(["a"]).arrive("b", np.array([1]), 0)
