"""Partial aggregation: rows that stand for many tuples, can be combined, and finished.

When every aggregate decomposes, a pane keeps one row per group; when one does not, it keeps the
tuples, and combining is just keeping them together.

Of a stream in order the tuples of a pane come in a row. Long runs are grouped each by itself, by
one key less, which is twice as fast; a pane that comes in several runs has several rows per group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import polars as pl

from interpunct.model.expression import Aggregate
from interpunct.model.frames import Frame
from interpunct.model.schema import Attribute, Schema, ddl_type
from interpunct.operators.dense import by_position

LONG = 20_000  # tuples of a run, on average, that are worth being grouped by themselves


class Partials:
    """`keys` are the pane and the groups; the pane is computed from each tuple's time."""

    def __init__(
        self,
        schema: Schema,
        pane: str,
        length: int,
        by: Sequence[str],
        aggregates: Mapping[str, Aggregate],
    ) -> None:
        """Panes of this `length` begin at its multiples, and are called `pane`."""
        self._input, self._pane, self._length, self._by = schema, pane, length, list(by)
        self._keys = [pane, *by]
        self._aggregates = dict(aggregates)
        self.combinable = all(a.parts is not None for a in aggregates.values())
        self._parts = [
            (f"_{name}_{part.suffix}", part)
            for name, a in aggregates.items()
            for part in (a.parts or ())
        ]
        inputs = {i for a in aggregates.values() for i in a.inputs}
        self._raw = [n for n in schema.names if n in inputs and n not in by]
        self.schema = self._schema()

    def _schema(self) -> Schema:
        """The schema of partial rows, as stored."""
        planned = self._by_pane(self._input.empty().lazy()).collect_schema()
        return Schema(tuple(Attribute(n, ddl_type(t), t) for n, t in planned.items()))

    def of_tuples(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Partial rows of a page's tuples."""
        runs = self._runs(frame) if self._by and self.combinable else []
        if not runs:
            return self._by_pane(frame)
        return pl.concat(self._of_run(start, run) for start, run in runs)

    def _of_run(self, start: int, run: pl.DataFrame) -> pl.DataFrame:
        """The groups of tuples that share a pane."""
        by = self._by
        found = by_position(run, by[0], self._parts) if len(by) == 1 else None
        groups = run.group_by(by).agg(self._partial()) if found is None else found
        panes = pl.Series(self._pane, [start], pl.Int64).new_from_index(0, groups.height)
        return groups.insert_column(0, panes)

    def _by_pane(self, frame: Frame) -> Frame:
        ticks = self._input.ticks_expr()
        pane = (ticks // self._length * self._length).alias(self._pane)
        if not self.combinable:
            return frame.select(pane, *self._by, *self._raw)
        return frame.group_by(pane, *self._by).agg(self._partial())

    def _partial(self) -> list[pl.Expr]:
        return [part.partial.alias(column) for column, part in self._parts]

    def _runs(self, frame: pl.DataFrame) -> list[tuple[int, pl.DataFrame]]:
        """The runs of tuples that share a pane, with its start; none where they are short."""
        if frame.height < LONG:
            return []
        ticks = self._input.ticks(frame)
        cuts = self._cuts(ticks)
        if (len(cuts) + 1) * LONG > frame.height:
            return []
        ends = [0, *cuts.tolist(), frame.height]
        return [
            (int(ticks[begin]) // self._length * self._length, frame.slice(begin, end - begin))
            for begin, end in pairwise(ends)
        ]

    def _cuts(self, ticks: pl.Series) -> npt.NDArray[np.intp]:
        """Where another pane begins than that of the tuple before; of tuples in order, with few
        panes from first to last, that is looked up."""
        times, length = ticks.to_numpy(), self._length
        first, last = int(times[0]) // length, int(times[-1]) // length
        if ticks.is_sorted() and (last - first) * LONG <= len(times):
            starts = np.arange(first + 1, last + 1, dtype=np.int64) * length
            return np.unique(np.searchsorted(times, starts))
        panes = times // length
        return np.flatnonzero(panes[1:] != panes[:-1]) + 1

    def combine(self, rows: Frame) -> Frame:
        """One partial row per pane and group, from any number of them in stream order."""
        if not self.combinable:
            return rows
        parts = [part.combine(column).alias(column) for column, part in self._parts]
        return rows.group_by(self._keys).agg(parts)

    def finish(self, rows: Frame) -> Frame:
        """Results, with the pane as the time attribute of the input."""
        if self.combinable:
            results = self.combine(rows).select(*self._keys, *self._finished())
        else:
            whole = [a.polars.alias(n) for n, a in self._aggregates.items()]
            results = rows.group_by(self._keys).agg(whole)
        time = self._input.ordered_by
        start = pl.col(self._pane).cast(self._input[time].dtype).alias(time)
        return results.with_columns(start).drop(self._pane)

    def _finished(self) -> list[pl.Expr]:
        finished = []
        for name, aggregate in self._aggregates.items():
            columns = [f"_{name}_{part.suffix}" for part in aggregate.parts or ()]
            assert aggregate.finish is not None
            finished.append(aggregate.finish(columns).cast(aggregate.dtype).alias(name))
        return finished
