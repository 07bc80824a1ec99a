"""Logical merge of streams with revisions, where (Vs, payload) is a key: LMR3+ with in2t.

    (Vs, payload)   out   in 0   in 1
     6, A            7     12      7      at stable(11) from in 0: A ends at 12 there and 7 < 11,
     8, B           15     10     15      so adj(A,6,7,12) adj(B,8,15,10) go before stable(11)

The table is the paper's two-tier index as columns: one row an event, its end on the output and on
every input; an end at the start means that the event is not there. Elements only fill the table,
inserts come out as the policy says, and a stable that takes the output forward first makes the
output agree with the input it comes from wherever it would freeze something (Algorithm R3).

At stable(∞) events without an end are as final as the others, and the table is empty.

An input whose stable would remove, or end before MaxStable, an event that the output has half
frozen is quarantined; not if the event began in a past that nobody needs (`forgone`), of which one
input may have left out an end that another has shown.
"""

from __future__ import annotations

import numpy as np

from interpunct.model.elements import describe
from interpunct.operators.contract import Held
from interpunct.operators.lmerge_index import Slots
from interpunct.operators.lmerge_revisable import OUT, Places, RevisableMerge
from interpunct.operators.lmerge_rows import Batch, Flags, Output, Ticks, picked
from interpunct.operators.lmerge_tables import GONE, EventTable


