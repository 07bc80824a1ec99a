"""What a run measures about itself: queues, idle-waiting, steps."""

from __future__ import annotations

from dataclasses import dataclass, field

from interpunct.engine.arcs import Vertex


@dataclass
class Metrics:
    """`queued` counts tuples and punctuations in buffers and waiting in idle-waiting operators;
    `idle_waiting` is, per operator, how long (µs) it held tuples back."""

    steps: int = 0
    ets: int = 0
    queued: int = 0
    peak_queue: int = 0
    idle_waiting: dict[str, int] = field(default_factory=dict)
    _waiting: dict[str, int] = field(default_factory=dict)
    _since: dict[str, int] = field(default_factory=dict)

    def buffered(self, change: int) -> None:
        self.queued += change
        self.peak_queue = max(self.peak_queue, self.queued)

    def observe(self, vertex: Vertex, now: int) -> None:
        """After an idle-waiting operator ran: what it holds counts as queued, and time is kept."""
        rows = vertex.operator.waiting()
        self.buffered(rows - self._waiting.get(vertex.name, 0))
        self._waiting[vertex.name] = rows
        if rows and vertex.name not in self._since:
            self._since[vertex.name] = now
        elif not rows and vertex.name in self._since:
            self._add_idle(vertex.name, now)
            del self._since[vertex.name]

    def close(self, now: int) -> None:
        """The run is over: count waits still going on."""
        for name in list(self._since):
            self._add_idle(name, now)
            self._since[name] = now

    def _add_idle(self, name: str, now: int) -> None:
        waited = now - self._since[name]
        self.idle_waiting[name] = self.idle_waiting.get(name, 0) + waited
