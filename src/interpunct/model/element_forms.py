"""Other ways to write a revisable stream: open and close, and the log of a table's changes.

    open(B, 2)   close(B, 6)              insert(B, 2, ∞)   adjust(B, 2, ∞, 6)
    insert 1: x at 3   update 1: y at 7   insert((1, x), 3, ∞)
                                          adjust((1, x), 3, ∞, 7)   insert((1, y), 7, ∞)

Open and close (LMerge Example 2) are the I- and D-streams, or positive and negative tuples, of
other systems; only one event of a payload is open at a time, and a close may be revised by another.
In a change log each version of a key is an event that the next version, or a delete, ends.

>>> from interpunct.model.elements import describe, element_schema
>>> from interpunct.model.page import Page
>>> schema = element_schema(Schema.of("p string"))
>>> marks = marks_schema(schema)
>>> frame = Page.of_rows(marks, [("open", 2, "B"), ("close", 6, "B"), ("close", 5, "B")]).frame
>>> print(describe(schema, from_marks(schema, frame)))
insert(B, 2, ∞), adjust(B, 2, ∞, 6), adjust(B, 2, 6, 5)
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from interpunct.model.elements import (
    ADJUST,
    INSERT,
    KIND,
    STABLE,
    VE,
    VOLD,
    VS,
    framed,
    infinity,
    payload_names,
    ticks_expr,
)
from interpunct.model.errors import StreamError
from interpunct.model.schema import Schema

MARK, AT = "mark", "at"
OPEN, CLOSE = "open", "close"
CHANGE, UPDATE, DELETE = "change", "update", "delete"
_ROW, _TURN, _TIME = "_row", "_turn", "_time"


def marks_schema(schema: Schema) -> Schema:
    """The open and close form of a revisable stream: `mark`, `at`, the payload."""
    payload = tuple(schema[n] for n in payload_names(schema))
    head = Schema.of(f"{MARK} string, {AT} {schema[VS].type}")
    return Schema(head.attributes + payload)


def from_marks(schema: Schema, marks: pl.DataFrame) -> pl.DataFrame:
    """Elements from open, close and stable: a close adjusts its payload's last opened event."""
    names, forever = list(payload_names(schema)), infinity(schema)
    opened = pl.col(MARK) == OPEN
    at = ticks_expr(AT)
    timed = marks.with_row_index(_ROW).with_columns(at.alias(_TIME))
    data = timed.filter(pl.col(MARK) != STABLE).with_columns(
        pl.when(opened).then(_TIME).forward_fill().over(names).alias(VS),
        pl.when(opened).then(forever).otherwise(_TIME).alias(VE),
    )
    data = data.with_columns(
        pl.when(~opened).then(pl.col(VE).shift(1).over(names)).alias(VOLD),
        pl.when(opened).then(pl.lit(INSERT)).otherwise(pl.lit(ADJUST)).alias(KIND),
    )
    _refuse(data.filter(pl.col(VS).is_null()), names, "an open before each close")
    stables = timed.filter(pl.col(MARK) == STABLE).with_columns(
        pl.lit(STABLE).alias(KIND), pl.col(_TIME).alias(VS)
    )
    rows = pl.concat([data, stables], how="diagonal").sort(_ROW)
    return framed(schema, rows, [pl.col(n) for n in schema.names])


def to_marks(schema: Schema, frame: pl.DataFrame) -> pl.DataFrame:
    """Open and close from elements: an insert opens, and closes where its end is known.

    Only the event of a payload that was inserted last can be closed, since a close does not say
    when its event began; a stream that adjusts an earlier one has no such form.
    """
    names, forever = list(payload_names(schema)), infinity(schema)
    inserts = pl.col(KIND) == INSERT
    rows = frame.with_row_index(_ROW).with_columns(ticks_expr(n).alias(n) for n in (VS, VE))
    data = rows.filter(pl.col(KIND) != STABLE).with_columns(
        pl.when(inserts).then(VS).forward_fill().over(names).alias("_last")
    )
    other = pl.col("_last").is_null() | (pl.col("_last") != pl.col(VS))
    _refuse(data.filter(other), names, "adjusts of the event that was inserted last")
    opens = data.filter(inserts).with_columns(
        pl.lit(OPEN).alias(MARK), pl.col(VS).alias(AT), pl.lit(0).alias(_TURN)
    )
    ends = data.filter(~inserts | (pl.col(VE) < forever)).with_columns(
        pl.lit(CLOSE).alias(MARK), pl.col(VE).alias(AT), pl.lit(1).alias(_TURN)
    )
    stables = rows.filter(pl.col(KIND) == STABLE).with_columns(
        pl.lit(STABLE).alias(MARK), pl.col(VS).alias(AT), pl.lit(0).alias(_TURN)
    )
    marks = marks_schema(schema)
    merged = pl.concat([opens, ends, stables], how="diagonal").sort(_ROW, _TURN)
    return framed(marks, merged, [pl.col(n) for n in marks.names])


