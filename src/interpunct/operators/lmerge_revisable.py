"""Logical merge of streams with revisions: the walk over a page that R3 and R4 share.

    ins ins adj stable(7) ins stable(5) adj stable(9)          MaxStable 6
    ╰─ absorb ─╯ ╰settle╯ ╰──── absorb ───╯ ╰settle╯           stable(5) says nothing new

Elements only fill a table, up to a stable that takes the output forward; this first makes the
output agree with the input it comes from wherever it would freeze something (LMerge section IV-B).

Algorithm R3 left to itself can repeat an event: one whose node is gone because it is fully frozen,
or one of a joining input that lies before MaxStable. Here an event that begins before MaxStable
never enters the table. Elements about such events that end before MaxStable too are dropped before
anything is looked up, which is what makes a lagging input cheap (section VI-C).

A merge that has heard that nobody needs the past (`forgone`) tells its inputs, and some leave it
out. Until it is stable so far it hears all of them as if they did, and waits for a stable that is
not of the past: before that an event that comes forth again could be missing. What is half frozen
on the output and gone on the input then ends where the output is stable, the earliest it can.

What a joining input shows fills the table like any other's, but does not come out, and its stables
wait until it has joined.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import NamedTuple

import numpy as np

from interpunct.operators.lmerge_base import JOINED, LogicalMerge
from interpunct.operators.lmerge_fast_forward import present
from interpunct.operators.lmerge_index import Slots
from interpunct.operators.lmerge_rows import NONE, Batch, Flags, Output, picked, running
from interpunct.operators.lmerge_tables import EventTable

OUT = 0  # the column of the output; input r has column r + 1


class Places(NamedTuple):
    """For each element of a page the slot of its event, and with in3t the rows of its new and its
    old end; -1 where there is none."""

    slots: Slots
    gains: Slots = NONE
    losses: Slots = NONE


class RevisableMerge(LogicalMerge):
    """The walk over a page that R3 and R4 share: elements up to a stable, then the stable."""

    def _merge(self, port: int, batch: Batch, out: Output) -> None:
        seat = self._seats[port]
        if self._past:
            batch = Batch.of(present(batch.frame, self.forgone))
        places = self._located(batch)
        start = 0
        for row in self._promising(batch) if seat.status == JOINED else ():
            at = self.lagged(int(batch.vs[row]))
            if not self._leads(at):
                continue
            self._absorb(port, batch, places, slice(start, row), out)
            start = row
            if not self._settle(port, at, batch, row, out):
                return
        self._absorb(port, batch, places, slice(start, len(batch)), out)
        self._shrink()

    def _promising(self, batch: Batch) -> list[int]:
        """The stables that would take the output forward if nobody else did."""
        rows = np.flatnonzero(batch.stable)
        if not rows.size:
            return []
        times = batch.vs[rows]
        further: list[int] = rows[times > running(times, self.max_stable)[:-1]].tolist()
        return further

    def _relevant(self, batch: Batch) -> Flags:
        """Elements that can still say something: not about what ended before what is stable."""
        at = self.max_stable
        over = (batch.vs < at) & (batch.ve < at) & (batch.insert | (batch.vold < at))
        return ~(over | batch.stable)

    def _slots(self, events: EventTable, batch: Batch, fill: int | None = None) -> Slots:
        """The slots of all that is relevant, with new ones for events that may enter the table.

        A page of which little is irrelevant is looked up as it is: that is less than to cut it.
        """
        relevant = self._relevant(batch)
        slots = np.full(len(batch), -1, np.int64)
        count = np.count_nonzero(relevant)
        if not count:
            return slots
        keys = batch.frame.select(events.key_names)
        new = batch.insert & relevant & (batch.vs >= self.max_stable)
        if 2 * count > len(batch):
            return np.where(relevant, events.locate(keys, batch.vs, new, fill), -1)
        rows = np.flatnonzero(relevant)
        slots[rows] = events.locate(picked(keys, rows), batch.vs[rows], new[rows], fill)
        return slots

    def _settle(self, port: int, at: int, batch: Batch, row: int, out: Output) -> bool:
        """A stable takes the output forward, unless it contradicts what is frozen."""
        if not self._agree(port, at, out):
            return False
        self._record["leader"] = port
        if self.policy.stable_lag:
            out.stable(at)
        else:
            out.rows(batch.frame, np.array([row]))
        self._advance(at, out)
        return True

    def _joined(self, port: int, out: Output) -> None:
        """It may be further than the output: what it has shown counts, and so does its stable."""
        self._show(port, out)
        at = self.lagged(self._seats[port].stable)
        if self._leads(at) and self._agree(port, at, out):
            self._record["leader"] = port
            out.stable(at)
            self._advance(at, out)

    def _leads(self, at: int) -> bool:
        """Whether a stable takes the output forward."""
        return at > self.max_stable and at >= self.forgone

    @property
    def _past(self) -> bool:
        """Whether there is something that inputs may leave out and the output has not frozen."""
        return self.forgone > self.max_stable

    def _follows(self, port: int) -> bool:
        """Whether the output takes over each revision of this input as it comes."""
        if self._seats[port].status != JOINED:
            return False
        adjusts = self.policy.adjusts
        return adjusts == "every" or (adjusts == "leader" and port == self.leader)

    def _contradicted(self, port: int, at: int, event: str) -> None:
        self.quarantine(port, self._stable_text(at), f"the half-frozen event {event}")

    @abstractmethod
    def _located(self, batch: Batch) -> Places:
        """Where in the table each element belongs; nowhere if it is of no interest."""

    @abstractmethod
    def _absorb(self, port: int, batch: Batch, places: Places, part: slice, out: Output) -> None:
        """Elements between two stables."""

    @abstractmethod
    def _agree(self, port: int, at: int, out: Output) -> bool:
        """Make the output agree with an input where stable(at) freezes it; False if it cannot."""

    @abstractmethod
    def _show(self, port: int, out: Output) -> None:
        """Put out what the policy lets this input put out and has not yet come out."""

    @abstractmethod
    def _shrink(self) -> None:
        """Let go of what is out of use, now that no slot is in anyone's hands."""
