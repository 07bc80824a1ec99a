"""A self-correcting sink: a table kept equal to a revisable stream, whatever happened to it.

    elements ─▶ ledger: what should be there ──┐
                                               ├─▶ desired − stored ─▶ the table
    someone's mistake ─▶ what is there ────────┘

    table = MergedTable("/ledgers/speeds", DatabaseTable(connect, "speeds"))
    ip.lmerge(a, b).writeStream.foreachBatch(table).option("checkpointLocation", …).start()

The ledger (`merge_ledger`) has the net changes of each batch on disk; a batch that runs again
replaces its own. So what should be there is a sum, and what is written is the difference between
that and what is found: a row that is missing, wrong or there twice is repaired, and a batch may be
written any number of times. Each batch compares the events around those it touches, in one step;
the first one after a start, and each `audit`-th, then compares the whole table, slice by slice.

In memory are only events that may still change: those that end at or after the stream's stable
(LMerge section III-C), which `held()` counts. What is frozen is on disk, and a batch that changes
it, which no stream may do, is compared with all of that.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import polars as pl
from pyspark.sql import DataFrame

from interpunct.model.elements import HEAD, VE, VS, element_schema, ticks_expr
from interpunct.model.schema import START_OF_TIME, Schema
from interpunct.model.tdb import COUNT, last_stable, tally
from interpunct.operators.contract import Held
from interpunct.progress.clock import Clock, RealClock
from interpunct.spark.merge_ledger import LEAST_ROWS, Ledger, Progress, Starts, summed
from interpunct.spark.rows import to_frame
from interpunct.spark.stopping import interruptible

AUDIT = 1000  # batches from one comparison of the whole table to the next


class Table(Protocol):
    """A store of events: vs, ve and the payload in columns, a row for each time one is there."""

    def prepare(self, event: Schema) -> None:
        """Make the table if there is none."""

    def stored(self, starts: Starts | None) -> pl.DataFrame:
        """The rows whose vs is between these ticks, both included, or all of them."""

    def write(self, remove: pl.DataFrame, add: pl.DataFrame) -> None:
        """All or nothing: as many rows as `_count` says of each event fewer, and more."""


@dataclass
class Repairs:
    """What the sink found in the table that no batch explains."""

    removed: int = 0
    added: int = 0


@dataclass
class MergedTable:
    """For `foreachBatch` on a stream of elements."""

    ledger: str | Path
    table: Table
    audit: int = AUDIT
    least_rows: int = LEAST_ROWS  # that the ledger has before it is compacted
    clock: Clock = field(default_factory=RealClock)
    repairs: Repairs = field(default_factory=Repairs)
    _books: Ledger | None = None
    _open: pl.DataFrame | None = None  # what should be there and is not frozen
    _progress: Progress = field(default_factory=Progress)
    _batches: int = 0

    def __call__(self, rows: DataFrame, batch: int) -> None:
        schema = _elements(rows)
        with interruptible():
            frame = collected(rows, schema)
        changes = tally(schema, frame).filter(pl.col(COUNT) != 0)
        books = self._opened(_event_schema(schema))
        again = books.write(batch, changes)
        self._take(books, changes, again)
        self._compare(books, changes)
        now = self.clock.now() if changes.height else None
        self._progress = self._progress.after(last_stable(frame), now)
        books.note(self._progress)
        assert self._open is not None
        self._open = self._open.filter(ticks_expr(VE) >= self.stable)
        books.compact(batch)

    @property
    def stable(self) -> int:
        """How far the stream is known to be stable, in ticks."""
        return self._progress.stable if self._books is not None else START_OF_TIME

    def held(self) -> Held:
        """What is in memory between batches."""
        if self._open is None:
            return Held()
        return Held(self._open.height, int(self._open.estimated_size()))

    def _opened(self, event: Schema) -> Ledger:
        if self._books is None:
            self._books = Ledger(Path(self.ledger), event, self.least_rows)
            self._books.tidy()
            self._progress = self._books.progress()
            self.table.prepare(event)
        return self._books

    def _take(self, books: Ledger, changes: pl.DataFrame, again: bool) -> None:
        """Add a batch to what is known, or read it again where that is not known."""
        if self._open is None or again:
            self._batches = 0  # a start, or a batch once more: look at everything
            self._open = books.events(ends_from=self.stable)
        else:
            self._open = _together(self._open, changes)

    def _compare(self, books: Ledger, changes: pl.DataFrame) -> None:
        """Bring the table to what it should be, where this batch says so, then everywhere if it is
        time for that."""
        assert self._open is not None
        if changes.height:
            starts, unfrozen = _span(changes), ticks_expr(VE) >= self.stable
            desired = self._open.filter(ticks_expr(VS).is_between(*starts))
            self._correct(desired, self.table.stored(starts).filter(unfrozen), changes)
        late = changes.filter(ticks_expr(VE) < self.stable).height
        if late or self._batches % self.audit == 0:
            for piece in books.slices():
                self._correct(books.events(starts=piece), self.table.stored(piece), changes)
        self._batches += 1

    def _correct(self, desired: pl.DataFrame, stored: pl.DataFrame, changes: pl.DataFrame) -> None:
        """Write desired − stored; what concerns no event of the batch was a repair."""
        missing = _together(desired, stored.with_columns(pl.lit(-1).alias(COUNT)))
        add = missing.filter(pl.col(COUNT) > 0)
        remove = missing.filter(pl.col(COUNT) < 0).with_columns(-pl.col(COUNT))
        if not add.height and not remove.height:
            return
        self.table.write(remove, add)
        event = [n for n in missing.columns if n != COUNT]
        repaired = missing.join(changes, on=event, how="anti", nulls_equal=True)
        counts = repaired.get_column(COUNT)
        self.repairs.added += int(counts.filter(counts > 0).sum())
        self.repairs.removed -= int(counts.filter(counts < 0).sum())


def collected(rows: DataFrame, schema: Schema) -> pl.DataFrame:
    """All rows in the driver; Spark makes no Arrow batch where there is none."""
    batches = rows.toArrow().to_batches()
    return to_frame(batches, schema) if batches else schema.empty()


def _elements(rows: DataFrame) -> Schema:
    kinds = {f.name: f.dataType.simpleString() for f in rows.schema}
    payload = ", ".join(f"`{n}` {kind}" for n, kind in kinds.items() if n not in HEAD)
    return element_schema(Schema.of(payload), kinds[VS])


def _event_schema(elements: Schema) -> Schema:
    names = (VS, VE, *elements.names[len(HEAD) :])
    return Schema(tuple(elements[n] for n in names))


def _together(one: pl.DataFrame, other: pl.DataFrame) -> pl.DataFrame:
    """The sum of two counts of events."""
    same = other.select(one.columns).cast(one.schema)
    return summed([one.lazy(), same.lazy()]).collect()


def _span(changes: pl.DataFrame) -> Starts:
    starts = changes.get_column(VS).cast(pl.Int64)
    least, most = starts.min(), starts.max()
    assert isinstance(least, int)
    assert isinstance(most, int)
    return least, most
