"""One row of a shuffle is one page: the rows that travel between ingest, lanes and sinks.

`stage` ≥ 0 addresses the lanes of a stage; −1 marks what leaves. `stream` says what the page is a
page of: a source (`raw:…` if unchecked), a stream of an earlier stage, a sink (`sink:…`), a late
output (`late:…`); rows without a page tell a sink's heartbeat (`beat:…`), that a source has
finished (`end:…`), when it had nothing unread (`idle:…`) and when it had (`blocked:…`), when a lane
should run again (`wake`), or for which proof of a source's silence it waits (`proof:…`), what is
said upstream (`feedback:…`), how many tuples of a source ingest left out because of it
(`skipped:…`), or how many an operator has put out before the shuffle (`made:…`). `rows`,
`greatest`, `least` and `late` (how far tuples are behind `greatest`, sketched, where lateness is
learned) are facts about the sender's whole share of the stream, not about the page.

What leaves the last stage has two columns: a page, and in `stream` what it is a page of; or a note,
which is all that a row without a page tells. Where a flow has one sink, its tuples leave as rows,
in columns of their own. A tuple's row has nothing in the other two: every column more, and whatever
is asked of each row, is one more for millions of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.types import (
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

if TYPE_CHECKING:
    import pandas as pd

OUT = -1
CLOCK, RAW, END, IDLE, BLOCKED = "clock", "raw:", "end:", "idle:", "blocked:"
SINK, BEAT, LATE, WAKE, PROOF = "sink:", "beat:", "late:", "wake", "proof:"
FEEDBACK, SKIPPED, MADE = "feedback:", "skipped:", "made:"

WIRE = StructType(
    [
        StructField("lane", IntegerType()),
        StructField("stage", IntegerType()),
        StructField("stream", StringType()),
        StructField("sender", IntegerType()),
        StructField("rows", LongType()),
        StructField("greatest", LongType()),
        StructField("least", LongType()),
        StructField("late", BinaryType()),
        StructField("page", BinaryType()),
    ]
)
WIRE_ARROW = pa.schema(
    [
        ("lane", pa.int32()),
        ("stage", pa.int32()),
        ("stream", pa.string()),
        ("sender", pa.int32()),
        ("rows", pa.int64()),
        ("greatest", pa.int64()),
        ("least", pa.int64()),
        ("late", pa.binary()),
        ("page", pa.binary()),
    ]
)
COLUMNS = WIRE.fieldNames()
LEAVING = ["stream", "page"]  # beside the columns of tuples that leave as rows


def row_column(name: str) -> str:
    """The column of the last stage in which an output's attribute leaves, row by row."""
    return f"row_{name}"


def with_rows(schema: StructType) -> StructType:
    """Columns for the rows of one output beside those for the pages of the others."""
    rows = [StructField(row_column(f.name), f.dataType) for f in schema]
    return StructType([*(WIRE[name] for name in LEAVING), *rows])


@dataclass(frozen=True)
class Row:
    """One row on the wire."""

    lane: int
    stage: int
    stream: str
    sender: int = 0
    rows: int = 0
    greatest: int | None = None
    least: int | None = None
    late: bytes | None = None
    page: bytes | None = None


@dataclass(frozen=True)
class Note:
    """What leaves a flow besides pages, in the column `stream`."""

    stream: str
    sender: int = 0
    rows: int = 0
    greatest: int | None = None
    words: str | None = None  # of feedback

    def __str__(self) -> str:
        return json.dumps(astuple(self))

    @classmethod
    def of(cls, text: str) -> Note:
        """A note; what names a page is the note that there are rows of it."""
        return cls(*json.loads(text)) if text.startswith("[") else cls(text, rows=1)


def to_leaving(rows: Iterable[Row]) -> pa.Table:
    """Rows as they leave the last stage: pages by their names, and notes."""
    streams, pages = list[str](), list[bytes | None]()
    for r in rows:
        page = r.page is not None and not r.stream.startswith(FEEDBACK)
        words = None if page or r.page is None else bytes(r.page).decode()
        note = Note(r.stream, r.sender, r.rows, r.greatest, words)
        streams.append(r.stream if page else str(note))
        pages.append(r.page if page else None)
    fields = [WIRE_ARROW.field(name) for name in LEAVING]
    return pa.table([streams, pages], schema=pa.schema(fields))


def passing(frame: pd.DataFrame) -> list[Row]:
    """Rows of earlier stages that leave, as Spark gives them to the last."""
    import pandas as pd

    columns = (frame[name] for name in ("lane", "stream", "sender", "rows", "greatest", "page"))
    return [
        Row(
            int(lane), OUT, str(stream), int(sender), int(rows),
            None if pd.isna(greatest) else int(greatest), page=page,
        )
        for lane, stream, sender, rows, greatest, page in zip(*columns, strict=True)
    ]  # fmt: skip


def to_pandas(rows: Iterable[Row]) -> pd.DataFrame:
    """Rows as a stateful operator gives them to Spark."""
    import pandas as pd

    return pd.DataFrame([[getattr(r, c) for c in COLUMNS] for r in rows], columns=COLUMNS)


def to_batch(rows: list[Row]) -> pa.RecordBatch:
    columns = [[getattr(r, name) for r in rows] for name in COLUMNS]
    arrays = [pa.array(c, f.type) for c, f in zip(columns, WIRE_ARROW, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=WIRE_ARROW)
