"""Is an output compatible with its inputs, and how chatty is it? (LMerge sections II and III-C)

    watch = Watch(inputs=2)
    watch.arrives(0, insert("A", 6, 12)); watch.emits(insert("A", 6, 12))
    assert not watch.faults()

`Watch` follows inputs and output element by element and applies the paper's conditions C1 to C3 to
what they have come to, at any moment. `chattiness` counts what an output said, and `outputs` gives
the three outputs of Example 4 for any arrivals: Out1 tells everything, Out2 only what stays, Out3
what comes first and then what is final.

Two remarks on the conditions. C2 asks that a half-frozen event of the output be half frozen on an
input with L_m ≤ L; what makes it possible to follow that input is L ≤ L_m, as in C3, so that is
what is checked. And for streams with duplicates (R4) the paper gives the case that L is the
greatest of the L_m; a stable says everything that an earlier one would, so here the same condition
is checked at L on the input that is furthest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from interpunct.model.elements import (
    ADJUST,
    FOREVER,
    INSERT,
    STABLE,
    Row,
    adjust,
    insert,
    stable,
)
from interpunct.model.schema import END_OF_TIME, START_OF_TIME

Key = tuple[Any, int]  # payload, Vs


@dataclass
class Table:
    """The temporal database of one stream so far, as ends by (payload, Vs), and its last stable;
    it may lack events that end before it is guaranteed, and elements of those that it `lacks`."""

    ends: dict[Key, Counter[int]] = field(default_factory=dict)
    stable: int = START_OF_TIME
    guaranteed_from: int = START_OF_TIME
    lacks: frozenset[Key] = frozenset()

    def apply(self, row: Row) -> None:
        kind, vs, vold, ve, *payload = (END_OF_TIME if v == FOREVER else v for v in row)
        if kind == STABLE:
            self.stable = max(self.stable, vs)
            return
        ends = self.ends.setdefault((tuple(payload), vs), Counter())
        if kind == ADJUST:
            ends[vold] -= 1
        if ve != vs:
            ends[ve] += 1
        self.ends[tuple(payload), vs] = +ends

    def one(self, key: Key) -> int | None:
        """The end of the only event with this key."""
        return next(iter(self.ends.get(key, ())), None)

    def frozen(self, key: Key, start: int, at: int) -> Counter[int]:
        """The ends from `start` on of these events that are final under stable(at)."""
        return Counter({e: n for e, n in self.ends.get(key, Counter()).items() if start <= e < at})

    def open(self, key: Key, at: int) -> int:
        """How many of these events are half frozen under stable(at)."""
        if key[1] >= at:
            return 0
        return sum(n for e, n in self.ends.get(key, Counter()).items() if e >= at)


class Watch:
    """Inputs and an output side by side; `keyed` where (Vs, payload) is unique (R0 to R3)."""

    def __init__(self, inputs: int, *, keyed: bool = True) -> None:
        self.inputs = [Table() for _ in range(inputs)]
        self.output = Table()
        self.keyed = keyed

    def arrives(self, port: int, row: Row) -> None:
        self.inputs[port].apply(row)

    def emits(self, row: Row) -> None:
        self.output.apply(row)

    def attaches(
        self, guaranteed_from: int = START_OF_TIME, lacks: frozenset[Key] = frozenset()
    ) -> int:
        """One more input, or an old one that begins again: each time it is a stream of its own.
        Of the events of which it `lacks` elements it is no witness."""
        self.inputs.append(Table(guaranteed_from=guaranteed_from, lacks=lacks))
        return len(self.inputs) - 1

    def faults(self) -> list[str]:
        """What is not compatible, if anything."""
        joined = [t for t in self.inputs if t.guaranteed_from <= self.output.stable]
        furthest = max(joined or self.inputs, key=lambda t: t.stable)
        if self.output.stable > furthest.stable:
            return [f"C1: stable({self.output.stable}) beyond every input"]
        if not self.keyed:
            return self._counted(furthest)
        keys = self.output.ends.keys() | {k for t in self.inputs for k in t.ends}
        return [f for k in keys for f in (*self._may_be(k), *self._must_be(k))]

    def _may_be(self, key: Key) -> Iterable[str]:
        """C2: what the output has, some input bears out."""
        end, at, inputs = self.output.one(key), self.output.stable, self._witnesses(key)
        if len(self.output.ends.get(key, ())) > 1 or (end and self.output.ends[key][end] > 1):
            yield f"C2: {key} is there more than once"
        elif end is None or key[1] >= at:
            return
        elif end < at:
            if not any(t.one(key) == end and end < t.stable for t in inputs):
                yield f"C2: {key} is final with {end}, on no input"
        elif not any(_followable(t, key, at) for t in inputs):
            yield f"C2: {key} is half frozen, on no input that the output can follow"

    def _must_be(self, key: Key) -> Iterable[str]:
        """C3: what is frozen on an input, the output has or can still have."""
        end, at, inputs = self.output.one(key), self.output.stable, self._witnesses(key)
        if at <= key[1]:
            return
        final = [e for t in inputs if (e := t.one(key)) is not None and e < t.stable]
        if final:
            ends = final[0]
            if at <= ends and (end is None or end < at):
                yield f"C3: {key} is final with {ends} on an input and not half frozen"
            elif ends < at and end != ends:
                yield f"C3: {key} is final with {ends} on an input and {end} here"
            return
        half = [t.stable for t in inputs if t.one(key) is not None and key[1] < t.stable]
        if half and (at > max(half) or end is None or end < at):
            yield f"C3: {key} is half frozen on an input and not here"

    def _witnesses(self, key: Key) -> list[Table]:
        return [t for t in self.inputs if key not in t.lacks]

    def _counted(self, furthest: Table) -> list[str]:
        """R4: equal final events and as many half-frozen ones, at the output's stable."""
        start, at = furthest.guaranteed_from, self.output.stable
        found = []
        for key in (self.output.ends.keys() | furthest.ends.keys()) - furthest.lacks:
            if self.output.frozen(key, start, at) != furthest.frozen(key, start, at):
                found.append(f"R4: other final events of {key} than the furthest input")
            if self.output.open(key, at) != furthest.open(key, at):
                found.append(f"R4: another number of half-frozen events of {key}")
        return found


