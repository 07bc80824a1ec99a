"""How late tuples are, as a quantile sketch: "wait as long as 99.9 % of tuples need".

>>> sketch = LatenessSketch(window=1000)
>>> sketch.update(np.arange(1000))
>>> round(sketch.quantile(0.99))
990

The sketch is Apache DataSketches' t-digest. Of that library's quantile sketches it alone draws no
random numbers (KLL, REQ and the classic one toss coins as they compact), so workers that merge the
same parts in the same order get the same bytes and hence the same heartbeat; and it is finest at
the ends of the distribution, where 99.9 % is. It keeps the greatest value exactly.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct

import numpy as np
import numpy.typing as npt
from datasketches import tdigest_double

from interpunct.model.errors import FlowError

FINENESS = 200  # about as many centroids, 16 bytes each: some 4 kB a sketch at most

Ints = npt.NDArray[np.int64]


def lateness(ticks: Ints, reached: int | None) -> Ints:
    """How far each tuple is behind the greatest timestamp of earlier pages: δest of Figure 4."""
    if reached is None:
        return np.zeros(len(ticks), np.int64)
    return np.maximum(reached - ticks + 1, 0)


def sketched(late: Ints) -> bytes:
    """The sketch of a page's lateness, to send to those who merge."""
    digest = tdigest_double(FINENESS)
    digest.update(late.astype(np.float64))
    return bytes(digest.serialize())


class LatenessSketch:
    """A sketch that forgets: the generation being filled and the one before it.

    A generation of `window` tuples (or, `timed`, of as many microseconds of the clock) is closed
    and the last but one dropped: the rolling window of Heartbeats section 6.2. So what it answers
    is about the last one to two windows, and its size has a bound. It also counts, per generation,
    the tuples that came after their heartbeat.
    """

    def __init__(self, window: int, *, timed: bool = False) -> None:
        if window < 1:
            raise FlowError(
                "LatenessSketch", "a window above zero", repr(window),
                "Choose some 20 times as many tuples as contain one late one.",
            )  # fmt: skip
        self.window, self.timed = window, timed
        self._current, self._previous = _Generation(), _Generation()
        self._both: tdigest_double | None = None  # merged, until something changes

    @property
    def rows(self) -> int:
        """How many tuples it speaks of."""
        return self._current.rows + self._previous.rows

    @property
    def missed(self) -> int:
        """How many of them came after their heartbeat."""
        return self._current.missed + self._previous.missed

    def update(self, late: Ints, missed: int = 0, now: int = 0) -> None:
        """Add the lateness of a page's tuples."""
        if len(late):
            self.merge(sketched(late), missed, now)

    def merge(self, part: bytes, missed: int = 0, now: int = 0) -> None:
        """Add a page that was sketched, perhaps elsewhere."""
        if self._full(now):
            self._previous, self._current = self._current, _Generation()
        if not self._current.rows:
            self._current.began = now
        self._current.digest.merge(tdigest_double.deserialize(part))
        self._current.missed += missed
        self._both = None

    def _full(self, now: int) -> bool:
        current = self._current
        passed = now - current.began if self.timed else current.rows
        return current.rows > 0 and passed >= self.window

    def quantile(self, share: float) -> float:
        """The lateness that this share of tuples does not exceed; 0 before the first tuple."""
        if not self.rows:
            return 0.0
        if self._both is None:
            self._both = tdigest_double(FINENESS)
            self._both.merge(self._previous.digest)
            self._both.merge(self._current.digest)
        return float(self._both.get_quantile(min(max(share, 0.0), 1.0)))

    def held(self) -> int:
        """Bytes of its stored form."""
        return len(self.to_bytes())

    def to_bytes(self) -> bytes:
        """Both generations, the older first, behind its length."""
        older, newer = self._previous.to_bytes(), self._current.to_bytes()
        return _LENGTH.pack(len(older)) + older + newer

    def restore(self, stored: bytes) -> None:
        cut = _LENGTH.size + _LENGTH.unpack_from(stored)[0]
        self._previous = _Generation.from_bytes(stored[_LENGTH.size : cut])
        self._current = _Generation.from_bytes(stored[cut:])
        self._both = None

    def __reduce__(self) -> tuple[object, ...]:
        return _unpickled, (self.window, self.timed, self.to_bytes())


def _unpickled(window: int, timed: bool, stored: bytes) -> LatenessSketch:
    sketch = LatenessSketch(window, timed=timed)
    sketch.restore(stored)
    return sketch


_LENGTH = Struct(">I")
_COUNTS = Struct(">qq")


class _Generation:
    """One window's worth: the sketch, the tuples that were missed, when it began."""

    def __init__(self) -> None:
        self.digest = tdigest_double(FINENESS)
        self.missed = self.began = 0

    @property
    def rows(self) -> int:
        return int(self.digest.get_total_weight())

    def to_bytes(self) -> bytes:
        return _COUNTS.pack(self.missed, self.began) + bytes(self.digest.serialize())

    @classmethod
    def from_bytes(cls, stored: bytes) -> _Generation:
        found = cls()
        found.missed, found.began = _COUNTS.unpack_from(stored)
        found.digest = tdigest_double.deserialize(stored[_COUNTS.size :])
        return found


class PageSketch:
    """A page's or a batch's sketch, read: how many tuples, the latest, how many beyond a limit."""

    def __init__(self, stored: bytes) -> None:
        self._digest = tdigest_double.deserialize(stored)

    @classmethod
    def merged(cls, parts: Iterable[bytes]) -> PageSketch:
        """Parts that several tasks made of one batch, in an order all readers agree on."""
        first, *others = list(parts) or [sketched(np.empty(0, np.int64))]
        page = cls(first)
        for part in others:
            page._digest.merge(tdigest_double.deserialize(part))
        return page

    @property
    def rows(self) -> int:
        return int(self._digest.get_total_weight())

    @property
    def greatest(self) -> int:
        """The greatest lateness, exactly."""
        return 0 if self._digest.is_empty() else int(self._digest.get_max_value())

    def beyond(self, limit: int) -> int:
        """How many tuples were later than this; exact as long as the sketch is."""
        rows = int(self._digest.get_total_weight())
        if not rows or limit >= self.greatest:
            return 0
        within = float(self._digest.get_rank(limit + 0.5))
        return round(rows * (1 - within))

    def to_bytes(self) -> bytes:
        return bytes(self._digest.serialize())
