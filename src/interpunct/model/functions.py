"""Scalar functions of Spark's SQL as Polars: one table from syntax node to builder.

`SCALARS` is the whole of scalar SQL: the syntax of `syntax.py`, the functions here and those of
`regex.py`. Anything else is refused by name, and a Polars expression can always be given instead.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable

import polars as pl
import sqlglot
from sqlglot import exp

from interpunct.model.conversions import TIMESTAMP, epoch
from interpunct.model.errors import ExpressionError
from interpunct.model.regex import REGEX
from interpunct.model.scope import Builder, Scope
from interpunct.model.syntax import SYNTAX

# Numbers ------------------------------------------------------------------------------------


def _double(compute: Callable[[pl.Expr], pl.Expr]) -> Builder:
    """A function of one number, computed and given as a double."""
    return lambda scope, node: compute(scope.of(node.this, "number").cast(pl.Float64))


def _logarithm(value: pl.Expr) -> pl.Expr:
    """Spark's logarithm of what has none is null."""
    return pl.when(value > 0).then(value.log())


def _log(scope: Scope, node: exp.Log) -> pl.Expr:
    base = scope.of(node.this, "number").cast(pl.Float64)
    value = scope.of(node.expression, "number").cast(pl.Float64)
    if isinstance(node.this, exp.Literal):  # exact at powers of a known base
        return pl.when(value > 0).then(value.log(float(node.this.name)))
    return _logarithm(value) / _logarithm(base)


def _power(scope: Scope, node: exp.Pow) -> pl.Expr:
    base = scope.of(node.this, "number").cast(pl.Float64)
    return base.pow(scope.of(node.expression, "number").cast(pl.Float64))


def _whole(compute: Callable[[pl.Expr], pl.Expr]) -> Builder:
    """FLOOR and CEIL give a bigint, or a decimal without a fraction."""

    def build(scope: Scope, node: exp.Floor | exp.Ceil) -> pl.Expr:
        if node.args.get("decimals") is not None:
            raise scope.unsupported(node)
        value = scope.of(node.this, "number")
        decimal = isinstance(scope.term(node.this).dtype, pl.Decimal)
        target: pl.DataType = pl.Decimal(38, 0) if decimal else pl.Int64()
        return compute(value).cast(target, strict=False)

    return build


def _round(scope: Scope, node: exp.Round) -> pl.Expr:
    digits = node.args.get("decimals")
    places = "0" if digits is None else scope.constant(digits, node)
    return scope.of(node.this, "number").round(int(places), mode="half_away_from_zero")


def _isnan(scope: Scope, node: exp.IsNan) -> pl.Expr:
    return scope.of(node.this, "number").cast(pl.Float64).is_nan().fill_null(value=False)


# Text ---------------------------------------------------------------------------------------


def _text(compute: Callable[[pl.Expr], pl.Expr]) -> Builder:
    return lambda scope, node: compute(scope.of(node.this, "string"))


def _text_pair(compute: Callable[[pl.Expr, pl.Expr], pl.Expr]) -> Builder:
    def build(scope: Scope, node: exp.Binary) -> pl.Expr:
        return compute(scope.of(node.this, "string"), scope.of(node.expression, "string"))

    return build


def _trim(scope: Scope, node: exp.Trim) -> pl.Expr:
    chars = node.args.get("expression")
    drop = pl.lit(" ") if chars is None else scope.of(chars, "string")
    value = scope.of(node.this, "string").str
    position = node.args.get("position")
    if position == "LEADING":
        return value.strip_chars_start(drop)
    return value.strip_chars_end(drop) if position == "TRAILING" else value.strip_chars(drop)


def _concat(scope: Scope, node: exp.Concat | exp.DPipe) -> pl.Expr:
    parts = [node.this, node.expression] if isinstance(node, exp.DPipe) else node.expressions
    texts = [scope.cast(scope.term(p), pl.String()) for p in parts]
    return pl.concat_str(texts, ignore_nulls=False)


def _substring(scope: Scope, node: exp.Substring) -> pl.Expr:
    """Counts from 1, or back from the end; what lies outside the text is cut off."""
    value = scope.of(node.this, "string")
    start = scope.of(node.args["start"], "number").cast(pl.Int64)
    size = value.str.len_chars().cast(pl.Int64)
    begin = pl.when(start > 0).then(start - 1).when(start < 0).then(size + start).otherwise(start)
    length = node.args.get("length")
    wanted = size if length is None else scope.of(length, "number").cast(pl.Int64)
    end = pl.when(wanted > 0).then(begin + wanted).otherwise(begin)
    first = begin.clip(lower_bound=0)
    return value.str.slice(first, (end - first).clip(lower_bound=0))


