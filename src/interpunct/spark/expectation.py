"""Which outputs the next batch will have, by what the last ones had.

To keep a batch's rows for a second look costs a third of a small batch's time. It is needed only
where more than one output has rows; and which have some is known when the batch has been computed.
So a batch is expected to have what the last ones had, and computed again, kept this time, where
it turns out otherwise.

>>> last = Expectation(memory=2)
>>> last.saw({"sink:map"}); last.alone() is None  # too little is known: keep the rows
True
>>> last.saw({"sink:map"}); last.alone()
'sink:map'
>>> last.saw({"sink:map", "late:cars"}); last.alone() is None
True
>>> last.saw(set()); last.saw(set()); last.alone()
''
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection

MEMORY = 8  # batches
NOTHING = ""


class Expectation:
    """What the last batches had."""

    def __init__(self, memory: int = MEMORY) -> None:
        self._last: deque[set[str]] = deque(maxlen=memory)

    def saw(self, outputs: set[str]) -> None:
        self._last.append(outputs)

    def alone(self, careless: Collection[str] = ()) -> str | None:
        """The one output that each of the last batches had, and none of them another; NOTHING if
        none had any; None where batches differ, have several, or have been too few. An output that
        is `careless` may as well be written when it has no rows."""
        seen: set[str] = set().union(*self._last)
        for name in careless:
            if seen <= {name}:
                return name
        agree = all(outputs == seen for outputs in self._last)
        if not agree or len(seen) > 1 or len(self._last) < (self._last.maxlen or 0):
            return None
        return next(iter(seen), NOTHING)
