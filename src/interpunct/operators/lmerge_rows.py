"""A page of elements as arrays, and the elements that a merge puts out for it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from interpunct.model.elements import (
    ADJUST,
    INSERT,
    KIND,
    STABLE,
    VE,
    VOLD,
    VS,
    ticks,
)
from interpunct.model.frames import stacked
from interpunct.model.schema import START_OF_TIME, Schema

Ticks = NDArray[np.int64]
Flags = NDArray[np.bool_]

NONE = np.empty(0, np.int64)


@dataclass(frozen=True)
class Batch:
    """Elements of one input in stream order: the frame, its kinds as masks, its times as ticks.

    A time that is missing is before all time.
    """

    frame: pl.DataFrame
    insert: Flags
    adjust: Flags
    stable: Flags
    vs: Ticks
    vold: Ticks
    ve: Ticks

    @classmethod
    def of(cls, frame: pl.DataFrame) -> Batch:
        kind = frame.get_column(KIND)
        insert, stable = (kind.eq_missing(k).to_numpy() for k in (INSERT, STABLE))
        adjust = ~(insert | stable)
        if adjust.any():
            adjust = kind.eq_missing(ADJUST).to_numpy()
        vs, ve = _filled(frame, VS), _filled(frame, VE)
        vold = _filled(frame, VOLD) if adjust.any() else ve
        return cls(frame, insert, adjust, stable, vs, vold, ve)

    def __len__(self) -> int:
        return len(self.vs)

    def between(self, start: int, end: int) -> Batch:
        """The elements from one row to before another."""
        if start == 0 and end >= len(self):
            return self
        cut = slice(start, end)
        return Batch(
            self.frame.slice(start, end - start), self.insert[cut], self.adjust[cut],
            self.stable[cut], self.vs[cut], self.vold[cut], self.ve[cut],
        )  # fmt: skip

    def where(self, chosen: Flags) -> Batch:
        return Batch(
            self.frame.filter(pl.Series(chosen)), self.insert[chosen], self.adjust[chosen],
            self.stable[chosen], self.vs[chosen], self.vold[chosen], self.ve[chosen],
        )  # fmt: skip


def picked(frame: pl.DataFrame, rows: Ticks) -> pl.DataFrame:
    """Rows by number, given to Polars in the type that it need not convert."""
    return frame[pl.Series(rows.astype(np.uint32))]


def _filled(frame: pl.DataFrame, name: str) -> Ticks:
    return ticks(frame, name).fill_null(START_OF_TIME).to_numpy()


def running(values: Ticks, first: int) -> Ticks:
    """For each place the greatest of `first` and the values before it, and for one place more."""
    return np.maximum.accumulate(np.concatenate(([first], values)))


class Output:
    """Elements on their way out, in order: rows of a page as they are, and rows that are made."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._frames: list[pl.DataFrame] = []
        self._source: pl.DataFrame | None = None
        self._chosen: list[Ticks] = []

    def rows(self, source: pl.DataFrame, chosen: Ticks) -> None:
        """Rows of a page, unchanged; those of one page are gathered in one go."""
        if not len(chosen):
            return
        if source is not self._source:
            self._flush()
            self._source = source
        self._chosen.append(chosen)

    def frame(self, made: pl.DataFrame) -> None:
        """Whole elements, made elsewhere."""
        if made.height:
            self._flush()
            self._frames.append(made)

    def revised(self, payload: pl.DataFrame, vs: Ticks, before: Ticks, after: Ticks) -> None:
        """What turns events that end at `before` into such that end at `after`; an end at the
        start means that there is none, so that this inserts, adjusts and removes."""
        if not len(vs):
            return
        fresh = before == vs
        kinds = pl.Series(np.where(fresh, INSERT, ADJUST).tolist(), dtype=pl.String)
        old = pl.Series(before).set(pl.Series(fresh), None)
        times = {VS: pl.Series(vs), VOLD: old, VE: pl.Series(after)}
        columns = [kinds.alias(KIND)]
        columns += [s.cast(self._schema[n].dtype).alias(n) for n, s in times.items()]
        names = self._schema.names[len(columns) :]
        self.frame(pl.DataFrame(columns).hstack(payload.select(names)))

    def stable(self, at: int) -> None:
        """A stable that no input has said in these words."""
        row = dict.fromkeys(self._schema.names) | {KIND: STABLE}
        made = pl.DataFrame([row], schema=self._schema.polars)
        time = pl.Series(VS, [at], pl.Int64).cast(self._schema[VS].dtype)
        self.frame(made.with_columns(time))

    def taken(self) -> pl.DataFrame:
        """Everything so far as one frame."""
        self._flush()
        if not self._frames:
            return self._schema.empty()
        return stacked(self._frames)

    def _flush(self) -> None:
        if self._source is None:
            return
        chosen = np.concatenate(self._chosen) if len(self._chosen) > 1 else self._chosen[0]
        if len(chosen) == self._source.height:
            self._frames.append(self._source)  # they are in order, so they are all of it
        else:
            self._frames.append(picked(self._source, chosen))
        self._source, self._chosen = None, []