def _like(scope: Scope, node: exp.Like | exp.ILike, escape: str = "\\") -> pl.Expr:
    pattern = scope.constant(node.expression, node)
    regex, rest = [], iter(pattern)
    for char in rest:
        if char == escape:
            regex.append(re.escape(next(rest, escape)))
        else:
            regex.append({"%": ".*", "_": "."}.get(char, re.escape(char)))
    flags = "(?is)" if isinstance(node, exp.ILike) else "(?s)"
    return scope.of(node.this, "string").str.contains(f"{flags}^{''.join(regex)}$")


def _escaped_like(scope: Scope, node: exp.Escape) -> pl.Expr:
    if not isinstance(node.this, exp.Like | exp.ILike):
        raise scope.unsupported(node)
    built = _like(scope, node.this, scope.constant(node.expression, node))
    return scope.negated(node.this, built)


# Time ---------------------------------------------------------------------------------------

_TRUNCATIONS = {
    **dict.fromkeys(("YEAR", "YYYY", "YY"), "1y"),
    "QUARTER": "1q",
    **dict.fromkeys(("MONTH", "MON", "MM"), "1mo"),
    "WEEK": "1w",
    **dict.fromkeys(("DAY", "DD"), "1d"),
    "HOUR": "1h",
    "MINUTE": "1m",
    "SECOND": "1s",
    "MILLISECOND": "1ms",
    "MICROSECOND": "1us",
}
_ASCII_LETTERS = frozenset(string.ascii_letters + "%")
_DEFAULT_FORMAT = sqlglot.parse_one("unix_timestamp(x)", read="spark").args["format"]


def _instant(scope: Scope, node: exp.Expr) -> pl.Expr:
    """An operand as a timestamp, whether it is one, a date or text."""
    term = scope.term(node)
    if term.kind in ("time", "string", "null"):
        return scope.cast(term, TIMESTAMP)
    raise scope.wrong_type(node, "a timestamp", [term])


def _field(read: Callable[[pl.Expr], pl.Expr]) -> Builder:
    return lambda scope, node: read(_instant(scope, node.this)).cast(pl.Int32)


def _date(scope: Scope, node: exp.TsOrDsToDate) -> pl.Expr:
    if node.args.get("format") is not None:
        raise scope.unsupported(node)
    return scope.cast(scope.term(node.this), pl.Date())


def _truncate(scope: Scope, node: exp.TimestampTrunc) -> pl.Expr:
    unit = str(node.args["unit"]).strip("'").upper()
    if unit not in _TRUNCATIONS:
        raise ExpressionError(
            scope.where, f"one of the units {', '.join(_TRUNCATIONS)}", repr(unit),
            "Or use pl.col(...).dt.truncate(...).",
        )  # fmt: skip
    term = scope.term(node.this)
    stamp = term.polars if isinstance(term.dtype, pl.Datetime) else _instant(scope, node.this)
    return stamp.dt.truncate(_TRUNCATIONS[unit])


# What sqlglot makes of the letters in Spark's formats, and Polars' words for it.
_FORMATS = {
    "%Y": "%Y", "%y": "%y", "%B": "%B", "%b": "%b", "%mstrict": "%m", "%-m": "%-m",
    "%dstrict": "%d", "%-d": "%-d", "%Hstrict": "%H", "%-H": "%-H", "%Istrict": "%I",
    "%-I": "%-I", "%Mstrict": "%M", "%-M": "%-M", "%Sstrict": "%S", "%-S": "%-S", "SSS": "%3f",
    "%f": "%6f", "%p": "%p", "%a": "%a", "%A": "%A", "''": "'",
}  # fmt: skip
_LETTERS = re.compile(r"%-?[A-Za-z](?:strict)?|'((?:[^']|'')+)'|''|[A-Za-z]+|.", re.DOTALL)


def _date_format(scope: Scope, node: exp.TimeToStr) -> pl.Expr:
    """Spark's letters, in UTC."""
    text = scope.constant(node.args["format"], node)
    words = [_format_word(found.group(), found.group(1)) for found in _LETTERS.finditer(text)]
    known = [word for word in words if word is not None]
    if len(known) < len(words):
        raise ExpressionError(
            scope.where, "the letters yyyy, MM, dd, HH, mm, ss, SSS, E or a", node.sql("spark"),
            "pl.col(...).dt.strftime(...) has more.",
        )  # fmt: skip
    value = node.this.this if isinstance(node.this, exp.TimeStrToTime) else node.this
    return _instant(scope, value).dt.strftime("".join(known))


