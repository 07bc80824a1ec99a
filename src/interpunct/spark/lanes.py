"""Lanes: which lane a tuple belongs to, and which lane ids Spark spreads over its partitions.

Two hashes, both fixed for ever because state depends on them: `lane_of` sends tuples to lanes
(ours; it depends on no library's idea of a hash), `spark_partition` tells to which partition Spark
sends a lane's id (Murmur3, as Spark's `hash` has been since 2.0).

>>> lane_ids(4)
(12, 6, 2, 0)
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import count

import numpy as np
import numpy.typing as npt
import polars as pl

from interpunct.model.errors import FlowError

_MASK = 0xFFFFFFFF
_Words = npt.NDArray[np.uint64]

LanesOf = Callable[[pl.DataFrame], pl.Series]  # the index of the lane of each tuple


def _rotate(x: int, by: int) -> int:
    return ((x << by) | (x >> (32 - by))) & _MASK


def spark_hash(value: int, seed: int = 42) -> int:
    """Spark's `hash(int)`: Murmur3 x86_32 of one 4-byte word, as a signed 32-bit integer."""
    k = _rotate((value & _MASK) * 0xCC9E2D51 & _MASK, 15) * 0x1B873593 & _MASK
    h = (_rotate(seed ^ k, 13) * 5 + 0xE6546B64) & _MASK
    h ^= 4  # length in bytes
    h = (h ^ (h >> 16)) * 0x85EBCA6B & _MASK
    h = (h ^ (h >> 13)) * 0xC2B2AE35 & _MASK
    h ^= h >> 16
    return h - (1 << 32) if h >> 31 else h


def spark_partition(lane_id: int, partitions: int) -> int:
    """The partition to which Spark's hash partitioning sends the int `lane_id`."""
    return spark_hash(lane_id) % partitions


@lru_cache
def lane_ids(lanes: int) -> tuple[int, ...]:
    """Ids for so many lanes: the one at index i falls on partition i of as many partitions."""
    found: dict[int, int] = {}
    for candidate in count():
        found.setdefault(spark_partition(candidate, lanes), candidate)
        if len(found) == lanes:
            break
    return tuple(found[i] for i in range(lanes))


def lane_of(frame: pl.DataFrame, keys: Sequence[str], lanes: int) -> pl.Series:
    """The lane index of each tuple; without keys all of them share lane 0."""
    if not keys or lanes == 1:
        return pl.Series("lane", np.zeros(frame.height, np.uint32))
    mixed = np.zeros(frame.height, np.uint64)
    for key in keys:
        mixed ^= _words(frame.get_column(key))
        _mix(mixed)
    mixed >>= np.uint64(32)
    mixed *= np.uint64(lanes)
    mixed >>= np.uint64(32)
    return pl.Series("lane", mixed.astype(np.uint32))


def _mix(x: _Words) -> None:
    """The splitmix64 finaliser, in place."""
    x ^= x >> np.uint64(30)
    x *= np.uint64(0xBF58476D1CE4E5B9)
    x ^= x >> np.uint64(27)
    x *= np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(31)


def _words(column: pl.Series) -> _Words:
    """One word per value: equal values give equal words, null is a value of its own."""
    dtype = column.dtype
    if dtype.is_float():
        values = column.cast(pl.Float64).fill_null(0.0).to_numpy()
        values = values + 0.0  # one zero: −0.0 + 0.0 is 0.0
        unequal = np.isnan(values)
        if unequal.any():
            values[unequal] = np.nan  # one NaN
        words = values.view(np.uint64)
    elif isinstance(dtype, pl.String | pl.Binary | pl.Decimal):
        words = _text_words(column if isinstance(dtype, pl.Binary) else column.cast(pl.String))
    else:
        words = column.cast(pl.Int64).fill_null(0).to_numpy().view(np.uint64)
    if column.null_count():
        words = np.where(column.is_null().to_numpy(), np.uint64(0x9E3779B97F4A7C15), words)
    return words


def _text_words(column: pl.Series) -> _Words:
    """Texts by their CRC-32 and length, computed once per distinct one."""
    distinct = column.unique().drop_nulls()
    texts = (t if isinstance(t, bytes) else t.encode() for t in distinct)
    words = [zlib.crc32(t) << 32 | len(t) & _MASK for t in texts]
    found = column.replace_strict(
        distinct, pl.Series(words, dtype=pl.UInt64), default=0, return_dtype=pl.UInt64
    )
    return found.to_numpy()


def check_lanes(lanes: object) -> None:
    """A number of lanes is a number, and not none."""
    if isinstance(lanes, bool) or not isinstance(lanes, int) or lanes < 1:
        raise FlowError("lanes=…", "at least one", repr(lanes), "Pass lanes=2 or more.")
