"""Functions of text as Spark computes them: they count characters, from 1 or back from the end.

Polars finds by bytes; what is before the place found is cut off and its characters counted.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import polars as pl
from sqlglot import exp

from interpunct.model.errors import ExpressionError
from interpunct.model.scope import Builder, Scope


def _text(compute: Callable[[pl.Expr], pl.Expr]) -> Builder:
    return lambda scope, node: compute(scope.of(node.this, "string"))


def _text_pair(compute: Callable[[pl.Expr, pl.Expr], pl.Expr]) -> Builder:
    def build(scope: Scope, node: exp.Binary) -> pl.Expr:
        return compute(scope.of(node.this, "string"), scope.of(node.expression, "string"))

    return build


# Pieces -------------------------------------------------------------------------------------


def _trim(scope: Scope, node: exp.Trim) -> pl.Expr:
    chars = node.args.get("expression")
    drop = pl.lit(" ") if chars is None else scope.of(chars, "string")
    value = scope.of(node.this, "string").str
    position = node.args.get("position")
    if position == "LEADING":
        return value.strip_chars_start(drop)
    return value.strip_chars_end(drop) if position == "TRAILING" else value.strip_chars(drop)


def _substring(scope: Scope, node: exp.Substring) -> pl.Expr:
    """Counts from 1, or back from the end; what lies outside the text is cut off."""
    value = scope.of(node.this, "string")
    start = scope.of(node.args["start"], "number").cast(pl.Int64)
    size = value.str.len_chars().cast(pl.Int64)
    begin = pl.when(start > 0).then(start - 1).when(start < 0).then(size + start).otherwise(start)
    length = node.args.get("length")
    most = pl.lit(2**31 - 1, dtype=pl.Int64)
    wanted = most if length is None else scope.of(length, "number").cast(pl.Int64)
    end = pl.when(wanted > 0).then(begin + wanted).otherwise(begin)
    first = begin.clip(lower_bound=0)
    return value.str.slice(first, (end - first).clip(lower_bound=0))


def _end(take: Callable[[pl.Expr, pl.Expr], pl.Expr]) -> Builder:
    """LEFT and RIGHT: so many characters, none of a number below 1."""

    def build(scope: Scope, node: exp.Left | exp.Right) -> pl.Expr:
        return take(scope.of(node.this, "string"), _count(scope, node.expression))

    return build


def _count(scope: Scope, node: exp.Expr) -> pl.Expr:
    """How many: a negative number is none."""
    return scope.whole(node).clip(lower_bound=0)


def _up_to(scope: Scope, node: exp.SubstringIndex) -> pl.Expr:
    """What is before the n-th delimiter, or behind it counted from the end; all if there is none.

    Delimiters may overlap, as they do in Spark.
    """
    delimiter = scope.constant(node.args["delimiter"], node)
    value, number = scope.of(node.this, "string"), scope.whole(node.args["count"])
    if not delimiter:
        return pl.when(value.is_not_null() & number.is_not_null()).then(pl.lit(""))
    found = value.str.find_many([delimiter], overlapping=True).cast(pl.List(pl.Int64))
    at = found.list.get(pl.when(number > 0).then(number - 1).otherwise(number), null_on_oob=True)
    raw = value.cast(pl.Binary)
    before = raw.bin.slice(0, at)
    behind = raw.bin.slice(at + len(delimiter.encode()))
    cut = pl.when(number > 0).then(before).otherwise(behind).cast(pl.String)
    some = pl.when(number != 0).then(pl.when(at.is_null()).then(value).otherwise(cut))
    return pl.when(number == 0).then(pl.when(value.is_not_null()).then(pl.lit(""))).otherwise(some)


# Places -------------------------------------------------------------------------------------


def _position(scope: Scope, node: exp.StrPosition) -> pl.Expr:
    """Where text first stands, from a place on; 0 if nowhere, or if that place is none."""
    value, wanted = scope.of(node.this, "string"), scope.of(node.args["substr"], "string")
    start = node.args.get("position")
    if start is None:
        return _found(value, wanted, pl.lit(0, dtype=pl.Int64)).cast(pl.Int32)
    place = scope.whole(start)
    skipped = pl.when(place > 0).then(place - 1).otherwise(0)
    inside = pl.when(place < 1).then(0).otherwise(_found(value, wanted, skipped))
    both = pl.when(value.is_not_null() & wanted.is_not_null()).then(inside)
    return pl.when(place.is_null()).then(0).otherwise(both).cast(pl.Int32)


def _found(value: pl.Expr, wanted: pl.Expr, skipped: pl.Expr) -> pl.Expr:
    rest = value.str.slice(skipped)
    at = rest.str.find(wanted, literal=True)
    before = rest.cast(pl.Binary).bin.slice(0, at).cast(pl.String).str.len_chars().cast(pl.Int64)
    place = pl.when(at.is_null()).then(0).otherwise(before + skipped + 1)
    known = pl.when(wanted.str.len_bytes() == 0).then(1).otherwise(place)  # no text is first
    return pl.when(value.is_not_null() & wanted.is_not_null()).then(known)


# Joined and repeated ------------------------------------------------------------------------


def _concat(scope: Scope, node: exp.Concat | exp.DPipe) -> pl.Expr:
    parts = [node.this, node.expression] if isinstance(node, exp.DPipe) else node.expressions
    texts = [scope.cast(scope.term(p), pl.String()) for p in parts]
    return pl.concat_str(texts, ignore_nulls=False)


def _concat_with(scope: Scope, node: exp.ConcatWs) -> pl.Expr:
    """Nulls are passed over, and so is what would stand between."""
    between, *parts = node.expressions
    separator = scope.of(between, "string")
    known = separator.is_not_null()
    texts = [pl.when(known).then(scope.cast(scope.term(p), pl.String())) for p in parts]
    joined = pl.concat_list(texts).list.join(separator) if texts else pl.lit("")
    return pl.when(known).then(joined)


def _repeat(scope: Scope, node: exp.Repeat) -> pl.Expr:
    value, times = scope.of(node.this, "string"), _count(scope, node.args["times"])
    return pl.when(value.is_not_null()).then(_repeated(value, times))


def _repeated(value: pl.Expr, times: pl.Expr) -> pl.Expr:
    return value.repeat_by(times.cast(pl.UInt32, strict=False)).list.join("")


def _pad(scope: Scope, node: exp.Pad) -> pl.Expr:
    """Text of so many characters: cut at its end, or filled up."""
    value, size = scope.of(node.this, "string"), _count(scope, node.expression)
    given = node.args.get("fill_pattern")
    fill = pl.lit(" ") if given is None else scope.of(given, "string")
    missing = (size - value.str.len_chars().cast(pl.Int64)).clip(lower_bound=0)
    unit = fill.str.len_chars().cast(pl.Int64)
    times = pl.when(unit > 0).then((missing + unit - 1) // unit).otherwise(0)
    filling = _repeated(fill, times).str.slice(0, missing)
    kept = value.str.slice(0, size)
    whole = [filling, kept] if node.args["is_left"] else [kept, filling]
    known = value.is_not_null() & size.is_not_null() & fill.is_not_null()
    return pl.when(known).then(pl.concat_str(whole))


# Characters ---------------------------------------------------------------------------------


def _reversed(value: pl.Expr) -> pl.Expr:
    """By characters; what Polars reverses are those that are drawn as one."""
    return value.str.split("").list.reverse().list.join("")


def _capitalised(scope: Scope, node: exp.Initcap) -> pl.Expr:
    """Words are what spaces part."""
    between = node.args.get("expression")
    if between is not None and between.name != " ":
        raise scope.unsupported(node)
    words = scope.of(node.this, "string").str.to_lowercase().str.split(" ")
    first = pl.element().str.slice(0, 1).str.to_uppercase()
    # The capital of one letter may be two, of which the first alone is one: ß, Ss.
    first = first.str.slice(0, 1) + first.str.slice(1).str.to_lowercase()
    return words.list.eval(first + pl.element().str.slice(1)).list.join(" ")


def _translate(scope: Scope, node: exp.Translate) -> pl.Expr:
    """Each character for the one in its place; those without one are dropped."""
    old, new = (scope.constant(node.args[name], node) for name in ("from_", "to"))
    pairs = dict(reversed([*zip(old, [*new, *[""] * len(old)], strict=False)]))  # the first counts
    value = scope.of(node.this, "string")
    return value.str.replace_many([*pairs], [*pairs.values()]) if pairs else value


# Patterns -----------------------------------------------------------------------------------


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


def _json(scope: Scope, node: exp.JSONExtractScalar) -> pl.Expr:
    """What stands at a path: text as it is, the rest as JSON."""
    path = node.expression
    steps = path.expressions[1:] if isinstance(path, exp.JSONPath) else [None]
    words = [_json_step(step) for step in steps]
    known = [word for word in words if word is not None]
    if len(known) < len(words):
        raise ExpressionError(
            scope.where, "a path of names and places such as '$.a.b[0]'", path.sql(),
            "pl.col(...).str.json_decode(...) reads more.",
        )  # fmt: skip
    return scope.of(node.this, "string").str.json_path_match("$" + "".join(known))


def _json_step(step: exp.Expr | None) -> str | None:
    """One step of a path as Polars writes it; None for one that may lead to several values."""
    if isinstance(step, exp.JSONPathSubscript) and isinstance(step.this, int) and step.this >= 0:
        return f"[{step.this}]"
    if isinstance(step, exp.JSONPathKey) and isinstance(step.this, str) and "'" not in step.this:
        return f"['{step.this}']"
    return None


TEXT: dict[type[exp.Expr], Builder] = {
    exp.Upper: _text(lambda x: x.str.to_uppercase()),
    exp.Lower: _text(lambda x: x.str.to_lowercase()),
    exp.Length: _text(lambda x: x.str.len_chars().cast(pl.Int32)),
    exp.Trim: _trim,
    exp.Substring: _substring,
    exp.Left: _end(lambda value, count: value.str.head(count)),
    exp.Right: _end(lambda value, count: value.str.tail(count)),
    exp.SubstringIndex: _up_to,
    exp.StrPosition: _position,
    exp.Concat: _concat,
    exp.DPipe: _concat,
    exp.ConcatWs: _concat_with,
    exp.Repeat: _repeat,
    exp.Space: lambda scope, node: _repeated(pl.lit(" "), _count(scope, node.this)),
    exp.Pad: _pad,
    exp.Reverse: _text(_reversed),
    exp.Initcap: _capitalised,
    exp.Translate: _translate,
    exp.StartsWith: _text_pair(lambda x, y: x.str.starts_with(y)),
    exp.EndsWith: _text_pair(lambda x, y: x.str.ends_with(y)),
    exp.Contains: _text_pair(lambda x, y: x.str.contains(y, literal=True)),
    exp.Like: _like,
    exp.ILike: _like,
    exp.Escape: _escaped_like,
    exp.JSONExtractScalar: _json,
}
