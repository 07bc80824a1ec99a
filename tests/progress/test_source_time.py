"""A source's time register, restored with other bounds than it was stored with."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from interpunct.progress.adaptive import Adaptive, adaptive
from interpunct.progress.source_time import SourceTime
from interpunct.progress.timestamps import Bounds, external

BOUNDS = st.builds(Bounds, delay=st.integers(0, 20), skew=st.integers(0, 20))


def register(bounds: Bounds | Adaptive) -> SourceTime:
    return SourceTime(external("ts", bounds, ets="never"))


def moved(bounds: Bounds | Adaptive, stored: SourceTime) -> SourceTime:
    """The same register under other bounds."""
    found = register(bounds)
    found.restore(json.loads(json.dumps(stored.to_record())))
    return found


@given(st.lists(st.integers(0, 100), min_size=1, max_size=20), BOUNDS, BOUNDS)
def test_heartbeats_given_stand_and_the_next_follow_the_new_bounds(
    ticks: list[int], old: Bounds, new: Bounds
) -> None:
    time = register(old)
    for now, tick in enumerate(ticks):
        time.observe(tick, now)
        time.mature(now)
    before, after = time.given, moved(new, time)
    assert after.given == before
    last = len(ticks) - 1
    waited = last + new.delay + 1
    after.mature(last)
    if old != new and new.delay:
        assert after.given == before, "what the old bounds would have promised is not"
    after.mature(waited)
    assert after.given == max(before, max(ticks) - new.skew)


def test_bounds_that_are_learned_from_now_on_promise_nothing_yet() -> None:
    time = register(Bounds(skew=2))
    time.observe(50, 0)
    time.mature(0)
    after = moved(adaptive(), time)
    after.mature(10**6)
    assert (after.given, after.bounds) == (48, None)
    assert moved(Bounds(skew=1), after).next_moment() == 0  # and back: at once by the new bound
