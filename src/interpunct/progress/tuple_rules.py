"""Tuple-based skew bounds at work: a guarantee that waits for n tuples, not for time.

    φi:  τ                              (2, δ) of φi on φj, latency L of φj
    φj:     x1    x2    x3              due once two tuples of φj are known to be younger than τ
         └─ L ─┘  1     2 ─ L ─▶ τ − δ  and all older than the second have come

What counts is emission, and only arrivals are seen; Heartbeats section 3.1 leaves open what follows
from them. A tuple that arrived at c was emitted by then; a tuple of φj arriving at a was emitted no
earlier than a − L. So those arriving after c + L are certainly younger than τ, and no others need
be. When the n-th of them has arrived, at a, whatever φj emitted before it has come by a + L; what
comes later is above τ − δ. With no latency, arrival is emission, and what is handed over later is
younger.

The tuples of one page arrive together and their order is not known. Whatever it was, of p tuples of
one source some one has p − 1 younger ones, and it is at least as great as the least of them.

For two different sources nothing more can be known. For a source and itself, with latency, an
order among tuples less than L apart could be assumed at its worst instead of not at all: that would
be earlier at times, and is not done. With a coarse clock, counting begins at the next unit.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from interpunct.progress.skew import TupleBounds


@dataclass
class TupleRule:
    """The bound (n, δ) of one source on another, n > 0, and the guarantees that wait for tuples."""

    source: int
    target: int
    bound: TupleBounds
    latency: int
    unit: int
    counted: int = 0  # tuples of the target that have arrived
    # (when counting may begin, value, tuples known to be younger already)
    young: list[tuple[int, int, int]] = field(default_factory=list)
    # (the target's count when counting began, less what was known to be younger; value)
    counting: list[tuple[int, int]] = field(default_factory=list)

    def target_arrived(self, count: int, now: int) -> int | None:
        """The greatest guarantee that these tuples of the target complete, if any."""
        for begins, value, credit in self.young:
            if begins <= now:
                self._count_from(self.counted - credit, value)
        self.young = [waiting for waiting in self.young if waiting[0] > now]
        self.counted += count
        enough = self.counted - self.bound.count
        due = max((value for base, value in self.counting if base <= enough), default=None)
        if due is not None:
            self.forget(due)
        return due

    def source_arrived(self, greatest: int, least: int, count: int, now: int) -> int | None:
        """Wait for tuples younger than these; what a whole page by itself already guarantees."""
        if self.source == self.target and count > 1:
            if count > self.bound.count:
                self._wait(greatest - self.bound.skew, 0, now)
                return least - self.bound.skew
            self._wait(least - self.bound.skew, count - 1, now)
        self._wait(greatest - self.bound.skew, 0, now)
        return None

    def _wait(self, value: int, credit: int, now: int) -> None:
        if not self.latency:
            self._count_from(self.counted - credit, value)
            return
        begins = -(-(now + self.latency + 1) // self.unit) * self.unit
        if any(v >= value and c >= credit for _, v, c in self.young):
            return
        self.young = [w for w in self.young if w[0] != begins or w[1] > value or w[2] > credit]
        self.young.append((begins, value, credit))

    def _count_from(self, base: int, value: int) -> None:
        """Of two guarantees, one that began no later and says as much is enough."""
        if any(b <= base and v >= value for b, v in self.counting):
            return
        self.counting = [(b, v) for b, v in self.counting if b < base or v > value]
        self.counting.append((base, value))

    def forget(self, given: int) -> None:
        """The target's heartbeat is known to come to this: what says no more is of no use."""
        self.young = [waiting for waiting in self.young if waiting[1] > given]
        self.counting = [(base, value) for base, value in self.counting if value > given]

    def held(self) -> int:
        return len(self.young) + len(self.counting)

    def to_record(self) -> list[object]:
        return [self.counted, self.young, self.counting]

    def restore(self, record: list[object]) -> None:
        counted, young, counting = record
        self.counted = int(counted)  # type: ignore[call-overload]
        self.young = [tuple(waiting) for waiting in young]  # type: ignore[attr-defined]
        self.counting = [tuple(waiting) for waiting in counting]  # type: ignore[attr-defined]
