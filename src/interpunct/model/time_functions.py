"""Functions of time as Spark computes them, in UTC.

Days that Polars does not count, more than a quarter of a million years from now, are null.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import polars as pl
from sqlglot import exp

from interpunct.model.conversions import TIMESTAMP, epoch
from interpunct.model.doubles import quotient
from interpunct.model.errors import ExpressionError
from interpunct.model.scope import Builder, Scope
from interpunct.model.time_formats import read, written

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
# The parts that EXTRACT and DATE_PART take, each with Spark's other words for it.
_PARTS = {
    "YEAR": "YEARS Y YR YRS", "QUARTER": "QTR", "MONTH": "MONTHS MON MONS", "WEEK": "WEEKS W",
    "DAY": "DAYS D", "DAYOFWEEK": "DOW", "DAYOFWEEK_ISO": "DOW_ISO", "DOY": "",
    "YEAROFWEEK": "", "HOUR": "HOURS H HR HRS", "MINUTE": "MINUTES M MIN MINS",
    "SECOND": "SECONDS S SEC SECS",
}  # fmt: skip
_MEANT = {word: part for part, words in _PARTS.items() for word in (part, *words.split())}
_DAYS, _YEARS = 95_000_000, 260_000  # before and after 1970


def _instant(scope: Scope, node: exp.Expr) -> pl.Expr:
    """An operand as a timestamp, whether it is one, a date or text."""
    term = scope.term(node)
    if term.kind in ("time", "string", "null"):
        return scope.cast(term, TIMESTAMP)
    raise scope.wrong_type(node, "a timestamp", [term])


def _day(scope: Scope, node: exp.Expr) -> pl.Expr:
    """An operand as a date."""
    term = scope.term(node)
    if term.kind in ("time", "string", "null"):
        return scope.cast(term, pl.Date())
    raise scope.wrong_type(node, "a date", [term])


_FIELDS: dict[str, Callable[[pl.Expr], pl.Expr]] = {
    "YEAR": lambda x: x.dt.year(),
    "QUARTER": lambda x: x.dt.quarter(),
    "MONTH": lambda x: x.dt.month(),
    "WEEK": lambda x: x.dt.week(),
    "DAY": lambda x: x.dt.day(),
    "DAYOFWEEK": lambda x: x.dt.weekday() % 7 + 1,  # from Sunday
    "DAYOFWEEK_ISO": lambda x: x.dt.weekday(),  # from Monday
    "DOY": lambda x: x.dt.ordinal_day(),
    "YEAROFWEEK": lambda x: x.dt.iso_year(),
    "HOUR": lambda x: x.dt.hour(),
    "MINUTE": lambda x: x.dt.minute(),
}


def _extract(scope: Scope, node: exp.Extract) -> pl.Expr:
    return _part(scope, node.name, node.expression)


def _date_part(scope: Scope, part: exp.Expr, value: exp.Expr) -> pl.Expr:
    return _part(scope, scope.constant(part, value), value)


def _part(scope: Scope, word: str, value: exp.Expr) -> pl.Expr:
    """A part of a time: a whole number, but for the second, which has its fraction."""
    part = _MEANT.get(word.upper())
    if part is None:
        raise ExpressionError(
            scope.where, f"a part of a time: {', '.join(_PARTS)}", repr(word), "Name one of them."
        )
    stamp = _instant(scope, value)
    if part == "SECOND":
        micros = (epoch(stamp) % 60_000_000).cast(pl.Decimal(14, 0))
        return (micros / pl.lit(1_000_000, dtype=pl.Decimal(14, 6))).cast(pl.Decimal(8, 6))
    return _FIELDS[part](stamp).cast(pl.Int32)


# Days ---------------------------------------------------------------------------------------


def _add_days(scope: Scope, node: exp.TsOrDsAdd) -> pl.Expr:
    if node.text("unit").upper() != "DAY":
        raise scope.unsupported(node)
    days = _number(_day(scope, node.this)) + scope.whole(node.expression)
    known = pl.when(days.is_between(-_DAYS, _DAYS)).then(days)
    return known.cast(pl.Int32).cast(pl.Date)


def _days_between(scope: Scope, node: exp.DateDiff) -> pl.Expr:
    if node.args.get("unit") is not None:
        raise scope.unsupported(node)
    last, first = (_number(_day(scope, operand)) for operand in (node.this, node.expression))
    return (last - first).cast(pl.Int32)


def _number(day: pl.Expr) -> pl.Expr:
    return day.to_physical().cast(pl.Int64)


def _add_months(scope: Scope, node: exp.AddMonths) -> pl.Expr:
    """The same day of another month, or its last one."""
    day, more = _day(scope, node.this), scope.whole(node.expression)
    month = day.dt.year().cast(pl.Int64) * 12 + day.dt.month() - 1 + more
    first = _first_of(month // 12, month % 12 + 1)
    number = pl.min_horizontal(day.dt.day(), first.dt.days_in_month())
    return pl.when(day.is_not_null()).then(_days_later(first, number - 1))


def _last_day(scope: Scope, node: exp.LastDay) -> pl.Expr:
    day = _day(scope, node.this)
    first = _first_of(day.dt.year(), day.dt.month())
    return _days_later(first, first.dt.days_in_month().cast(pl.Int64) - 1)


def _months_between(scope: Scope, node: exp.MonthsBetween) -> pl.Expr:
    """Whole months between equal days of the month, or last ones; else a day is 1/31 of one."""
    rounded = node.args.get("roundoff")
    if isinstance(rounded, exp.Boolean) and not rounded.this:
        raise scope.unsupported(node)
    last, first = (_instant(scope, operand) for operand in (node.this, node.expression))
    months = _months(last) - _months(first)
    ends = (last.dt.day() == last.dt.days_in_month()) & (first.dt.day() == first.dt.days_in_month())
    days = last.dt.day().cast(pl.Int64) - first.dt.day()
    seconds = days * 86_400 + _second_of_day(last) - _second_of_day(first)
    exact = (months + quotient(seconds.cast(pl.Float64), pl.lit(31.0 * 86_400))).round(8)
    return pl.when(ends | (days == 0)).then(months.cast(pl.Float64)).otherwise(exact)


def _months(stamp: pl.Expr) -> pl.Expr:
    return stamp.dt.year().cast(pl.Int64) * 12 + stamp.dt.month()


def _second_of_day(stamp: pl.Expr) -> pl.Expr:
    return epoch(stamp) // 1_000_000 % 86_400


def _first_day(scope: Scope, node: exp.DateTrunc) -> pl.Expr:
    """TRUNC: the first day of the year, quarter, month or week."""
    unit = str(node.args["unit"]).strip("'").upper()
    if _TRUNCATIONS.get(unit, "") not in ("1y", "1q", "1mo", "1w"):
        raise ExpressionError(
            scope.where, "YEAR, QUARTER, MONTH or WEEK", repr(unit),
            "date_trunc('HOUR', ts) cuts off less.",
        )  # fmt: skip
    return _day(scope, node.this).dt.truncate(_TRUNCATIONS[unit])


def _day_of_number(scope: Scope, node: exp.DateFromUnixDate) -> pl.Expr:
    days = scope.whole(node.this)
    return pl.when(days.is_between(-_DAYS, _DAYS)).then(days).cast(pl.Int32).cast(pl.Date)


def _make_date(scope: Scope, *parts: exp.Expr) -> pl.Expr:
    """A date of a year, a month and a day; null if there is none."""
    year, month, day = (scope.whole(part) for part in parts)
    first = _first_of(year, month)
    return pl.when(day.is_between(1, first.dt.days_in_month())).then(_days_later(first, day - 1))


def _first_of(year: pl.Expr, month: pl.Expr) -> pl.Expr:
    known = year.is_between(-_YEARS, _YEARS) & month.is_between(1, 12)
    return pl.date(pl.when(known).then(year), pl.when(known).then(month), 1)


def _days_later(day: pl.Expr, days: pl.Expr) -> pl.Expr:
    return (_number(day) + days).cast(pl.Int32).cast(pl.Date)


def _date(scope: Scope, node: exp.TsOrDsToDate) -> pl.Expr:
    return _time_of_text(scope, node).cast(pl.Date)


def _time_of_text(scope: Scope, node: exp.TsOrDsToDate | exp.StrToTime | exp.StrToUnix) -> pl.Expr:
    """Text in a format; without one, and of what is a time already, a cast."""
    pattern, term = node.args.get("format"), scope.term(node.this)
    if pattern is None or term.kind != "string":
        target = pl.Date() if isinstance(node, exp.TsOrDsToDate) else TIMESTAMP
        return scope.cast(term, target)
    return read(scope, term.polars, node)


# Instants -----------------------------------------------------------------------------------


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


def _date_format(scope: Scope, node: exp.TimeToStr) -> pl.Expr:
    value = node.this.this if isinstance(node.this, exp.TimeStrToTime) else node.this
    return written(scope, _instant(scope, value), node)


def _from_unixtime(scope: Scope, node: exp.UnixToStr) -> pl.Expr:
    return written(scope, _seconds(scope, node.this), node)


def _since_epoch(ticks: int) -> Builder:
    return lambda scope, node: epoch(_instant(scope, node.this)) // ticks


def _unix_timestamp(scope: Scope, node: exp.StrToUnix) -> pl.Expr:
    """Whole seconds, cut towards the epoch as Spark does (UNIX_SECONDS rounds down)."""
    ticks = epoch(_time_of_text(scope, node))
    return ticks.sign() * (ticks.abs() // 1_000_000)


def from_epoch(ticks: int) -> Builder:
    def build(scope: Scope, node: exp.Expr) -> pl.Expr:
        micros = scope.of(node, "number") * pl.lit(ticks, dtype=pl.Int64)
        return micros.cast(pl.Int64, strict=False).cast(TIMESTAMP)

    return build


_seconds = from_epoch(1_000_000)

# Functions sqlglot keeps by name: how many arguments they take, and what they are.
TIME_NAMED: dict[str, tuple[Collection[int], Callable[..., pl.Expr]]] = {
    "timestamp_seconds": ({1}, _seconds),
    "timestamp_millis": ({1}, from_epoch(1_000)),
    "timestamp_micros": ({1}, from_epoch(1)),
    "weekday": ({1}, lambda scope, day: (_day(scope, day).dt.weekday() - 1).cast(pl.Int32)),
    "make_date": ({3}, _make_date),
    "date_part": ({2}, _date_part),
}


def _part_named(part: str) -> Builder:
    return lambda scope, node: _part(scope, part, node.this)


TIME: dict[type[exp.Expr], Builder] = {
    exp.TimeToStr: _date_format,
    exp.Year: _part_named("YEAR"),
    exp.Quarter: _part_named("QUARTER"),
    exp.Month: _part_named("MONTH"),
    exp.WeekOfYear: _part_named("WEEK"),
    exp.Day: _part_named("DAY"),
    exp.DayOfMonth: _part_named("DAY"),
    exp.DayOfWeek: _part_named("DAYOFWEEK"),
    exp.DayOfYear: _part_named("DOY"),
    exp.Hour: _part_named("HOUR"),
    exp.Minute: _part_named("MINUTE"),
    exp.Second: lambda scope, node: _instant(scope, node.this).dt.second().cast(pl.Int32),
    exp.Dayname: lambda scope, node: _day(scope, node.this).dt.strftime("%a"),
    exp.Monthname: lambda scope, node: _day(scope, node.this).dt.strftime("%b"),
    exp.Extract: _extract,
    exp.DateTrunc: _first_day,
    exp.MonthsBetween: _months_between,
    exp.UnixDate: lambda scope, node: _number(_day(scope, node.this)).cast(pl.Int32),
    exp.DateFromUnixDate: _day_of_number,
    exp.TsOrDsToDate: _date,
    exp.TsOrDsAdd: _add_days,
    exp.DateDiff: _days_between,
    exp.AddMonths: _add_months,
    exp.LastDay: _last_day,
    exp.StrToTime: _time_of_text,
    exp.TimestampTrunc: _truncate,
    exp.UnixMicros: _since_epoch(1),
    exp.UnixMillis: _since_epoch(1_000),
    exp.UnixSeconds: _since_epoch(1_000_000),
    exp.StrToUnix: _unix_timestamp,
    exp.UnixToStr: _from_unixtime,
}
