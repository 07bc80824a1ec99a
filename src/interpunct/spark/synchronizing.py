"""The program of a synchronized stream. It may be changed between two runs of its query:

    bounds            judge what comes from now on; what was promised stands
    columns           added ones are null in rows that were held, removed ones are left out
    held or at once   what was held goes on waiting, or leaves with the first batch

Only its time and the number of lanes belong to a checkpoint.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from interpunct.engine.lane import Lane
from interpunct.flow.nodes import SourceNode
from interpunct.model.errors import FlowError
from interpunct.model.page import Page
from interpunct.model.punctuation import Punctuation
from interpunct.model.schema import END_OF_TIME, Schema
from interpunct.operators.contract import Stream
from interpunct.operators.sort import Sort
from interpunct.operators.source import source_schema
from interpunct.operators.state import Scoped, State
from interpunct.spark.ingest import Target
from interpunct.spark.program import Program
from interpunct.spark.refusal import refusing
from interpunct.spark.wire import CLOCK, Note

HELD = "held"  # the operator with which rows wait
_COLUMNS = "columns"  # the record of the columns that the rows in state have


SOURCE = "stream_{}"  # what lanes call the DataFrames, in the order given


@dataclass(frozen=True)
class Synchronizing(Program):
    """Its user has said nothing of operators, so errors do not either.

    Each of the streams has one, and its rows go to lanes of its own; what was seen of it goes to
    the lanes of all.
    """

    number: int = 0  # of the stream among those that are synchronized
    streams: int = 1

    @property
    def where(self) -> str:
        return "synchronize"

    @property
    def _source(self) -> SourceNode:
        (source,) = self.graph.sources
        return source

    def targets(self, source: str) -> tuple[Target, ...]:
        """On the wire, the number of the stream is that of the stage."""
        return tuple(replace(t, stage=self.number) for t in super().targets(source))

    def listeners(self, source: str) -> tuple[int, ...]:
        del source
        return tuple(n for n in range(self.streams) if n != self.number)

    def heard(self, note: Note) -> Note:
        """What was seen of any stream moves the time of this one, as if its own: those who learn
        tell the streams apart by the sender. That one has finished moves no time."""
        number = note.stream.rpartition("_")[2]
        if SOURCE.format(number) != note.stream:
            return Note(CLOCK)
        return note._replace(stream=self._source.name, sender=int(number))

    def described(self, stage: int) -> dict[str, str]:
        del stage  # there is one
        return {"time": str(self._source.time.attribute), "lanes": str(self.lanes)}

    @refusing()
    def check(self, stage: int, stored: bytes | None) -> bytes:
        return super().check(stage, stored)

    @refusing()
    def lane(self, stage: int, state: State) -> Lane:
        """The lane; if the job was another one before, with the rows that it held let in again."""
        schema = source_schema(self._source.raw, self._source.time)
        mine = {"ddl": schema.ddl, "held": HELD in self.graph.nodes}
        stored = state.get(_COLUMNS)
        theirs: dict[str, Any] = json.loads(stored) if isinstance(stored, bytes) else mine
        if stored is None or theirs != mine:
            state.put(_COLUMNS, json.dumps(mine).encode())
        held = schema.empty() if theirs == mine else _let_go(state, theirs["ddl"], schema)
        lane = super().lane(stage, state)
        if held.height:
            lane.readmit(self._source.name, held)
        return lane


def _let_go(state: State, ddl: str, schema: Schema) -> pl.DataFrame:
    """All rows that wait in the state of an earlier job, with the columns of this one."""
    before = Schema.of(ddl).with_time(schema.time, schema.kind)
    waiting = Scoped(state, HELD)
    sort = Sort(HELD, Stream(before), waiting)
    released = sort.on_punctuation(0, Punctuation.heartbeat(before, END_OF_TIME)).pages
    for key, _ in list(waiting.scan("")):
        waiting.remove(key)
    frames = [page.frame for _, page in released if page.height]
    return pl.concat([_with_columns(f, before, schema) for f in frames] or [schema.empty()])


def _with_columns(frame: pl.DataFrame, before: Schema, schema: Schema) -> pl.DataFrame:
    """Rows as the columns are now; which are more or fewer, but not others."""
    added = [a for a in schema.attributes if a.name not in before.names]
    gone = [name for name in before.names if name not in schema.names]
    if added and gone:
        raise FlowError(
            "synchronize", f"the columns of the rows it holds, or more, or fewer: {before.ddl}",
            schema.ddl,
            f"Values of {', '.join(gone)} would be lost. Keep the names, or start with a new "
            "checkpoint.",
        )  # fmt: skip
    filled = frame.with_columns(pl.lit(None, a.dtype).alias(a.name) for a in added)
    return Page.checked(schema, filled, "synchronize, rows it holds").frame
