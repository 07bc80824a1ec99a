"""W(j): the tuples of one join input that later tuples may still meet.

They are shelved by time, so that a batch touches only the part it can reach, time passing drops
whole shelves, and what did not change is not written again.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from interpunct.model.condition import Condition
from interpunct.model.frames import stacked
from interpunct.model.pattern import Pattern
from interpunct.model.schema import Schema
from interpunct.operators.contract import Held
from interpunct.operators.join_schema import ID
from interpunct.operators.shelf import Shelf
from interpunct.operators.state import State

SHELVES = 4  # per window: an expired tuple is kept at most a quarter of the window too long


class JoinWindow:
    """Tuples stay for `window` ticks after their timestamp."""

    def __init__(self, state: State, name: str, schema: Schema, window: int) -> None:
        self._schema, self._window = schema, window
        self._tick = schema.ordered_by
        self._width = max(1, window // SHELVES)
        self._stored = Shelf(state, name, schema)

    def add(self, frame: pl.DataFrame, sure: int) -> None:
        """Shelve the tuples that a later one, stamped above `sure`, can still meet."""
        self._shelve(frame.filter(pl.col(self._tick) + self._window > sure))

    def between(self, ticks: pl.Series, before: int, after: int) -> pl.DataFrame:
        """What is stored in the reach of these ticks, give or take a shelf."""
        if not ticks.len():
            return self._schema.empty()
        low = (int(ticks.min()) - before) // self._width  # type: ignore[arg-type]
        high = (int(ticks.max()) + after) // self._width  # type: ignore[arg-type]
        keys = sorted(k for k in self._stored if low <= k <= high)
        return stacked([self._schema.empty(), *(self._stored.get(k) for k in keys)])

    def expire(self, sure: int) -> None:
        """Drop the shelves whose last tuple no later one can meet."""
        for key in [k for k in self._stored if (k + 1) * self._width - 1 + self._window <= sure]:
            self._stored.drop(key)

    def purge(self, conditions: Mapping[str, Condition]) -> int:
        """Forget the tuples that match, attributes under the result's names; returns how many."""
        before, pattern = self._stored.height, Pattern(self._schema, conditions)
        for key in list(self._stored):
            frame = self._stored.get(key)
            kept = pattern.without(frame)
            if kept.height < frame.height:
                self._stored.put(key, kept)
        return before - self._stored.height

    def all(self) -> pl.DataFrame:
        return stacked([self._schema.empty(), *(self._stored.get(k) for k in self._stored)])

    def held(self) -> Held:
        return Held(self._stored.height, self._stored.nbytes())

    def save(self) -> None:
        self._stored.save()

    def _shelve(self, frame: pl.DataFrame) -> None:
        if not frame.height:
            return
        shelf = frame.get_column(self._tick) // self._width
        if shelf[0] == shelf[-1]:  # in time order, so the whole frame is on one shelf
            self._stored.append(int(shelf[0]), frame)
            return
        parts = frame.with_columns(shelf.alias("_shelf")).partition_by(
            "_shelf", as_dict=True, include_key=False, maintain_order=True
        )
        for (key,), rows in parts.items():
            self._stored.append(int(key), rows)


class Unmet(JoinWindow):
    """The tuples of the left input that have met nobody so far."""

    def remove_met(self, met: pl.DataFrame) -> None:
        """Forget those that are part of a result (columns: their ticks and their number)."""
        if not met.height:
            return
        low, high = met[self._tick].min(), met[self._tick].max()
        for key in [k for k in self._stored if low // self._width <= k <= high // self._width]:  # type: ignore[operator]
            left = self._stored.get(key)
            self._stored.put(key, left.join(met, on=ID, how="anti"))

    def take_expired(self, sure: int) -> pl.DataFrame:
        """Remove and return those whose window has passed for certain."""
        passed = [self._schema.empty()]
        for key in sorted(k for k in self._stored if k * self._width + self._window <= sure):
            frame = self._stored.get(key)
            gone = pl.col(self._tick) + self._window <= sure
            passed.append(frame.filter(gone))
            self._stored.put(key, frame.filter(~gone))
        return stacked(passed)

    def first(self) -> int | None:
        """The least timestamp of a tuple that has met nobody."""
        if not self._stored.rows:
            return None
        return int(self._stored.get(min(self._stored))[self._tick].min())  # type: ignore[arg-type]
