"""Heartbeats for several sources, from skew bounds and what has arrived (Heartbeats section 3).

    τ arrives on Si at c        for every j:  τj[c + tij + Lj] = max(…, τ − δij)      (Figure 2)

>>> from interpunct.progress.skew import Bounds, SkewBounds
>>> entries = {("a", "a"): Bounds(), ("a", "b"): Bounds(10, 5), ("b", "b"): Bounds()}
>>> generator = HeartbeatGenerator(SkewBounds(["a", "b"], entries))
>>> generator.arrive("a", greatest=100, least=100, count=1, now=0)
>>> generator.advance(now=0)  # `a` is in order, and of `b` nothing is known yet
{'a': 100}
>>> generator.next_moment()  # a tuple of `b` that arrives 10 later may still be older
11
>>> generator.advance(now=11)
{'b': 95}

A heartbeat that `advance` has given holds of every page handed over later. It starts before all
time and never falls. A bound without any wait holds at once; one with a wait is given a microsecond
after it, because what arrives at its last instant may still be in time.

The paper's infinite array is kept sparsely: by moment, the streams for which something new will
hold then (section 5.1). Nothing lies further ahead than the longest delay and the longest latency.
"""

from __future__ import annotations

import heapq

import numpy as np
import numpy.typing as npt

from interpunct.model.errors import FlowError
from interpunct.model.schema import START_OF_TIME
from interpunct.progress.skew import BoundsMatrix, Ticks
from interpunct.progress.tuple_rules import TupleRule


class Pending:
    """What will hold later: for each moment, in clock units, streams and their heartbeats then."""

    def __init__(self) -> None:
        self._at: dict[int, tuple[Ticks, Ticks]] = {}
        self._order: list[int] = []  # a heap of the moments

    def add(self, moment: int, streams: Ticks, values: Ticks) -> None:
        """Each stream at most once; the greater value stays."""
        held = self._at.get(moment)
        if held is None:
            heapq.heappush(self._order, moment)
        else:
            streams = np.concatenate([held[0], streams])
            values = np.concatenate([held[1], values])
            order = np.lexsort((values, streams))
            streams, values = streams[order], values[order]
            last = np.append(streams[1:] != streams[:-1], True)
            streams, values = streams[last], values[last]
        self._at[moment] = streams, values

    def take(self, moment: int) -> list[tuple[Ticks, Ticks]]:
        """Everything that holds by this moment."""
        taken = []
        while self._order and self._order[0] <= moment:
            taken.append(self._at.pop(heapq.heappop(self._order)))
        return taken

    def first(self) -> int | None:
        return self._order[0] if self._order else None

    def clear(self) -> None:
        self._at.clear()
        self._order.clear()

    def __len__(self) -> int:
        return sum(len(streams) for streams, _ in self._at.values())

    def to_record(self) -> list[list[object]]:
        return [[m, s.tolist(), v.tolist()] for m, (s, v) in sorted(self._at.items())]

    def restore(self, record: list[list[object]]) -> None:
        self._at = {
            int(m): (np.array(s, np.int64), np.array(v, np.int64))  # type: ignore[call-overload]
            for m, s, v in record
        }
        self._order = sorted(self._at)


class _Spread:
    """A layer of the matrix, with waits instead of delays; a wait per column where that will do."""

    def __init__(
        self, delay: Ticks, skew: Ticks, known: npt.NDArray[np.bool_], latencies: Ticks
    ) -> None:
        wait = delay + latencies[None, :]
        wait += wait > 0
        self.skew = skew
        self.unknown = None if known.all() else ~known
        # Where nothing is known any wait will do. With zero delays the wait is the latency alone.
        common = np.where(known, wait, 0).max(axis=0)
        self.alike = bool(((wait == common) | ~known).all())
        self.wait = common if self.alike else wait

    def values(self, sources: Ticks, greatest: Ticks) -> Ticks:
        """τ − δ: a row for every source that has risen, a column for every stream."""
        values: Ticks = greatest[:, None] - self.skew[sources]
        if self.unknown is not None:
            values[self.unknown[sources]] = START_OF_TIME
        return values

    @property
    def nbytes(self) -> int:
        unknown = 0 if self.unknown is None else self.unknown.nbytes
        return self.skew.nbytes + self.wait.nbytes + unknown


