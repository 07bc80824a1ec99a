"""Predicates that a pattern can say: comparisons of attributes with constants, joined by AND.

>>> from interpunct.model.schema import Schema
>>> schema = Schema.of("segment bigint, speed double")
>>> from sqlglot import parse_one
>>> conjunction(parse_one("speed between 0 and 120 and segment != 3"), schema).by_name()
'[segment≠3, speed∈[0.0, 120.0]]'
>>> conjunction(parse_one("speed > segment"), schema) is None
True

A pattern decides a small page at a tenth of the cost of an expression (`masks`).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

import polars as pl
from sqlglot import exp

from interpunct.model.comparisons import between, comparison
from interpunct.model.condition import Condition
from interpunct.model.pattern import Pattern
from interpunct.model.schema import Schema

_OPERATORS: dict[type[exp.Expr], tuple[str, str]] = {  # as written, and with the sides exchanged
    exp.LT: ("<", ">"), exp.LTE: ("≤", "≥"), exp.GT: (">", "<"), exp.GTE: ("≥", "≤"),
    exp.EQ: ("=", "="), exp.NEQ: ("≠", "≠"),
}  # fmt: skip
Said = tuple[str, Condition]


def conjunction(tree: exp.Expr, schema: Schema) -> Pattern | None:
    """The pattern that says just what the predicate says, or None."""
    patterns = []
    for said in _conditions(tree, schema):
        if said is None:
            return None
        patterns.append(Pattern(schema, dict([said])))
    return reduce(Pattern.intersect, patterns)


def _conditions(tree: exp.Expr, schema: Schema) -> Iterator[Said | None]:
    """What each part of the conjunction says of one attribute; None for what it says otherwise."""
    match tree:
        case exp.Paren():
            yield from _conditions(tree.this, schema)
        case exp.And():
            yield from _conditions(tree.left, schema)
            yield from _conditions(tree.right, schema)
        case exp.Between():
            name = _attribute(tree.this, schema)
            low, high = (_constant(tree.args[side], name, schema) for side in ("low", "high"))
            known = low is not None and high is not None
            yield (name, between(low, high)) if name is not None and known else None
        case exp.Binary() if type(tree) in _OPERATORS:
            yield _compared(tree, schema)
        case _:
            yield None


def _compared(tree: exp.Binary, schema: Schema) -> Said | None:
    for operator, column, value in zip(
        _OPERATORS[type(tree)], (tree.left, tree.right), (tree.right, tree.left), strict=True
    ):
        name = _attribute(column, schema)
        constant = _constant(value, name, schema)
        if name is not None and constant is not None:
            return name, comparison(operator, constant)
    return None


def _attribute(tree: exp.Expr, schema: Schema) -> str | None:
    plain = isinstance(tree, exp.Column) and not tree.table and tree.name in schema
    return tree.name if plain else None


def _constant(tree: exp.Expr, name: str | None, schema: Schema) -> int | float | str | None:
    """The constant, if it is of the attribute's own type: what has to be converted is left to an
    expression."""
    sign = 1
    if isinstance(tree, exp.Neg):
        sign, tree = -1, tree.this
    if name is None or not isinstance(tree, exp.Literal):
        return None
    dtype, text = schema[name].dtype, tree.this
    if tree.is_string:
        return text if dtype == pl.String() and sign == 1 else None
    if dtype == pl.Int64() and text.isdigit() and int(text) < 2**63:
        return sign * int(text)
    if dtype == pl.Float64() and text.replace(".", "", 1).isdigit():
        return sign * float(text)
    return None
