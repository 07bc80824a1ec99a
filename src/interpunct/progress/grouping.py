"""Many sources as few: one heartbeat for a group of streams (Heartbeats section 5.2).

    B̂ab  =  ⊔  (Bij)⁺     the weakest that any source of group a says of any source of group b
         i∈a, j∈b

S⁺ spells out the strongest guarantee at every delay, and ⊔ takes the weaker of two at each:

>>> print(*plus([Bounds(1, 2), Bounds(3, 1)], t_max=3))
(t=1us, δ=2us) (t=2us, δ=2us) (t=3us, δ=1us)
>>> print(*join([Bounds(1, 2), Bounds(3, 1)], [Bounds(2, 1)]))
(t=2us, δ=2us) (t=3us, δ=1us)

A hundred thousand sensors in sixteen groups are a matrix of sixteen by sixteen:

>>> from interpunct.progress.skew_presets import distributed_sensors
>>> sensors = distributed_sensors({f"s{n}": n % 50 for n in range(100_000)}, latency="20ms")
>>> groups = propose_groups(sensors, 16)
>>> len(grouped(sensors, groups).names), groups.of[[0, 1, 49]].tolist()
(13, [0, 0, 12])

The generator is then told the group of each tuple, `groups.of[source]`, instead of its source.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from interpunct.model.errors import FlowError
from interpunct.progress.skew import BoundsMatrix, Pair, SkewBounds, Ticks, TupleBounds, strongest
from interpunct.progress.skew_presets import RATE_STEP, CounterBounds, SensorBounds, widest
from interpunct.progress.timestamps import Bounds

Members = npt.NDArray[np.intp]  # the positions of a group's sources


def plus(pairs: Iterable[Bounds], t_max: int, unit: int = 1) -> list[Bounds]:
    """S⁺: the strongest guarantee at every multiple of `unit` up to `t_max`, said explicitly."""
    front = [p for p in strongest(tuple(pairs), "plus") if isinstance(p, Bounds)]
    explicit = []
    for delay in range(0, t_max + 1, unit):
        skew = _skew_after(front, delay)
        explicit += [] if skew is None else [Bounds(delay, skew)]
    return explicit


def _skew_after(front: Sequence[Bounds], delay: int) -> int | None:
    """The smallest skew that is guaranteed after this delay, if any is."""
    return next((p.skew for p in reversed(front) if p.delay <= delay), None)


def join(left: Iterable[Bounds], right: Iterable[Bounds]) -> list[Bounds]:
    """S′ ⊔ S″: at every delay the weaker of the two guarantees, without the redundant pairs.

    Both are staircases, so only delays at which one of them steps need be looked at; that is the
    same as the paper's join of S′⁺ and S″⁺, less what it says twice.
    """
    fronts = [
        [p for p in strongest(tuple(side), "join") if isinstance(p, Bounds)]
        for side in (left, right)
    ]
    joined: list[Bounds] = []
    for delay in sorted({p.delay for front in fronts for p in front}):
        skews = [_skew_after(front, delay) for front in fronts]
        if None not in skews:
            joined.append(Bounds(delay, max(s for s in skews if s is not None)))
    return [p for p in strongest(joined, "join") if isinstance(p, Bounds)]


@dataclass(frozen=True, eq=False)
class Groups:
    """Named groups, and for every source, by position, the number of its group."""

    names: tuple[str, ...]
    of: npt.NDArray[np.int32]

    @classmethod
    def of_members(cls, sources: Sequence[str], members: Mapping[str, Iterable[str]]) -> Groups:
        """From the names of each group's sources; every source must be in exactly one."""
        number = {name: at for at, name in enumerate(sources)}
        of = np.full(len(sources), -1, np.int32)
        for group, names in enumerate(members.values()):
            for name in names:
                if name not in number or of[number[name]] >= 0:
                    raise _not_a_partition(f"{name!r} is unknown, or in two groups")
                of[number[name]] = group
        if (of < 0).any():
            raise _not_a_partition(f"{sources[int(np.argmin(of))]!r} is in no group")
        return cls(tuple(members), of)

    def members(self) -> list[Members]:
        """The positions of each group's sources."""
        order = np.argsort(self.of, kind="stable")
        ends = np.searchsorted(self.of[order], np.arange(1, len(self.names)))
        return np.split(order, ends)


def _not_a_partition(got: str) -> FlowError:
    return FlowError(
        "groups", "every source in exactly one group, and no empty group", got,
        "List each source once.",
    )  # fmt: skip


def grouped(bounds: BoundsMatrix, groups: Groups | Mapping[str, Iterable[str]]) -> SkewBounds:
    """B̂: the bounds of groups, each treated as one stream. Its latency is its members' longest.

    A tuple-based pair (n, δ) speaks of n tuples of one source. Tuples of a group do not show which
    of its sources sent them, so such pairs stay only where the later group has a single source.
    """
    if not isinstance(groups, Groups):
        groups = Groups.of_members(bounds.names, groups)
    members = groups.members()
    if len(groups.of) != len(bounds.names) or any(len(m) == 0 for m in members):
        raise _not_a_partition(f"{len(groups.of)} sources, some group without any")
    entries: dict[tuple[str, str], list[Pair]] = {}
    for a, from_group in zip(groups.names, members, strict=True):
        for b, to_group in zip(groups.names, members, strict=True):
            entries[a, b] = _weakest(bounds, from_group, to_group)
    latency = {
        name: int(bounds.latencies[m].max()) for name, m in zip(groups.names, members, strict=True)
    }
    return SkewBounds(groups.names, entries, latency)