class HeartbeatGenerator:
    """The algorithm of Figure 2, a page at a time and with every stream at once.

    `unit` is the grain of the clock in microseconds: a heartbeat may come so much later, and no
    more than (tmax + Lmax) / unit of them are kept for a stream (section 5.1). `timeout` (section
    3.3): after so long without a tuple on any stream, all that have been seen are released.
    """

    def __init__(self, bounds: BoundsMatrix, *, unit: int = 1, timeout: int | None = None) -> None:
        _refuse("unit", unit)
        _refuse("timeout", timeout)
        self.bounds, self.unit, self.timeout = bounds, unit, timeout
        count = len(bounds.names)
        self._streams = np.arange(count, dtype=np.int64)
        self._layers = [_Spread(*layer, bounds.latencies) for layer in bounds.layers()]
        self._rules = [
            TupleRule(i, j, pair, int(bounds.latencies[j]), unit)
            for i, j, pair in bounds.tuple_rules()
        ]
        self._now = START_OF_TIME
        self._arrived: int | None = None  # when a tuple last came, on any stream
        self._greatest = np.full(count, START_OF_TIME, np.int64)
        self._given = np.full(count, START_OF_TIME, np.int64)
        self._ready = self._given.copy()  # what the next `advance` gives at once
        # The greatest pending value of a stream, and when it will hold.
        self._promised, self._promised_at = self._given.copy(), self._given.copy()
        self._pending = Pending()

    def arrive(self, source: str, greatest: int, least: int, count: int, now: int) -> None:
        """A page of one source: all its tuples arrive now, in an order that is not known."""
        if count > 0:
            position = self.bounds.position(source)
            page = np.array([[position], [greatest], [least], [count]], np.int64)
            self._arrive(page[0], page[1], page[2], page[3], now)

    def arrive_many(self, sources: npt.NDArray[np.integer], ticks: Ticks, now: int) -> None:
        """A page that mixes sources: the position of each tuple's source, and its timestamp."""
        if len(ticks) == 0:
            return
        size = len(self._streams)
        greatest = np.full(size, START_OF_TIME, np.int64)
        np.maximum.at(greatest, sources, ticks)
        if not self._rules:
            risen = np.flatnonzero(greatest > self._greatest)
            self._seen(risen, greatest[risen], now)
            return
        least = np.full(size, -START_OF_TIME, np.int64)
        np.minimum.at(least, sources, ticks)
        counts = np.bincount(sources, minlength=size)
        there = np.flatnonzero(counts)
        self._arrive(there, greatest[there], least[there], counts[there], now)

    def _arrive(
        self, sources: Ticks, greatest: Ticks, least: Ticks, counts: Ticks, now: int
    ) -> None:
        risen = greatest > self._greatest[sources]
        self._seen(sources[risen], greatest[risen], now)
        if self._rules:
            page = zip(greatest.tolist(), least.tolist(), counts.tolist(), strict=True)
            self._count(dict(zip(sources.tolist(), page, strict=True)))

    def _seen(self, sources: Ticks, greatest: Ticks, now: int) -> None:
        """Time-based bounds. A source that has not risen says nothing that it has not said."""
        self._now = self._arrived = max(int(now), self._now)
        if len(sources) == 0:
            return
        self._greatest[sources] = greatest
        for layer in self._layers:
            values = layer.values(sources, greatest)
            if layer.alike:
                self._promise(self._streams, values.max(axis=0), self._now + layer.wait)
            else:
                streams = np.tile(self._streams, len(sources))
                due = self._now + layer.wait[sources]
                self._promise(streams, values.ravel(), due.ravel())

    def _count(self, page: dict[int, tuple[int, int, int]]) -> None:
        """Tuple-based bounds: tuples of this page are not known to be younger than each other."""
        now, completed = self._now, []
        for rule in self._rules:
            if rule.target in page:
                due = rule.target_arrived(page[rule.target][2], now)
                completed += [(rule, due)] if due is not None else []
            if rule.source in page:
                due = rule.source_arrived(*page[rule.source], now)
                completed += [(rule, due)] if due is not None else []
        for rule, due in completed:
            moment = now + rule.latency + 1 if rule.latency else now
            row = (np.array([value], np.int64) for value in (rule.target, due, moment))
            self._promise(*row)

    def _promise(self, streams: Ticks, values: Ticks, due: Ticks) -> None:
        """These heartbeats hold from these moments on; keep what will say something new then."""
        at_once = due <= self._now
        if at_once.any():
            np.maximum.at(self._ready, streams[at_once], values[at_once])
        due = -(-due // self.unit)
        later = ~at_once & (values > self._ready[streams])
        later &= (values > self._promised[streams]) | (due < self._promised_at[streams])
        if not later.any():
            return
        streams, values, due = streams[later], values[later], due[later]
        order = np.lexsort((values, streams, due))
        streams, values, due = streams[order], values[order], due[order]
        last = np.append((due[1:] != due[:-1]) | (streams[1:] != streams[:-1]), True)
        streams, values, due = streams[last], values[last], due[last]
        self._note_promised(streams, values, due)
        cuts = np.flatnonzero(due[1:] != due[:-1]) + 1
        starts = [0, *cuts.tolist()]
        for start, end in zip(starts, [*starts[1:], len(due)], strict=True):
            self._pending.add(int(due[start]), streams[start:end], values[start:end])

    def _note_promised(self, streams: Ticks, values: Ticks, due: Ticks) -> None:
        before = self._promised.copy()
        np.maximum.at(self._promised, streams, values)
        greatest = (values == self._promised[streams]) & (values > before[streams])
        # Of equal ones the earliest: they come by falling moments, and the last assignment stays.
        found = np.flatnonzero(greatest)[::-1]
        self._promised_at[streams[found]] = due[found]

    def advance(self, now: int) -> dict[str, int]:
        """The heartbeats that rise now, once the pages of this instant have been handed over."""
        self._now = max(int(now), self._now)
        for streams, values in self._pending.take(self._now // self.unit):
            self._ready[streams] = np.maximum(self._ready[streams], values)
        if self.timeout is not None and self._timed_out_at() <= self._now:
            self._ready[:] = np.maximum(self._ready, self._greatest.max())
            self._pending.clear()
        rose = np.flatnonzero(self._ready > self._given)
        self._given[rose] = self._ready[rose]
        if len(rose):
            for rule in self._rules:
                rule.forget(int(self._given[rule.target]))
        return {self.bounds.names[j]: int(self._given[j]) for j in rose.tolist()}

    def _timed_out_at(self) -> int:
        """A tuple that comes exactly at the timeout is still in time."""
        if self.timeout is None or self._arrived is None:
            return -START_OF_TIME
        return self._arrived + self.timeout + 1

    def heartbeat(self, source: str) -> int:
        """The heartbeat last given for this source."""
        return int(self._given[self.bounds.position(source)])

    def overall(self) -> int:
        """The heartbeat of all streams together: the least of theirs."""
        return int(self._given.min())

    def next_moment(self) -> int | None:
        """When `advance` may give something although nothing arrives, or None: never."""
        if (self._ready > self._given).any():
            return self._now
        first = self._pending.first()
        moments = [] if first is None else [first * self.unit]
        if self.timeout is not None and self.overall() < int(self._greatest.max()):
            moments.append(self._timed_out_at())
        return min(moments, default=None)

    def held(self) -> int:
        """How many heartbeats and guarantees wait for their time or for tuples."""
        return len(self._pending) + sum(rule.held() for rule in self._rules)

    def nbytes(self) -> int:
        """The bytes of the bounds and of the state, as numbers of 64 bits."""
        registers = 5 * self._given.nbytes
        return registers + sum(layer.nbytes for layer in self._layers) + 16 * self.held()

    def to_record(self) -> dict[str, object]:
        """All of it, for state."""
        return {
            "now": self._now, "arrived": self._arrived, "pending": self._pending.to_record(),
            "registers": [register.tolist() for register in self._registers()],
            "rules": [rule.to_record() for rule in self._rules],
        }  # fmt: skip

    def restore(self, record: dict[str, object]) -> None:
        """The state of a generator with the same bounds."""
        self._now = int(record["now"])  # type: ignore[call-overload]
        self._arrived = record["arrived"]  # type: ignore[assignment]
        self._pending.restore(record["pending"])  # type: ignore[arg-type]
        registers = zip(self._registers(), record["registers"], strict=True)  # type: ignore[call-overload]
        for register, values in registers:
            register[:] = values
        rules = zip(self._rules, record["rules"], strict=True)  # type: ignore[call-overload]
        for rule, kept in rules:
            rule.restore(kept)

    def _registers(self) -> tuple[Ticks, ...]:
        return self._greatest, self._given, self._ready, self._promised, self._promised_at


def _refuse(name: str, value: int | None) -> None:
    if value is not None and value < 1:
        raise FlowError(
            f"HeartbeatGenerator {name}", "at least a microsecond", str(value),
            "Leave it out, or give more.",
        )  # fmt: skip
