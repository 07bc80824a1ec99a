"""What tasks tell of their tuples' times is enough to learn from; several streams share a time."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpunct.progress.adaptive import METHODS, AdaptiveBound, adaptive
from interpunct.progress.confidence import LatenessSketch, PageSketch, lateness, sketched
from interpunct.progress.joint import JointBound
from interpunct.progress.spread import Spread

ticks = st.lists(st.integers(0, 10**12), min_size=1, max_size=40).map(np.array)


@given(ticks, st.integers(-10, 10**12))
def test_lateness_from_a_spread_is_that_of_the_tuples(page: np.ndarray, reached: int) -> None:
    moved = PageSketch(Spread.of(page).lateness(reached))
    exact = lateness(page, reached)
    assert (moved.rows, moved.greatest) == (len(page), exact.max())
    assert moved.beyond(0) == (exact > 0).sum()


def test_quantiles_of_lateness_survive_the_way() -> None:
    random = np.random.default_rng(1)
    page = 10**9 + np.arange(100_000) * 20 - random.exponential(1e5, 100_000).astype(np.int64)
    reached = 10**9 + 10**6
    exact = np.sort(lateness(page, reached))
    sketch = LatenessSketch(10**9)
    sketch.merge(Spread.of(page).lateness(reached))
    for share in (0.6, 0.9, 0.99, 0.999):
        left_out = (exact > sketch.quantile(share)).mean()
        assert left_out == pytest.approx(1 - share, rel=0.1, abs=2e-4)


@given(st.lists(ticks, min_size=1, max_size=5))
def test_parts_tell_together_what_the_whole_tells(pages: list[np.ndarray]) -> None:
    whole, parts = np.concatenate(pages), Spread.merged(map(Spread.of, pages))
    assert (parts.rows, parts.least, parts.greatest) == (len(whole), whole.min(), whole.max())


def test_before_anything_was_seen_nothing_is_late() -> None:
    assert PageSketch(Spread.of(np.array([1, 9, 5])).lateness(None)).greatest == 0
    assert PageSketch(Spread.of(np.array([7])).lateness(9)).greatest == 3


@pytest.mark.parametrize("method", METHODS)
def test_one_stream_learns_what_it_learns_alone(method: str) -> None:
    random = np.random.default_rng(2)
    joint, alone = JointBound(adaptive(0.9, method=method)), AdaptiveBound(
        adaptive(0.9, method=method)
    )  # fmt: skip
    for now in range(40):
        page = 1000 * now - random.integers(0, 700, 10)
        late = PageSketch(sketched(lateness(page, alone.reached)))
        alone.observe(10, int(page.min()), int(page.max()), late.to_bytes(), now)
        joint.observe({0: [Spread.of(page)]}, now)
        assert joint.reached == alone.reached
    assert alone.skew is not None
    assert joint.skew == pytest.approx(alone.skew, rel=0.02)


def readings_and_alerts(
    bound: JointBound, pages: int, *, alerts_from: int = 0, lag: int = 9000
) -> None:
    """A thousand readings a page, hardly late; one alert in each, `lag` behind."""
    random = np.random.default_rng(3)
    for now in range(pages):
        streams = {0: [Spread.of(1000 * now + random.integers(0, 1000, 1000))]}
        if now >= alerts_from:
            streams[1] = [Spread.of(np.array([1000 * now - lag]))]
        bound.observe(streams, now)


def test_a_stream_of_few_tuples_is_given_the_time_that_it_needs() -> None:
    bound = JointBound(adaptive(0.99))
    readings_and_alerts(bound, 60)
    assert bound.skew is not None
    assert bound.skew >= 9000  # though nearly all tuples are later by 1000 at most


def test_a_stream_never_seen_does_not_stop_the_others() -> None:
    bound = JointBound(adaptive(0.99))
    readings_and_alerts(bound, 60, alerts_from=60)
    assert bound.skew is not None
    assert bound.skew < 1100


def test_a_stream_that_comes_later_counts_with_what_it_has_shown() -> None:
    bound = JointBound(adaptive(0.99))
    readings_and_alerts(bound, 60, alerts_from=59)
    assert bound.skew is not None
    assert bound.skew >= 9000  # from its first tuple on; no second warm-up


@given(st.integers(0, 30))
def test_restored_it_goes_on_as_if_nothing_had_happened(cut: int) -> None:
    random = np.random.default_rng(4)
    one = two = JointBound(adaptive(0.9))
    for now in range(30):
        if now == cut:
            two = JointBound(adaptive(0.9))
            two.restore(json.loads(json.dumps(one.to_record())))
        streams = {n: [Spread.of(100 * now - random.integers(0, 90, 5))] for n in range(now % 3)}
        for bound in {id(b): b for b in (one, two)}.values():
            bound.observe(streams, now)
    assert one.to_record() == two.to_record()


@given(st.permutations(range(4)))
def test_the_order_of_parts_makes_no_difference(order: list[int]) -> None:
    parts = [Spread.of(np.arange(n, n + 300, 7)) for n in (0, 40, 3000, 900)]
    one, two = JointBound(adaptive(0.9)), JointBound(adaptive(0.9))
    for now in range(3):
        one.observe({0: parts}, now)
        two.observe({0: [parts[i] for i in order]}, now)
    assert one.to_record() == two.to_record()


def test_what_is_held_does_not_grow_with_the_stream() -> None:
    bound = JointBound(adaptive(0.99))
    readings_and_alerts(bound, 300)
    assert bound.held() < 20_000
