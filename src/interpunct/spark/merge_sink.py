"""A self-correcting sink: a table kept equal to a revisable stream, whatever happened to it.

    elements ─▶ ledger: what should be there ──┐
                                               ├─▶ desired − stored ─▶ the table
    someone's mistake ─▶ what is there ────────┘

    table = MergedTable("/ledgers/speeds", DatabaseTable(connect, "speeds"))
    ip.lmerge(a, b).writeStream.foreachBatch(table).option("checkpointLocation", …).start()

The ledger is a folder with one file for each batch, its net changes; a batch that runs again
replaces its file. So what should be there is a sum, and what is written is the difference between
that and what is found: a row that is missing, wrong or there twice is repaired, and a batch may be
written any number of times. Each batch compares the events it touches; the first one after a start,
and each `audit`-th, compares the whole table.

What should be there is held in the driver's memory: the sink is for results, not for raw streams.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import polars as pl
from pyspark.sql import DataFrame

from interpunct.model.elements import HEAD, VE, VS, element_schema
from interpunct.model.schema import START_OF_TIME, Schema
from interpunct.model.tdb import COUNT, last_stable, tally
from interpunct.spark.rows import to_frame

AUDIT = 1000  # batches from one comparison of the whole table to the next


class Table(Protocol):
    """A store of events: vs, ve and the payload in columns, a row for each time one is there."""

    def prepare(self, event: Schema) -> None:
        """Make the table if there is none."""

    def stored(self, starts: tuple[int, int] | None) -> pl.DataFrame:
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
    repairs: Repairs = field(default_factory=Repairs)
    stable: int = START_OF_TIME  # the greatest one of the batches this process has seen
    _events: Schema | None = None
    _desired: pl.DataFrame | None = None
    _batches: int = 0

    def __call__(self, rows: DataFrame, batch: int) -> None:
        schema = _elements(rows)
        frame = collected(rows, schema)
        changes = tally(schema, frame).filter(pl.col(COUNT) != 0)
        folder = Path(self.ledger)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{batch:010d}.parquet"
        again = path.exists()
        if changes.height or again:
            temporary = path.with_suffix(".part")
            changes.write_parquet(temporary)
            temporary.replace(path)
        self.stable = max(self.stable, last_stable(frame))
        before = None if again else self._desired
        self._take(_event_schema(schema), changes, before)
        self._compare(changes)

    def desired(self) -> pl.DataFrame:
        """What the table should have: each event with how often it is there."""
        found = [pl.read_parquet(p) for p in sorted(Path(self.ledger).glob("*.parquet"))]
        return _summed(found) if found else pl.DataFrame()

    def _take(self, event: Schema, changes: pl.DataFrame, before: pl.DataFrame | None) -> None:
        """Add a batch to what is known, or read all of it again where that is not known."""
        if self._events is None:
            self.table.prepare(event)
            self._events = event
        if before is not None:
            self._desired = _summed([before, changes])
            return
        self._batches = 0  # a start, or a batch once more: look at everything
        known = self.desired()
        self._desired = known if known.width else changes

    def _compare(self, changes: pl.DataFrame) -> None:
        """Bring the table to what it should be, where this batch says so or everywhere."""
        assert self._desired is not None
        whole = self._batches % self.audit == 0
        self._batches += 1
        if not whole and not changes.height:
            return
        starts = None if whole else _span(changes)
        desired = self._desired if starts is None else _within(self._desired, starts)
        stored = self.table.stored(starts).with_columns(pl.lit(1).alias(COUNT))
        missing = _summed([desired, stored.with_columns(-pl.col(COUNT))])
        add = missing.filter(pl.col(COUNT) > 0)
        remove = missing.filter(pl.col(COUNT) < 0).with_columns(-pl.col(COUNT))
        if add.height or remove.height:
            self.table.write(remove, add)
        self._note(missing, changes)

    def _note(self, missing: pl.DataFrame, changes: pl.DataFrame) -> None:
        """What was written and concerns no event of the batch was a repair."""
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


def _summed(frames: list[pl.DataFrame]) -> pl.DataFrame:
    """Events with how often they are there, without those that are not."""
    first = frames[0]
    same = [f.select(first.columns).cast(first.schema) for f in frames]
    event = [n for n in first.columns if n != COUNT]
    summed = pl.concat(same).group_by(event, maintain_order=True).agg(pl.col(COUNT).sum())
    return summed.filter(pl.col(COUNT) != 0)


def _span(changes: pl.DataFrame) -> tuple[int, int]:
    starts = changes.get_column(VS).cast(pl.Int64)
    least, most = starts.min(), starts.max()
    assert isinstance(least, int)
    assert isinstance(most, int)
    return least, most


def _within(events: pl.DataFrame, starts: tuple[int, int]) -> pl.DataFrame:
    return events.filter(pl.col(VS).cast(pl.Int64).is_between(*starts))
