"""Bounds that a stream learns of itself: when they speak, what they say, that all say the same."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpunct.model.errors import ExpressionError, FlowError
from interpunct.model.schema import START_OF_TIME
from interpunct.progress.adaptive import METHODS, Adaptive, AdaptiveBound, adaptive
from interpunct.progress.confidence import lateness, sketched

SECOND = 1_000_000


def stream(pages: int, behind: int, seed: int = 1, rows: int = 50) -> Iterator[np.ndarray]:
    """A second a page; every tuple up to `behind` seconds before the page's end."""
    random = np.random.default_rng(seed)
    for number in range(1, pages + 1):
        yield number * SECOND - random.integers(0, behind * SECOND + 1, rows)


def feed(bound: AdaptiveBound, ticks: np.ndarray, now: int, tasks: int = 0) -> None:
    """Tell of a page, in process or as so many tasks would."""
    late = lateness(ticks, bound.reached)
    facts: np.ndarray | list[bytes] = late
    if tasks:
        facts = [sketched(part) for part in np.array_split(late, tasks)]
    bound.observe(len(ticks), int(ticks.min()), int(ticks.max()), facts, now)


@pytest.mark.parametrize("method", METHODS)
def test_no_heartbeat_until_enough_tuples_have_come(method: str) -> None:
    bound = AdaptiveBound(adaptive(0.99, method=method))
    for now, ticks in enumerate(stream(3, 0), 1):
        assert bound.skew is None
        assert bound.heartbeat == START_OF_TIME
        feed(bound, ticks, now)
    assert bound.skew is not None  # 100 tuples after the first page of 50
    assert bound.heartbeat == bound.reached - bound.skew


def test_the_first_page_teaches_nothing() -> None:
    bound = AdaptiveBound(adaptive(0.99))
    feed(bound, np.arange(100_000), 0)
    assert bound.skew is None


@pytest.mark.parametrize("method", METHODS)
def test_no_heartbeat_while_the_stream_is_hardly_older_than_its_lateness(method: str) -> None:
    bound = AdaptiveBound(adaptive(0.9, method=method, warm_up=2.5))
    spoke = []
    for now, ticks in enumerate(stream(90, 20), 1):
        feed(bound, ticks, now)
        spoke.append(bound.skew is not None)
    first = spoke.index(True)
    assert not any(spoke[:first])
    assert bound.reached - bound.least >= 2.5 * bound.skew
    assert 20 < first < 70  # the first tuple was up to 20 s old, and 2.5 × 20 s have to pass


@pytest.mark.parametrize("method", METHODS)
def test_the_heartbeat_never_falls_when_lateness_grows(method: str) -> None:
    bound = AdaptiveBound(adaptive(0.99, method=method, window=500))
    heartbeats, skews = [], []
    for now, ticks in enumerate([*stream(100, 1), *(t + 100 * SECOND for t in stream(50, 15))]):
        feed(bound, ticks, now)
        heartbeats.append(bound.heartbeat)
        skews.append(bound.skew or 0)
    assert heartbeats == sorted(heartbeats)
    assert max(skews[100:]) > 5 * max(skews[50:100])


@pytest.mark.parametrize("method", ["confidence", "adaptive"])
def test_a_spell_of_lateness_is_forgotten(method: str) -> None:
    bound = AdaptiveBound(adaptive(0.99, method=method, window=500, alpha=0.5))
    calm = [t + 70 * SECOND for t in stream(150, 1)]
    skews = []
    for now, ticks in enumerate([*stream(70, 10), *calm]):
        feed(bound, ticks, now)
        skews.append(bound.skew)
    assert skews[69] > 8 * SECOND
    assert skews[-1] < 2 * SECOND


def test_the_maximum_forgets_nothing() -> None:
    bound = AdaptiveBound(adaptive(0.99, method="maximum", window=500))
    for now, ticks in enumerate([*stream(70, 10), *(t + 70 * SECOND for t in stream(150, 1))]):
        feed(bound, ticks, now)
    assert bound.skew > 8 * SECOND


def test_of_a_steady_stream_about_a_quarter_of_what_may_be_late_is() -> None:
    for completeness in (0.9, 0.99, 0.999):
        bound, late, rows = AdaptiveBound(adaptive(completeness)), 0, 0
        random = np.random.default_rng(3)
        for now in range(1000):
            ticks = (now * SECOND - random.exponential(2 * SECOND, 100)).astype(np.int64)
            late += int((ticks <= bound.heartbeat).sum())
            rows += len(ticks)
            feed(bound, ticks, now)
        assert 1 / 8 < late / rows / (1 - completeness) < 1 / 2