class LogicalMergeR3(RevisableMerge):
    """Any elements in any order; one event for each (Vs, payload)."""

    variant = "R3"

    def _prepare(self) -> None:
        columns = 1 + len(self._seats)
        self._events = EventTable(self.state, "in2t", self.output, self.payload, columns)

    def _located(self, batch: Batch) -> Places:
        return Places(self._slots(self._events, batch))

    def _absorb(self, port: int, batch: Batch, places: Places, part: slice, out: Output) -> None:
        events, slots = self._events, places.slots
        rows = np.flatnonzero(slots[part] >= 0) + part.start
        if not rows.size:
            return
        own, vs, ve = slots[rows], batch.vs[rows], batch.ve[rows]
        there = events.begin[own] == vs
        if not there.all():
            born = ~there & batch.insert[rows] & (vs >= self.max_stable)
            events.enliven(own[born], vs[born])
            there = events.begin[own] == vs
            rows, own, vs, ve = rows[there], own[there], vs[there], ve[there]
        if self._follows(port):
            self._follow(port, batch, rows, own, out)
        else:
            inserts = batch.insert[rows]
            self._first(port, batch, rows[inserts], own[inserts], out)
        events.columns[1 + port].set(own, ve)

    def _first(self, port: int, batch: Batch, rows: Ticks, own: Slots, out: Output) -> None:
        """Inserts of events that are not out yet, where the policy permits."""
        column = self._events.columns[OUT]
        fresh = (column.values[own] == batch.vs[rows]) & (batch.vs[rows] >= self.max_stable)
        fresh &= self._permitted(port, own)
        rows, own = rows[fresh], own[fresh]
        if not rows.size:
            return
        first = _first_places(own)
        rows, own = rows[first], own[first]
        column.set(own, batch.ve[rows])
        out.rows(batch.frame, rows)

    def _follow(self, port: int, batch: Batch, rows: Ticks, own: Slots, out: Output) -> None:
        """Every element that changes an event of the output comes out as such a change.

        It must be one that the output's stable allows; its Vold is the end the event has on the
        output by then, which is that of the element before it on the same event.
        """
        column = self._events.columns[OUT]
        is_out = column.values[own] != batch.vs[rows]
        legal = (batch.ve[rows] >= self.max_stable) & (is_out | self._permitted(port, own))
        rows, own = rows[legal], own[legal]
        if not rows.size:
            return
        order = np.argsort(own, kind="stable")
        rows, own = rows[order], own[order]
        ends = batch.ve[rows]
        before = np.concatenate(([0], ends[:-1]))
        starts = np.concatenate(([True], own[1:] != own[:-1]))
        before[starts] = column.values[own[starts]]
        column.set(own, ends)
        changed = np.flatnonzero(before != ends)
        changed = changed[np.argsort(rows[changed])]
        self._changed(batch, rows[changed], before[changed], out)

    def _changed(self, batch: Batch, rows: Ticks, before: Ticks, out: Output) -> None:
        verbatim = batch.insert[rows] & (before == batch.vs[rows])
        verbatim |= batch.adjust[rows] & (before == batch.vold[rows])
        if verbatim.all():
            out.rows(batch.frame, rows)
        else:
            out.revised(picked(batch.frame, rows), batch.vs[rows], before, batch.ve[rows])

    def _permitted(self, port: int, own: Slots) -> Flags:
        """For each event, whether an insert from this input may come out now."""
        joined = self.joined
        if port not in joined or self.policy.inserts == "half-frozen":
            return np.zeros(len(own), bool)
        if self.policy.inserts == "leader":
            return np.full(len(own), port == self.leader)
        needed = self.policy.needed(len(joined))
        if needed == 1:
            return np.ones(len(own), bool)
        vs = self._events.begin[own]
        others = [self._events.columns[1 + p].values[own] > vs for p in joined if p != port]
        enough: Flags = np.sum(others, axis=0) + 1 >= needed
        return enough

    def _agree(self, port: int, at: int, out: Output) -> bool:
        events, before = self._events, self.max_stable
        begun = np.flatnonzero(events.begin < at)
        vs = events.begin[begun]
        there, shown = events.columns[1 + port].values[begun], events.columns[OUT].values[begun]
        denied = (vs < before) & (there < before) & (vs >= self.forgone)
        if denied.any():
            slot = begun[denied][:1]
            made = Output(self.output)
            made.revised(events.payload(slot), vs[denied][:1], vs[denied][:1], shown[denied][:1])
            self._contradicted(port, at, describe(self.output, made.taken()))
            return False
        there = np.where(vs < before, np.maximum(there, before), there)
        ends = there < at
        wrong = (there != shown) & (ends | (shown < at))
        switched = self.policy.adjusts == "leader" and self._record["followed"] != port
        if switched:
            wrong = there != shown
        self._revise(begun[wrong], vs[wrong], shown[wrong], there[wrong], out)
        if switched:
            self._record["followed"] = port
            self._follow_new_leader(port, at, out)
        if self.policy.inserts == "leader" and self.leader != port:
            self._record["leader"] = port
            self._show(port, out)
        gone = begun if at >= self._forever else begun[ends]
        if gone.size:
            events.remove(gone)
        return True

    def _follow_new_leader(self, port: int, at: int, out: Output) -> None:
        """What is unfrozen becomes what the new leader has; what only others have shown goes where
        inserts follow the leader too."""
        events = self._events
        open_ = np.flatnonzero((events.begin >= at) & (events.begin < GONE))
        vs = events.begin[open_]
        there, shown = events.columns[1 + port].values[open_], events.columns[OUT].values[open_]
        wrong = there != shown
        if self.policy.inserts != "leader":
            wrong &= there != vs  # what it has not shown yet may stay
        if self.policy.inserts == "half-frozen":
            wrong &= shown != vs
        self._revise(open_[wrong], vs[wrong], shown[wrong], there[wrong], out)

    def _show(self, port: int, out: Output) -> None:
        events = self._events
        live = (events.begin >= self.max_stable) & (events.begin < GONE)
        slots = np.flatnonzero(live & (events.column(OUT) == events.begin))
        slots = slots[events.columns[1 + port].values[slots] > events.begin[slots]]
        slots = slots[self._permitted(port, slots)]
        vs = events.begin[slots]
        self._revise(slots, vs, vs, events.columns[1 + port].values[slots], out)

    def _revise(self, slots: Slots, vs: Ticks, before: Ticks, after: Ticks, out: Output) -> None:
        if slots.size:
            out.revised(self._events.payload(slots), vs, before, after)
            self._events.columns[OUT].set(slots, after)

    def _forget_past(self) -> None:
        """An event that ends in the past is not there; if no input has another end for it, it goes
        from the table, except for what is half frozen on the output."""
        events, at = self._events, self.forgone
        begun = np.flatnonzero(events.begin < at)
        vs = events.begin[begun]
        over = (vs >= self.max_stable) & (events.column(OUT)[begun] < at)
        for column in events.columns[1 + OUT :]:
            past = column.values[begun] < at
            column.set(begun[past], vs[past])
            over &= past
        events.remove(begun[over])

    def _left(self, port: int) -> None:
        """Without entries: as if it had never shown anything."""
        slots = np.arange(self._events.size)
        column = self._events.columns[1 + port]
        alive = self._events.begin != GONE
        column.set(slots[alive], self._events.begin[alive])

    def _added(self) -> None:
        self._events.add_column()

    def _shrink(self) -> None:
        self._events.shrink()

    def _held(self) -> Held:
        return self._events.held()

    def _save(self) -> None:
        super()._save()
        self._events.save()


def _first_places(slots: Slots) -> Slots:
    """Where each distinct slot stands first, in order."""
    _, places = np.unique(slots, return_index=True)
    return np.sort(places)
