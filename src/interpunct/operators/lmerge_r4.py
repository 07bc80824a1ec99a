"""Logical merge without restrictions: LMR4 with in3t, where events may be there several times.

    in 0:  ins(A,6,10) ins(A,6,10)     adj(A,6,10,15)  stable(20)
    in 1:  ins(A,6,10)
    out:   ins(A,6,10) ins(A,6,10)     adj(A,6,10,15)  stable(20)

Algorithm R4: the output has no more events of a (Vs, payload) than the input that shows most of
them; when these become half frozen it gets exactly as many as the input whose stable does it has
(AdjustOutputCount), and for every end that becomes final as many events with that end
(AdjustOutput). How both are worked out stands with `balance`.

The number of events that the output has half frozen is a fact. An input whose stable comes with
another number of them is quarantined.

With adjusts of "every" or the "leader" what the adjusts between two stables of one page amount to
comes out at the end of them; with duplicates there is no telling which event an adjust means. A
removal waits for the next stable, since having fewer events may also mean not to have shown them
yet.
"""

from __future__ import annotations

import numpy as np

from interpunct.operators.contract import Held
from interpunct.operators.lmerge_in3t import NOBODY, Balance, EndTable, balance
from interpunct.operators.lmerge_index import Slots
from interpunct.operators.lmerge_revisable import OUT, Places, RevisableMerge
from interpunct.operators.lmerge_rows import Batch, Flags, Output, Ticks
from interpunct.operators.lmerge_tables import GONE, EventTable

MANY = np.iinfo(np.int64).max // 4


