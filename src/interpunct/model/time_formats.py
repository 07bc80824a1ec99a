"""Spark's formats of times, written and read by Polars.

sqlglot has turned their letters into words of its own (`MM` into `%mstrict`, `M` into `%-m`); here
they become those of Polars. What is read is first held against a pattern, because Polars lets
pass what Spark does not, such as one digit for `MM`.
"""

from __future__ import annotations

import re
import string

import polars as pl
from sqlglot import exp

from interpunct.model.errors import ExpressionError
from interpunct.model.scope import Scope

_WRITTEN = {
    "%Y": "%Y", "%y": "%y", "%B": "%B", "%b": "%b", "%mstrict": "%m", "%-m": "%-m",
    "%dstrict": "%d", "%-d": "%-d", "%Hstrict": "%H", "%-H": "%-H", "%Istrict": "%I",
    "%-I": "%-I", "%Mstrict": "%M", "%-M": "%-M", "%Sstrict": "%S", "%-S": "%-S", "SSS": "%3f",
    "%f": "%6f", "%p": "%p", "%a": "%a", "%A": "%A", "''": "'",
}  # fmt: skip
_ONE_OR_TWO = r"\d{1,2}"
_READ = {
    "%Y": r"\d{4}", "%mstrict": r"\d\d", "%-m": _ONE_OR_TWO, "%b": "[A-Za-z]{3}",
    "%dstrict": r"\d\d", "%-d": _ONE_OR_TWO, "%Hstrict": r"\d\d", "%-H": _ONE_OR_TWO,
    "%Istrict": r"\d\d", "%-I": _ONE_OR_TWO, "%Mstrict": r"\d\d", "%-M": _ONE_OR_TWO,
    "%Sstrict": r"[0-5]\d", "%-S": r"[0-5]?\d", "SSS": r"\d{3}", "%f": r"\d{6}",
    "%p": "[AaPp][Mm]", "''": "'",
}  # fmt: skip
# What Spark takes for parts that a format leaves out, in the words of Polars.
_LEFT_OUT = {"Y": "1970", "m": "01", "d": "01", "H": "00", "M": "00"}
_WORD = re.compile(r"%-?[A-Za-z](?:strict)?|'((?:[^']|'')+)'|''|[A-Za-z]+|.", re.DOTALL)
_LETTERS = frozenset(string.ascii_letters + "%")


def written(scope: Scope, value: pl.Expr, node: exp.TimeToStr | exp.UnixToStr) -> pl.Expr:
    """A timestamp as text; null if it is so far away that Polars has no year for it."""
    words = _words(scope, node, _WRITTEN, "yyyy, MM, dd, HH, mm, ss, SSS, E or a", "strftime")
    near = pl.when(value.dt.year().is_not_null()).then(value)
    return near.dt.strftime("".join(_WRITTEN.get(word, text) for word, text in words))


def read(scope: Scope, value: pl.Expr, node: exp.Expr) -> pl.Expr:
    """Text as a timestamp; null where it is not of the format, or no time."""
    words = _words(scope, node, _READ, "yyyy, MM, dd, HH, mm, ss or SSS", "to_datetime")
    named = {_WRITTEN[word][-1] for word, _ in words if word in _READ and word != "''"}
    if len(named & {"I", "p"}) == 1 or {"H", "I"} <= named:
        raise ExpressionError(
            scope.where, "hours as HH, or as hh with a", node.sql("spark"), "Write one of them."
        )
    shape = "".join(_READ.get(word, re.escape(text)) for word, text in words)
    form = "".join(_WRITTEN.get(word, text.replace("%", "%%")) for word, text in words)
    has = {"b": "m", "I": "H"}
    missing = [part for part in _LEFT_OUT if part not in {has.get(n, n) for n in named}]
    before = "".join(f"{_LEFT_OUT[part]} " for part in missing)
    whole = pl.concat_str(pl.lit(before), pl.when(value.str.contains(f"^{shape}$")).then(value))
    form = "".join(f"%{part} " for part in missing) + form
    stamp = whole.str.to_datetime(form, time_unit="us", strict=False)
    return stamp.dt.replace_time_zone("UTC")


def _words(
    scope: Scope, node: exp.Expr, known: dict[str, str], letters: str, polars: str
) -> list[tuple[str, str]]:
    """The words of a format, each with what it stands for where it is no letter."""
    text = scope.constant(node.args["format"], node)
    words = [(found.group(), found.group(1)) for found in _WORD.finditer(text)]
    for word, quoted in words:
        # sqlglot reads letters between quotes too, and what they were is lost
        lost = "%" in quoted if quoted is not None else word not in known and word[0] in _LETTERS
        if lost:
            raise ExpressionError(
                scope.where, f"the letters {letters}", node.sql("spark"),
                f"pl.col(...).{'dt' if polars == 'strftime' else 'str'}.{polars}(...) has more.",
            )  # fmt: skip
    return [(w, w if q is None else q.replace("''", "'")) for w, q in words]
