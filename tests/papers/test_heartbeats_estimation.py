"""The Heartbeats paper's section 6: skew bounds estimated from what arrives."""

from __future__ import annotations

import json

import numpy as np
import pytest
from figure4 import Figure4
from hypothesis import example, given
from hypothesis import strategies as st

from interpunct.model.errors import FlowError
from interpunct.progress.estimation import FALLS, LOOK, SkewEstimator

NAMES = ["a", "b", "c"]

# W = 2, α = 0.5, one source, t = 0. Each tuple arrives alone, one microsecond after the other.
#  τ   τmax  δest  lines                      δ    δwin  num
TRACE = [
    (10, None, 0, "5 6 7 9 10",               0.0, 0.0, 1),
    (12, 10,   0, "5 6 7 9 10",               0.0, 0.0, 2),
    (9,  12,   4, "5 6 7 8: exceeded",        4.0, 0.0, 0),
    (11, 12,   2, "5 6 7 9 10 11",            4.0, 2.0, 1),
    (12, 12,   1, "… 10, not 11",             4.0, 2.0, 2),
    (13, 12,   0, "… 12 13 14: num = 3 > W",  3.0, 0.0, 0),
    (12, 13,   2, "… 10 11",                  3.0, 2.0, 1),
    (11, 13,   3, "as late as δ: no line 8",  3.0, 3.0, 2),
    (10, 13,   4, "8 again, window dropped",  4.0, 0.0, 0),
    (20, 13,   0, "9 10",                     4.0, 0.0, 1),
    (21, 20,   0, "9 10",                     4.0, 0.0, 2),
    (22, 21,   0, "12 13 14",                 2.0, 0.0, 0),
]  # fmt: skip


def test_figure_4_line_by_line() -> None:
    figure, estimator = Figure4(1, 0, 1, 2, 0.5), SkewEstimator(["a"], 0, 1, 2, 0.5)
    greatest = None
    for now, (tau, past, est, lines, delta, win, num) in enumerate(TRACE):
        assert greatest == past, lines
        assert (0 if past is None else max(past - tau + 1, 0)) == est, lines
        figure.page(0, [tau], now)
        estimator.arrive("a", np.array([tau]), now)
        at = (0, 0, 0)
        assert (figure.delta[at], figure.delta_win[at], figure.num[at]) == (delta, win, num), lines
        record = estimator.to_record()
        found = tuple(record[name][0][0][0] for name in ("delta", "win", "num"))
        assert found == (delta, win, num), lines
        greatest = tau if past is None else max(past, tau)


ticks = st.lists(st.integers(-40, 40), min_size=1, max_size=25)
pages = st.lists(
    st.tuples(st.integers(0, 2), ticks, st.integers(0, 9)), min_size=1, max_size=12
)  # (source, timestamps, microseconds since the page before)


def both(
    stream: list[tuple[int, list[int], int]], window: int | None, alpha: float, *,
    timed: bool = False, stretch: bool = False, t_max: int = 12, unit: int = 4,
) -> tuple[Figure4, SkewEstimator]:  # fmt: skip
    figure = Figure4(3, t_max, unit, window, alpha, timed=timed, stretch=stretch)
    width = f"{window} us" if timed else window
    estimator = SkewEstimator(NAMES, t_max, unit, width, alpha, stretch_window=stretch)
    now = 0
    for source, taus, passed in stream:
        now += passed
        figure.page(source, taus, now)
        estimator.arrive(NAMES[source], np.array(taus), now)
    return figure, estimator


def same(figure: Figure4, estimator: SkewEstimator) -> None:
    for i, first in enumerate(NAMES):
        for j, second in enumerate(NAMES):
            expected = [figure.delta[i, j, t] for t in figure.lags]
            assert estimator.estimate(first, second).tolist() == expected, (first, second)


@given(pages, st.integers(1, 30), st.sampled_from([0.0, 0.25, 0.9, 1.0]))
@example([(0, [5], 0), (0, [3, 4, 2, 2, 9, 9, 9, 1], 1)], 2, 0.25)
@example([(0, list(range(25, 0, -1)), 1), (0, list(range(25, 0, -1)), 1)], 1, 0.0)
def test_a_page_at_a_time_is_a_tuple_at_a_time(
    stream: list[tuple[int, list[int], int]], window: int, alpha: float
) -> None:
    figure, estimator = both(stream, window, alpha)
    same(figure, estimator)
    num = np.array(estimator.to_record()["num"])
    expected = [[[figure.num[i, j, t] for t in figure.lags] for i in range(3)] for j in range(3)]
    assert num.tolist() == expected


@given(pages, st.integers(1, 20), st.sampled_from([0.0, 0.5]))
def test_a_window_of_time_is_a_tuple_at_a_time_too(
    stream: list[tuple[int, list[int], int]], window: int, alpha: float
) -> None:
    same(*both(stream, window, alpha, timed=True))


@given(st.integers(0, 2**32), st.sampled_from([False, True]))
def test_each_entry_stretches_its_window_as_tuple_by_tuple(seed: int, timed: bool) -> None:
    random = np.random.default_rng(seed)
    count = 3 * LOOK
    level = np.cumsum(random.integers(0, 3, count))
    stream = [(0, (level[k] - random.integers(0, 1 + k % 9, 3)).tolist(), 3) for k in range(count)]
    figure, estimator = both(stream, 4, 0.9, timed=timed, stretch=True, t_max=0, unit=1)
    same(figure, estimator)
    width = estimator.to_record()["width"][0][0][0]
    assert width == figure.widths[0, 0, 0]


