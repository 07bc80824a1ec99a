"""A page's times, sketched so that whoever knows what came before can tell how late they were.

    a task:   the greatest is 60; the others are 2 and 45 behind it
    a lane:   earlier pages had come to 58, so these are 0, 1 and 44 late

>>> spread = Spread.of(np.array([60, 58, 15]))
>>> PageSketch(spread.lateness(reached=58)).greatest
44

How late a tuple is depends on what other tasks have read before, which no task knows. How far it is
behind the greatest of its own task does not; and one is the other, moved and cut off at zero. So a
sketch of the latter is all that has to travel.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from interpunct.progress.confidence import Ints, PageSketch, sketched


@dataclass(frozen=True, order=True)
class Spread:
    """The greatest timestamp of some tuples, and how far each is behind it, as a sketch."""

    greatest: int
    behind: bytes

    @classmethod
    def of(cls, ticks: Ints) -> Spread:
        """Of one tuple or more."""
        greatest = int(ticks.max())
        return cls(greatest, sketched(greatest - ticks))

    @classmethod
    def merged(cls, parts: Iterable[Spread]) -> Spread:
        """Of the tuples of all parts, of which there is at least one."""
        parts = list(parts)
        greatest = max(part.greatest for part in parts)
        moved = [_moved(part.behind, greatest - part.greatest) for part in parts]
        return cls(greatest, PageSketch.merged(moved).to_bytes())

    @cached_property
    def _read(self) -> PageSketch:
        return PageSketch(self.behind)

    @property
    def rows(self) -> int:
        return self._read.rows

    @property
    def least(self) -> int:
        return self.greatest - self._read.greatest

    def lateness(self, reached: int | None) -> bytes:
        """A sketch of how late the tuples are, if earlier ones had come to `reached`."""
        return _moved(self.behind, -np.inf if reached is None else reached + 1 - self.greatest)


# The stored form of a t-digest, which is the same in all of DataSketches' languages: eight bytes of
# preamble with flags, then nothing, one value, or two counts, the ends, and (mean, weight) pairs.
_FLAGS, _EMPTY, _SINGLE = 5, 1, 2
_VALUE, _ENDS = 8, 16


def _moved(sketch: bytes, by: float) -> bytes:
    """The sketch of max(value + by, 0) for every value."""
    flags = sketch[_FLAGS]
    if flags & _EMPTY:
        return sketch
    moved = bytearray(sketch)
    if flags & _SINGLE:
        places = [np.frombuffer(moved, "<f8", offset=_VALUE)]
    else:
        numbers = np.frombuffer(moved, "<f8", offset=_ENDS)
        places = [numbers[:2], numbers[2::2]]  # between the means stand their weights
    for values in places:
        np.maximum(values + by, 0.0, out=values)
    return bytes(moved)
