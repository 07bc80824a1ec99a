"""The last minutes of a query: what was seen, moment by moment, and how fast it changed."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from interpunct.engine.vitals import Snapshot

KEPT = 600  # snapshots
RATES_OVER = 10_000_000  # µs over which a rate is taken: some batches
SECOND = 1_000_000


@dataclass
class History:
    """Snapshots, the latest last; never more than so many."""

    seen: deque[Snapshot] = field(default_factory=lambda: deque(maxlen=KEPT))

    def add(self, snapshot: Snapshot) -> None:
        self.seen.append(snapshot)

    @property
    def now(self) -> Snapshot | None:
        return self.seen[-1] if self.seen else None

    def rates(self) -> dict[tuple[str, int], float]:
        """Tuples a second by what makes them, as node and output."""
        before, now = self._ends()
        if before is None or now is None:
            return {}
        seconds, found = (now.at - before.at) / SECOND, {}
        for name, vitals in now.vitals.operators.items():
            earlier = before.vitals.operators.get(name)
            for port, made in enumerate(vitals.made):
                known = earlier is not None and port < len(earlier.made)
                less = earlier.made[port] if known and earlier is not None else 0
                found[name, port] = max(made - less, 0) / seconds
        for name, source in now.vitals.sources.items():
            earlier_source = before.vitals.sources.get(name)
            less = 0 if earlier_source is None else earlier_source.rows
            found[name, 0] = max(source.rows - less, 0) / seconds
        return found

    def work(self) -> dict[str, list[float]]:
        """Tuples a second that came, and that feedback spared the sources, over time."""
        found: dict[str, list[float]] = {"at": [], "came": [], "skipped": []}
        marks = [s for number, s in enumerate(reversed(self.seen)) if number % 4 == 0][::-1]
        for before, now in zip(marks, marks[2:], strict=False):  # some batches at a time
            seconds = max((now.at - before.at) / SECOND, 0.001)
            found["at"].append(now.at / 1000)
            found["came"].append(max(now.rows - before.rows, 0) / seconds)
            spared = at_sources(now) - at_sources(before)
            found["skipped"].append(max(spared, 0) / seconds)
        return found

    def behind(self) -> dict[str, list[tuple[float, float]]]:
        """Seconds that each source, and the results, are behind the clock, over time."""
        found: dict[str, list[tuple[float, float]]] = {}
        for snapshot in self.seen:
            at = snapshot.at / 1000
            for name, source in snapshot.vitals.sources.items():
                if source.reached is not None and source.clocked:
                    lag = (snapshot.at - source.reached) / SECOND
                    found.setdefault(name, []).append((at, max(lag, 0.0)))
            if snapshot.lag is not None:
                found.setdefault("results", []).append((at, snapshot.lag / SECOND))
        return found

    def batches(self) -> list[tuple[float, float]]:
        """When each batch began, as far as it was seen, and the milliseconds it took; but for the
        first, in which everything is still being compiled."""
        told = {s.query.batches: s.query for s in self.seen if s.query is not None}
        return [(q.began / 1000, q.seconds * 1000) for n, q in told.items() if n > 1]

    def _ends(self) -> tuple[Snapshot | None, Snapshot | None]:
        """The latest snapshot, and one some seconds before it."""
        now = self.now
        if now is None:
            return None, None
        earlier = (s for s in self.seen if s.at >= now.at - RATES_OVER)
        before = next(earlier, now)
        return (before, now) if before.at < now.at else (None, now)


def at_sources(snapshot: Snapshot) -> int:
    """Tuples that were left out where they would have come in."""
    vitals = snapshot.vitals
    return sum(
        vitals.operators[name].skipped for name in vitals.sources if name in vitals.operators
    )
