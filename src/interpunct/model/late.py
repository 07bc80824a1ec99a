"""The late output: tuples that could not take part, each with its reason. Nothing vanishes.

>>> from interpunct.model.schema import Schema
>>> s = Schema.of("ts bigint, bid double", time="ts")
>>> late_schema(s).names
('ts', 'bid', '_source', '_reason', '_lateness', '_heartbeat')
"""

from __future__ import annotations

from enum import Enum

import polars as pl

from interpunct.model.schema import Attribute, Schema

_EXTRA = (
    Attribute("_source", "string", pl.String()),
    Attribute("_reason", "string", pl.String()),
    Attribute("_lateness", "bigint", pl.Int64()),  # ticks behind what it missed
    Attribute("_heartbeat", "bigint", pl.Int64()),  # the tick it should have come before
)


class Reason(Enum):
    """Why a tuple went to the late output."""

    LATE = "late: behind a heartbeat already given"
    PUNCTUATED = "late: matches a punctuation already given"
    DISORDER = "out of order on a stream declared ordered"
    NULL_TIME = "null time"
    DIVERGED = "late: further behind the other inputs than tolerated"
    ABSURD_TIME = "time outside the years 1 to 9999"


def late_schema(schema: Schema) -> Schema:
    """The schema of the late output of a stream: its own attributes, then why and by how much."""
    return Schema(schema.attributes + _EXTRA)


def is_late(schema: Schema) -> bool:
    """Whether this is the schema of a late output."""
    return schema.attributes[-len(_EXTRA) :] == _EXTRA


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
    return frame.select(
        *schema.names,
        pl.lit(source).alias("_source"),
        pl.lit(reason.value).alias("_reason"),
        lateness.alias("_lateness"),
        behind.alias("_heartbeat"),
    )