def test_estimates_exceeded_often_lengthen_the_window() -> None:
    estimator = SkewEstimator(["a"], 0, 1, 4, 0.0, stretch_window=True)
    for now in range(2 * LOOK):  # every page is later than any before it
        estimator.arrive("a", np.array([-now * now]), now)
    assert estimator.to_record()["width"][0][0][0] == 16


def test_estimates_that_keep_falling_shorten_the_window() -> None:
    estimator = SkewEstimator(["a"], 0, 1, 4, 0.9, stretch_window=True)
    estimator.arrive("a", np.array([10_000]), 0)
    estimator.arrive("a", np.array([0]), 1)
    for now in range(2, 2 + 5 * FALLS):  # five tuples end a window of W = 4
        estimator.arrive("a", np.array([20_000 + now]), now)
    assert estimator.to_record()["width"][0][0][0] == 2


@given(pages, st.sampled_from([(None, 0.3), (3, 1.0)]))
def test_no_window_or_alpha_1_is_the_greatest_skew_ever_seen(
    stream: list[tuple[int, list[int], int]], setting: tuple[int | None, float]
) -> None:
    _, estimator = both(stream, *setting)
    greatest = dict.fromkeys(
        [(i, j, t) for i in range(3) for j in range(3) for t in (0, 4, 8, 12)], 0
    )
    seen: list[tuple[int, int, int]] = []
    now = 0
    for j, taus, passed in stream:
        now += passed
        for i, at, tau in seen:
            for t in (0, 4, 8, 12):
                if at // 4 <= now // 4 - t // 4:
                    greatest[i, j, t] = max(greatest[i, j, t], tau - min(taus) + 1)
        seen += [(j, now, tau) for tau in taus]
    for (i, j, t), delta in greatest.items():
        assert estimator.estimate(NAMES[i], NAMES[j])[t // 4] == delta


@given(pages)
def test_bounds_hold_of_all_that_has_arrived(stream: list[tuple[int, list[int], int]]) -> None:
    bounds = both(stream, None, 1.0)[1].bounds()
    now, arrived = 0, []
    for j, taus, passed in stream:
        now += passed
        for i, at, tau in arrived:
            for t, delta in bounds[NAMES[i], NAMES[j]]:
                assert now <= at + t or now == at or min(taus) > tau - delta
        arrived += [(j, now, tau) for tau in taus]


def test_a_longer_t_is_told_only_where_it_tightens_the_bound() -> None:
    estimator = SkewEstimator(["a"], 3, 1)
    for now, tau in enumerate([10, 20, 30, 24, 40, 50]):
        estimator.arrive("a", np.array([tau]), now)
    assert estimator.estimate("a", "a").tolist() == [7, 7, 0, 0]
    assert estimator.bounds() == {("a", "a"): ((0, 7), (2, 0))}


def test_pairs_never_compared_promise_nothing() -> None:
    estimator = SkewEstimator(["a", "b"], 0, 1)
    estimator.arrive("a", np.array([5]), 0)
    assert estimator.bounds() == {}
    estimator.arrive("b", np.array([3]), 1)
    assert estimator.bounds() == {("a", "b"): ((0, 3),)}


@given(pages, pages)
def test_a_restored_estimator_goes_on_as_if_nothing_had_happened(
    before: list[tuple[int, list[int], int]], after: list[tuple[int, list[int], int]]
) -> None:
    one = both(before, 5, 0.5, stretch=True)[1]
    two = SkewEstimator(NAMES, 12, 4, 5, 0.5, stretch_window=True)
    two.restore(json.loads(json.dumps(one.to_record())))
    now = 1000
    for source, taus, passed in after:
        now += passed
        for estimator in (one, two):
            estimator.arrive(NAMES[source], np.array(taus), now)
    assert one.to_record() == two.to_record()


def test_what_is_held_does_not_grow_with_the_stream() -> None:
    estimator = SkewEstimator(["a", "b"], 100, 10, 50, 0.5)
    held = estimator.held()
    random = np.random.default_rng(1)
    for now in range(0, 100_000, 500):
        estimator.arrive("ab"[now % 2], now - random.integers(0, 400, 200), now)
    assert estimator.held() == held
    assert len(json.dumps(estimator.to_record())) < 40 * held


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((["a", "a"], 0, 1), "distinct names"),
        ((["a"], 0, 0), "unit"),
        ((["a"], 0, 1, 0), "at least one tuple"),
        ((["a"], 0, 1, 5, 1.5), "alpha"),
    ],
)
def test_settings_that_mean_nothing_are_refused(arguments: tuple[object, ...], told: str) -> None:
    with pytest.raises(FlowError, match=told):
        SkewEstimator(*arguments)  # type: ignore[arg-type]


def test_an_unknown_source_is_refused_by_name() -> None:
    with pytest.raises(FlowError, match="one of the sources a"):
        SkewEstimator(["a"], 0, 1).arrive("z", np.array([1]), 0)
