"""Functions of regular expressions and of pieces of text, as Spark computes them.

Patterns are literals, in the syntax that Java's and Rust's regex share; what only Java's has is
refused when the expression is built.
"""

from __future__ import annotations

import re

import polars as pl
from sqlglot import exp

from interpunct.model.errors import ExpressionError
from interpunct.model.scope import Builder, Scope

_REFERENCE = re.compile(r"\\(.)|\$(\d)|\$")  # of Java's replacements


def _pattern(scope: Scope, node: exp.Expr, parent: exp.Expr) -> str:
    pattern = scope.constant(node, parent)
    try:
        pl.select(pl.lit("").str.contains(pattern))
    except pl.exceptions.ComputeError:
        raise ExpressionError(
            scope.where, "a regular expression without look-around", repr(pattern),
            "Write it in the syntax of Rust's regex, which runs in linear time.",
        ) from None  # fmt: skip
    return pattern


def _rlike(scope: Scope, node: exp.RegexpLike) -> pl.Expr:
    pattern = _pattern(scope, node.expression, node)
    return scope.of(node.this, "string").str.contains(pattern)


def _extract(scope: Scope, node: exp.RegexpExtract) -> pl.Expr:
    """The group of the first match, by default the first; where there is no match, no text."""
    pattern, group = _pattern(scope, node.expression, node), node.args.get("group")
    number = 1 if group is None else _whole(scope, group, node)
    groups = pl.select(pl.lit("").str.extract_groups(pattern)).to_series().dtype
    count = len(groups.fields) if isinstance(groups, pl.Struct) else 0
    if number > count:
        raise ExpressionError(
            scope.where, f"a group from 0, the whole match, to {count}", str(number),
            f"{pattern!r} has {count} groups in parentheses.",
        )  # fmt: skip
    value = scope.of(node.this, "string")
    return pl.when(value.is_not_null()).then(value.str.extract(pattern, number).fill_null(""))


def _count_matches(scope: Scope, node: exp.RegexpCount) -> pl.Expr:
    pattern = _pattern(scope, node.expression, node)
    return scope.of(node.this, "string").str.count_matches(pattern).cast(pl.Int32)


def _first_match(scope: Scope, node: exp.RegexpSubstr) -> pl.Expr:
    """The whole of the first match; null if there is none."""
    pattern = _pattern(scope, node.expression, node)
    return scope.of(node.this, "string").str.extract(pattern, 0)


def _replace_matches(scope: Scope, node: exp.RegexpReplace) -> pl.Expr:
    if node.args.get("position") is not None:
        raise scope.unsupported(node)
    pattern = _pattern(scope, node.expression, node)
    java = scope.constant(node.args["replacement"], node)
    rust = _REFERENCE.sub(_referred, java)
    return scope.of(node.this, "string").str.replace_all(pattern, rust)


def _referred(match: re.Match[str]) -> str:
    """Java's `$1` is Rust's `${1}`; its `\\$` is `$$`."""
    escaped, group = match.groups()
    if group is not None:
        return f"${{{group}}}"
    return "$$" if escaped in (None, "$") else str(escaped)


def _replace(scope: Scope, node: exp.Expr) -> pl.Expr:
    """Every occurrence; of no text there are none."""
    old, new = node.expression, node.args.get("replacement")
    wanted = scope.constant(old, node)
    value = scope.of(node.this, "string")
    given = "" if new is None else scope.constant(new, node)
    return value.str.replace_all(wanted, given, literal=True) if wanted else value


def _split_part(scope: Scope, node: exp.SplitPart) -> pl.Expr:
    """Counts from 1, or back from the end; outside there is no text."""
    number = _whole(scope, node.args["part_index"], node)
    if number == 0:
        raise ExpressionError(scope.where, "a part counted from 1 or from -1", "0", "Say which.")
    delimiter = scope.constant(node.args["delimiter"], node)
    value = scope.of(node.this, "string")
    parts = value.str.split(delimiter) if delimiter else pl.concat_list(value)
    found = parts.list.get(number - 1 if number > 0 else number, null_on_oob=True).fill_null("")
    return pl.when(value.is_not_null()).then(found)


def _piece(scope: Scope, node: exp.Bracket) -> pl.Expr:
    """`split(text, pattern)[n]`, counted from 0: null outside, where Spark may refuse the row."""
    split, index = node.this, node.expressions
    if not isinstance(split, exp.RegexpSplit) or len(index) != 1 or split.args.get("limit"):
        raise scope.unsupported(node)
    number = _whole(scope, index[0], node) - (node.args.get("offset") or 0)
    if number < 0:
        raise scope.unsupported(node)
    pattern = _pattern(scope, split.expression, split)
    if pl.select(pl.lit("").str.contains(pattern)).item():  # Java's pieces would be others
        raise ExpressionError(
            scope.where, "a pattern that something must match", repr(pattern),
            "Of text that is cut between all its characters, take substring(…).",
        )  # fmt: skip
    pieces = scope.of(split.this, "string").str.split(pattern, literal=False)
    return pieces.list.get(number, null_on_oob=True)


def _whole(scope: Scope, node: exp.Expr, parent: exp.Expr) -> int:
    """A whole number that must be a literal, with or without a sign."""
    if isinstance(node, exp.Neg):
        return -_whole(scope, node.this, parent)
    text = scope.constant(node, parent)
    if not text.isdigit():
        raise ExpressionError(scope.where, "a whole number", repr(text), "Write it in digits.")
    return int(text)


REGEX: dict[type[exp.Expr], Builder] = {
    exp.RegexpLike: _rlike,
    exp.RegexpExtract: _extract,
    exp.RegexpCount: _count_matches,
    exp.RegexpSubstr: _first_match,
    exp.RegexpReplace: _replace_matches,
    exp.Replace: _replace,
    exp.SplitPart: _split_part,
    exp.Bracket: _piece,
}