class LogicalMergeR4(RevisableMerge):
    """Any elements in any order, duplicates too."""

    variant = "R4"

    def _prepare(self) -> None:
        columns = 1 + len(self._seats)
        self._events = EventTable(self.state, "in3t", self.output, self.payload, columns)
        self._ends = EndTable(self.state, "ends", columns)

    def _located(self, batch: Batch) -> Places:
        """Rows for ends are made for the whole page; those whose turn never comes count nothing."""
        slots = self._slots(self._events, batch, fill=0)
        open_ = (slots >= 0) & (batch.ve > batch.vs) & (batch.ve >= self.max_stable)
        gains = np.full(len(batch), -1, np.int64)
        gains[open_] = self._ends.locate(slots[open_], batch.ve[open_])
        losses = np.full(len(batch), -1, np.int64)
        old = (slots >= 0) & batch.adjust & (batch.vold >= self.max_stable)
        if old.any():
            losses[old] = self._ends.locate(slots[old], batch.vold[old])
        return Places(slots, gains, losses)

    def _absorb(self, port: int, batch: Batch, places: Places, part: slice, out: Output) -> None:
        events = self._events
        rows = np.flatnonzero(places.slots[part] >= 0) + part.start
        if not rows.size:
            return
        own, vs = places.slots[rows], batch.vs[rows]
        there = events.begin[own] == vs
        if not there.all():
            born = ~there & batch.insert[rows] & (vs >= self.max_stable)
            events.enliven(own[born], vs[born])
            there = events.begin[own] == vs
            rows, own, vs = rows[there], own[there], vs[there]
        change = batch.insert[rows].astype(np.int64)
        change -= batch.adjust[rows] & (batch.ve[rows] == vs)
        self._show_first(port, batch, rows, own, change, places, out)
        events.columns[1 + port].add(own, change)
        self._count_ends(port, batch, rows, places)
        if self._follows(port):
            touched = np.zeros(events.size, bool)
            touched[own[batch.adjust[rows]]] = True
            self._pair(port, touched, out)

    def _count_ends(self, port: int, batch: Batch, rows: Ticks, places: Places) -> None:
        """One more of the new end, one less of the old one; what is final is not counted."""
        column, at = self._ends.columns[1 + port], self.max_stable
        for ends, times, amount in ((places.gains, batch.ve, 1), (places.losses, batch.vold, -1)):
            chosen = rows[(ends[rows] >= 0) & (times[rows] >= at)]
            column.add(ends[chosen], np.full(len(chosen), amount))

    def _show_first(
        self,
        port: int,
        batch: Batch,
        rows: Ticks,
        own: Slots,
        change: Ticks,
        places: Places,
        out: Output,
    ) -> None:
        """Inserts that make this input's count greater than the output's (lines 9 to 11).

        Between two stables the output's count of an event grows only with this input's, so it is
        the running maximum of that.
        """
        order = np.argsort(own, kind="stable")
        rows, event, change = rows[order], own[order], change[order]
        starts = np.concatenate(([True], event[1:] != event[:-1]))
        reached, total = self._events.columns[OUT].values[event], change
        if not starts.all():
            group = np.cumsum(starts) - 1
            total = np.cumsum(change)
            total = total - (total - change)[starts][group]
        count = self._events.columns[1 + port].values[event] + total
        count = np.minimum(count, self._most(port, event))
        if not starts.all():
            reached = _running_in_groups(count, reached, starts, group)
        fresh = (change > 0) & (count > reached) & (batch.vs[rows] >= self.max_stable)
        chosen = rows[fresh]
        once = np.ones(len(chosen), np.int64)
        self._events.columns[OUT].add(event[fresh], once)
        self._ends.columns[OUT].add(places.gains[chosen], once)
        out.rows(batch.frame, np.sort(chosen))

    def _most(self, port: int, event: Slots) -> Ticks:
        """How many of each event inserts from this input may bring out: with a quorum of k the
        k-1 other inputs that show most of it must show as many."""
        joined = self.joined
        inserts = self.policy.inserts
        barred = port not in joined or inserts == "half-frozen"
        if barred or (inserts == "leader" and port != self.leader):
            return np.zeros(len(event), np.int64)
        needed = self.policy.needed(len(joined))
        if needed == 1:
            return np.full(len(event), MANY)
        others = [self._events.columns[1 + p].values[event] for p in joined if p != port]
        fewest: Ticks = np.sort(others, axis=0)[-(needed - 1)]
        return fewest

    def _agree(self, port: int, at: int, out: Output) -> bool:
        begun = self._events.begin < at
        rows = self._rows(begun)
        event = self._ends.event[rows]
        there, shown = self._counts(port, rows)
        final = self._ends.end[rows] < at
        differ = np.flatnonzero(there != shown)
        if differ.size:
            if self._denied(port, at, event, there, shown):
                return False
            followed = self.policy.adjusts == "leader"
            chosen = (event[differ], there[differ], shown[differ], final[differ])
            found = balance(*chosen, inserts=True, removes=True, every=followed)
            self._apply(rows[differ], found, out)
        if self.policy.inserts == "leader" and self.leader != port:
            self._record["leader"] = port
            self._show(port, out)
        stays = np.zeros(self._events.size, bool)
        if at < self._forever:
            stays[event[~final & (there > 0)]] = True
        self._ends.remove(rows[final | ~stays[event]])
        over = np.flatnonzero(begun & ~stays)
        if over.size:
            self._events.remove(over)
        return True

    def _denied(self, port: int, at: int, event: Slots, there: Ticks, shown: Ticks) -> bool:
        """Whether the input has another number of half-frozen events than the output; as long as
        there are some that it may have left out, whether it has more of them."""
        events = self._events
        counts = [np.bincount(event, c, events.size) for c in (there, shown)]
        other = counts[0] > counts[1] if self._past else counts[0] != counts[1]
        denied = (events.begin < self.max_stable) & other
        if not denied.any():
            return False
        slot = np.flatnonzero(denied)[:1]
        text = f"{events.payload(slot).row(0)}, there {counts[1][slot[0]]:.0f} times"
        self._contradicted(port, at, text)
        return True

    def _counts(self, port: int, rows: Slots) -> tuple[Ticks, Ticks]:
        """How often the input and the output have these ends. An input that adjusts what it has
        not shown has less than none of it, which means none."""
        there, shown = (self._ends.columns[c].values[rows] for c in (1 + port, OUT))
        return np.maximum(there, 0), shown

    def _rows(self, chosen: Flags) -> Slots:
        """The ends of the chosen events."""
        event = self._ends.event
        return np.flatnonzero((event != NOBODY) & chosen[event])

    def _pair(self, port: int, chosen: Flags, out: Output) -> None:
        """Adjust ends of the output to those of an input, wherever they can be paired."""
        rows = self._rows(chosen)
        event = self._ends.event[rows]
        there, shown = self._counts(port, rows)
        final = np.zeros(len(rows), bool)
        found = balance(event, there, shown, final, inserts=False, removes=False, every=True)
        self._apply(rows, found, out)

    def _apply(self, rows: Slots, found: Balance, out: Output) -> None:
        """Put the changes out and count them."""
        if not found.event.size:
            return
        vs = self._events.begin[found.event]
        end = np.append(self._ends.end[rows], 0)
        before = np.where(found.before < 0, vs, end[found.before])
        gone = np.maximum(vs, self.max_stable)  # what is half frozen cannot be removed any more
        after = np.where(found.after < 0, gone, end[found.after])
        out.revised(self._events.payload(found.event), vs, before, after)
        column = self._ends.columns[OUT]
        for places, amount in ((found.before, -1), (found.after, 1)):
            chosen = rows[places[places >= 0]]
            column.add(chosen, np.full(len(chosen), amount))
        change = (found.after >= 0).astype(np.int64) - (found.before >= 0)
        self._events.columns[OUT].add(found.event, change)

    def _show(self, port: int, out: Output) -> None:
        events = self._events
        live = (events.begin >= self.max_stable) & (events.begin != GONE)
        most = np.minimum(events.column(1 + port), self._most(port, np.arange(events.size)))
        rows = self._rows(live & (most > events.column(OUT)))
        event = self._ends.event[rows]
        there, shown = self._counts(port, rows)
        final = np.zeros(len(rows), bool)
        found = balance(event, there, shown, final, inserts=True, removes=False, pairs=False)
        self._apply(rows, found, out)

    def _forget_past(self) -> None:
        """Ends in the past count nothing on the inputs. An event of which no input has another end
        and the output shows none goes from the table, unless the output has it half frozen."""
        events, ends, at = self._events, self._ends, self.forgone
        rows = self._rows(events.begin < at)
        event, past = ends.event[rows], ends.end[rows] < at
        begun = events.begin < at
        over = begun & (events.begin >= self.max_stable)
        over[event[~past & (ends.columns[OUT].values[rows] > 0)]] = False
        for number in range(1 + OUT, len(ends.columns)):
            ends.columns[number].set(rows[past], 0)
            counts = np.bincount(event, ends.columns[number].values[rows].clip(0), events.size)
            over &= counts == 0
            events.columns[number].set(np.flatnonzero(begun), counts[begun].astype(np.int64))
        events.remove(np.flatnonzero(over))

    def _left(self, port: int) -> None:
        for table in (self._events, self._ends):
            table.columns[1 + port].set(np.arange(table.size), 0)

    def _added(self) -> None:
        self._events.add_column(fill=0)
        self._ends.add_column()

    def _shrink(self) -> None:
        self._ends.shrink(self._events.shrink())

    def _held(self) -> Held:
        return self._events.held() + Held(bytes=self._ends.nbytes)

    def _save(self) -> None:
        super()._save()
        self._events.save()
        self._ends.save()


def _running_in_groups(values: Ticks, first: Ticks, starts: Flags, group: Slots) -> Ticks:
    """For each place the greatest of its group's `first` and of the values before it there."""
    before = np.concatenate(([0], values[:-1]))
    before = np.where(starts, first, np.maximum(before, first))
    step = int(before.max() - before.min()) + 1 if len(before) else 1
    return np.maximum.accumulate(before + group * step) - group * step
