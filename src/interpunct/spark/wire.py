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

Where a flow has one sink, its tuples leave the last stage as rows, in columns of their own, beside
those columns of the wire that what leaves may need. A tuple's row has nothing in these, not even a
`stream`: every column more is one more in each of millions of rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
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
LEAVING = ["stream", "sender", "rows", "greatest", "page"]  # of these, beside tuples as rows


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


def to_pandas(rows: Iterable[Row]) -> pd.DataFrame:
    """Rows as a stateful operator gives them to Spark."""
    import pandas as pd

    return pd.DataFrame([[getattr(r, c) for c in COLUMNS] for r in rows], columns=COLUMNS)


def to_batch(rows: list[Row]) -> pa.RecordBatch:
    columns = [[getattr(r, name) for r in rows] for name in COLUMNS]
    arrays = [pa.array(c, f.type) for c, f in zip(columns, WIRE_ARROW, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=WIRE_ARROW)
