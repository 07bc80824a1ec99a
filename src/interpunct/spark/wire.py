"""One row of a shuffle is one page: the rows that travel between ingest, lanes and sinks.

    lane  stage  load
    12    0      a page: Arrow IPC, whose metadata say of which stream, and which lane has made it
    12    0      notes: a JSON list of what else there is to tell

`stage` ≥ 0 addresses the lanes of a stage; −1 marks what leaves. A page is one of a source (`raw:…`
if unchecked), of a stream of an earlier stage, of a sink (`sink:…`), of a late output (`late:…`).
Notes tell what a task saw of a source (by its name), a sink's heartbeat (`beat:…`), that a source
has finished (`end:…`), when it had nothing unread (`idle:…`) and when it had (`blocked:…`), when a
lane should run again (`wake`), for which proof of a source's silence it waits (`proof:…`), what is
said upstream (`feedback:…`), how many tuples of a source ingest left out because of it
(`skipped:…`), how many an operator has put out before the shuffle (`made:…`), or how many rows of
an output leave (`sink:…`, `late:…`). With few columns, and few rows, a small batch costs less:
Spark's workers handle each of them one by one.

What leaves the last stage has two columns: a page, and in `stream` what it is a page of; or in
`stream` a note. Where a flow has one sink, its tuples leave as rows, in columns of their own. A
tuple's row has nothing in the other two: every column more, and whatever is asked of each row, is
one more for millions of them.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
from pyspark.sql.types import BinaryType, IntegerType, StringType, StructField, StructType

from interpunct.model import late
from interpunct.model.page import Page

if TYPE_CHECKING:
    import pandas as pd

OUT = -1
CLOCK, RAW, END, IDLE, BLOCKED = "clock", "raw:", "end:", "idle:", "blocked:"
SINK, BEAT, LATE, WAKE, PROOF = "sink:", "beat:", late.LATE, "wake", "proof:"
FEEDBACK, SKIPPED, MADE = "feedback:", "skipped:", "made:"
NOTES = b"["  # the first byte of notes, and of no page

WIRE = StructType(
    [
        StructField("lane", IntegerType()),
        StructField("stage", IntegerType()),
        StructField("load", BinaryType()),
    ]
)
_ARROW = pa.schema([("lane", pa.int32()), ("stage", pa.int32()), ("load", pa.binary())])
LEAVING = StructType([StructField("stream", StringType()), StructField("page", BinaryType())])
_LEAVING_ARROW = pa.schema([("stream", pa.string()), ("page", pa.binary())])


class Note(NamedTuple):
    """What there is to tell besides pages. `rows`, `greatest`, `least` and `words` of a source are
    facts about all that its sender has read."""

    stream: str
    sender: int = 0
    rows: int = 0
    greatest: int | None = None
    least: int | None = None
    words: str | None = None  # of feedback; of facts how far tuples are behind, sketched

    def __str__(self) -> str:
        return json.dumps(self)

    @classmethod
    def of(cls, text: str) -> Note:
        """A note; what names a page is the note that there are rows of it."""
        return cls(*json.loads(text)) if text.startswith("[") else cls(text, rows=1)


def sketched(behind: bytes | None) -> str | None:
    """How far tuples are behind, as the words of a note."""
    return None if behind is None else base64.b64encode(behind).decode()


def sketch(words: str | None) -> bytes | None:
    """The same, read again."""
    return None if words is None else base64.b64decode(words)


@dataclass(frozen=True)
class Row:
    """One row on the wire."""

    lane: int
    stage: int
    load: bytes

    @classmethod
    def of_page(cls, lane: int, stage: int, page: Page, stream: str, sender: int = 0) -> Row:
        return cls(lane, stage, page.to_ipc(stream, sender))

    @classmethod
    def of_notes(cls, lane: int, stage: int, notes: Iterable[Note]) -> Row:
        return cls(lane, stage, json.dumps(list(notes)).encode())


def opened(load: bytes | memoryview) -> Page | list[Note]:
    """The page of a load, or its notes."""
    if load[:1] != NOTES:
        return Page.from_ipc(load)
    return [Note(*fields) for fields in json.loads(bytes(load))]


def row_column(name: str) -> str:
    """The column of the last stage in which an output's attribute leaves, row by row."""
    return f"row_{name}"


def with_rows(schema: StructType) -> StructType:
    """The columns of a last stage from which rows of this schema leave, beside all else."""
    rows = [StructField(row_column(f.name), f.dataType) for f in schema]
    return StructType([*LEAVING, *rows])


def to_leaving(loads: Iterable[bytes]) -> pa.Table:
    """What leaves the last stage: pages by their names, and notes one by one."""
    streams, pages = list[str](), list[bytes | None]()
    for load in loads:
        if load[:1] != NOTES:
            streams.append(Page.stream_of(load))
            pages.append(load)
        else:
            notes = [json.dumps(fields) for fields in json.loads(load)]
            streams += notes
            pages += [None] * len(notes)
    return pa.table([streams, pages], schema=_LEAVING_ARROW)


def to_pandas(rows: Iterable[Row]) -> pd.DataFrame:
    """Rows as a stateful operator gives them to Spark."""
    import pandas as pd

    columns = zip(*((r.lane, r.stage, r.load) for r in rows), strict=True)
    return pd.DataFrame(dict(zip(WIRE.names, columns, strict=True)))


def to_batch(rows: Iterable[Row]) -> pa.RecordBatch:
    columns = zip(*((r.lane, r.stage, r.load) for r in rows), strict=True)
    arrays = [pa.array(c, f.type) for c, f in zip(columns, _ARROW, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_ARROW)
