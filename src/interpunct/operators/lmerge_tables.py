"""Integer columns that grow, shrink and save what changed; and events with shared payloads.

    slot   begin  payload     out   in 0   in 1  …
      0      6    A, …         12     12      7
      1      8    B, …         15      8     15        an end at the start: no such event here

An event has one slot and one payload, however many inputs have shown it: a further input costs
eight bytes an event and not a payload (LMerge Figures 1 and 2). Slots of events that are gone stay
until they are half as many as those in use; then everything moves together.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from interpunct.model.elements import VS
from interpunct.model.frames import stacked
from interpunct.model.schema import Schema
from interpunct.operators.contract import Held
from interpunct.operators.lmerge_index import KeyIndex, Slots, fingerprints, first_of_each
from interpunct.operators.lmerge_rows import Flags, Ticks, picked
from interpunct.operators.shelf import Shelf
from interpunct.operators.state import State

GONE = np.iinfo(np.int64).max  # the beginning of an event that is no more: after all times
BLOCK_BITS = 12  # slots are saved in blocks of 4,096
FEWEST_GONE = 1024  # slots out of use before it is worth moving the others

NUMBERS = Schema.of("n bigint")


class Column:
    """An integer for every slot; only blocks that were touched are written."""

    def __init__(self, state: State, name: str) -> None:
        self._shelf = Shelf(state, name, NUMBERS)
        blocks = [self._shelf.get(b) for b in sorted(self._shelf)]
        stored = stacked(blocks).get_column("n").to_numpy() if blocks else np.empty(0, np.int64)
        self.size = len(stored)
        self.values: Ticks = np.array(stored, np.int64)
        self._touched: Flags = np.zeros(len(blocks) + 1, bool)
        self._written = len(blocks)

    def extend(self, values: Ticks) -> Slots:
        """Add values at the end; returns their slots."""
        start, end = self.size, self.size + len(values)
        if end > len(self.values):
            grown = np.empty(max(end, 2 * len(self.values), 1024), np.int64)
            grown[:start] = self.values[:start]
            self.values = grown
            self._touched = np.resize(self._touched, (len(grown) >> BLOCK_BITS) + 1)
            self._touched[(start >> BLOCK_BITS) + 1 :] = True
        self.values[start:end] = values
        self.size = end
        self._touched[start >> BLOCK_BITS : (end >> BLOCK_BITS) + 1] = True
        return np.arange(start, end)

    def set(self, slots: Slots, values: Ticks | int) -> None:
        """Of several values for one slot the last stays."""
        self.values[slots] = values
        self._touched[slots >> BLOCK_BITS] = True

    def add(self, slots: Slots, amounts: Ticks) -> None:
        """Amounts for one slot add up."""
        np.add.at(self.values, slots, amounts)
        self._touched[slots >> BLOCK_BITS] = True

    def keep(self, kept: Flags) -> None:
        self.values = self.values[: self.size][kept]
        self.size = len(self.values)
        self._touched = np.ones((self.size >> BLOCK_BITS) + 1, bool)

    def save(self) -> None:
        blocks = ((self.size - 1) >> BLOCK_BITS) + 1
        for block in range(blocks, self._written):
            self._shelf.drop(block)
        for block in np.flatnonzero(self._touched).tolist():
            if block < blocks:
                part = self.values[block << BLOCK_BITS : min(self.size, (block + 1) << BLOCK_BITS)]
                self._shelf.put(block, pl.DataFrame({"n": part.copy()}))
        self._written = blocks
        self._touched[:] = False
        self._shelf.save()

    @property
    def nbytes(self) -> int:
        return self.values.nbytes


class EventTable:
    """Events by (Vs, payload): a slot for each, its beginning, and columns of one's own."""

    def __init__(
        self, state: State, name: str, schema: Schema, payload: Sequence[str], columns: int
    ) -> None:
        self._state, self._name = state, name
        self.key_names = [VS, *payload]
        self._schema = Schema(tuple(schema[n] for n in self.key_names))
        self._payloads = Shelf(state, f"{name}.payload", self._schema)
        self._begin = Column(state, f"{name}.begin")
        self.columns = [Column(state, f"{name}.{i}") for i in range(columns)]
        self._index = KeyIndex()
        if self._begin.size:
            slots = np.arange(self._begin.size)
            self._index.add(*fingerprints(self._payloads.get(0)), slots)
        self._gone = int((self.begin == GONE).sum())

    @property
    def begin(self) -> Ticks:
        """Vs by slot; GONE where there is no event."""
        return self._begin.values[: self._begin.size]

    @property
    def size(self) -> int:
        return self._begin.size

    def column(self, number: int) -> Ticks:
        return self.columns[number].values[: self.size]

    def add_column(self, fill: int | None = None) -> None:
        """One more column, filled with a number or, if there is none, with the beginnings."""
        column = Column(self._state, f"{self._name}.{len(self.columns)}")
        column.extend(self.begin.copy() if fill is None else np.full(self.size, fill, np.int64))
        self.columns.append(column)

    def locate(
        self, keys: pl.DataFrame, vs: Ticks, may_add: Flags, fill: int | None = None
    ) -> Slots:
        """The slot of each row's event, -1 where there is none.

        Where `may_add` says so an unknown event gets a slot. It begins as GONE: what becomes of it
        is decided when its turn comes. Its columns begin as `fill`, or as its Vs.
        """
        first, second = fingerprints(keys)
        slots = self._index.find(first, second)
        fresh = np.flatnonzero((slots < 0) & may_add)
        if not fresh.size:
            return slots
        places, own = first_of_each(first[fresh], second[fresh])
        rows = fresh[places]
        added = self._begin.extend(np.full(len(rows), GONE))
        for column in self.columns:
            column.extend(vs[rows] if fill is None else np.full(len(rows), fill, np.int64))
        self._index.add(first[rows], second[rows], added)
        self._payloads.append(0, copied(keys, rows))
        self._gone += len(rows)
        slots[fresh] = added[own]
        unknown = np.flatnonzero(slots < 0)
        if unknown.size and fresh.size:  # an adjust of an event that the same page inserts
            slots[unknown] = self._index.find(first[unknown], second[unknown])
        return slots

    def enliven(self, slots: Slots, vs: Ticks) -> None:
        """These events exist from now on."""
        self._gone -= len(np.unique(slots))
        self._begin.set(slots, vs)

    def remove(self, slots: Slots) -> None:
        """These events are no more."""
        self._begin.set(slots, GONE)
        self._gone += len(slots)

    def payload(self, slots: Slots) -> pl.DataFrame:
        return picked(self._payloads.get(0), slots)

    def same(self, other: EventTable, slots: Slots) -> Slots:
        """The slots that events of another table have here, -1 where they have none."""
        first, second = other._index.keys(other.size)
        return self._index.find(first[slots], second[slots])

    def shrink(self) -> Flags | None:
        """Move together what is in use, if a third is not; says which slots were kept."""
        if self._gone <= max(FEWEST_GONE, (self.size - self._gone) // 2):
            return None
        kept: Flags = self.begin != GONE
        self._payloads.put(0, copied(self._payloads.get(0), np.flatnonzero(kept)))
        self._begin.keep(kept)
        for column in self.columns:
            column.keep(kept)
        self._index.keep(kept)
        self._gone = 0
        return kept

    def held(self) -> Held:
        own = sum(c.nbytes for c in (self._begin, *self.columns)) + self._index.nbytes
        return Held(self.size - self._gone, self._payloads.nbytes() + own)

    def save(self) -> None:
        self._payloads.save()
        for column in (self._begin, *self.columns):
            column.save()


def copied(frame: pl.DataFrame, rows: Slots) -> pl.DataFrame:
    """Some rows in memory of their own: a view of one string would keep its whole page."""
    if len(rows) == frame.height:
        return frame
    chosen = picked(frame, rows)
    if 2 * len(rows) > frame.height or not len(rows):
        return chosen
    plain = chosen.to_arrow(compat_level=pl.CompatLevel.oldest())
    copied = pl.from_arrow(plain)
    assert isinstance(copied, pl.DataFrame)
    return copied
