"""Skew bounds of two common systems, from a value or two per source (Heartbeats section 4).

Sources that number their tuples from one shared counter, and take between tmin and tmax over each:

>>> print(global_counter({"a": (1, 4), "b": (2, 3)}))
  | a                         | b                         | latency
a | (t=0s, δ=0s)              | (t=2us, δ=0s) (n=1, δ=0s) | 0s
b | (t=2us, δ=0s) (n=1, δ=0s) | (t=0s, δ=0s)              | 0s

Sensors whose clocks are off by at most a deviation:

>>> sensors = distributed_sensors({"a": "2ms", "b": "3ms"}, latency="50ms")
>>> print(*sensors.entry("a", "b"))
(t=0s, δ=5ms)

Both matrices are computed from O(n) numbers (section 5.1), so a hundred thousand sources are no
burden until their bounds are used one by one; see `grouping` for how not to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from fractions import Fraction

import numpy as np

from interpunct.model.durations import duration
from interpunct.model.errors import FlowError
from interpunct.progress.skew import (
    BoundsMatrix,
    Counted,
    Latency,
    Layer,
    Lead,
    Pair,
    Ticks,
    TupleBounds,
    strongest,
)
from interpunct.progress.timestamps import Bounds

Duration = str | timedelta | int
RATE_STEP = 10**6  # rates are kept as whole millionths, rounded down: still a least rate
_LONGEST = 2**62 // RATE_STEP  # the greatest sum of deviations that a rate can divide in 64 bits


class CounterBounds(BoundsMatrix):
    """Section 4.1: Bij = {(max(tmax_j − tmin_i, 0), 0), (1, 0) in tuples}, Bii = {(0, 0)}.

    A source asks for its next token only when the last one is done, so one more tuple of φj proves
    that its present token is younger than what φi had then.
    """

    def __init__(
        self, least: Mapping[str, int], most: Mapping[str, int], latency: Latency, tuples: bool
    ) -> None:
        super().__init__(least, latency, "global_counter")
        self.tuples = tuples
        self.least: Ticks = np.fromiter(least.values(), np.int64, len(self.names))
        self.most: Ticks = np.fromiter(most.values(), np.int64, len(self.names))

    def _delay(self, i: int, j: int) -> int:
        return 0 if i == j else max(int(self.most[j] - self.least[i]), 0)

    def pairs(self, i: int, j: int) -> tuple[Pair, ...]:
        counted = [TupleBounds(1, 0)] if self.tuples else []
        return strongest([Bounds(self._delay(i, j), 0), *counted], self.where)

    def layers(self) -> list[Layer]:
        delay = np.maximum(self.most[None, :] - self.least[:, None], 0)
        np.fill_diagonal(delay, 0)
        return [Layer(delay, np.zeros_like(delay), np.ones(delay.shape, np.bool_))]

    def tuple_rules(self) -> Iterator[Counted]:
        count = len(self.names)
        for i in range(count if self.tuples else 0):
            for j in range(count):
                if self._delay(i, j):
                    yield Counted(i, j, TupleBounds(1, 0))

    @property
    def t_max(self) -> int:
        return max(widest(self.most, self.least), 0)

    def lead(self) -> Lead | None:
        return None  # "if all streams pause we will see the latest token"


class SensorBounds(BoundsMatrix):
    """Section 4.2: Bij = {(0, di + dj)}, Bii = {(0, di)}, and with rates (⌈…/rj⌉, 0) in each."""

    def __init__(
        self,
        deviations: Mapping[str, int],
        rates: Mapping[str, int] | None,
        latency: Latency,
    ) -> None:
        super().__init__(deviations, latency, "distributed_sensors")
        self.deviations: Ticks = np.fromiter(deviations.values(), np.int64, len(self.names))
        # In ticks per RATE_STEP microseconds.
        self.rates: Ticks | None = None
        if rates is not None:
            self.rates = np.array([rates[name] for name in self.names], np.int64)

    def _skews(self) -> Ticks:
        skews: Ticks = self.deviations[:, None] + self.deviations[None, :]
        np.fill_diagonal(skews, self.deviations)
        return skews

    def pairs(self, i: int, j: int) -> tuple[Pair, ...]:
        skew = int(self.deviations[i] + (self.deviations[j] if i != j else 0))
        found = [Bounds(0, skew)]
        if self.rates is not None:
            found.append(Bounds(-(-skew * RATE_STEP // int(self.rates[j])), 0))
        return strongest(found, self.where)

    def layers(self) -> list[Layer]:
        skews = self._skews()
        nothing, everywhere = np.zeros_like(skews), np.ones(skews.shape, np.bool_)
        layers = [Layer(nothing, skews, everywhere)]
        if self.rates is not None:
            layers.append(Layer(-(-skews * RATE_STEP // self.rates[None, :]), nothing, skews > 0))
        return layers

    def tuple_rules(self) -> Iterator[Counted]:
        return iter(())

    @property
    def t_max(self) -> int:
        if self.rates is None:
            return 0
        # The sensor that is off most is the worst for all but itself.
        worst, *rest = np.argsort(self.deviations)[::-1][:2]
        other = np.full(len(self.names), self.deviations[worst])
        other[worst] = self.deviations[rest[0]] if rest else 0
        return int((-(-(self.deviations + other) * RATE_STEP // self.rates)).max())

    def lead(self) -> Lead | None:
        if self.rates is not None or not self.deviations.any():
            return None
        first = self.names[int(np.argmax(self.deviations > 0))]
        return Lead(first, first, int(self.deviations[self.index[first]]))


def widest(most: Ticks, least: Ticks) -> int:
    """The greatest most[j] − least[i] of two different sources; 0 when there is only one."""
    if len(most) == 1:
        return 0
    tops, bottoms = np.argsort(most)[::-1][:2], np.argsort(least)[:2]
    return max(int(most[j] - least[i]) for j in tops for i in bottoms if i != j)


def global_counter(
    processing: Mapping[str, tuple[Duration, Duration]], latency: Latency = 0, tuples: bool = True
) -> CounterBounds:
    """Sources that stamp with tokens of one counter and take (tmin, tmax) over each token.

    Without `tuples` the (1, 0) bounds are left out: they are kept pair by pair, too many for more
    than some hundred sources.
    """
    least, most = {}, {}
    for name, (shortest, longest) in processing.items():
        where = f"global_counter source {name!r}"
        least[name], most[name] = duration(shortest, where), duration(longest, where)
        if least[name] > most[name]:
            raise FlowError(
                where, "(tmin, tmax) with tmin ≤ tmax", f"({shortest!r}, {longest!r})",
                "Give the shortest time that a token takes first.",
            )  # fmt: skip
    return CounterBounds(least, most, latency, tuples)


def distributed_sensors(
    deviations: Mapping[str, Duration],
    rates: Mapping[str, float | Fraction] | None = None,
    latency: Latency = 0,
) -> SensorBounds:
    """Sensors whose clocks deviate from the application's clock by at most so much.

    `rates`: how fast each clock advances at least, in ticks per microsecond of real time (1 for a
    clock of microseconds that keeps pace). With them no timeout is needed.
    """
    ticks = {
        name: duration(value, f"distributed_sensors deviation of {name!r}")
        for name, value in deviations.items()
    }
    return SensorBounds(ticks, None if rates is None else _rates(ticks, rates), latency)


def _rates(deviations: dict[str, int], rates: Mapping[str, float | Fraction]) -> dict[str, int]:
    where = "distributed_sensors rates"
    if rates.keys() != deviations.keys():
        differing = sorted(rates.keys() ^ deviations.keys())
        raise FlowError(
            where, "a rate for every source and for no other", f"a difference in {differing[:10]}",
            "Give all or none; one clock without a rate already needs a timeout.",
        )  # fmt: skip
    longest = 2 * max(deviations.values())
    if longest > _LONGEST:
        raise FlowError(
            where, f"deviations up to {_LONGEST // 2} ticks", f"{longest // 2}",
            "Use a coarser tick, or give no rates and a timeout instead.",
        )  # fmt: skip
    steps = {}
    for name, rate in rates.items():
        steps[name] = int(Fraction(str(rate)) * RATE_STEP)
        if steps[name] < 1:
            raise FlowError(
                f"{where} of {name!r}", f"at least {1 / RATE_STEP:g} ticks per microsecond",
                repr(rate), "A clock that may stand still has no rate: give a timeout instead.",
            )  # fmt: skip
    return steps
