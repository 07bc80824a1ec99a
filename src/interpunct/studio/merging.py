"""A logical merge as it is watched: how far its inputs have come, who leads, what has changed.

    12:00:31 a leads
    12:00:19 b leads              a had stopped: nobody told the merge, b had just come further
    12:00:02 a leads

All of it is from what the merge's lanes leave beside its checkpoint; nothing is asked of it.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from datetime import UTC, datetime

from interpunct.engine.merge_vitals import InputVitals, MergeVitals
from interpunct.model.schema import END_OF_TIME, LAST_YEAR, START_OF_TIME
from interpunct.operators.lmerge_base import JOINED

SECOND = 1_000_000
KEPT = 400  # moments
MOST_EVENTS = 12
OUT = "out"


@dataclass
class Merging:
    """The last minutes of a merge."""

    now: MergeVitals | None = None
    at: int = 0  # µs of the clock
    moments: deque[dict[str, float]] = field(default_factory=lambda: deque(maxlen=KEPT))
    events: deque[str] = field(default_factory=lambda: deque(maxlen=MOST_EVENTS))

    def add(self, at: int, merge: MergeVitals | None) -> None:
        """The merge as it was seen at a moment; None as long as there is none."""
        before, self.now, self.at = self.now, merge, at
        if merge is None:
            return
        for name, seen in merge.inputs.items():
            known = None if before is None else before.inputs.get(name)
            if known is None or known.status != seen.status:
                self.note(at, _changed(name, seen, known))
        if merge.inputs and merge.leader != (None if before is None else before.leader):
            self.note(at, f"{merge.leader or 'nobody'} leads")
        stables = {**{n: s.stable for n, s in merge.inputs.items()}, OUT: merge.stable}
        behind = {name: self.behind(stable) for name, stable in stables.items()}
        told = {name: value for name, value in behind.items() if value is not None}
        self.moments.append({"at": at / 1000, **told})

    def note(self, at: int, event: str) -> None:
        self.events.append(f"{datetime.fromtimestamp(at / SECOND, UTC):%H:%M:%S} {event}")

    def behind(self, stable: int) -> float | None:
        """Seconds behind the clock, or ticks behind the furthest where time is no clock's; None
        before the beginning and after the end."""
        assert self.now is not None
        if stable == START_OF_TIME or self.ended(stable):
            return None
        if self.now.clocked:
            return max(self.at - stable, 0) / SECOND
        return float(max(s.stable for s in self.now.inputs.values()) - stable)

    def ended(self, stable: int) -> bool:
        """Whether nothing follows."""
        assert self.now is not None
        return stable >= (LAST_YEAR if self.now.clocked else END_OF_TIME)


def _changed(name: str, seen: InputVitals, known: InputVitals | None) -> str:
    if known is None and seen.status == JOINED:
        return f"{name} is there"
    return f"{name} is {seen.status}{f': {seen.why}' if seen.why else ''}"