def _followable(table: Table, key: Key, at: int) -> bool:
    """Whether what becomes of the event on this input can still become of a half-frozen one."""
    end = table.one(key)
    if end is None or key[1] >= table.stable:
        return False
    return at <= (end if end < table.stable else table.stable)


# Chattiness -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Chattiness:
    """What an output said: each kind of element, removals apart from other adjusts."""

    inserts: int
    adjusts: int
    removals: int
    stables: int

    @property
    def elements(self) -> int:
        return self.inserts + self.adjusts + self.removals + self.stables


def chattiness(frame: pl.DataFrame) -> Chattiness:
    """Count the elements of a stream."""
    adjusts = frame.filter(pl.col("element") == ADJUST)
    removals = adjusts.filter(pl.col("ve") == pl.col("vs")).height
    kinds = [frame.filter(pl.col("element") == k).height for k in (INSERT, STABLE)]
    return Chattiness(kinds[0], adjusts.height - removals, removals, kinds[1])


OUT1, OUT2, OUT3 = ("every", "first"), ("stable", "half-frozen"), ("stable", "first")


def outputs(arrived: Sequence[tuple[int, Row]]) -> tuple[list[Row], list[Row], list[Row]]:
    """Out1, Out2 and Out3 of Example 4 for these arrivals, where (Vs, payload) is a key."""
    one, two, three = (merged_by_element(arrived, *policy) for policy in (OUT1, OUT2, OUT3))
    return one, two, three


def merged_by_element(
    arrived: Sequence[tuple[int, Row]], adjusts: str = "stable", inserts: str = "first"
) -> list[Row]:
    """Algorithm R3, literally, with two policies at each of its two places (section V-A)."""
    merge = _ByElement(adjusts == "every", inserts == "first")
    for port, row in arrived:
        merge.arrive(port, tuple(END_OF_TIME if v == FOREVER else v for v in row))
    return merge.out


class _ByElement:
    """in2t as a dict: (payload, Vs) to the ends by stream, the output's under "out"."""

    def __init__(self, follows: bool, first: bool) -> None:
        self._follows, self._first = follows, first
        self._index: dict[Key, dict[Any, int]] = {}
        self._max_stable = START_OF_TIME
        self.out: list[Row] = []

    def arrive(self, port: int, row: Row) -> None:
        kind, vs, _, ve, *values = row
        key = (tuple(values), vs)
        if kind == STABLE:
            self._settle(port, vs)
        elif kind == INSERT and key not in self._index:
            if vs >= self._max_stable:
                self._index[key] = {port: ve}
                if self._first:
                    self._revise(key, ve)
        elif key in self._index:
            self._index[key][port] = ve
            shown = self._index[key].get("out", vs)
            fresh = kind == INSERT and shown == vs and self._first
            follows = self._follows and (self._first or shown != vs)
            if (follows or fresh) and ve >= self._max_stable:
                self._revise(key, ve)

    def _settle(self, port: int, at: int) -> None:
        if at <= self._max_stable:
            return
        for key in list(self._index):
            vs = key[1]
            if vs >= at:
                continue
            end, shown = self._index[key].get(port, vs), self._index[key].get("out", vs)
            if end != shown and (end < at or shown < at):
                self._revise(key, end)
            if end < at:
                del self._index[key]
        self._max_stable = at
        self.out.append(stable(at))

    def _revise(self, key: Key, end: int) -> None:
        payload, vs = key
        shown = self._index[key].get("out", vs)
        if shown == end:
            return
        self.out.append(
            insert(payload, vs, end) if shown == vs else adjust(payload, vs, shown, end)
        )
        self._index[key]["out"] = end
