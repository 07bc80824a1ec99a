"""Idle-waiting inputs: timestamp-memory registers and the tuples waiting behind them.

ETS section 4.1 keeps one TSM register per input: the timestamp of the last thing that input
showed. With τ the least register, tuple by tuple, an operator may process any tuple stamped τ
(Figures 5 and 6). Repeated until nothing is left to do, that releases exactly the tuples stamped
at or below the least register, which is how it is done here for whole pages.

On an input declared ordered a tuple moves the register; on a disordered one only a heartbeat
does, and the tuples behind it are put in order as they leave.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import polars as pl

from interpunct.model.frames import stacked
from interpunct.model.pattern import Pattern
from interpunct.model.schema import START_OF_TIME, Schema
from interpunct.operators.contract import Demand, Held, Stream
from interpunct.operators.shelf import Shelf
from interpunct.operators.state import Record, State

MOST_RUNS = 64  # sorted runs an input keeps before the smaller half is merged into one


@dataclass(order=True)
class _Run:
    """A sorted frame that waits; `start` is how much of it has already left.

    Most runs leave before anybody saves them, so a frame is shelved only then.
    """

    first: int
    key: int
    last: int = field(compare=False)
    rows: int = field(compare=False)
    start: int = field(compare=False, default=0)
    frame: pl.DataFrame | None = field(compare=False, default=None)  # None: on the shelf, unread
    shelved: bool = field(compare=False, default=True)


class Waiting:
    """The tuples waiting on one input, as sorted runs by first timestamp."""

    def __init__(self, state: State, name: str, schema: Schema) -> None:
        self._schema = schema
        self._shelf = Shelf(state, name, schema)
        self._record = Record(state, f"{name}~", {"runs": [], "next": 0})
        self._runs = [_Run(*r) for r in self._record["runs"]]
        self._next: int = self._record["next"]
        self.rows = sum(r.rows for r in self._runs)
        self.released = START_OF_TIME  # the greatest timestamp let go since the operator was built

    @property
    def first(self) -> int | None:
        return self._runs[0].first if self._runs else None

    def add(self, frame: pl.DataFrame, stamp: int | None = None) -> int:
        """Tuples arrive, in any order, or all with one stamp; returns the last one's timestamp."""
        if stamp is None:
            ticks = self._schema.ticks(frame)
            last = int(ticks[-1])
            if not ticks.is_sorted():
                frame = frame.sort(self._schema.ordered_by, maintain_order=True)
                ticks = self._schema.ticks(frame)
            self._push(frame, int(ticks[0]), int(ticks[-1]))
        else:
            last = stamp
            self._push(frame, stamp, stamp)
        if len(self._runs) > MOST_RUNS:
            self._merge_small_runs()
        return last

    def take(self, upto: int) -> list[pl.DataFrame]:
        """Remove and return every tuple stamped at or below `upto`, as sorted frames."""
        taken: list[pl.DataFrame] = []
        if not self._runs or self._runs[0].first > upto:
            return taken
        left: list[_Run] = []
        reached = 0
        for run in self._runs:
            if run.first > upto:
                break
            reached += 1
            frame = self._remaining(run)
            if run.last <= upto:
                taken.append(frame)
                self.released = max(self.released, run.last)
                self._forget(run)
                continue
            ticks = self._schema.ticks(frame)
            cut = int(ticks.search_sorted(upto, side="right"))
            taken.append(frame.head(cut))
            self.released = max(self.released, int(ticks[cut - 1]))
            self.rows -= cut
            rest = (run.rows - cut, run.start + cut, run.frame, run.shelved)
            left.append(_Run(int(ticks[cut]), run.key, run.last, *rest))
        del self._runs[:reached]
        for run in left:
            insort(self._runs, run)
        return taken

    def purge(self, pattern: Pattern) -> int:
        """Forget the tuples that match; returns how many there were."""
        before = self.rows
        for run in list(self._runs):
            frame = self._remaining(run)
            kept = pattern.without(frame)
            if kept.height == frame.height:
                continue
            self._runs.remove(run)
            self._forget(run)
            if kept.height:
                ticks = self._schema.ticks(kept)
                self._push(kept, int(ticks[0]), int(ticks[-1]))
        return before - self.rows

    def all(self) -> pl.DataFrame:
        """Everything that waits, in no particular order."""
        return stacked([self._schema.empty(), *(self._remaining(r) for r in self._runs)])

    def nbytes(self) -> int:
        frames = (run.frame for run in self._runs)
        return int(sum(f.estimated_size() for f in frames if f is not None))

    def save(self) -> None:
        for run in self._runs:
            if not run.shelved:
                run.frame, run.start = self._remaining(run), 0  # what has left is not kept
                self._shelf.put(run.key, run.frame)
                run.shelved = True
        self._record["runs"] = [[r.first, r.key, r.last, r.rows, r.start] for r in self._runs]
        self._record["next"] = self._next
        self._record.save()
        self._shelf.save()

    def _push(self, frame: pl.DataFrame, first: int, last: int) -> None:
        run = _Run(first, self._next, last, frame.height, 0, frame, shelved=False)
        insort(self._runs, run)
        self._next += 1
        self.rows += frame.height

    def _remaining(self, run: _Run) -> pl.DataFrame:
        if run.frame is None:
            run.frame = self._shelf.get(run.key)
        return run.frame.slice(run.start) if run.start else run.frame

    def _forget(self, run: _Run) -> None:
        self.rows -= run.rows
        if run.shelved:
            self._shelf.drop(run.key)

    def _merge_small_runs(self) -> None:
        """Merge the smaller half, so each tuple is merged a logarithmic number of times."""
        small = sorted(self._runs, key=lambda r: r.rows)[: MOST_RUNS // 2]
        chosen = {r.key for r in small}
        frames = [self._remaining(r) for r in self._runs if r.key in chosen]
        self._runs = [r for r in self._runs if r.key not in chosen]
        for run in small:
            self._forget(run)
        merged = in_order(self._schema, frames)
        self._push(merged, min(r.first for r in small), max(r.last for r in small))


class TsmInputs:
    """The registers and waiting tuples of all inputs of an idle-waiting operator."""

    def __init__(self, state: State, inputs: Sequence[Stream]) -> None:
        self._inputs = tuple(inputs)
        start = [START_OF_TIME] * len(inputs)
        self._record = Record(state, "tsm", {"registers": start, "sure": start})
        self.registers: list[int] = list(self._record["registers"])
        self._sure: list[int] = list(self._record["sure"])
        self.waiting = [Waiting(state, f"wait{i}", s.schema) for i, s in enumerate(inputs)]

    @property
    def least(self) -> int:
        """τ: everything stamped at or below it may be processed."""
        return min(self.registers)

    @property
    def sure(self) -> int:
        """The heartbeat that holds over all inputs: what comes later is stamped above it.

        A tuple stamped t on an ordered input says only t − 1, since more tuples stamped t may
        follow it; a heartbeat τ says τ.
        """
        return min(self._sure)

    def sure_of(self, port: int) -> int:
        """The heartbeat that holds of one input."""
        return self._sure[port]

    @property
    def rows(self) -> int:
        rows = 0
        for waiting in self.waiting:
            rows += waiting.rows
        return rows

    def add(self, port: int, frame: pl.DataFrame, stamp: int | None = None) -> None:
        """Tuples arrive; on an ordered input the last of them moves the register."""
        last = self.waiting[port].add(frame, stamp)
        if self._inputs[port].properties.ordered:
            self.registers[port] = max(self.registers[port], last)
            self._sure[port] = max(self._sure[port], last - 1)

    def promise(self, port: int, heartbeat: int) -> None:
        """A heartbeat arrives: nothing at or below it will come on this input."""
        self.registers[port] = max(self.registers[port], heartbeat)
        self._sure[port] = max(self._sure[port], heartbeat)

    def take(self) -> list[list[pl.DataFrame]]:
        """Per port, the sorted frames that may be processed now."""
        least = min(self.registers)
        return [w.take(least) for w in self.waiting]

    @property
    def released(self) -> int:
        """The greatest timestamp let go so far."""
        return max(w.released for w in self.waiting)

    def first_waiting(self) -> int | None:
        return min((w.first for w in self.waiting if w.first is not None), default=None)

    def needs(self) -> Demand | None:
        """The heartbeat that would release the first waiting tuple, and who must give it."""
        if not self.rows:
            return None
        first = self.first_waiting()
        return None if first is None else Demand(self.registers.index(self.least), first)

    def demand(self, wanted: int) -> Demand | None:
        """Who must speak before the heartbeat `wanted` holds over all inputs."""
        sure = self.sure
        return Demand(self._sure.index(sure), wanted) if sure < wanted else None

    def held(self) -> Held:
        return Held(tuples=self.rows, bytes=sum(w.nbytes() for w in self.waiting))

    def save(self) -> None:
        self._record.update({"registers": self.registers, "sure": self._sure})
        self._record.save()
        for waiting in self.waiting:
            waiting.save()


def in_order(schema: Schema, frames: list[pl.DataFrame]) -> pl.DataFrame:
    """Sorted frames as one sorted frame."""
    return frames[0] if len(frames) == 1 else put_in_order(schema, frames)


def put_in_order(schema: Schema, frames: list[pl.DataFrame]) -> pl.DataFrame:
    """Any frames as one sorted frame."""
    frame = stacked(_one_after_another(schema, frames))
    if schema.ticks(frame).is_sorted():
        return frame
    return frame.sort(schema.ordered_by, maintain_order=True)


def _one_after_another(schema: Schema, frames: list[pl.DataFrame]) -> list[pl.DataFrame]:
    """Frames in the order of time, if each is over before the next begins; else as they are, for
    tuples of one time stay in the order they came in."""
    ticks = [schema.ticks(frame) for frame in frames]
    spans = sorted((int(t[0]), int(t[-1]), n) for n, t in enumerate(ticks) if t.len())
    apart = all(last < first for (_, last, _), (first, _, _) in pairwise(spans))
    return [frames[n] for _, _, n in spans] if spans and apart else frames