def _weakest(bounds: BoundsMatrix, a: Members, b: Members) -> list[Pair]:
    """One entry of B̂; for presets from the extremes of the groups, else pair by pair."""
    if isinstance(bounds, SensorBounds):
        return _weakest_sensors(bounds, a, b)
    if isinstance(bounds, CounterBounds):
        return _weakest_counter(bounds, a, b)
    return _weakest_pairs([bounds.pairs(i, j) for i in a.tolist() for j in b.tolist()], len(b) == 1)


def _weakest_pairs(sets: list[tuple[Pair, ...]], single: bool) -> list[Pair]:
    timed = [[p for p in pairs if isinstance(p, Bounds)] for pairs in sets]
    found: list[Pair] = [*_joined(timed)]
    if single:
        # As staircases over n instead of t, in which what holds at once holds at n = 0.
        counted = [list(_by_count(pairs)) for pairs in sets]
        found += [TupleBounds(p.delay, p.skew) for p in _joined(counted)]
    return found


def _joined(sets: list[list[Bounds]]) -> list[Bounds]:
    weakest = sets[0]
    for pairs in sets[1:]:
        weakest = join(weakest, pairs)
    return weakest


def _by_count(pairs: Iterable[Pair]) -> Iterator[Bounds]:
    for pair in pairs:
        if isinstance(pair, TupleBounds):
            yield Bounds(pair.count, pair.skew)
        elif pair.delay == 0:
            yield pair


def _weakest_sensors(bounds: SensorBounds, a: Members, b: Members) -> list[Pair]:
    """{(0, max di + dj)}, and with rates the longest time to catch up.

    Between the two a group could promise a little more, where only its slower members need the
    longest time; groups of similar sources have little of that, and two pairs are cheap.
    """
    skew = _greatest_sum(bounds.deviations, a, b)
    found: list[Pair] = [Bounds(0, skew)]
    if bounds.rates is not None:
        found.append(Bounds(-(-skew * RATE_STEP // int(bounds.rates[b].min())), 0))
    return found


def _greatest_sum(values: Ticks, a: Members, b: Members) -> int:
    """The greatest di + dj of two different sources; a source and itself count once."""
    if a is not b:
        return int(values[a].max() + values[b].max())
    return int(np.sort(values[a])[-2:].sum())


def _weakest_counter(bounds: CounterBounds, a: Members, b: Members) -> list[Pair]:
    if a is b:
        delay = widest(bounds.most[a], bounds.least[a])
    else:
        delay = int(bounds.most[b].max() - bounds.least[a].min())
    counted: list[Pair] = [TupleBounds(1, 0)] if bounds.tuples and len(b) == 1 else []
    return [Bounds(max(delay, 0), 0), *counted]


def propose_groups(sources: BoundsMatrix | Mapping[str, int], count: int) -> Groups:
    """At most `count` groups of sources with similar characteristics.

    A group's heartbeat lags a member's by about as much as the member is better than the group's
    worst. So the sources are sorted by characteristic and cut so that the widest group is as narrow
    as `count` groups allow: any other cut makes some source wait longer. The characteristic is a
    sensor's deviation, the longest time over a token, and for any other matrix the worst that the
    bounds say of a source: skew, delay and latency together. Equal sources are never parted.
    """
    if count < 1:
        raise FlowError("propose_groups", "at least one group", str(count), "Ask for some.")
    values = _characteristics(sources)
    order = np.sort(values)
    low, high = 0, int(order[-1] - order[0])
    while low < high:
        width = (low + high) // 2
        low, high = (low, width) if len(_cuts(order, width, count)) <= count else (width + 1, high)
    cuts = _cuts(order, low, count)
    of = np.searchsorted(np.array(cuts), values, side="right") - 1
    return Groups(tuple(f"g{number}" for number in range(len(cuts))), of.astype(np.int32))


def _cuts(order: Ticks, width: int, count: int) -> list[int]:
    """The least of each group when none is wider than this; one more than `count` is enough."""
    cuts: list[int] = []
    at = 0
    while at < len(order) and len(cuts) <= count:
        cuts.append(int(order[at]))
        at = int(np.searchsorted(order, cuts[-1] + width, side="right"))
    return cuts


def _characteristics(sources: BoundsMatrix | Mapping[str, int]) -> Ticks:
    if isinstance(sources, SensorBounds):
        return sources.deviations + sources.latencies
    if isinstance(sources, CounterBounds):
        return sources.most + sources.latencies
    if isinstance(sources, BoundsMatrix):
        worst = np.zeros(len(sources.names), np.int64)
        for layer in sources.layers():
            spread = np.where(layer.known, layer.skew + layer.delay, 0)
            worst = np.maximum(worst, np.maximum(spread.max(axis=0), spread.max(axis=1)))
        return worst + sources.latencies
    return np.fromiter(sources.values(), np.int64, len(sources))
