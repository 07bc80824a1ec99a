"""The clock. The wall clock is read here and nowhere else.

Both clocks count microseconds, as timestamps do. The scripted one moves only when told to, so a
test or a simulation of an hour runs in moments and always the same way.

>>> clock = ScriptedClock(at=0)
>>> clock.wait_until(2_000_000)
>>> clock.now()
2000000
"""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Microseconds since the epoch, and a way to wait for a later moment."""

    def now(self) -> int: ...

    def wait_until(self, moment: int) -> None:
        """Return when the clock has reached the moment."""


class RealClock:
    """Wall-clock time that never steps back: one reading of the epoch, then the monotonic clock."""

    def __init__(self) -> None:
        self._offset = time.time_ns() - time.perf_counter_ns()

    def now(self) -> int:
        return (time.perf_counter_ns() + self._offset) // 1000

    def wait_until(self, moment: int) -> None:
        ahead = moment - self.now()
        if ahead > 0:
            time.sleep(ahead / 1e6)

    def __reduce__(self) -> tuple[type[RealClock], tuple[()]]:
        return RealClock, ()  # elsewhere, the clock there


class ScriptedClock:
    """A clock that stands still until someone waits for a later moment or moves it."""

    def __init__(self, at: int = 0) -> None:
        self._now = at

    def now(self) -> int:
        return self._now

    def wait_until(self, moment: int) -> None:
        self._now = max(self._now, moment)

    def advance(self, by: int) -> None:
        """Let `by` microseconds pass, as simulated work does."""
        self._now += by
