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
import polars as pl

from interpunct.model.expression import Aggregate
from interpunct.model.schema import Attribute, Schema, ddl_type

LONG = 20_000  # tuples of a run, on average, that are worth being grouped by themselves


class Partials:
    """`keys` are the pane and the groups; the pane is computed from each tuple's time."""

    def __init__(
        self, schema: Schema, pane: str, by: Sequence[str], aggregates: Mapping[str, Aggregate]
    ) -> None:
        self._input, self._pane, self._by = schema, pane, list(by)
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
        empty = self.of_tuples(self._input.empty(), pl.lit(0, pl.Int64).alias(self._pane))
        return Schema(tuple(Attribute(n, ddl_type(t), t) for n, t in empty.schema.items()))

    def of_tuples(self, frame: pl.DataFrame, pane: pl.Expr) -> pl.DataFrame:
        """Partial rows of a page's tuples."""
        if not self.combinable:
            return frame.select(pane, *self._by, *self._raw)
        parts = [part.partial.alias(column) for column, part in self._parts]
        runs = _runs(frame, pane) if self._by else []
        if not runs:
            return frame.group_by(pane, *self._by).agg(parts)
        return pl.concat(
            run.group_by(self._by)
            .agg(parts)
            .select(pl.lit(start, pl.Int64).alias(self._pane), pl.all())
            for start, run in runs
        )

    def combine(self, rows: pl.DataFrame) -> pl.DataFrame:
        """One partial row per pane and group, from any number of them in stream order."""
        if not self.combinable:
            return rows
        parts = [part.combine(column).alias(column) for column, part in self._parts]
        return rows.group_by(self._keys).agg(parts)

    def finish(self, rows: pl.DataFrame) -> pl.DataFrame:
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


def _runs(frame: pl.DataFrame, pane: pl.Expr) -> list[tuple[int, pl.DataFrame]]:
    """The runs of tuples that share a pane, with its start; none where they are short."""
    if frame.height < LONG:
        return []
    panes = frame.select(pane).to_series().to_numpy()
    cuts = np.flatnonzero(panes[1:] != panes[:-1]) + 1
    if (len(cuts) + 1) * LONG > frame.height:
        return []
    ends = [0, *cuts.tolist(), frame.height]
    return [(int(panes[begin]), frame.slice(begin, end - begin)) for begin, end in pairwise(ends)]
