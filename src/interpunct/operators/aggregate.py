"""Aggregate over time windows, by group; punctuation closes the windows.

    every 20 s:   ─ 9:00:05 ─ 9:00:12 ─ 9:00:21 ─ ┃≤ 9:00:19.999999┃ → (9:00:00, avg)

The result's timestamp is the start of its window, under the name of the input's time attribute.
The operator is indifferent to order: a tuple goes to its pane as it comes, and a window is put
out once a heartbeat says nothing more can fall into it. On a stream known to be ordered each
tuple is such a heartbeat for the times before it.

Demanded feedback is answered at once from the open windows, on an output of its own (output 1), so
that what is partial is never taken for final; `as_of` tells how far time had come.

Aggregates that can be combined from parts (count, sum, min, max, avg, …) keep one row per pane
and group; any other Polars aggregate keeps the tuples of its open panes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import polars as pl

from interpunct.model.attribute_map import AttributeMap, Origin
from interpunct.model.expression import Aggregate as AggregateExpression
from interpunct.model.feedback import Feedback, Intent
from interpunct.model.frames import collected, stacked
from interpunct.model.page import Page
from interpunct.model.pattern import Pattern
from interpunct.model.properties import Properties
from interpunct.model.punctuation import Punctuation
from interpunct.model.schema import END_OF_TIME, START_OF_TIME, Attribute, Schema, ddl_type
from interpunct.model.ticks import stretch, within
from interpunct.operators.closing import Closing
from interpunct.operators.contract import Demand, Emission, Held, Operator, Stream
from interpunct.operators.partials import Partials
from interpunct.operators.promises import PromiseBook
from interpunct.operators.responses import Response, at_input, at_output
from interpunct.operators.shelf import Shelf
from interpunct.operators.state import Record, State
from interpunct.operators.windows import Windows

PANE = "_pane"
AS_OF = "as_of"
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
        outputs = [Stream(schema, properties), Stream(partial_schema(schema))]
        super().__init__(name, [stream], outputs, mapping, state)
        self._aggregates = dict(aggregates)
        self._windows, self._by = windows, list(by)
        self._partials = Partials(stream.schema, PANE, windows.pane, by, aggregates)
        self._panes = Shelf(self.state, "pane", self._partials.schema)
        self._compacted: dict[int, int] = {}
        self._closing = Closing(self.state, PANE, by, stream.schema, schema)
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
        return self._partials.of_tuples(frame)

    def on_partial_rows(self, rows: pl.DataFrame) -> Emission:
        """Partial rows made elsewhere, of tuples that are known to be in time."""
        for guard in self.guards.inputs[0].guards if self._guarded else ():
            kept = rows.filter(~self._of_panes(guard.pattern))
            guard.skipped += rows.height - kept.height
            rows = kept
        return self.let_out(self._advance(self._record["heard"], rows))

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
        if fresh is not None and self._closing:
            fresh = self._closing.admit(fresh)
        emission = Emission()
        if closed > before:
            emission = self.tuples(self._close(before, closed, fresh))
            fresh = None if fresh is None else self._still_open(fresh, closed)
        if fresh is not None:
            self._shelve(fresh)
            if self._closing:
                emission.extend(self._give_up(fresh.get_column(PANE).unique().to_list()))
        reached = self._windows.output_heartbeat(heard)
        if reached > self._record["given"]:
            self._record["given"] = reached
            if self._closing:
                self._closing.reached(reached)
            emission.extend(self.heartbeat(reached))
        emission.extend(self._settle())
        return emission

    def _close(self, before: int, closed: int, fresh: pl.DataFrame | None) -> pl.DataFrame:
        """The results of the windows that start in (before, closed], ordered by start and group:
        one plan, since of small pages each step costs as much as a whole one."""
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
        spread = self._windows.spread(rows.lazy(), PANE, before, closed)
        results = self._partials.finish(spread)
        if self._closing:
            known = collected(results)
            results = known.filter(~self._closing.unwanted(known)).lazy()
        return collected(results.select(self.output.names).sort(self._sort_columns()))

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

    # Feedback ---------------------------------------------------------------------------------

    def characterise(self, pattern: Pattern, port: int) -> Response:
        """Table 1, for every aggregate: by what the pattern says of groups and windows (g) and of
        results (a)."""
        if port != 0:
            return at_output("¬[…] of partial results", pattern, port)
        of_results = [(n, c) for n, c in pattern.conditions if n in self._aggregates]
        if not of_results:
            return self._without_groups(pattern)
        stays = all(self._aggregates[n].settles(c) for n, c in of_results)
        if stays and self._windows.tumbling:
            return Response("¬[*, ≥ a]", closing=pattern)
        return at_output("¬[*, a]", pattern)

    def _without_groups(self, pattern: Pattern) -> Response:
        """¬[g, *]: in terms of the input. A tuple can be done without when all its windows can;
        where windows overlap some of them stay to be kept from the output."""
        schema, time = self.inputs[0].schema, self.output.ordered_by
        ticks = stretch(pattern.condition(time)) if time in pattern.names else (None, None)
        if ticks is None:
            return at_output("¬[window]", pattern)
        groups = pattern.restricted_to(n for n in pattern.names if n != time)
        tuples = self.attributes.backward(groups, 0, schema)
        assert tuples is not None
        if time in pattern.names:
            windows = within(schema, *self._windows.within(*ticks))
            tuples = tuples.intersect(Pattern(schema, {time: windows}))
        response = at_input("¬[g, *]", {0: tuples}, purge=True)
        whole = self._windows.tumbling or time not in pattern.names
        return response if whole else replace(response, guard_output={0: pattern})

    def purge(self, port: int, pattern: Pattern) -> int:
        del port
        before = self._panes.height
        low, high = stretch(pattern.condition(self.inputs[0].schema.ordered_by)) or (None, None)
        first, last = START_OF_TIME if low is None else low, END_OF_TIME if high is None else high
        for pane in [p for p in self._panes if first <= p <= last]:
            rows = self._panes.get(pane)
            kept = rows.filter(~self._of_panes(pattern))
            if kept.height < rows.height:
                self._panes.put(pane, kept)
        return before - self._panes.height

    def _of_panes(self, pattern: Pattern) -> pl.Expr:
        """A pattern over input tuples, groups and time, as one over partial rows: what it says of
        time it says of whole panes."""
        time = self.inputs[0].schema.ordered_by
        tests = [c.expr(n) for n, c in pattern.conditions if n != time] or [pl.lit(True)]
        low, high = stretch(pattern.condition(time)) or (None, None)
        if low is not None:
            tests.append(pl.col(PANE) >= low)
        if high is not None:
            tests.append(pl.col(PANE) <= high)
        return pl.all_horizontal(tests)

    def close(self, pattern: Pattern) -> Emission:
        if not self._closing.add(pattern):
            return Emission()
        return self._give_up(sorted(self._panes))

    def _give_up(self, panes: Sequence[int]) -> Emission:
        """Purge the groups whose result so far is unwanted for good, and tell those upstream."""
        emission = Emission()
        for pane in (p for p in panes if p in self._panes):
            rows = self._panes.get(pane)
            results = self._partials.finish(rows)
            groups = results.filter(self._closing.unwanted(results))
            if not groups.height:
                continue
            self._closing.give_up(pane, groups)
            self._panes.put(pane, self._closing.admit(rows))
            self.guards.count(rows.height - self._panes.rows.get(pane, 0))
            told = self._closing.told(pane, self._windows.size, groups)
            emission.relays += [(0, Feedback(Intent.ASSUMED, p)) for p in told]
        return emission

    def on_wish(self, feedback: Feedback, port: int) -> Emission:
        """A demand is answered with the results so far of the open windows that match."""
        if feedback.intent is not Intent.DEMANDED or port != 0 or not self._panes.rows:
            return Emission()
        closed = self._windows.closed_by(self._record["heard"])
        rows = stacked([self._panes.get(p) for p in sorted(self._panes)])
        results = self._partials.finish(self._windows.spread(rows, PANE, closed, END_OF_TIME))
        asked = results.select(self.output.names).filter(feedback.pattern.mask(results))
        heard: int = self._record["heard"]
        as_of = None if heard <= START_OF_TIME else self.output.value_of(heard)
        time = self.output[self.output.ordered_by].dtype
        return self.tuples(asked.with_columns(pl.lit(as_of, time).alias(AS_OF)), port=1)

    # ------------------------------------------------------------------------------------------

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

    def _held(self) -> Held:
        held = Held(self._panes.height, self._panes.nbytes(), len(self._book))
        return held + Held(guards=len(self._closing))

    def _save(self) -> None:
        self._panes.save()
        self._closing.save()
        self._book.save()
        self._record.save()


def aggregate_schema(
    schema: Schema, by: Sequence[str], aggregates: Mapping[str, AggregateExpression]
) -> Schema:
    """Groups, then the start of the window, then the aggregates."""
    carried = tuple(schema[name] for name in (*by, schema.ordered_by))
    computed = tuple(Attribute(n, ddl_type(a.dtype), a.dtype) for n, a in aggregates.items())
    return Schema(carried + computed, time=schema.time, kind=schema.kind)


def partial_schema(schema: Schema) -> Schema:
    """Results so far, and the time up to which the input had been heard."""
    time = schema[schema.ordered_by]
    return Schema((*schema.attributes, Attribute(AS_OF, time.type, time.dtype)))


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
