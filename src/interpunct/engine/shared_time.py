"""What sources tell of each other's time (Heartbeats Figure 2).

    north: 12:00:10 ─┐  δ = 5 s   →  south has come to 12:00:05, though it is silent
    south:           ┘

A flow with a matrix of skew bounds keeps a heartbeat for every source in it, moved by the tuples of
all of them. All pages of one instant are told before anything is concluded from them: a bound
speaks of what comes after that instant.
"""

from __future__ import annotations

from interpunct.operators.state import Record, State
from interpunct.progress.heartbeats import HeartbeatGenerator
from interpunct.progress.skew import Skew


class SharedTime:
    """The generator of one flow, kept in its state."""

    def __init__(self, skew: Skew, state: State) -> None:
        self._generator = HeartbeatGenerator(skew.bounds, timeout=skew.timeout)
        self._record = Record(state, "skew", {"generator": self._generator.to_record()})
        self._generator.restore(self._record["generator"])
        self._names = frozenset(skew.bounds.names)

    def arrived(self, source: str, rows: int, least: int, greatest: int, now: int) -> None:
        """Tuples of a source, if the matrix has it."""
        if source in self._names:
            self._generator.arrive(source, greatest, least, rows, now)

    def heartbeats(self, now: int) -> dict[str, int]:
        """The heartbeats that have risen by now."""
        return self._generator.advance(now)

    def next_moment(self) -> int | None:
        return self._generator.next_moment()

    def held(self) -> int:
        return self._generator.held()

    def save(self) -> None:
        self._record["generator"] = self._generator.to_record()
        self._record.save()
