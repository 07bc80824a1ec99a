"""Durations: how long, in ticks. Text as people write it, a timedelta, or ticks themselves.

>>> duration("1h 30m", "window") == duration(timedelta(minutes=90), "window")
True
>>> format_duration(90_000_000)
'1m 30s'
"""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal

from interpunct.model.errors import ExpressionError
from interpunct.model.schema import END_OF_TIME, Schema

_UNITS: dict[str, int] = {
    spelling: ticks
    for ticks, spellings in (
        (1, "us µs μs usec usecs microsecond microseconds"),
        (1_000, "ms msec msecs millisecond milliseconds"),
        (1_000_000, "s sec secs second seconds"),
        (60_000_000, "m min mins minute minutes"),
        (3_600_000_000, "h hr hrs hour hours"),
        (86_400_000_000, "d day days"),
        (604_800_000_000, "w week weeks"),
    )
    for spelling in spellings.split()
}
_SHORT = {"d": 86_400_000_000, "h": 3_600_000_000, "m": 60_000_000, "s": 1_000_000,
          "ms": 1_000, "us": 1}  # fmt: skip
_TERM = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-zµμ]+)\s*")
_TICK = timedelta(microseconds=1)
_LEAST = 1_000  # microseconds that a plain number may stand for
_EXAMPLES = "Write '20s', '1h 30m', '500 ms' or '1 day' (months and years have no fixed length)."


class Bare(int):
    """Ticks that somebody has written as a number, with no unit."""


def duration(value: str | timedelta | int, where: str) -> int:
    """Ticks of a duration: microseconds for text and timedelta; an int is ticks already."""
    if isinstance(value, str):
        ticks = _parsed(value, where)
    elif isinstance(value, timedelta):
        ticks = value // _TICK
    elif isinstance(value, int) and not isinstance(value, bool):
        ticks = Bare(value)
    else:
        raise _malformed(where, value)
    if not 0 <= ticks < END_OF_TIME:
        raise _out_of_range(where, value)
    return ticks


def span(value: str | timedelta | int, schema: Schema, where: str) -> int:
    """Ticks of a length of a stream's time. Where that is a timestamp a number counts microseconds,
    and who gives a small one hardly knows it."""
    ticks = duration(value, where)
    refuse_bare(ticks, schema, where)
    return ticks


def refuse_bare(ticks: int, schema: Schema, where: str) -> None:
    """Refuse a small number without a unit where time is a timestamp."""
    stamped = schema.time is not None and not schema[schema.time].dtype.is_integer()
    if stamped and isinstance(ticks, Bare) and 0 < ticks < _LEAST:
        raise ExpressionError(
            where, "a length of time", f"{ticks}, which counts microseconds",
            f"Write '{ticks}s', in SQL INTERVAL '{ticks}s'; if it is meant, '{ticks}us'.",
        )  # fmt: skip


def format_duration(ticks: int) -> str:
    """The shortest text that `duration` reads back as these ticks."""
    if ticks < 0:
        return f"-{format_duration(-ticks)}"
    words = []
    for unit, size in _SHORT.items():
        count, ticks = divmod(ticks, size)
        if count:
            words.append(f"{count}{unit}")
    return " ".join(words) or "0s"


def _parsed(text: str, where: str) -> int:
    rest, total = text.strip().lower(), Decimal(0)
    if rest.startswith("-") and _TERM.match(rest[1:]):
        raise _out_of_range(where, text)
    if not rest:
        raise _malformed(where, text)
    while rest:
        term = _TERM.match(rest)
        if term is None or term[2] not in _UNITS:
            raise _malformed(where, text)
        total += Decimal(term[1]) * _UNITS[term[2]]
        rest = rest[term.end() :]
    if total != int(total):
        raise ExpressionError(where, "whole microseconds", repr(text), _EXAMPLES)
    return int(total)


def _out_of_range(where: str, value: object) -> ExpressionError:
    expected = "a duration of at least 0 and less than all of time"
    return ExpressionError(where, expected, repr(value), _EXAMPLES)


def _malformed(where: str, value: object) -> ExpressionError:
    return ExpressionError(where, "a duration: numbers with units", repr(value), _EXAMPLES)
