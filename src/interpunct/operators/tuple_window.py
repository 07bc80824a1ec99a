"""Aggregate over the last n tuples, sliding by m tuples (Feedback Example 2).

    n=3, m=1:   t1 t2 t3 t4 t5   →   w0 = t1..t3,  w1 = t2..t4,  w2 = t3..t5

Windows are counted per group, from 0, in time order, so the input must be ordered. A result is
stamped with the time of the last tuple of its window. A group's tuples are forgotten as soon as no
window to come includes them, and all of them when punctuation says the group has ended.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from interpunct.model.attribute_map import AttributeMap, Origin
from interpunct.model.errors import FlowError
from interpunct.model.expression import Aggregate as AggregateExpression
from interpunct.model.frames import stacked
from interpunct.model.page import Page
from interpunct.model.pattern import Pattern
from interpunct.model.properties import Properties
from interpunct.model.punctuation import Punctuation
from interpunct.model.schema import Attribute, Schema, ddl_type
from interpunct.operators.contract import Emission, Held, Operator, Stream
from interpunct.operators.responses import Response, at_input, at_output
from interpunct.operators.shelf import Shelf
from interpunct.operators.state import State

INDEX = "_index"  # the tuple's number within its group
WINDOW = "window"  # the window's number within its group


class TupleWindow(Operator):
    """Slide-by-tuple windows; every attribute an aggregate reads is kept for the open ones."""

    order_sensitive = True

    def __init__(
        self,
        name: str,
        stream: Stream,
        rows: int,
        slide: int,
        by: Sequence[str],
        aggregates: Mapping[str, AggregateExpression],
        state: State | None = None,
    ) -> None:
        if rows < 1 or not 1 <= slide <= rows:
            raise FlowError(
                f"aggregate {name!r}", "1 ≤ slide ≤ rows", f"rows={rows}, slide={slide}",
                "Choose how many tuples a window has, and after how many the next one starts.",
            )  # fmt: skip
        schema = tuple_window_schema(stream.schema, by, aggregates)
        properties = Properties(ordered=True, keyed=True)
        mapping = _mapping(stream.schema, by, aggregates)
        super().__init__(name, [stream], [Stream(schema, properties)], mapping, state)
        self._rows, self._slide, self._by = rows, slide, list(by)
        self._aggregates = [a.polars.alias(n) for n, a in aggregates.items()]
        inputs = {i for a in aggregates.values() for i in a.inputs}
        self._columns = [n for n in stream.schema.names if n in inputs | {*by, stream.schema.time}]
        kept = tuple(stream.schema[n] for n in self._columns)
        index = Attribute(INDEX, "bigint", pl.Int64())
        counts = Schema((*(stream.schema[k] for k in by), index))
        self._open = Shelf(self.state, "open", Schema((*kept, index)))
        self._counts = Shelf(self.state, "count", counts)

    def on_page(self, port: int, page: Page) -> Emission:
        del port
        fresh = self._numbered(page.frame.select(self._columns))
        self._counts.put(0, self._last_numbers(fresh))
        open_tuples = stacked([self._open.get(0), fresh.select(self._open.get(0).columns)])
        results = self._complete(open_tuples)
        self._open.put(0, self._still_needed(open_tuples))
        return self.tuples(results)

    def on_punctuation(self, port: int, punctuation: Punctuation) -> Emission:
        """Time passes through: a window to come ends with a tuple to come."""
        if self.output.time in punctuation.pattern.names or not self._by:
            return super().on_punctuation(port, punctuation)
        if set(punctuation.pattern.names) <= set(self._by):
            keep = ~punctuation.pattern.restricted_to(self._by).expr()
            self._open.put(0, self._open.get(0).filter(keep))
            self._counts.put(0, self._counts.get(0).filter(keep))
        return super().on_punctuation(port, punctuation)

    def _numbered(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Tuples with their number in their group, going on from those seen before."""
        if not self._by:
            seen = self._counts.get(0)
            start = int(seen[INDEX][0]) + 1 if seen.height else 0
            return frame.with_columns((pl.int_range(pl.len()) + start).alias(INDEX))
        number = pl.int_range(pl.len()).over(self._by)
        seen = self._counts.get(0).with_columns(pl.col(INDEX).alias("_seen")).drop(INDEX)
        joined = frame.join(seen, on=self._by, how="left", nulls_equal=True, maintain_order="left")
        return joined.with_columns((number + pl.col("_seen").fill_null(-1) + 1).alias(INDEX)).drop(
            "_seen"
        )

    def _last_numbers(self, fresh: pl.DataFrame) -> pl.DataFrame:
        both = stacked([self._counts.get(0), fresh.select(*self._by, INDEX)])
        if not self._by:
            return both.select(pl.col(INDEX).max())
        return both.group_by(self._by).agg(pl.col(INDEX).max())

    def _complete(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The windows whose last tuple is there, in the order of their last tuples."""
        time = self.output.ordered_by
        groups = frame.sort(INDEX, maintain_order=True).group_by_dynamic(
            INDEX, every=f"{self._slide}i", period=f"{self._rows}i",
            group_by=self._by or None, start_by="window",
        )  # fmt: skip
        windows = groups.agg(pl.col(time).last(), pl.len().alias("_n"), *self._aggregates)
        whole = windows.filter((pl.col("_n") == self._rows) & (pl.col(INDEX) >= 0))
        number = (pl.col(INDEX) // self._slide).alias(WINDOW)
        return (
            whole.with_columns(number)
            .select(self.output.names)
            .sort([time, *self._sortable(), WINDOW])
        )

    def _still_needed(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Tuples of windows not complete yet: those after the start of the next one."""
        last = pl.col(INDEX).max()
        if self._by:
            last = last.over(self._by)
        complete = (last + 1 - self._rows) // self._slide  # the last complete window
        first_open = pl.max_horizontal(complete + 1, pl.lit(0, pl.Int64)) * self._slide
        return frame.filter(pl.col(INDEX) >= first_open)

    def _sortable(self) -> list[str]:
        return [k for k in self._by if not self.output[k].dtype.is_nested()]

    def characterise(self, pattern: Pattern, port: int) -> Response:
        """A group nobody wants is not taken in. Of single windows the tuples belong to other
        windows as well, so only the output can do without them (Feedback Example 2)."""
        del port
        if pattern.names and set(pattern.names) <= set(self._by):
            groups = self.attributes.backward(pattern, 0, self.inputs[0].schema)
            assert groups is not None
            return at_input("¬[g, *]", {0: groups}, purge=True)
        return at_output("¬[window]", pattern)

    def purge(self, port: int, pattern: Pattern) -> int:
        del port
        before = self._open.height
        for shelf in (self._open, self._counts):
            frame = shelf.get(0)
            shelf.put(0, frame.filter(~pattern.expr()) if frame.height else frame)
        return before - self._open.height

    def _held(self) -> Held:
        return Held(self._open.height + self._counts.height,
                    self._open.nbytes() + self._counts.nbytes())  # fmt: skip

    def _save(self) -> None:
        self._open.save()
        self._counts.save()


def tuple_window_schema(
    schema: Schema, by: Sequence[str], aggregates: Mapping[str, AggregateExpression]
) -> Schema:
    """Groups, the window's number, the time of its last tuple, then the aggregates."""
    groups = tuple(schema[name] for name in by)
    window = Attribute(WINDOW, "bigint", pl.Int64())
    computed = tuple(Attribute(n, ddl_type(a.dtype), a.dtype) for n, a in aggregates.items())
    attributes = (*groups, window, schema[schema.ordered_by], *computed)
    return Schema(attributes, time=schema.time, kind=schema.kind)


def _mapping(
    schema: Schema, by: Sequence[str], aggregates: Mapping[str, AggregateExpression]
) -> AttributeMap:
    derived = {n: frozenset(Origin(0, i) for i in a.inputs) for n, a in aggregates.items()}
    carried = {k: (Origin(0, k),) for k in (*by, schema.ordered_by)}
    return AttributeMap(carried, derived)
