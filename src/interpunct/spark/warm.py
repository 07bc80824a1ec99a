"""Lanes that a worker keeps decoded between batches, and only as long as they are current.

    batch 7  worker 1: lane 0 ─ nonce a        batch 9  worker 1: lane 0 has nonce b in its state:
    batch 8  worker 2: lane 0 ─ nonce b                 another worker had it, so it is read again

A worker may see a lane again in the next batch, or another worker may have had it in between. The
nonce that every batch writes with the lane's records tells: only an exact match is warm.
"""

from __future__ import annotations

import gc
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

from interpunct.spark.state import SparkState

MOST_WARM = 64  # lanes whose decoded state a worker keeps between batches
FIRST = 3  # tasks of a kind in which a worker loads what they need

L = TypeVar("L")
_begun: Counter[type] = Counter()  # how often this worker has begun with a kind of work


class Warm(Generic[L]):
    """The lanes of one kind that this worker had last."""

    def __init__(self) -> None:
        self._lanes: OrderedDict[Hashable, tuple[L, SparkState]] = OrderedDict()

    def take(
        self, key: Hashable, entries: Any, build: Callable[[SparkState], L]
    ) -> tuple[L, SparkState]:
        """The lane with its state: warm if this worker had it last, else built from state."""
        found = self._lanes.pop(key, None)
        if found is not None and found[1].still_current(entries):
            return found
        state = SparkState(entries)
        return build(state), state

    def keep(self, key: Hashable, lane: L, state: SparkState) -> None:
        """Write the records, and keep the lane for the next batch."""
        state.flush()
        self._lanes[key] = (lane, state)
        while len(self._lanes) > MOST_WARM:
            self._lanes.popitem(last=False)


def freeze_first(work: type) -> None:
    """Keep the collector from going through the libraries that a kind of work has loaded; the first
    tasks load some of them while they run.

    PySpark's workers collect after each task, through all that they have ever loaded: 60 ms.
    """
    if _begun[work] == FIRST:
        return
    _begun[work] += 1
    gc.collect()
    gc.freeze()
