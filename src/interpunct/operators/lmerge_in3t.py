"""The third tier of in3t: how often each event ends when, on the output and on every input.

    event   end   out   in 0   in 1
      0      10    2      1      2        two events alike on the output, one of which
      0      15    0      1      0        in 0 has adjusted to end at 15

Where LMerge Figure 1 has a small tree of ends below each stream's entry, here an end of an event is
a row with one count for each stream. Ends before MaxStable of events that began before it are
final, the same for everyone, and leave the table.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from interpunct.operators.lmerge_index import KeyIndex, Slots, first_of_each, pair_keys
from interpunct.operators.lmerge_rows import Flags, Ticks
from interpunct.operators.lmerge_tables import FEWEST_GONE, Column
from interpunct.operators.state import State

NOBODY = -1  # the event of an end that is no more


class EndTable:
    """Rows (event, end) with counts; column 0 counts the output, column r + 1 input r."""

    def __init__(self, state: State, name: str, columns: int) -> None:
        self._state, self._name = state, name
        self._event = Column(state, f"{name}.event")
        self._end = Column(state, f"{name}.end")
        self.columns = [Column(state, f"{name}.{i}") for i in range(columns)]
        self._index = KeyIndex()
        self._gone = 0
        if self._event.size:
            self.shrink(np.ones(max(1, int(self.event.max()) + 1), bool))

    @property
    def event(self) -> Slots:
        return self._event.values[: self._event.size]

    @property
    def end(self) -> Ticks:
        return self._end.values[: self._end.size]

    @property
    def size(self) -> int:
        return self._event.size

    def locate(self, events: Slots, ends: Ticks) -> Slots:
        """The row of each pair, which is added if need be."""
        first, second = pair_keys(events, ends)
        rows = self._index.find(first, second)
        fresh = np.flatnonzero(rows < 0)
        if fresh.size:
            places, own = first_of_each(first[fresh], second[fresh])
            chosen = fresh[places]
            added = self._event.extend(events[chosen])
            self._end.extend(ends[chosen])
            for column in self.columns:
                column.extend(np.zeros(len(chosen), np.int64))
            self._index.add(first[chosen], second[chosen], added)
            rows[fresh] = added[own]
        return rows

    def add_column(self) -> None:
        column = Column(self._state, f"{self._name}.{len(self.columns)}")
        column.extend(np.zeros(self.size, np.int64))
        self.columns.append(column)

    def remove(self, rows: Slots) -> None:
        """These ends are no more; their events are not asked for them again."""
        self._event.set(rows, NOBODY)
        self._gone += len(rows)

    def shrink(self, events: Flags | None = None) -> None:
        """Move together what is in use, if half is not, or if only some events are kept, which
        are numbered anew then."""
        if events is None and self._gone <= max(FEWEST_GONE, self.size - self._gone):
            return
        kept = self.event != NOBODY
        if events is not None:
            kept &= events[self.event]
        for column in (self._event, self._end, *self.columns):
            column.keep(kept)
        if events is not None:
            self._event.set(np.arange(self.size), (np.cumsum(events) - 1)[self.event])
        self._index = KeyIndex()
        self._index.add(*pair_keys(self.event, self.end), np.arange(self.size))
        self._gone = 0

    @property
    def nbytes(self) -> int:
        columns = (self._event, self._end, *self.columns)
        return sum(c.nbytes for c in columns) + self._index.nbytes

    def save(self) -> None:
        for column in (self._event, self._end, *self.columns):
            column.save()


@dataclass(frozen=True)
class Balance:
    """Changes to the output, one row an event: its number, the end it had and the end it gets.

    The row of an end is -1 where the event is inserted (before) or removed (after).
    """

    event: Slots
    before: Slots
    after: Slots


def balance(
    event: Slots, there: Ticks, shown: Ticks, final: Flags, *, inserts: bool, removes: bool,
    every: bool = False, pairs: bool = True,
) -> Balance:  # fmt: skip
    """How to make the output's counts fit those of an input; rows are (event, end) pairs.

    The paper names the two steps and leaves them open. Of each event the ends that the output has
    too often (sources) and too seldom (sinks) are listed, copy by copy, those that become final
    first. AdjustOutputCount: if the sinks are more, as many events are inserted at the first
    sinks; if the sources are more, as many are removed from the first sources. Then they are
    equally many. AdjustOutput: what is left is paired in order, and a pair becomes an adjust if
    one of the two is final. That is the least number of adjusts: a final source needs one and so
    does a final sink, and one serves both where both are there. Pairs that are not final stay as
    they are, which keeps the output quiet, unless `every` difference is to go.
    """
    sources, source_event, source_final = _copies(event, shown - there, final)
    sinks, sink_event, sink_final = _copies(event, there - shown, final)
    events = int(event.max()) + 1 if len(event) else 0
    surplus = np.bincount(source_event, minlength=events) - np.bincount(
        sink_event, minlength=events
    )
    source_rank, sink_rank = _ranks(source_event), _ranks(sink_event)
    removed = source_rank < surplus[source_event]
    inserted = sink_rank < -surplus[sink_event]
    found = []
    if removes:
        found.append((source_event[removed], sources[removed], np.full(removed.sum(), -1)))
    if inserts:
        found.append((sink_event[inserted], np.full(inserted.sum(), -1), sinks[inserted]))
    if pairs:
        left, right = sources[~removed], sinks[~inserted]
        needed = source_final[~removed] | sink_final[~inserted] | every
        found.append((source_event[~removed][needed], left[needed], right[needed]))
    columns = [np.concatenate(parts) for parts in zip(*found, strict=True)]
    order = np.argsort(columns[0], kind="stable")
    return Balance(*(c[order] for c in columns))


def _copies(event: Slots, amounts: Ticks, final: Flags) -> tuple[Slots, Slots, Flags]:
    """Rows repeated as often as their amount says, by event, what is final first."""
    rows = np.flatnonzero(amounts > 0)
    rows = rows[np.lexsort((~final[rows], event[rows]))]
    repeated = np.repeat(rows, amounts[rows])
    return repeated, event[repeated], final[repeated]


def _ranks(groups: Slots) -> Slots:
    """The place of each within its run of equal ones, from 0."""
    places = np.arange(len(groups))
    starts = (
        np.concatenate(([True], groups[1:] != groups[:-1])) if len(groups) else np.empty(0, bool)
    )
    return places - np.maximum.accumulate(np.where(starts, places, 0))
