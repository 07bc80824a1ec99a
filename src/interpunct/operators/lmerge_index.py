"""Keys by 128 bits, in sorted arrays: the upper tiers of in2t and in3t as columns.

    first   12 40 40 93      find(40, b)  →  slot 7
    second   x  a  b  y
    slot     3  5  7  0

The paper's index is a red-black tree of nodes; here a page of keys is looked up at once. Payloads
are told apart by two 64-bit hashes. A million events and a thousand million look-ups find two
unequal ones alike with a probability below 10⁻²², which is less than that of a faulty memory. The
hashes are made anew when state is read, since they may differ from one version of Polars to the
next.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]
Slots = NDArray[np.int64]

_SEEDS = (0x1B873593, 0x2545F491)
_ODD = np.uint64(0x9E3779B97F4A7C15)


def fingerprints(frame: pl.DataFrame) -> tuple[Hashes, Hashes]:
    """Two independent hashes of each row."""
    first, second = (frame.hash_rows(seed).to_numpy() for seed in _SEEDS)
    return first, second


def pair_keys(slots: Slots, values: Slots) -> tuple[Hashes, Hashes]:
    """Keys for pairs of integers: no two pairs share both parts, since the factor is odd."""
    second = values.view(np.uint64)
    return slots.view(np.uint64) * _ODD + second, second


class KeyIndex:
    """From keys to slots; adding and removing many at once costs one pass over the arrays."""

    def __init__(self) -> None:
        self._first: Hashes = np.empty(0, np.uint64)
        self._second: Hashes = np.empty(0, np.uint64)
        self._slot: Slots = np.empty(0, np.int64)

    def find(self, first: Hashes, second: Hashes) -> Slots:
        """The slot of each key, -1 where there is none."""
        count = len(self._first)
        if not count:
            return np.full(len(first), -1, np.int64)
        at = np.searchsorted(self._first, first)
        inside = np.minimum(at, count - 1)
        hit = (at < count) & (self._first[inside] == first)
        same = hit & (self._second[inside] == second)
        while (unsure := np.flatnonzero(hit & ~same)).size:  # equal first parts lie side by side
            at[unsure] += 1
            inside = np.minimum(at, count - 1)
            hit[unsure] = ((at < count) & (self._first[inside] == first))[unsure]
            same[unsure] = (hit & (self._second[inside] == second))[unsure]
        return np.where(same, self._slot[inside], -1)

    def add(self, first: Hashes, second: Hashes, slots: Slots) -> None:
        """Keys that are not there yet."""
        order = np.argsort(first)
        first, second, slots = first[order], second[order], slots[order]
        at = np.searchsorted(self._first, first)
        self._first = np.insert(self._first, at, first)
        self._second = np.insert(self._second, at, second)
        self._slot = np.insert(self._slot, at, slots)

    def keep(self, kept: NDArray[np.bool_]) -> None:
        """Only the keys whose slot is kept, which move together so that no slot is empty."""
        stays = kept[self._slot]
        places = np.cumsum(kept) - 1
        self._first, self._second = self._first[stays], self._second[stays]
        self._slot = places[self._slot[stays]]

    def keys(self, slots: int) -> tuple[Hashes, Hashes]:
        """The keys by slot, of so many slots."""
        first, second = np.zeros(slots, np.uint64), np.zeros(slots, np.uint64)
        first[self._slot], second[self._slot] = self._first, self._second
        return first, second

    @property
    def nbytes(self) -> int:
        return self._first.nbytes + self._second.nbytes + self._slot.nbytes


def first_of_each(first: Hashes, second: Hashes) -> tuple[Slots, Slots]:
    """The place where each distinct key stands first, and for every key the number of its own."""
    order = np.lexsort((second, first))
    a, b = first[order], second[order]
    fresh = np.ones(len(a), bool)
    fresh[1:] = (a[1:] != a[:-1]) | (b[1:] != b[:-1])
    starts = order[fresh]  # lexsort is stable: of equal keys the first comes first
    arrival = np.argsort(starts)
    number = np.empty(len(starts), np.int64)
    number[arrival] = np.arange(len(starts))
    own = np.empty(len(a), np.int64)
    own[order] = number[np.cumsum(fresh) - 1]
    return starts[arrival], own
