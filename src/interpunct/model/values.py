"""The order of values, and the literals of Spark SQL.

Values are the canonical ones of a schema: int, float, str, bool, bytes, date, datetime, Decimal.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from interpunct.model.schema import to_ticks

# Sets find a NaN only by identity, so every NaN in a condition is this one.
NAN = float("nan")

# A cut is a place between two neighbouring values. A span reaches from one cut up to another, and
# every condition is some spans and perhaps null; that makes implication and emptiness one rule.
Cut = tuple[Any, ...]
Span = tuple[Cut, Cut]
BOTTOM: Cut = (-1,)
TOP: Cut = (1,)
EVERYTHING: list[Span] = [(BOTTOM, TOP)]


def in_order(values: Iterable[Any]) -> list[Any]:
    """The values that are not null, least first, NaN last."""
    return sorted((v for v in values if v is not None), key=before)


def plain(value: Any) -> Any:
    """The value with the one NaN and the one zero."""
    if isinstance(value, float):
        return NAN if math.isnan(value) else value + 0.0  # -0.0 + 0.0 is 0.0
    return value


def before(value: Any) -> Cut:
    """The cut just below a value."""
    match value:
        case bool():
            return (0, 1) if value else BOTTOM
        case int():
            return (0, value)
        case datetime():
            return (0, to_ticks(value))
        case date():
            return (0, value.toordinal())
        case str() | bytes():
            return (0, value) if value else BOTTOM
        case float() if math.isnan(value):
            return (0, math.inf, 1)
        case float() if value == -math.inf:
            return BOTTOM
    return (0, value, 0)


def after(value: Any) -> Cut:
    """The cut just above a value: where its type has a next value, the cut just below that."""
    match value:
        case bool():
            return TOP if value else (0, 1)
        case int() | date():
            return (0, before(value)[1] + 1)
        case str():
            return (0, value + "\0")
        case bytes():
            return (0, value + b"\0")
        case float() if math.isnan(value):
            return TOP
    return (0, value, 1)


def merged(spans: list[Span]) -> list[Span]:
    """The same values as spans that are disjoint, in order and do not touch."""
    result: list[Span] = []
    for low, high in sorted(spans):
        if result and low <= result[-1][1]:
            result[-1] = (result[-1][0], max(result[-1][1], high))
        else:
            result.append((low, high))
    return result


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def sql_literal(value: Any) -> str:
    """A value as a Spark SQL literal of its own type."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case float() if math.isnan(value):
            return "double('NaN')"
        case float() if math.isinf(value):
            return f"double('{'-' if value < 0 else ''}Infinity')"
        case float():
            return f"{value!r}D"
        case Decimal():
            return f"{value:f}BD"
        case datetime():
            text = value.isoformat(sep=" ", timespec="microseconds")
            return f"{'TIMESTAMP' if value.tzinfo else 'TIMESTAMP_NTZ'}'{text}'"
        case date():
            return f"DATE'{value.isoformat()}'"
        case bytes():
            return f"X'{value.hex()}'"
        case str():
            return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return str(value)