# Change logs ------------------------------------------------------------------------------------


def changes_schema(schema: Schema) -> Schema:
    """The change log of a revisable stream: `change` (insert, update, delete), `at`, the payload.

    A delete needs no more of the payload than the keys.
    """
    payload = tuple(schema[n] for n in payload_names(schema))
    head = Schema.of(f"{CHANGE} string, {AT} {schema[VS].type}")
    return Schema(head.attributes + payload)


def from_changes(
    schema: Schema, log: pl.DataFrame, keys: Sequence[str], current: pl.DataFrame | None = None
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Elements from changes, and the versions that are current after them.

    Give those back as `current` with the log's next part. Each key's changes must come in the
    order of their times; different keys need not.
    """
    names, forever = list(payload_names(schema)), infinity(schema)
    fresh = log.with_row_index(_ROW).with_columns(ticks_expr(AT).alias(VS))
    known = schema.empty() if current is None else current
    earlier = known.select(pl.lit(UPDATE).alias(CHANGE), ticks_expr(VS), *names)
    rows = pl.concat([earlier, fresh], how="diagonal")
    gone = (pl.col(CHANGE) == DELETE).shift(1).over(list(keys))
    before = [pl.col(n).shift(1).over(list(keys)).alias(f"_old_{n}") for n in (VS, *names)]
    rows = rows.with_columns(*before, gone.alias("_gone")).filter(pl.col(_ROW).is_not_null())
    replaces = pl.col(f"_old_{VS}").is_not_null() & ~pl.col("_gone")
    _check_changes(rows, names, replaces)
    ends = rows.filter(replaces).select(
        pl.lit(ADJUST).alias(KIND), pl.col(f"_old_{VS}").alias(VS), pl.lit(forever).alias(VOLD),
        pl.col(VS).alias(VE), *(pl.col(f"_old_{n}").alias(n) for n in names), _ROW,
        pl.lit(0).alias(_TURN),
    )  # fmt: skip
    begins = rows.filter(pl.col(CHANGE) != DELETE).select(
        pl.lit(INSERT).alias(KIND), VS, pl.lit(None, pl.Int64).alias(VOLD),
        pl.lit(forever).alias(VE), *names, _ROW, pl.lit(1).alias(_TURN),
    )  # fmt: skip
    merged = pl.concat([ends, begins], how="vertical_relaxed").sort(_ROW, _TURN)
    found = framed(schema, merged, [pl.col(n) for n in schema.names])
    return found, _current(schema, known, rows, keys)


def _current(
    schema: Schema, known: pl.DataFrame, rows: pl.DataFrame, keys: Sequence[str]
) -> pl.DataFrame:
    """The last version of every key that is not deleted, as inserts without an end."""
    forever = infinity(schema)
    latest = rows.group_by(list(keys), maintain_order=True).last()
    kept = known.join(latest, on=list(keys), how="anti", nulls_equal=True)
    versions = latest.filter(pl.col(CHANGE) != DELETE).with_columns(
        pl.lit(INSERT).alias(KIND), pl.lit(None, pl.Int64).alias(VOLD), pl.lit(forever).alias(VE)
    )
    return kept.vstack(framed(schema, versions, [pl.col(n) for n in schema.names]))


def _check_changes(rows: pl.DataFrame, names: list[str], replaces: pl.Expr) -> None:
    inserts = pl.col(CHANGE) == INSERT
    _refuse(rows.filter(inserts & replaces), names, "an insert only of a key that is not there")
    _refuse(
        rows.filter(~inserts & ~replaces), names, "updates and deletes only of keys that are there"
    )
    backwards = replaces & (pl.col(VS) < pl.col(f"_old_{VS}"))
    _refuse(rows.filter(backwards), names, "the changes of a key in the order of their times")


def _refuse(rows: pl.DataFrame, names: list[str], expected: str) -> None:
    if rows.height:
        first = rows.row(0, named=True)
        shown = ", ".join(f"{n}={first[n]!r}" for n in names)
        raise StreamError(
            "revisable stream", expected, f"row {first[_ROW]} ({shown})",
            "Correct the row, or write the stream as insert, adjust and stable.",
        )  # fmt: skip