def test_tuples_already_late_leave_less_that_may_be_late() -> None:
    """Two bounds see the same lateness; the one that spoke too soon is the more careful after."""
    calm, rough = list(stream(100, 1)), [t + 100 * SECOND for t in stream(10, 30)]
    spent, unspent = (AdaptiveBound(adaptive(0.9, window=10**6)) for _ in range(2))
    for now, ticks in enumerate([*calm, *rough]):
        feed(spent, ticks, now)
        feed(unspent, ticks, now)
        unspent._shadow = START_OF_TIME
    assert spent.skew > unspent.skew


@given(st.integers(0, 10_000), st.sampled_from(METHODS), st.integers(1, 4))
def test_all_who_are_told_the_same_hold_the_same(seed: int, method: str, tasks: int) -> None:
    one, two = (AdaptiveBound(adaptive(0.9, method=method, window=100)) for _ in range(2))
    for now, ticks in enumerate(stream(30, 2, seed, 20)):
        feed(one, ticks, now, tasks)
        feed(two, ticks, now, tasks)
    assert one.to_record() == two.to_record()


def test_in_process_and_from_tasks_the_bound_is_nearly_the_same() -> None:
    alone, shared = (AdaptiveBound(adaptive(0.99)) for _ in range(2))
    for now, ticks in enumerate(stream(400, 3)):
        feed(alone, ticks, now)
        feed(shared, ticks, now, tasks=3)
    assert shared.skew == pytest.approx(alone.skew, rel=0.02)


@given(st.sampled_from(METHODS), st.sampled_from([60, "7s"]), st.integers(1, 40))
def test_a_restored_bound_goes_on_as_if_nothing_had_happened(
    method: str, window: int | str, cut: int
) -> None:
    policy = adaptive(0.9, method=method, window=window)
    one = AdaptiveBound(policy)
    for number, ticks in enumerate(stream(60, 3, rows=10)):
        if number == cut:
            two = AdaptiveBound(policy)
            two.restore(json.loads(json.dumps(one.to_record())))
        feed(one, ticks, number * SECOND)
        if number >= cut:
            feed(two, ticks, number * SECOND)
    assert one.to_record() == two.to_record()


def test_what_is_held_does_not_grow_with_the_stream() -> None:
    bound = AdaptiveBound(adaptive(0.99))
    for now, ticks in enumerate(stream(500, 3)):
        feed(bound, ticks, now)
    assert bound.held() < 10_000


def test_a_page_of_nothing_changes_nothing() -> None:
    bound = AdaptiveBound(adaptive())
    before = bound.to_record()
    bound.observe(0, 0, 0, np.empty(0, np.int64), 5)
    assert bound.to_record() == before


def test_the_usual_window_follows_the_completeness() -> None:
    assert adaptive(0.999).window == 20_000
    assert adaptive(0.99).window == 2_000
    assert adaptive(0.99, method="adaptive").window == 1_000
    assert adaptive(window="1m") == Adaptive(window=60 * SECOND, timed=True)


def test_policies_say_what_they_are() -> None:
    assert str(adaptive()) == "adaptive (confidence 99.9 %, window 20000 tuples)"
    assert str(adaptive(method="adaptive", window="1m")) == "adaptive (W = 1m, α = 0.75)"
    assert str(adaptive(method="maximum")) == "adaptive (maximum)"


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"completeness": 1.0}, "between 0 and 1"),
        ({"completeness": 99.9}, "between 0 and 1"),
        ({"method": "magic"}, "confidence, adaptive, maximum"),
        ({"window": 0}, "above zero"),
        ({"alpha": -0.1}, "weight"),
        ({"safety": 0.5}, "safety of at least 1"),
        ({"warm_up": -1}, "warm_up of at least 0"),
    ],
)
def test_policies_that_mean_nothing_are_refused(settings: dict[str, object], told: str) -> None:
    with pytest.raises(FlowError, match=told):
        adaptive(**settings)  # type: ignore[arg-type]
    with pytest.raises(ExpressionError, match="duration"):
        adaptive(window="soon")
