"""Partial aggregation: rows that stand for many tuples, can be combined, and finished.

When every aggregate decomposes, a pane keeps one row per group; when one does not, it keeps the
tuples, and combining is just keeping them together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from interpunct.model.expression import Aggregate
from interpunct.model.schema import Attribute, Schema, ddl_type


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
        return frame.group_by(pane, *self._by).agg(parts)

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
