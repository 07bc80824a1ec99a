"""The plain way to merge streams with revisions: LMR3−, an index for every input.

Every input has its events with their payloads in a table of its own, and so has the output (LMerge
section VI-A). It decides what LMR3+ decides, but holds each payload once for every input and looks
every event up in several tables. It is here to be measured against.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from interpunct.model.errors import FlowError
from interpunct.operators.contract import Held
from interpunct.operators.lmerge_base import JOINED
from interpunct.operators.lmerge_index import Slots
from interpunct.operators.lmerge_revisable import Places, RevisableMerge
from interpunct.operators.lmerge_rows import Batch, Flags, Output, Ticks, picked
from interpunct.operators.lmerge_tables import GONE, EventTable


class LogicalMergeR3Minus(RevisableMerge):
    """As R3, with the paper's own policy only."""

    variant = "R3-"

    def _prepare(self) -> None:
        if (self.policy.inserts, self.policy.adjusts) != ("first", "stable"):
            raise FlowError(
                self.name,
                "first inserts and adjusts at stable from R3-",
                str(self.policy),
                "Take R3.",
            )
        self._out = self._table("out")
        self._tables = [self._table(f"in{p}") for p in range(len(self._seats))]

    def _table(self, name: str) -> EventTable:
        return EventTable(self.state, name, self.output, self.payload, 1)

    def _located(self, batch: Batch) -> Places:
        """Each table is asked when its turn comes; here only what is of interest at all."""
        return Places(np.where(self._relevant(batch), 0, -1))

    def _absorb(self, port: int, batch: Batch, places: Places, part: slice, out: Output) -> None:
        rows = np.flatnonzero(places.slots[part] >= 0) + part.start
        if not rows.size:
            return
        keys = picked(batch.frame.select(self._out.key_names), rows)
        vs, ve, inserts = batch.vs[rows], batch.ve[rows], batch.insert[rows]
        ahead = inserts & (vs >= self.max_stable)
        shows = ahead & (self._seats[port].status == JOINED)
        at_output = self._out.locate(keys, vs, shows)
        known = _alive(self._out, at_output, vs)
        self._enter(port, keys, rows, batch, ahead | known)
        fresh = np.flatnonzero(shows & ~known)
        if fresh.size:
            _, first = np.unique(at_output[fresh], return_index=True)
            fresh = fresh[np.sort(first)]
            self._out.enliven(at_output[fresh], vs[fresh])
            self._out.columns[0].set(at_output[fresh], ve[fresh])
            out.rows(batch.frame, rows[fresh])

    def _enter(
        self, port: int, keys: pl.DataFrame, rows: Ticks, batch: Batch, of_interest: Flags
    ) -> None:
        """Note the ends in the input's own table."""
        table, vs = self._tables[port], batch.vs[rows]
        own = table.locate(keys, vs, of_interest)
        born = of_interest & (own >= 0) & ~_alive(table, own, vs)
        table.enliven(own[born], vs[born])
        there = _alive(table, own, vs)
        table.columns[0].set(own[there], batch.ve[rows][there])

    def _agree(self, port: int, at: int, out: Output) -> bool:
        table, before = self._tables[port], self.max_stable
        begun = np.flatnonzero(self._out.begin < at)
        vs, shown = self._out.begin[begun], self._out.column(0)[begun]
        there = self._ends(table, self._out, begun)
        denied = (vs < before) & (there < before) & (vs >= self.forgone)
        if denied.any():
            self._contradicted(port, at, str(self._out.payload(begun[denied][:1]).row(0)))
            return False
        there = np.where(vs < before, np.maximum(there, before), there)
        wrong = (there != shown) & ((there < at) | (shown < at))
        chosen = begun[wrong]
        out.revised(self._out.payload(chosen), vs[wrong], shown[wrong], there[wrong])
        self._out.columns[0].set(chosen, there[wrong])
        self._insert_missing(table, at, out)
        self._out.remove(begun if at >= self._forever else begun[there < at])
        self._forget(at)
        return True

    def _insert_missing(self, table: EventTable, at: int, out: Output) -> None:
        """What the input has and the output lacks, now that it cannot come later."""
        begun = np.flatnonzero(table.begin < at)
        vs, ends = table.begin[begun], table.column(0)[begun]
        lacking = (ends > vs) & (self._ends(self._out, table, begun) == vs)
        lacking &= vs >= self.max_stable
        slots, vs, ends = begun[lacking], vs[lacking], ends[lacking]
        if not slots.size:
            return
        keys = table.payload(slots)
        out.revised(keys, vs, vs, ends)
        stays = (ends >= at) & (at < self._forever)
        at_output = self._out.locate(keys, vs, stays)
        self._out.enliven(at_output[stays], vs[stays])
        self._out.columns[0].set(at_output[stays], ends[stays])

    def _forget(self, at: int) -> None:
        """Inputs keep no event that began before the stable and is not on the output."""
        for table in self._tables:
            begun = np.flatnonzero(table.begin < at)
            if begun.size:
                vs = table.begin[begun]
                table.remove(begun[self._ends(self._out, table, begun) == vs])

    def _ends(self, table: EventTable, other: EventTable, slots: Slots) -> Ticks:
        """Where events of another table end in this one; at their start if they are not here."""
        vs = other.begin[slots]
        if not slots.size or not table.size:
            return vs
        found = table.same(other, slots)
        alive = _alive(table, found, vs)
        return np.where(alive, table.columns[0].values[np.where(alive, found, 0)], vs)

    def _show(self, port: int, out: Output) -> None:
        """Nothing at once: what a joining input has shown comes out when it is half frozen."""

    def _forget_past(self) -> None:
        for table in self._tables:
            table.remove(np.flatnonzero((table.begin < self.forgone) & self._over(table)))
        out = self._out
        mine = (out.begin >= self.max_stable) & (out.begin < self.forgone) & self._over(out)
        slots = np.flatnonzero(mine)
        known = [self._ends(table, out, slots) > out.begin[slots] for table in self._tables]
        out.remove(slots[~np.any(known, axis=0)])

    def _over(self, table: EventTable) -> Flags:
        over: Flags = table.column(0) < self.forgone
        return over

    def _left(self, port: int) -> None:
        table = self._tables[port]
        table.remove(np.flatnonzero(table.begin != GONE))

    def _added(self) -> None:
        self._tables.append(self._table(f"in{len(self._tables)}"))

    def _shrink(self) -> None:
        for table in (self._out, *self._tables):
            table.shrink()

    def _held(self) -> Held:
        return sum((t.held() for t in self._tables), self._out.held())

    def _save(self) -> None:
        super()._save()
        for table in (self._out, *self._tables):
            table.save()


def _alive(table: EventTable, slots: Slots, vs: Ticks) -> Flags:
    """Which of these are events of the table."""
    if not table.size:
        return np.zeros(len(slots), bool)
    alive: Flags = (slots >= 0) & (table.begin[np.maximum(slots, 0)] == vs)
    return alive
