"""Aggregate over time windows, by group; punctuation closes the windows.

    every 20 s:   ─ 9:00:05 ─ 9:00:12 ─ 9:00:21 ─ ┃≤ 9:00:19.999999┃ → (9:00:00, avg)

The result's timestamp is the start of its window, under the name of the input's time attribute.
The operator is indifferent to order: a tuple goes to its pane as it comes, and a window is put
out once a heartbeat says nothing more can fall into it. On a stream known to be ordered each
tuple is such a heartbeat for the times before it.

Aggregates that can be combined from parts (count, sum, min, max, avg, …) keep one row per pane
and group; any other Polars aggregate keeps the tuples of its open panes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from interpunct.model.attribute_map import AttributeMap, Origin
from interpunct.model.expression import Aggregate as AggregateExpression
from interpunct.model.frames import stacked
from interpunct.model.page import Page
from interpunct.model.properties import Properties
from interpunct.model.punctuation import Punctuation
from interpunct.model.schema import START_OF_TIME, Attribute, Schema, ddl_type
from interpunct.operators.contract import Demand, Emission, Held, Operator, Stream
from interpunct.operators.partials import Partials
from interpunct.operators.promises import PromiseBook
from interpunct.operators.shelf import Shelf
from interpunct.operators.state import Record, State
from interpunct.operators.windows import Windows

PANE = "_pane"
COMPACT_FROM = 4096  # rows of a pane before its parts are combined in place


class Aggregate(Operator):
    """Tumbling and sliding windows."""

    def __init__(
        self,
        name: str,
        stream: Stream,
        windows: Windows,
        by: Sequence[str],
        aggregates: Mapping[str, AggregateExpression],
        state: State | None = None,
    ) -> None:
        schema = aggregate_schema(stream.schema, by, aggregates)
        properties = Properties(ordered=True, strict=not by, keyed=True, deterministic=True)
        mapping = aggregate_map(stream.schema, by, aggregates)
        super().__init__(name, [stream], [Stream(schema, properties)], mapping, state)
        self._windows, self._by = windows, list(by)
        self._partials = Partials(stream.schema, PANE, by, aggregates)
        self._panes = Shelf(self.state, "pane", self._partials.schema)
        self._compacted: dict[int, int] = {}
        self._book = PromiseBook(self.state, schema, 1)
        self._record = Record(self.state, "out", {"heard": START_OF_TIME, "given": START_OF_TIME})

    def on_page(self, port: int, page: Page) -> Emission:
        del port
        heard: int = self._record["heard"]
        if self.inputs[0].properties.ordered:
            heard = max(heard, int(self.inputs[0].schema.ticks(page.frame)[-1]) - 1)
        return self._advance(heard, self.partial_rows(page.frame))

    def partial_rows(self, frame: pl.DataFrame) -> pl.DataFrame:
        """What tuples come to in part; a function of the tuples alone, so it can run elsewhere."""
        pane = self._windows.pane_of(self.inputs[0].schema.ticks_expr()).alias(PANE)
        return self._partials.of_tuples(frame, pane)

    def on_partial_rows(self, rows: pl.DataFrame) -> Emission:
        """Partial rows made elsewhere, of tuples that are known to be in time."""
        return self._advance(self._record["heard"], rows)

    def on_punctuation(self, port: int, punctuation: Punctuation) -> Emission:
        heartbeat = punctuation.heartbeat_ticks
        if heartbeat is not None:
            return self._advance(max(heartbeat, self._record["heard"]), None)
        pattern = self.attributes.forward(punctuation.pattern, port, self.output)
        if pattern is not None and self.output.time not in pattern.names:
            self._book.add(0, pattern)
        return self._settle()

    def _advance(self, heard: int, fresh: pl.DataFrame | None) -> Emission:
        """Put out every window the heartbeat closes; shelve what belongs to open ones."""
        before = self._windows.closed_by(self._record["heard"])
        closed = self._windows.closed_by(heard)
        self._record["heard"] = heard
        emission = Emission()
        if closed > before:
            emission = self.tuples(self._close(before, closed, fresh))
            fresh = None if fresh is None else self._still_open(fresh, closed)
        if fresh is not None:
            self._shelve(fresh)
        reached = self._windows.output_heartbeat(heard)
        if reached > self._record["given"]:
            self._record["given"] = reached
            emission.extend(self.heartbeat(reached))
        emission.extend(self._settle())
        return emission

    def _close(self, before: int, closed: int, fresh: pl.DataFrame | None) -> pl.DataFrame:
        """The results of the windows that start in (before, closed], ordered by start and group."""
        touched = [p for p in sorted(self._panes) if self._windows.first_window(p) <= closed]
        parts = [self._panes.get(p) for p in touched]
        for pane in touched:
            if self._windows.last_window(pane) <= closed:
                self._panes.drop(pane)
                self._compacted.pop(pane, None)
        if fresh is not None:
            parts.append(fresh)
        if not parts:
            return self.output.empty()
        rows = stacked(parts)
        if not self._windows.tumbling:  # what is first and last in a window goes by its panes
            rows = rows.sort(PANE, maintain_order=True)
        spread = self._windows.spread(rows, PANE, before, closed)
        results = self._partials.finish(spread)
        return results.select(self.output.names).sort(self._sort_columns())

    def _still_open(self, fresh: pl.DataFrame, closed: int) -> pl.DataFrame:
        slide = self._windows.slide
        return fresh.filter(pl.col(PANE) // slide * slide > closed)

    def _shelve(self, fresh: pl.DataFrame) -> None:
        """Add rows to their panes, combining a pane's rows once they have quadrupled."""
        panes = fresh.get_column(PANE).unique()
        if panes.len() == 1:
            self._add(int(panes[0]), fresh)
            return
        for (pane,), rows in fresh.partition_by(PANE, as_dict=True, maintain_order=True).items():
            self._add(int(pane), rows)

    def _add(self, pane: int, rows: pl.DataFrame) -> None:
        self._panes.append(pane, rows)
        limit = max(COMPACT_FROM, 4 * self._compacted.get(pane, 0))
        if self._partials.combinable and self._panes.rows[pane] > limit:
            combined = self._partials.combine(self._panes.get(pane))
            self._panes.put(pane, combined)
            self._compacted[pane] = combined.height

    def _settle(self) -> Emission:
        """Punctuations on groups: true of the output once no open pane has such a group."""
        if not self._book:
            return Emission()
        stream = self.inputs[0].schema
        time = pl.lit(None, stream[stream.ordered_by].dtype).alias(self.output.ordered_by)
        held = [
            self._panes.get(p).select(*self._by, time).pipe(_padded, self.output)
            for p in self._panes
        ]
        settled = self._book.settle(held, self._record["given"])
        return Emission([(0, Page(self.output, self.output.empty(), settled))] if settled else [])

    def _sort_columns(self) -> list[str]:
        plain = [k for k in self._by if not self.output[k].dtype.is_nested()]
        return [self.output.ordered_by, *plain]

    def needs(self) -> Demand | None:
        if not self._panes.rows:
            return None
        unclosed = self._windows.closed_by(self._record["heard"]) + self._windows.slide
        start = max(unclosed, self._windows.first_window(min(self._panes)))
        return Demand(0, self._windows.closes(start))

    def demand(self, wanted: int) -> Demand | None:
        return Demand(0, self._windows.heartbeat_for(wanted))

    def held(self) -> Held:
        return Held(self._panes.height, self._panes.nbytes(), len(self._book))

    def save(self) -> None:
        self._panes.save()
        self._book.save()
        self._record.save()


def aggregate_schema(
    schema: Schema, by: Sequence[str], aggregates: Mapping[str, AggregateExpression]
) -> Schema:
    """Groups, then the start of the window, then the aggregates."""
    carried = tuple(schema[name] for name in (*by, schema.ordered_by))
    computed = tuple(Attribute(n, ddl_type(a.dtype), a.dtype) for n, a in aggregates.items())
    return Schema(carried + computed, time=schema.time, kind=schema.kind)


def aggregate_map(
    schema: Schema, by: Sequence[str], aggregates: Mapping[str, AggregateExpression]
) -> AttributeMap:
    """Groups are carried; the window's start and the aggregates are computed."""
    derived = {n: frozenset(Origin(0, i) for i in a.inputs) for n, a in aggregates.items()}
    derived[schema.ordered_by] = frozenset([Origin(0, schema.ordered_by)])
    return AttributeMap({k: (Origin(0, k),) for k in by}, derived)


def _padded(frame: pl.DataFrame, schema: Schema) -> pl.DataFrame:
    """The frame with null columns for the attributes it lacks."""
    missing = [pl.lit(None, schema[n].dtype).alias(n) for n in schema.names if n not in frame]
    return frame.with_columns(missing).select(schema.names)
