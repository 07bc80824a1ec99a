"""Revisable streams: elements that insert an event, adjust its end, or declare time stable.

    insert(A, 6, 20)   adjust(A, 6, 20, 30)   adjust(A, 6, 30, 25)   ≡   insert(A, 6, 25)

An event is a payload with a lifetime [Vs, Ve) (LMerge section II, Example 3). One element is one
row of a page: `element` says which kind it is, `vs`, `vold` (of an adjust only) and `ve` are times
of one type, the rest is the payload. An adjust to Ve = Vs removes the event. A stable has its time
in `vs` and no payload: from then on there is no insert with Vs below it and no adjust with Vold or
Ve below it.

A stable is a row, not a punctuation. It is no heartbeat on Vs, since an event that began before it
may still have its end adjusted; and where it stands between the elements is all that it says.

Infinity is a time like any other: `infinity(schema)`, the last moment of the year 9999 where times
are timestamps, so that every system down the line can show it.

>>> schema = element_schema(Schema.of("user string"))
>>> frame = elements(schema, [insert("A", 6, 20), adjust("A", 6, 20, 25), stable(11)])
>>> print(describe(schema, frame))
insert(A, 6, 20), adjust(A, 6, 20, 25), stable(11)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import polars as pl

from interpunct.model.errors import SchemaError
from interpunct.model.page import Page
from interpunct.model.schema import END_OF_TIME, LAST_YEAR, Schema, to_ticks

KIND, VS, VOLD, VE = "element", "vs", "vold", "ve"
HEAD = (KIND, VS, VOLD, VE)
INSERT, ADJUST, STABLE = "insert", "adjust", "stable"
FOREVER = "∞"  # how a row may spell infinity

Row = tuple[Any, ...]


def element_schema(payload: Schema, times: str = "bigint") -> Schema:
    """The schema of a revisable stream with this payload; `times` is the type of Vs and Ve.

    It has no time attribute: what is certain about its time is said by its stable elements.
    """
    for name in HEAD:
        if name in payload:
            raise SchemaError(
                "revisable stream", f"a payload without the attributes {', '.join(HEAD)}",
                repr(name), "Rename the attribute.",
            )  # fmt: skip
    head = Schema.of(f"{KIND} string, {VS} {times}, {VOLD} {times}, {VE} {times}", time=VS)
    return Schema(head.attributes + payload.attributes)


def payload_names(schema: Schema) -> tuple[str, ...]:
    """The payload's attributes of a revisable stream; an error if it is none."""
    if schema.names[: len(HEAD)] != HEAD:
        raise SchemaError(
            "revisable stream", f"attributes that begin with {', '.join(HEAD)}",
            ", ".join(schema.names), "Make the schema with element_schema(payload).",
        )  # fmt: skip
    return schema.names[len(HEAD) :]


def infinity(schema: Schema) -> int:
    """The tick that stands for the end of time in this stream."""
    return END_OF_TIME if schema[VS].dtype.is_integer() else LAST_YEAR


# Elements by hand -------------------------------------------------------------------------------


def insert(payload: Any, vs: Any, ve: Any) -> Row:
    """An event with this lifetime begins to be known; the payload is a value or a tuple."""
    return (INSERT, vs, None, ve, *_values(payload))


def adjust(payload: Any, vs: Any, vold: Any, ve: Any) -> Row:
    """The event that was to end at `vold` ends at `ve`; it is removed if that is its start."""
    return (ADJUST, vs, vold, ve, *_values(payload))


def stable(at: Any) -> Row:
    """The part of the table before this time is final."""
    return (STABLE, at, None, None)


def elements(schema: Schema, rows: Iterable[Row]) -> pl.DataFrame:
    """A frame of elements written by hand, where "∞" may stand for a time."""
    width = len(schema.names)
    filled = [_timed(schema, row) + (None,) * (width - len(row)) for row in rows]
    return Page.of_rows(schema, filled, where="elements").frame


def describe(schema: Schema, frame: pl.DataFrame) -> str:
    """Elements in the paper's notation, for people (not for data: it goes row by row)."""
    forever = infinity(schema)

    def shown(value: Any) -> str:
        return FOREVER if value is not None and to_ticks(value) == forever else str(value)

    texts = []
    for kind, vs, vold, ve, *payload in frame.rows():
        times = {INSERT: (vs, ve), STABLE: (vs,)}.get(kind, (vs, vold, ve))
        values = [] if kind == STABLE else [str(p) for p in payload]
        texts.append(f"{kind}({', '.join([*values, *map(shown, times)])})")
    return ", ".join(texts)


def _values(payload: Any) -> Row:
    return payload if isinstance(payload, tuple) else (payload,)


def _timed(schema: Schema, row: Row) -> Row:
    kind, *times = row[: len(HEAD)]
    forever = schema.with_time(VS).value_of(infinity(schema))
    return (kind, *(forever if t == FOREVER else t for t in times), *row[len(HEAD) :])


# In columns -------------------------------------------------------------------------------------


def ticks(frame: pl.DataFrame, name: str) -> pl.Series:
    """One of the times as ticks."""
    return frame.get_column(name).cast(pl.Int64)


def ticks_expr(name: str) -> pl.Expr:
    return pl.col(name).cast(pl.Int64)


def framed(schema: Schema, frame: pl.DataFrame, columns: Sequence[pl.Expr]) -> pl.DataFrame:
    """Elements from computed columns, in the types and the order of the schema."""
    computed = frame.select(columns)
    return computed.select(pl.col(n).cast(schema[n].dtype) for n in schema.names)
