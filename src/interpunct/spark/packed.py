"""What every task of a query is sent, unpacked once in each worker.

Spark sends a task all that it needs, and a worker unpacks it anew each time: for a small batch as
much work as the batch. What does not change while a query runs is remembered by its bytes.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from pyspark import cloudpickle

MOST = 64  # things that a worker remembers


class UnpackedOnce:
    """For frozen dataclasses: equal bytes give the same object."""

    def __reduce__(self) -> tuple[Any, tuple[bytes]]:
        packed: bytes = cloudpickle.dumps((type(self), self.__dict__))  # type: ignore[no-untyped-call]
        return _unpacked, (packed,)


@lru_cache(maxsize=MOST)
def _unpacked(data: bytes) -> Any:
    kind, fields = cloudpickle.loads(data)
    made = object.__new__(kind)
    made.__dict__.update(fields)
    return made
