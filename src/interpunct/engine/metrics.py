"""What a run measures about itself: queues, idle-waiting, steps."""

from __future__ import annotations

from dataclasses import dataclass, field

from interpunct.engine.arcs import Vertex


@dataclass
class Metrics:
    """`queued` counts tuples and punctuations in buffers and waiting in idle-waiting operators.

    Two times are kept for each of those operators, in µs. `held_back` is how long it has held
    tuples at all, which includes the work that frees them; `idle_waiting` is the part in which
    nothing could run, so that only an arrival or the passing of time could help.
    """

    steps: int = 0
    ets: int = 0
    named: int = 0  # how often a source named a moment before which asking is no use
    queued: int = 0
    peak_queue: int = 0
    held_back: dict[str, int] = field(default_factory=dict)
    idle_waiting: dict[str, int] = field(default_factory=dict)
    _waiting: dict[str, int] = field(default_factory=dict)
    _held_since: dict[str, int] = field(default_factory=dict)
    _idle_since: dict[str, int] = field(default_factory=dict)

    def buffered(self, change: int) -> None:
        self.queued += change
        self.peak_queue = max(self.peak_queue, self.queued)

    def observe(self, vertex: Vertex, now: int) -> None:
        """After an idle-waiting operator ran: what it holds counts as queued, and time is kept."""
        name, rows = vertex.name, vertex.operator.waiting()
        before = self._waiting.get(name, 0)
        if rows != before:
            self.buffered(rows - before)
            self._waiting[name] = rows
        if rows:
            self._held_since.setdefault(name, now)
        elif before:
            _close(self.held_back, self._held_since, name, now)

    def rest(self, name: str, now: int) -> None:
        """Nothing can run, and this operator holds tuples."""
        self._idle_since.setdefault(name, now)

    def resume(self, name: str, now: int) -> None:
        """Something runs again in its component."""
        _close(self.idle_waiting, self._idle_since, name, now)

    def close(self, now: int) -> None:
        """The run is over: count the times still going on."""
        for total, since in (
            (self.held_back, self._held_since),
            (self.idle_waiting, self._idle_since),
        ):
            for name in list(since):
                _close(total, since, name, now)
                since[name] = now


def _close(total: dict[str, int], since: dict[str, int], name: str, now: int) -> None:
    """Add the time since the entry was made, and remove it."""
    start = since.pop(name, None)
    if start is not None:
        total[name] = total.get(name, 0) + now - start
