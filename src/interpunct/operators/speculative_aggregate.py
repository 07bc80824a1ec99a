"""Aggregate over time windows that does not wait: results come early and are revised.

    every 10:  ts 3, ts 14     insert((n=1), 0, 10)  insert((n=1), 10, 20)
               ts 7            adjust((n=1), 0, 10, 0)  insert((n=2), 0, 10)      it came late
               ┃≤ 9┃           stable(10)                                         now it is final

The output is a revisable stream: a result is an event that lives as long as its window, with the
groups and the aggregates as its payload. When a tuple changes a result the old event is removed and
the new one inserted; a heartbeat that closes windows becomes a stable. So whoever can live with
revisions does not wait for the slowest source, and the table that the stream amounts to is that of
the aggregate which waits (LMerge sections II and VI-B, where such sub-queries make the adjusts).

One result for each window and group, so (Vs, payload) is a key. What was shown of open windows is
kept, so that a revision takes back just what was said.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import polars as pl

from interpunct.model.attribute_map import AttributeMap, Origin
from interpunct.model.condition import Range
from interpunct.model.elements import (
    ADJUST,
    INSERT,
    KIND,
    VE,
    VOLD,
    VS,
    element_schema,
    framed,
    infinity,
)
from interpunct.model.expression import Aggregate as AggregateExpression
from interpunct.model.frames import stacked
from interpunct.model.page import Page
from interpunct.model.pattern import Pattern
from interpunct.model.properties import Properties
from interpunct.model.punctuation import Punctuation
from interpunct.model.schema import END_OF_TIME, START_OF_TIME, Schema
from interpunct.model.ticks import stretch, within
from interpunct.operators.aggregate import PANE, aggregate_map, aggregate_schema
from interpunct.operators.contract import Demand, Emission, Held, Operator, Stream
from interpunct.operators.lmerge_fast_forward import last_start
from interpunct.operators.lmerge_rows import Output
from interpunct.operators.partials import Partials
from interpunct.operators.responses import Response, at_input, at_output
from interpunct.operators.shelf import Shelf
from interpunct.operators.state import Record, State
from interpunct.operators.windows import Windows

COMPACT_FROM = 4096  # rows of a pane before its parts are combined in place


class SpeculativeAggregate(Operator):
    """Tumbling and sliding windows, by group."""

    def __init__(
        self,
        name: str,
        stream: Stream,
        windows: Windows,
        by: Sequence[str],
        aggregates: Mapping[str, AggregateExpression],
        state: State | None = None,
    ) -> None:
        self._results = aggregate_schema(stream.schema, by, aggregates)
        output = Stream(_elements_of(self._results), Properties(insert_only=False, keyed=True))
        mapping = _element_map(stream.schema, by, aggregates)
        super().__init__(name, [stream], [output], mapping, state)
        self._windows, self._by = windows, list(by)
        self._partials = Partials(stream.schema, PANE, windows.pane, by, aggregates)
        self._panes = Shelf(self.state, "pane", self._partials.schema)
        self._shown = Shelf(self.state, "shown", self._results)
        self._record = Record(self.state, "out", {"heard": START_OF_TIME, "given": START_OF_TIME})

    # Tuples -----------------------------------------------------------------------------------

    def on_page(self, port: int, page: Page) -> Emission:
        del port
        emission = self._revised(self._still_open(self._partials.of_tuples(page.frame)))
        if self.inputs[0].properties.ordered:
            heard = int(self.inputs[0].schema.ticks(page.frame)[-1]) - 1
            emission.extend(self._advance(max(heard, self._record["heard"])))
        return emission

    def on_punctuation(self, port: int, punctuation: Punctuation) -> Emission:
        """Heartbeats close windows; what else is promised of tuples says nothing of revisions."""
        del port
        heartbeat = punctuation.heartbeat_ticks
        if heartbeat is None:
            return Emission()
        return self._advance(max(heartbeat, self._record["heard"]))

    @property
    def _closed(self) -> int:
        """The start of the last window that is final."""
        return self._windows.closed_by(self._record["heard"])

    def _still_open(self, rows: pl.DataFrame) -> pl.DataFrame:
        slide = self._windows.slide
        return rows.filter(pl.col(PANE) // slide * slide > self._closed)

    def _revised(self, fresh: pl.DataFrame) -> Emission:
        """Add the rows to their panes and tell what that changes of the results shown."""
        if not fresh.height:
            return Emission()
        for (pane,), rows in fresh.partition_by(PANE, as_dict=True, maintain_order=True).items():
            self._add(int(pane), rows)
        touched = self._windows.spread(
            fresh.select(PANE, *self._by).unique(), PANE, self._closed, END_OF_TIME
        ).unique()
        starts = sorted(touched.get_column(PANE).unique().to_list())
        before = stacked([self._shown.get(w) for w in starts])
        after = self._computed(touched, starts)
        self._remember(before, after, starts)
        return self.tuples(self._difference(before, after))

    def _add(self, pane: int, rows: pl.DataFrame) -> None:
        self._panes.append(pane, rows)
        if self._partials.combinable and self._panes.rows[pane] > COMPACT_FROM:
            combined = self._partials.combine(self._panes.get(pane))
            if 2 * combined.height < self._panes.rows[pane]:
                self._panes.put(pane, combined)

    def _computed(self, touched: pl.DataFrame, starts: list[int]) -> pl.DataFrame:
        """The results so far of these windows and groups."""
        first, last = starts[0], starts[-1]
        panes = [
            p for p in sorted(self._panes)
            if self._windows.last_window(p) >= first and self._windows.first_window(p) <= last
        ]  # fmt: skip
        rows = stacked([self._panes.get(p) for p in panes])
        spread = self._windows.spread(rows, PANE, first - 1, last)
        keys = [PANE, *self._by]
        own = spread.join(touched, on=keys, how="semi", nulls_equal=True, maintain_order="left")
        return self._partials.finish(own).select(self._results.names)

    def _remember(self, before: pl.DataFrame, after: pl.DataFrame, starts: list[int]) -> None:
        """What is shown of each window now: what is computed anew, and the rest as it was."""
        time = self._results.ordered_by
        keys = [time, *self._by]
        rest = before.join(after, on=keys, how="anti", nulls_equal=True)
        now = stacked([rest, after.cast(rest.schema)])
        if len(starts) == 1:
            self._shown.put(starts[0], now)
            return
        by_start = now.with_columns(pl.col(time).cast(pl.Int64).alias(PANE))
        for (start,), rows in by_start.partition_by(PANE, as_dict=True, include_key=False).items():
            self._shown.put(int(start), rows)

    def _difference(self, before: pl.DataFrame, after: pl.DataFrame) -> pl.DataFrame:
        """Elements that turn the results shown before into those there are now."""
        names = list(self._results.names)
        fresh = after.join(before, on=names, how="anti", nulls_equal=True)
        stale = before.join(
            fresh, on=[self._results.ordered_by, *self._by], how="semi", nulls_equal=True
        )
        order = [self._results.ordered_by, *self._plain_groups()]
        parts = [self._elements(part.sort(order), kind)
                 for part, kind in ((stale, ADJUST), (fresh, INSERT)) if part.height]  # fmt: skip
        return stacked(parts) if parts else self.output.empty()

    def _elements(self, results: pl.DataFrame, kind: str) -> pl.DataFrame:
        """Results as inserts, or as adjusts that remove them."""
        start = pl.col(self._results.ordered_by).cast(pl.Int64)
        end = start + self._windows.size
        removal = kind == ADJUST
        times = [
            pl.lit(kind).alias(KIND),
            start.alias(VS),
            (end if removal else pl.lit(None, pl.Int64)).alias(VOLD),
            (start if removal else end).alias(VE),
        ]
        payload = [pl.col(n) for n in self.output.names[len(times) :]]
        return framed(self.output, results, [*times, *payload])

    def _plain_groups(self) -> list[str]:
        return [k for k in self._by if not self._results[k].dtype.is_nested()]

    # Time -------------------------------------------------------------------------------------

    def _advance(self, heard: int) -> Emission:
        """Windows that are closed are final: forget them, and say so."""
        self._record["heard"] = heard
        closed = self._closed
        for pane in [p for p in self._panes if self._windows.last_window(p) <= closed]:
            self._panes.drop(pane)
        for start in [w for w in self._shown if w <= closed]:
            self._shown.drop(start)
        stable = infinity(self.output) if closed >= END_OF_TIME else closed + self._windows.slide
        if heard <= START_OF_TIME or stable <= self._record["given"]:
            return Emission()
        self._record["given"] = stable
        out = Output(self.output)
        out.stable(stable)
        return self.tuples(out.taken())

    def needs(self) -> Demand | None:
        if not self._panes.rows:
            return None
        start = max(
            self._closed + self._windows.slide, self._windows.first_window(min(self._panes))
        )
        return Demand(0, self._windows.closes(start))

    # Feedback ---------------------------------------------------------------------------------

    def characterise(self, pattern: Pattern, port: int) -> Response:
        """Groups are avoided before they are computed, and so are windows of which nobody wants an
        element any more, which is what a merge tells its slower inputs (LMerge section V-D). Where
        windows overlap a tuple may still be needed for others: these are guarded at the output."""
        schema = self.inputs[0].schema
        if set(pattern.names) <= set(self._by):
            tuples = self.attributes.backward(pattern, 0, schema)
            assert tuples is not None
            return at_input("¬[g]", {0: tuples}, purge=True)
        last = last_start(pattern, self._windows.size, revised=True)
        if last is None:
            return at_output("¬[…]", pattern, port)
        times = within(schema, *self._windows.within(None, last))
        told = at_input("¬[past]", {0: Pattern(schema, {schema.ordered_by: times})}, purge=True)
        if self._windows.tumbling:
            return told
        these = Pattern(self.output, {VS: Range(high=self.output.with_time(VS).value_of(last))})
        return replace(told, guard_output={0: pattern.intersect(these)})

    def purge(self, port: int, pattern: Pattern) -> int:
        del port
        before = self._panes.height
        time = self.inputs[0].schema.ordered_by
        low, high = stretch(pattern.condition(time)) or (None, None)
        tests = [c.expr(n) for n, c in pattern.conditions if n != time] or [pl.lit(value=True)]
        kept = ~pl.all_horizontal(tests)
        for shelf, length in ((self._panes, self._windows.pane), (self._shown, self._windows.size)):
            for start in list(shelf):
                over = high is None or start + length - 1 <= high
                if over and (low is None or low <= start):
                    shelf.put(start, shelf.get(start).filter(kept))
        return before - self._panes.height

    # ------------------------------------------------------------------------------------------

    def _held(self) -> Held:
        shown = Held(self._shown.height, self._shown.nbytes())
        return Held(self._panes.height, self._panes.nbytes()) + shown

    def _save(self) -> None:
        self._panes.save()
        self._shown.save()
        self._record.save()


def _elements_of(results: Schema) -> Schema:
    """The groups and the aggregates as payload; the window's start becomes Vs."""
    payload = tuple(a for a in results.attributes if a.name != results.time)
    return element_schema(Schema(payload), results[results.ordered_by].type)


def _element_map(
    schema: Schema, by: Sequence[str], aggregates: Mapping[str, AggregateExpression]
) -> AttributeMap:
    plain = aggregate_map(schema, by, aggregates)
    time = frozenset([Origin(0, schema.ordered_by)])
    computed = {n: d for n, d in plain.derived if n != schema.ordered_by}
    return AttributeMap(dict(plain.carried), {**computed, **dict.fromkeys((VS, VOLD, VE), time)})
