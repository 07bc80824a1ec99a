"""Sources that keep their bounds, and an adversary who keeps them too: what may still come.

Times and stamps are small, so everything can be tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from hypothesis import strategies as st

from interpunct.progress.skew import Bounds, Pair, SkewBounds, TupleBounds

NAMES = ("a", "b", "c")
LONGEST = 4  # of delays, latencies and skews

waits = st.integers(0, LONGEST)
timed = st.builds(Bounds, waits, waits)
counted = st.builds(TupleBounds, st.integers(0, 3), waits)


@st.composite
def matrices(
    draw: st.DrawFn,
    pairs: st.SearchStrategy[Pair] = timed | counted,
    latencies: st.SearchStrategy[int] = waits,
    full: bool = False,
) -> SkewBounds:
    names = NAMES[: draw(st.integers(1, 3))]
    sets = st.lists(pairs, min_size=int(full), max_size=3)
    entries = {(i, j): draw(sets) for i in names for j in names}
    return SkewBounds(names, entries, {name: draw(latencies) for name in names})


@dataclass(frozen=True)
class Sent:
    """A tuple on its way: who emitted it, when, as which in a row, and when it arrives."""

    source: int
    stamp: int
    emitted: int
    number: int
    arrives: int


@dataclass(frozen=True)
class Wish:
    """What a source would like to send; the bounds may make it send a greater stamp."""

    after: int
    source: int
    stamp: int
    travel: int


a_wish = st.builds(Wish, st.integers(0, 2), st.integers(0, 2), st.integers(0, 12), waits)
wishes = st.lists(a_wish, max_size=14)


def emit(bounds: SkewBounds, wanted: Sequence[Wish]) -> list[Sent]:
    """What sources send that keep their bounds, in order of emission."""
    sent: list[Sent] = []
    clock = 0
    for number, wish in enumerate(wanted):
        clock += wish.after
        source = wish.source % len(bounds.names)
        least = least_allowed(bounds, sent, source, clock)
        travel = min(wish.travel, int(bounds.latencies[source]))
        stamp = wish.stamp if least is None else max(wish.stamp, least)
        sent.append(Sent(source, stamp, clock, number, clock + travel))
    return sent


def least_allowed(
    bounds: SkewBounds, sent: Sequence[Sent], target: int, emitted: int
) -> int | None:
    """The least stamp that a source may emit now, after all of these."""
    floors = []
    for place, s in enumerate(sent):
        between = sum(x.source == target for x in sent[place + 1 :])
        for pair in bounds.pairs(s.source, target):
            if isinstance(pair, Bounds):
                holds = pair.delay == 0 or emitted > s.emitted + pair.delay
            else:
                holds = between >= pair.count
            floors += [s.stamp - pair.skew + 1] if holds else []
    return max(floors, default=None)


def arrivals(bounds: SkewBounds, sent: Sequence[Sent], shuffled: Sequence[int]) -> list[Sent]:
    """In order of arrival. Tuples of an instant come in any order where all of them travel."""
    if int(bounds.latencies.min()) == 0:
        return sorted(sent, key=lambda s: (s.arrives, s.number))
    return sorted(sent, key=lambda s: (s.arrives, shuffled[s.number % len(shuffled)], s.number))


def least_to_come(
    bounds: SkewBounds, talker: Sequence[Sent], listener: Sequence[Sent], now: int
) -> int | None:
    """The least stamp that `b` may still deliver, having heard nothing but the talker `a`.

    `a` and the earlier tuples of `b` bind nobody but, `a`, the tuples of `b` to come. The adversary
    chooses when each was emitted, within its latency, and when the tuple to come is.
    """
    travel = [int(latency) for latency in bounds.latencies]
    choices = [range(s.arrives - travel[s.source], s.arrives + 1) for s in (*talker, *listener)]
    best: int | None = None
    for final in range(now - travel[1], now + 1):
        for times in product(*choices):
            said = list(zip(times, talker, strict=False))
            heard = list(zip(times[len(talker) :], listener, strict=True))
            floors = [
                s.stamp - pair.skew + 1
                for at, s in said
                for pair in bounds.pairs(0, 1)
                if _holds(pair, at, s, heard, final, now, travel[1])
            ]
            if not floors:
                return None
            best = max(floors) if best is None else min(best, max(floors))
    return best


def _holds(
    pair: Pair,
    at: int,
    said: Sent,
    heard: Sequence[tuple[int, Sent]],
    final: int,
    now: int,
    latency: int,
) -> bool:
    """Whether a pair binds the tuple to come; of what travels, an instant orders nothing."""
    if isinstance(pair, Bounds):
        return final > at + pair.delay or (pair.delay == 0 and not latency)
    if latency:
        return sum(at < time < final for time, _ in heard) >= pair.count
    return sum((at, said.number) < (time, x.number) for time, x in heard) >= pair.count
