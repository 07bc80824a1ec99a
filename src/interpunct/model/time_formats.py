"""Spark's formats of times, written and read by Polars.

What is read is first held against a pattern, because Polars lets pass what Spark does not, such as
one digit for `MM`.
"""

from __future__ import annotations

import re

import polars as pl
from sqlglot import exp

from interpunct.model.errors import ExpressionError
from interpunct.model.scope import Scope

_WRITTEN = {
    "yyyy": "%Y", "yy": "%y", "y": "%-Y", "MMMM": "%B", "MMM": "%b", "MM": "%m", "M": "%-m",
    "dd": "%d", "d": "%-d", "HH": "%H", "H": "%-H", "hh": "%I", "h": "%-I", "mm": "%M", "m": "%-M",
    "ss": "%S", "s": "%-S", "SSS": "%3f", "SSSSSS": "%6f", "a": "%p", "E": "%a", "EE": "%a",
    "EEE": "%a", "EEEE": "%A",
}  # fmt: skip
_ONE_OR_TWO = r"\d{1,2}"
_READ = {
    "yyyy": r"\d{4}", "MMM": "[A-Za-z]{3}", "MM": r"\d\d", "M": _ONE_OR_TWO, "dd": r"\d\d",
    "d": _ONE_OR_TWO, "HH": r"\d\d", "H": _ONE_OR_TWO, "hh": r"\d\d", "h": _ONE_OR_TWO,
    "mm": r"\d\d", "m": _ONE_OR_TWO, "ss": r"[0-5]\d", "s": r"[0-5]?\d", "SSS": r"\d{3}",
    "SSSSSS": r"\d{6}", "a": "[AaPp][Mm]",
}  # fmt: skip
# What Spark takes for parts that a format leaves out, in the words of Polars.
_LEFT_OUT = {"Y": "1970", "m": "01", "d": "01", "H": "00", "M": "00"}
_WORD = re.compile(r"'((?:[^']|'')+)'|''|([A-Za-z])\2*|.", re.DOTALL)


def written(scope: Scope, value: pl.Expr, node: exp.TimeToStr | exp.UnixToStr) -> pl.Expr:
    """A timestamp as text; null if it is so far away that Polars has no year for it."""
    words = _words(scope, node, _WRITTEN, "yyyy, MM, dd, HH, mm, ss, SSS, E or a", "strftime")
    near = pl.when(value.dt.year().is_not_null()).then(value)
    return near.dt.strftime("".join(form for form, _ in words))


def read(scope: Scope, value: pl.Expr, node: exp.Expr) -> pl.Expr:
    """Text as a timestamp; null where it is not of the format, or no time."""
    words = _words(scope, node, _READ, "yyyy, MM, dd, HH, mm, ss or SSS", "to_datetime")
    named = {form[-1] for form, shape in words if shape is not None}
    if len(named & {"I", "p"}) == 1 or {"H", "I"} <= named:
        raise ExpressionError(
            scope.where, "hours as HH, or as hh with a", node.sql("spark"), "Write one of them."
        )
    shape = "".join(re.escape(form.replace("%%", "%")) if s is None else s for form, s in words)
    form = "".join(form for form, _ in words)
    has = {"b": "m", "I": "H"}
    missing = [part for part in _LEFT_OUT if part not in {has.get(n, n) for n in named}]
    before = "".join(f"{_LEFT_OUT[part]} " for part in missing)
    whole = pl.concat_str(pl.lit(before), pl.when(value.str.contains(f"^{shape}$")).then(value))
    form = "".join(f"%{part} " for part in missing) + form
    stamp = whole.str.to_datetime(form, time_unit="us", strict=False)
    return stamp.dt.replace_time_zone("UTC")


def _words(
    scope: Scope, node: exp.Expr, known: dict[str, str], letters: str, polars: str
) -> list[tuple[str, str | None]]:
    """The words of a format as Polars has them, each with what it looks like; None for what stands
    there as it is."""
    text = scope.constant(node.args["format"], node)
    words = list[tuple[str, str | None]]()
    for found in _WORD.finditer(text):
        word, quoted, letter = found[0], found[1], found[2]
        if letter is None:
            plain = "'" if word == "''" else (quoted or word).replace("''", "'")
            words.append((plain.replace("%", "%%"), None))
        elif word in known:
            words.append((_WRITTEN[word], _READ.get(word, "")))
        else:
            raise ExpressionError(
                scope.where, f"the letters {letters}", f"{word} in {node.sql('spark')}",
                f"Quote what is no letter of a format, or use "
                f"pl.col(...).{'dt' if polars == 'strftime' else 'str'}.{polars}(...).",
            )  # fmt: skip
    return words
