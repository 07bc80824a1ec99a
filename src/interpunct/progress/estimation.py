"""Skew bounds learned from what has arrived (Heartbeats section 6, Figures 3 and 4).

    estimate δ ──┐ a tuple later than ever: δ rises to it at once, a new window begins
                 │      ┌───────────┐
                 │ W ┌──┘           └── W tuples went by below δ: δ ← α δ + (1 − α) δwin
                 └───┘

Entry (i, j, t) of B′ says how far behind: once a tuple stamped τ has arrived on Si, what arrives on
Sj more than t later is stamped above τ − δij[t]. A tuple that breaks this moves δij[t] up by as
much; a long window of tuples that never come near it moves δij[t] down.

>>> estimator = SkewEstimator(["a"], t_max=0, unit=1)
>>> estimator.arrive("a", np.array([50, 60]), now=0)
>>> estimator.arrive("a", np.array([58, 61]), now=1)
>>> estimator.bounds()
{('a', 'a'): ((0, 3),)}
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import numpy as np
import numpy.typing as npt

from interpunct.model.durations import duration
from interpunct.model.errors import FlowError
from interpunct.model.schema import START_OF_TIME

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

# Adaptive adaptivity (section 6.2). The paper leaves the numbers open.
LOOK = 32  # pages over which we count how often δ was exceeded
TOO_OFTEN = 0.1  # exceeded in more than this share of them: W doubles
FALLS = 8  # windows on end that lowered δ: W halves
STRETCH = 64  # W stays within this factor of the W that was asked for


class SkewEstimator:
    """B′ for every pair of sources and t ∈ {0, unit, …, t_max}: Figure 4, a page at a time.

    `window` is W: a number of tuples, or a duration of the clock (text or timedelta). Without a
    window, or with `alpha` 1, the estimate never falls: the greatest skew ever seen (section 6.1).
    `stretch_window` lets each entry adapt its own W.

    The tuples of a page arrive at one instant, so none of them precedes another: τmax is that of
    earlier pages. It is kept per `unit` of the clock, and all of unit c − t counts as being before
    c − t, which can only make δ greater. δ is a real number; `bounds` rounds it up.
    """

    def __init__(
        self,
        sources: Sequence[str],
        t_max: int,
        unit: int,
        window: int | str | timedelta | None = None,
        alpha: float = 1.0,
        *,
        stretch_window: bool = False,
    ) -> None:
        _check(sources, t_max, unit, window, alpha)
        self.sources, self.unit, self.alpha = tuple(sources), unit, alpha
        self.lags = np.arange(0, t_max + 1, unit, dtype=np.int64)
        self.timed = window is not None and not isinstance(window, int)
        self.window = None if window is None else duration(window, "SkewEstimator(window=…)")
        self.stretch_window = stretch_window and self.window is not None
        self._index = {name: number for number, name in enumerate(self.sources)}
        self._unit_now: int | None = None
        count = len(self.sources)
        self._greatest = np.full((count, len(self.lags)), START_OF_TIME)  # τmax_i[now − t]
        cells = (count, count, len(self.lags))  # of (j, i, t): a page touches one j
        self._delta = np.zeros(cells)
        self._win = np.zeros(cells)
        self._num = np.zeros(cells, np.int64)  # tuples, or the moment the window began
        self._compared = np.zeros(cells, np.bool_)
        self._width = np.full(cells, self.window or 0, np.int64)
        self._looked, self._exceeded, self._falls = (np.zeros(cells, np.int64) for _ in range(3))

    def arrive(self, source: str, ticks: Ints, now: int) -> None:
        """A page of these timestamps arrives on `source` at this moment of the clock."""
        if not len(ticks):
            return
        j = self._number(source)
        self._turn_to(now)
        self._estimate(j, np.asarray(ticks, np.int64), now)
        self._greatest[j, 0] = max(self._greatest[j, 0], int(ticks.max()))

    def _turn_to(self, now: int) -> None:
        """Move τmax on to the unit of the clock that holds `now`."""
        unit = now // self.unit
        if self._unit_now is None:
            self._unit_now = unit
            if self.timed:
                self._num[:] = now
        moved_on(self._greatest, unit - self._unit_now)
        self._unit_now = max(unit, self._unit_now)

    def _estimate(self, j: int, ticks: Ints, now: int) -> None:
        """Lines 3 to 14 for all tuples of a page, all i and all t."""
        known = self._greatest.ravel() > START_OF_TIME
        page = _Page(ticks, np.where(known, self._greatest.ravel(), ticks.min() - 1))
        self._compared[j] |= known.reshape(self._compared[j].shape)
        cells = _Cells(self, j, now)
        start = np.zeros(len(known), np.int64)
        cell = np.arange(len(known))
        # Two rounds take a cell past a window's length of tuples: the greatest lateness within it
        # is the last that can raise δ, and after that nothing does until the window is full.
        while len(cell):
            begin = start[cell]
            room = cells.room(cell, len(ticks))
            end = np.minimum(begin + room, len(ticks))
            at, late = page.latest(cell, begin, end)
            over = late > cells.delta[cell]
            cells.rise(cell[over], late[over])
            rest = ~over
            cells.below(cell[rest], late[rest], (end - begin)[rest], room[rest])
            start[cell] = np.where(over, at + 1, end)
            cell = cell[start[cell] < len(ticks)]
        if self.stretch_window:
            cells.stretch()

    def estimate(self, i: str, j: str) -> Floats:
        """δij[t] for every t, as it stands."""
        delta: Floats = self._delta[self._number(j), self._number(i)]
        return delta.copy()

    def _number(self, source: str) -> int:
        if source not in self._index:
            raise FlowError(
                "SkewEstimator", f"one of the sources {', '.join(self.sources)}", repr(source),
                "Name every source when the estimator is made.",
            )  # fmt: skip
        return self._index[source]

    def bounds(self) -> dict[tuple[str, str], tuple[tuple[int, int], ...]]:
        """B′ as sets of (t, δ), whole ticks; a longer t only where it tightens δ.

        A pair that was never compared is left out: its estimate of 0 would be a promise made from
        nothing.
        """
        found = {}
        for i, first in enumerate(self.sources):
            for j, second in enumerate(self.sources):
                delta = np.ceil(self._delta[j, i]).astype(np.int64)
                delta = np.where(self._compared[j, i], delta, np.iinfo(np.int64).max)
                before = np.concatenate(([np.iinfo(np.int64).max], delta))[:-1]
                tighter = delta < np.minimum.accumulate(before)
                pairs = zip(self.lags[tighter].tolist(), delta[tighter].tolist(), strict=True)
                if tighter.any():
                    found[first, second] = tuple(pairs)
        return found

    def held(self) -> int:
        """How many numbers are kept: O(n² t_max / unit), whatever arrives."""
        return int(sum(array.size for array in self._arrays().values()))

    def _arrays(self) -> dict[str, npt.NDArray[Any]]:
        names = ("greatest", "delta", "win", "num", "compared", "width", "looked", "exceeded",
                 "falls")  # fmt: skip
        return {name: getattr(self, f"_{name}") for name in names}

    def to_record(self) -> dict[str, Any]:
        """All of it, for state."""
        arrays = {name: array.tolist() for name, array in self._arrays().items()}
        return {"unit_now": self._unit_now, **arrays}

    def restore(self, record: dict[str, Any]) -> None:
        self._unit_now = record["unit_now"]
        for name, array in self._arrays().items():
            array[:] = record[name]


def moved_on(greatest: Ints, units: int) -> None:
    """τmax of every source, by how many units of the clock ago, after so many more of them."""
    passed = min(units, greatest.shape[1])
    if passed <= 0:
        return
    latest = greatest[:, :1].copy()
    greatest[:, passed:] = greatest[:, : greatest.shape[1] - passed].copy()
    greatest[:, :passed] = latest


class _Cells:
    """The entries (i, j, t) of one j, as flat views: one step of Figure 4 on some of them."""

    def __init__(self, owner: SkewEstimator, j: int, now: int) -> None:
        self.owner, self.now = owner, now
        self.delta, self.win, self.num, self.width, self.falls, self.looked, self.exceeded = (
            array[j].reshape(-1)
            for array in (
                owner._delta, owner._win, owner._num, owner._width, owner._falls,
                owner._looked, owner._exceeded,
            )
        )  # fmt: skip
        self.rose = np.zeros(len(self.delta), np.bool_)

    def room(self, cell: Ints, rows: int) -> Ints:
        """How many tuples until the window is full: num > W (line 12), on tuples or on time."""
        if self.owner.window is None:
            return np.full(len(cell), rows + 1)
        if self.owner.timed:  # the first tuple past the window's time ends it
            ends: Flags = self.now - self.num[cell] > self.width[cell]
            return np.where(ends, 1, rows + 1)
        room: Ints = np.maximum(self.width[cell] + 1 - self.num[cell], 1)
        return room

    def rise(self, cell: Ints, late: Ints) -> None:
        """Line 8: exceeded."""
        self.delta[cell] = late
        self.falls[cell] = 0
        self.rose[cell] = True
        self._begin(cell)

    def below(self, cell: Ints, late: Ints, rows: Ints, room: Ints) -> None:
        """Lines 10 to 14: not exceeded, and perhaps the end of a window."""
        self.win[cell] = np.maximum(self.win[cell], late)
        if not self.owner.timed:
            self.num[cell] += rows
        full = cell[rows == room]
        alpha = self.owner.alpha
        lowered = alpha * self.delta[full] + (1 - alpha) * self.win[full]
        self.falls[full] = np.where(lowered < self.delta[full], self.falls[full] + 1, 0)
        self.delta[full] = lowered
        self._begin(full)

    def _begin(self, cell: Ints) -> None:
        self.win[cell] = 0
        self.num[cell] = self.now if self.owner.timed else 0

    def stretch(self) -> None:
        """Adaptive adaptivity, once a page: often exceeded doubles W, long falling halves it."""
        asked = self.owner.window or 1
        self.looked += 1
        self.exceeded += self.rose
        longer = (self.looked >= LOOK) & (self.exceeded > TOO_OFTEN * LOOK)
        shorter = (self.falls >= FALLS) & ~longer
        self.width[longer] = np.minimum(2 * self.width[longer], STRETCH * asked)
        self.width[shorter] = np.maximum(self.width[shorter] // 2, max(asked // STRETCH, 1))
        self.falls[shorter] = 0
        judged = self.looked >= LOOK
        self.looked[judged] = self.exceeded[judged] = 0


class _Page:
    """A page's timestamps, asked for the latest tuple of any run of them.

    All entries see the same tuples from different τmax, so the latest is the one with the least
    timestamp: the first of them, for a second one as late no longer exceeds.
    """

    def __init__(self, ticks: Ints, greatest: Ints) -> None:
        self._ticks, self._greatest = ticks, greatest
        self._levels: list[Ints] = [np.arange(len(ticks), dtype=np.int64)]
        self._whole = int(np.argmin(ticks))

    def latest(self, cell: Ints, begin: Ints, end: Ints) -> tuple[Ints, Ints]:
        """Where the latest of tuples begin … end − 1 is, and its δest (line 6)."""
        at = self._least(begin, end)
        return at, np.maximum(self._greatest[cell] - self._ticks[at] + 1, 0)

    def _least(self, begin: Ints, end: Ints) -> Ints:
        if (begin == 0).all() and (end == len(self._ticks)).all():
            return np.full(len(begin), self._whole)
        # The least of a run is the lesser of those of two overlapping runs of 2^level tuples.
        level = np.frexp((end - begin).astype(np.float64))[1].astype(np.int64) - 1
        self._build(int(level.max()))
        at = np.empty(len(begin), np.int64)
        for exponent in np.unique(level).tolist():
            some = level == exponent
            left = self._levels[exponent][begin[some]]
            right = self._levels[exponent][end[some] - (1 << exponent)]
            at[some] = self._lesser(left, right)
        return at

    def _build(self, level: int) -> None:
        while len(self._levels) <= level:
            half, below = 1 << (len(self._levels) - 1), self._levels[-1]
            self._levels.append(self._lesser(below[:-half], below[half:]))

    def _lesser(self, left: Ints, right: Ints) -> Ints:
        return np.where(self._ticks[right] < self._ticks[left], right, left)


def _check(
    sources: Sequence[str],
    t_max: int,
    unit: int,
    window: int | str | timedelta | None,
    alpha: float,
) -> None:
    where = "SkewEstimator"
    if not sources or len(set(sources)) != len(sources):
        raise FlowError(where, "distinct names of sources", repr(list(sources)), "Name each once.")
    if unit < 1 or t_max < 0:
        raise FlowError(
            where, "a unit of at least 1 and t_max of at least 0", f"unit={unit}, t_max={t_max}",
            "Both are microseconds of the clock.",
        )  # fmt: skip
    if not 0 <= alpha <= 1:
        raise FlowError(
            where, "alpha from 0 (fall at once) to 1 (never fall)", repr(alpha),
            "It is the weight of the old estimate.",
        )  # fmt: skip
    if isinstance(window, int) and window < 1:
        raise FlowError(
            where, "a window of at least one tuple", repr(window), "Use None for no window."
        )
