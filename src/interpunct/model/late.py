"""The late output: tuples that could not take part, each with its reason. Nothing vanishes.

>>> from interpunct.model.schema import Schema
>>> s = Schema.of("ts bigint, bid double", time="ts")
>>> late_schema(s).names
('ts', 'bid', '_source', '_reason', '_lateness', '_heartbeat')
"""

from __future__ import annotations

from enum import Enum

import polars as pl

from interpunct.model.doubles import quotient
from interpunct.model.schema import FIRST_YEAR, LAST_YEAR, Attribute, Schema

LATE = "late:"  # what the late output of a node is called beside the sinks: `late:cars`
SOURCE = "_source"  # the attribute that names a late tuple's stream
_WHY = (Attribute(SOURCE, "string", pl.String()), Attribute("_reason", "string", pl.String()))
_LATENESS, _HEARTBEAT = "_lateness", "_heartbeat"
_NAMES = (*(a.name for a in _WHY), _LATENESS, _HEARTBEAT)
_SECOND = 1_000_000  # ticks, where times are timestamps


class Reason(Enum):
    """Why a tuple went to the late output."""

    LATE = "late: behind a heartbeat already given"
    PUNCTUATED = "late: matches a punctuation already given"
    DISORDER = "out of order on a stream declared ordered"
    NULL_TIME = "null time"
    DIVERGED = "late: further behind the other inputs than tolerated"
    ABSURD_TIME = "time outside the years 1 to 9999"


def late_schema(schema: Schema) -> Schema:
    """The schema of the late output of a stream: its own attributes, then why and by how much.

    `_heartbeat` is what the tuple should have come before, and of the time's own type; `_lateness`
    is how far behind it was, in seconds where times are timestamps and else in the time's units.
    """
    stamped = _timestamp(schema)
    if stamped is None:
        lateness, heartbeat = (Attribute(n, "bigint", pl.Int64()) for n in _NAMES[-2:])
    else:
        lateness = Attribute(_LATENESS, "double", pl.Float64())
        heartbeat = Attribute(_HEARTBEAT, stamped.type, stamped.dtype)
    return Schema((*schema.attributes, *_WHY, lateness, heartbeat))


def is_late(schema: Schema) -> bool:
    """Whether this is the schema of a late output."""
    return schema.names[-len(_NAMES) :] == _NAMES


def late_rows(
    schema: Schema,
    frame: pl.DataFrame,
    source: str,
    reason: Reason,
    missed: pl.Series | int | None = None,
) -> pl.DataFrame:
    """Rows of the late output for `frame`; `missed` is the time, in ticks, each came behind."""
    behind = pl.lit(missed, pl.Int64)
    lateness = pl.lit(None, pl.Int64) if missed is None else behind - schema.ticks_expr()
    stamped = _timestamp(schema)
    if stamped is not None:
        lateness = quotient(lateness, pl.lit(float(_SECOND)))
        behind = behind.clip(FIRST_YEAR, LAST_YEAR).cast(stamped.dtype)
    return frame.select(
        *schema.names,
        pl.lit(source).alias(SOURCE),
        pl.lit(reason.value).alias("_reason"),
        lateness.alias(_LATENESS),
        behind.alias(_HEARTBEAT),
    )


def _timestamp(schema: Schema) -> Attribute | None:
    """The time attribute, if its values are timestamps."""
    time = None if schema.time is None else schema[schema.time]
    return None if time is None or time.dtype.is_integer() else time