def _format_word(letters: str, quoted: str | None) -> str | None:
    """What stands for one word of a format; None for one that has no other."""
    if quoted is not None:  # sqlglot reads letters between quotes too, and what they were is lost
        return None if "%" in quoted else quoted.replace("''", "'")
    return _FORMATS.get(letters, None if letters[0] in _ASCII_LETTERS else letters)


def _since_epoch(ticks: int) -> Builder:
    return lambda scope, node: epoch(_instant(scope, node.this)) // ticks


def _unix_timestamp(scope: Scope, node: exp.StrToUnix) -> pl.Expr:
    """Whole seconds, cut towards the epoch as Spark does (UNIX_SECONDS rounds down)."""
    if node.args.get("format") not in (None, _DEFAULT_FORMAT):
        raise scope.unsupported(node)
    ticks = epoch(_instant(scope, node.this))
    return ticks.sign() * (ticks.abs() // 1_000_000)


def _from_epoch(ticks: int) -> Builder:
    def build(scope: Scope, node: exp.Expr) -> pl.Expr:
        micros = scope.of(node, "number") * pl.lit(ticks, dtype=pl.Int64)
        return micros.cast(pl.Int64, strict=False).cast(TIMESTAMP)

    return build


# Functions sqlglot keeps by name, given their one argument.
_NAMED: dict[str, Builder] = {
    "isnull": lambda scope, node: scope.term(node).polars.is_null(),
    "isnotnull": lambda scope, node: scope.term(node).polars.is_not_null(),
    "timestamp_seconds": _from_epoch(1_000_000),
    "timestamp_millis": _from_epoch(1_000),
    "timestamp_micros": _from_epoch(1),
}


def _named(scope: Scope, node: exp.Anonymous) -> pl.Expr:
    builder = _NAMED.get(node.name.lower())
    if builder is None or len(node.expressions) != 1:
        raise scope.unsupported(node)
    return builder(scope, node.expressions[0])


FUNCTIONS: dict[type[exp.Expr], Builder] = {
    exp.Abs: lambda scope, node: scope.of(node.this, "number").abs(),
    exp.Round: _round,
    exp.Floor: _whole(lambda x: x.floor()),
    exp.Ceil: _whole(lambda x: x.ceil()),
    exp.Sqrt: _double(lambda x: x.sqrt()),
    exp.Exp: _double(lambda x: x.exp()),
    exp.Ln: _double(_logarithm),
    exp.Log: _log,
    exp.Pow: _power,
    exp.Sign: _double(lambda x: x.sign()),
    exp.IsNan: _isnan,
    exp.Upper: _text(lambda x: x.str.to_uppercase()),
    exp.Lower: _text(lambda x: x.str.to_lowercase()),
    exp.Length: _text(lambda x: x.str.len_chars().cast(pl.Int32)),
    exp.Trim: _trim,
    exp.Concat: _concat,
    exp.DPipe: _concat,
    exp.Substring: _substring,
    exp.StartsWith: _text_pair(lambda x, y: x.str.starts_with(y)),
    exp.EndsWith: _text_pair(lambda x, y: x.str.ends_with(y)),
    exp.Contains: _text_pair(lambda x, y: x.str.contains(y, literal=True)),
    exp.Like: _like,
    exp.ILike: _like,
    exp.Escape: _escaped_like,
    exp.TimeToStr: _date_format,
    exp.Year: _field(lambda x: x.dt.year()),
    exp.Month: _field(lambda x: x.dt.month()),
    exp.Day: _field(lambda x: x.dt.day()),
    exp.DayOfMonth: _field(lambda x: x.dt.day()),
    exp.Hour: _field(lambda x: x.dt.hour()),
    exp.Minute: _field(lambda x: x.dt.minute()),
    exp.Second: _field(lambda x: x.dt.second()),
    exp.TsOrDsToDate: _date,
    exp.TimestampTrunc: _truncate,
    exp.UnixMicros: _since_epoch(1),
    exp.UnixMillis: _since_epoch(1_000),
    exp.UnixSeconds: _since_epoch(1_000_000),
    exp.StrToUnix: _unix_timestamp,
    exp.Anonymous: _named,
}

SCALARS: dict[type[exp.Expr], Builder] = {**SYNTAX, **FUNCTIONS, **REGEX}
