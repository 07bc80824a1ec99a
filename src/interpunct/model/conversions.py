"""Types meet: the kind of a type, the type several values share, and Spark's casts in Polars.

What Spark would refuse while running (a failed cast, an overflow of a narrow integer) becomes
null here: one bad tuple must not end a stream. Timestamps without a zone are read as UTC.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import polars as pl

from interpunct.model.doubles import java_text, quotient

TIMESTAMP = pl.Datetime("us", "UTC")
_SECOND = 1_000_000

_KINDS: dict[type[pl.DataType], str] = {
    pl.Null: "null",
    pl.Boolean: "boolean",
    pl.String: "string",
    pl.Binary: "binary",
    pl.Date: "time",
    pl.Datetime: "time",
    pl.Duration: "interval",
}

# What an untyped null becomes where one kind is required.
DEFAULTS: dict[str, pl.DataType] = {
    "number": pl.Int32(),
    "string": pl.String(),
    "boolean": pl.Boolean(),
    "time": TIMESTAMP,
}


def kind(dtype: pl.DataType) -> str:
    """One word for a type: number, string, boolean, time, interval, binary, null, or nested."""
    return "number" if dtype.is_numeric() else _KINDS.get(type(dtype), "nested")


def common(dtypes: Sequence[pl.DataType]) -> pl.DataType | None:
    """The type that all of these convert to without being asked, or None when there is none."""
    typed = [d for d in dtypes if not isinstance(d, pl.Null)]
    kinds = {kind(d) for d in typed}
    if not typed:
        return pl.Null()
    if kinds == {"string", "time"}:
        return common([d for d in typed if kind(d) == "time"])
    if len(kinds) > 1:
        return None
    if kinds == {"number"}:
        return _widest_number(typed)
    if kinds == {"time"}:
        return max(typed, key=_time_rank)
    return typed[0] if all(d == typed[0] for d in typed) else None


def _time_rank(dtype: pl.DataType) -> int:
    """A date becomes a timestamp_ntz becomes a timestamp, as in Spark."""
    if isinstance(dtype, pl.Datetime):
        return 1 if dtype.time_zone is None else 2
    return 0


def _widest_number(dtypes: Sequence[pl.DataType]) -> pl.DataType:
    if any(d.is_float() for d in dtypes):
        return pl.Float32() if all(d == pl.Float32() for d in dtypes) else pl.Float64()
    scales = [d.scale for d in dtypes if isinstance(d, pl.Decimal)]
    if scales:
        return pl.Decimal(38, max(scales))
    for narrow in (pl.Int8(), pl.Int16(), pl.Int32()):
        if all(_fits(d, narrow) for d in dtypes):
            return narrow
    return pl.Int64()


def _fits(dtype: pl.DataType, target: pl.DataType) -> bool:
    order = [pl.Int8(), pl.Int16(), pl.Int32()]
    return dtype in order and order.index(dtype) <= order.index(target)  # type: ignore[arg-type]


def convert(value: pl.Expr, source: pl.DataType, target: pl.DataType) -> pl.Expr | None:
    """The value cast as Spark casts it, null where it cannot be; None when no such cast exists."""
    if source == target:
        return value
    pair = (kind(source), kind(target))
    if "number" in pair and pl.Date() in (source, target):
        return None  # a number is seconds, and a date has none
    cast = _CASTS.get(pair)
    return None if cast is None else cast(value, source, target)


def epoch(value: pl.Expr) -> pl.Expr:
    """Microseconds since the epoch of a timestamp."""
    return value.to_physical().cast(pl.Int64)


def _plain(value: pl.Expr, _source: pl.DataType, target: pl.DataType) -> pl.Expr:
    return value.cast(target, strict=False)


def _text_to_number(value: pl.Expr, source: pl.DataType, target: pl.DataType) -> pl.Expr:
    return _to_number(value.str.strip_chars(), source, target)


def _to_number(value: pl.Expr, source: pl.DataType, target: pl.DataType) -> pl.Expr:
    """Spark rounds half up to a decimal where Polars rounds half to even, and a double by the
    digits that it is written with: 2.675 is 2.68."""
    if isinstance(target, pl.Decimal) and not source.is_integer():
        if source.is_float():
            value = value.cast(pl.Float64).cast(pl.String)
        spare = 37 - (target.precision - target.scale)  # one digit free for rounding up
        if spare > target.scale:
            value = value.cast(pl.Decimal(38, spare), strict=False)
            value = value.round(target.scale, mode="half_away_from_zero")
    return value.cast(target, strict=False)


def _number_to_text(value: pl.Expr, source: pl.DataType, target: pl.DataType) -> pl.Expr:
    return java_text(value) if source.is_float() else value.cast(target)


_TRUTH = {
    **dict.fromkeys(("t", "true", "y", "yes", "1"), True),
    **dict.fromkeys(("f", "false", "n", "no", "0"), False),
}


def _text_to_boolean(value: pl.Expr, _source: pl.DataType, _target: pl.DataType) -> pl.Expr:
    word = value.str.strip_chars().str.to_lowercase()
    return word.replace_strict(_TRUTH, default=None, return_dtype=pl.Boolean)


def _text_to_time(value: pl.Expr, _source: pl.DataType, target: pl.DataType) -> pl.Expr:
    text = value.str.strip_chars().str.replace(r"^(\d+-\d+-\d+)T", "${1} ")

    def read(form: str) -> pl.Expr:
        zoned = form.endswith("z")
        parsed = text.str.to_datetime(form, time_unit="us", strict=False)
        return parsed if zoned else parsed.dt.replace_time_zone("UTC")

    day = text.str.to_date("%Y-%m-%d", strict=False).cast(TIMESTAMP)
    stamp = pl.coalesce(
        read("%Y-%m-%d %H:%M:%S%.f%#z"),
        read("%Y-%m-%d %H:%M:%S%.f"),
        read("%Y-%m-%d %H:%M"),
        day,
    )
    return _time_to_time(stamp, TIMESTAMP, target)


def _number_to_boolean(value: pl.Expr, _source: pl.DataType, _target: pl.DataType) -> pl.Expr:
    return value != 0


def _boolean_to_number(value: pl.Expr, _source: pl.DataType, target: pl.DataType) -> pl.Expr:
    return value.cast(pl.Int8).cast(target)


def _number_to_time(value: pl.Expr, source: pl.DataType, target: pl.DataType) -> pl.Expr:
    """Spark reads a number as seconds since the epoch."""
    whole = value.cast(pl.Int64) * _SECOND if source.is_integer() else value * _SECOND
    stamp = whole.cast(pl.Int64, strict=False).cast(TIMESTAMP)
    return _time_to_time(stamp, TIMESTAMP, target)


def _time_to_number(value: pl.Expr, source: pl.DataType, target: pl.DataType) -> pl.Expr:
    ticks = epoch(_time_to_time(value, source, TIMESTAMP))
    seconds = ticks // _SECOND if target.is_integer() else _in_seconds(ticks)
    return seconds.cast(target, strict=False)


def _in_seconds(ticks: pl.Expr) -> pl.Expr:
    return quotient(ticks.cast(pl.Float64), pl.lit(float(_SECOND)))


def _time_to_text(value: pl.Expr, source: pl.DataType, _target: pl.DataType) -> pl.Expr:
    if isinstance(source, pl.Date):
        return value.dt.to_string("%Y-%m-%d")
    return value.dt.to_string("%Y-%m-%d %H:%M:%S%.6f").str.replace(r"\.?0+$", "")


def _time_to_time(value: pl.Expr, source: pl.DataType, target: pl.DataType) -> pl.Expr:
    if isinstance(source, pl.Datetime) and isinstance(target, pl.Datetime):
        utc = value if source.time_zone is None else value.dt.convert_time_zone("UTC")
        value = utc.dt.replace_time_zone(target.time_zone)
    return value.cast(target)


Cast = Callable[[pl.Expr, pl.DataType, pl.DataType], pl.Expr]

_CASTS: dict[tuple[str, str], Cast] = {
    ("string", "number"): _text_to_number,
    ("string", "boolean"): _text_to_boolean,
    ("string", "time"): _text_to_time,
    ("string", "binary"): _plain,
    ("number", "number"): _to_number,
    ("number", "string"): _number_to_text,
    ("number", "boolean"): _number_to_boolean,
    ("number", "time"): _number_to_time,
    ("boolean", "number"): _boolean_to_number,
    ("boolean", "string"): _plain,
    ("time", "time"): _time_to_time,
    ("time", "string"): _time_to_text,
    ("time", "number"): _time_to_number,
    ("nested", "nested"): _plain,
    **{("null", k): _plain for k in (*DEFAULTS, "binary", "interval", "nested")},
}
