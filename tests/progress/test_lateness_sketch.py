"""The sketch of lateness: near the truth, small, forgetful, and the same for all who merge."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpunct.model.errors import FlowError
from interpunct.progress.confidence import LatenessSketch, PageSketch, lateness, sketched

SHARES = (0.5, 0.9, 0.99, 0.999)


def late(seed: int, rows: int) -> np.ndarray:
    """Two tuples in three in time, the others exponentially late."""
    random = np.random.default_rng(seed)
    return (random.exponential(1e6, rows) * (random.random(rows) < 1 / 3)).astype(np.int64)


@pytest.mark.parametrize("share", SHARES)
def test_a_quantile_leaves_out_about_the_share_it_says(share: float) -> None:
    sketch, everything = LatenessSketch(10**9), late(1, 100_000)
    for page in np.split(everything, 100):
        sketch.update(page)
    left_out = (everything > sketch.quantile(share)).mean()
    assert left_out == pytest.approx(1 - share, rel=0.1, abs=2e-4) or share < 2 / 3


def test_the_greatest_is_exact() -> None:
    sketch, everything = LatenessSketch(10**9), late(2, 50_000)
    sketch.update(everything)
    assert sketch.quantile(1.0) == everything.max()
    assert PageSketch(sketched(everything)).greatest == everything.max()


@given(st.lists(st.lists(st.integers(0, 10**12), min_size=1), min_size=1, max_size=8))
def test_whoever_merges_the_same_parts_in_the_same_order_holds_the_same_bytes(
    pages: list[list[int]],
) -> None:
    parts = [sketched(np.array(page)) for page in pages]
    one, two = LatenessSketch(20), LatenessSketch(20)
    for part, page in zip(parts, pages, strict=True):
        one.merge(part)
        two.update(np.array(page))
    assert one.to_bytes() == two.to_bytes()
    assert PageSketch.merged(parts).to_bytes() == PageSketch.merged(parts).to_bytes()


@given(st.integers(0, 1000), st.integers(1, 6))
def test_restored_it_goes_on_to_the_same_bytes(seed: int, pages: int) -> None:
    one = LatenessSketch(300)
    for number in range(pages):
        one.update(late(seed + number, 200), missed=number, now=number)
    two = LatenessSketch(300)
    two.restore(one.to_bytes())
    for sketch in (one, two):
        sketch.update(late(seed + 99, 500), missed=3, now=99)
    assert one.to_bytes() == two.to_bytes()
    assert (one.rows, one.missed) == (two.rows, two.missed)


def test_what_was_two_windows_ago_is_forgotten() -> None:
    sketch = LatenessSketch(1000)
    sketch.update(np.full(1000, 5_000_000), missed=7)
    sketch.update(np.full(1000, 10))
    assert (sketch.quantile(0.999), sketch.missed) == (5_000_000, 7)
    sketch.update(np.full(1000, 10))
    assert (sketch.quantile(0.999), sketch.missed, sketch.rows) == (10, 0, 2000)


def test_a_window_can_be_time() -> None:
    sketch = LatenessSketch(60, timed=True)
    for now in range(0, 200, 20):
        sketch.update(np.array([now]), now=now)
    assert (sketch.rows, sketch.quantile(0.0)) == (4, 120)  # 120 … 160, and 180 alone


def test_its_size_has_a_bound() -> None:
    sketch = LatenessSketch(5000)
    sizes = []
    for number in range(200):
        sketch.update(late(number, 1000))
        sizes.append(sketch.held())
    assert max(sizes) < 10_000
    assert sketch.rows <= 2 * 5000 + 1000


@pytest.mark.parametrize("limit", [-1, 250_000, 10**6, 5 * 10**6, 10**9])
def test_how_many_are_beyond_a_limit(limit: int) -> None:
    page = late(5, 400)
    assert PageSketch(sketched(page)).beyond(limit) == pytest.approx((page > limit).sum(), abs=2)


def test_an_empty_sketch_answers() -> None:
    nothing = np.empty(0, np.int64)
    empty = PageSketch(sketched(nothing))
    assert (empty.greatest, empty.beyond(0), LatenessSketch(1).quantile(0.5)) == (0, 0, 0.0)
    sketch = LatenessSketch(1)
    sketch.update(nothing)
    assert sketch.rows == 0


def test_lateness_is_one_for_a_tuple_stamped_as_the_greatest() -> None:
    assert lateness(np.array([9, 10, 11]), 10).tolist() == [2, 1, 0]
    assert lateness(np.array([9, 10, 11]), None).tolist() == [0, 0, 0]


def test_a_window_of_nothing_is_refused() -> None:
    with pytest.raises(FlowError, match="above zero"):
        LatenessSketch(0)
