"""Scalar functions of Spark's SQL as Polars: one table from syntax node to builder.

`SCALARS` is the whole of scalar SQL: the syntax of `syntax.py`, the functions of numbers here and
those of text, of regular expressions and of time. Anything else is refused by name, and a Polars
expression can always be given instead.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Collection
from typing import Any

import polars as pl
from sqlglot import exp

from interpunct.model.doubles import Rounding, quotient, rounded
from interpunct.model.errors import ExpressionError
from interpunct.model.regex import REGEX
from interpunct.model.scope import Builder, Scope, Term
from interpunct.model.syntax import SYNTAX, remainder
from interpunct.model.text_functions import TEXT
from interpunct.model.time_functions import TIME, TIME_NAMED


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
    return quotient(_logarithm(value), _logarithm(base))


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
    return _to_places(scope, node.this, node.args.get("decimals"), "half_away_from_zero")


def _round_to_even(scope: Scope, value: exp.Expr, digits: exp.Expr | None = None) -> pl.Expr:
    return _to_places(scope, value, digits, "half_to_even")


def _to_places(scope: Scope, node: exp.Expr, digits: exp.Expr | None, mode: Rounding) -> pl.Expr:
    """So many digits behind the point; of a negative number, zeros before it."""
    value, term = scope.of(node, "number"), scope.term(node)
    sign, literal = (-1, digits.this) if isinstance(digits, exp.Neg) else (1, digits)
    places = 0 if literal is None else sign * int(scope.constant(literal, node))
    if term.dtype.is_float():
        return rounded(value.cast(pl.Float64), places, mode).cast(term.dtype)
    if places >= 0 or term.kind == "null":
        return value.round(max(places, 0), mode=mode)
    if not term.dtype.is_integer() or mode == "half_to_even":
        raise ExpressionError(
            scope.where, "a double or a whole number to be rounded before the point",
            f"{node.sql('spark')} {term.dtype}", "Round cast(… as double).",
        )  # fmt: skip
    unit: int = 10 ** min(-places, 18)
    whole = value.cast(pl.Int64)
    return (whole.sign() * ((whole.abs() + unit // 2) // unit * unit)).cast(
        term.dtype, strict=False
    )


def _quotient(scope: Scope, node: exp.IntDiv) -> pl.Expr:
    """DIV: whole numbers, cut towards nothing, as a bigint."""
    left, right = scope.numbers(node)
    if not left.dtype.is_integer():
        raise scope.wrong_type(node, "whole numbers", [left])
    dividend, divisor = (Term(t.node, t.polars.cast(pl.Int64), pl.Int64()) for t in (left, right))
    return (dividend.polars - remainder(dividend, divisor)) // divisor.polars


def _unless_nan(scope: Scope, node: exp.Nanvl) -> pl.Expr:
    value, other = (
        scope.of(operand, "number").cast(pl.Float64) for operand in (node.this, node.expression)
    )
    return pl.when(value.is_nan()).then(other).otherwise(value)


def _isnan(scope: Scope, node: exp.IsNan) -> pl.Expr:
    return scope.of(node.this, "number").cast(pl.Float64).is_nan().fill_null(value=False)


def _arctangent(scope: Scope, node: exp.Atan2) -> pl.Expr:
    y, x = (
        scope.of(operand, "number").cast(pl.Float64) for operand in (node.this, node.expression)
    )
    return pl.arctan2(y, x)


def _positive_remainder(scope: Scope, *operands: exp.Expr) -> pl.Expr:
    """PMOD: a remainder below nothing is made up for by the divisor."""
    pair = exp.Mod(this=operands[0], expression=operands[1])
    left, right = scope.numbers(pair)
    rest = remainder(left, right)
    above = Term(pair, rest + right.polars, right.dtype)
    return pl.when(rest < 0).then(remainder(above, right)).otherwise(rest)


# Bits ---------------------------------------------------------------------------------------

_BINDING: list[type[exp.Expr]] = [exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseAnd]  # ever closer


def _bits(compute: Callable[[Any, Any], Any]) -> Builder:
    def build(scope: Scope, node: exp.Binary) -> pl.Expr:
        inner = node.this
        if type(inner) in _BINDING[: _BINDING.index(type(node))]:
            # Spark would begin with the other one; sqlglot reads from left to right.
            raise ExpressionError(
                scope.where, "parentheses where &, ^ and | are mixed", node.sql("spark"),
                "Put them around what is to come first.",
            )  # fmt: skip
        left, right = scope.numbers(node)
        if not left.dtype.is_integer():
            raise scope.wrong_type(node, "whole numbers", [left])
        return compute(left.polars, right.polars)  # type: ignore[no-any-return]

    return build


def _complement(scope: Scope, node: exp.BitwiseNot) -> pl.Expr:
    term = scope.term(node.this)
    if not term.dtype.is_integer():
        raise scope.wrong_type(node.this, "a whole number", [term])
    return ~term.polars


# Functions sqlglot keeps by name: how many arguments they take, and what they are.
NAMED: dict[str, tuple[Collection[int], Callable[..., pl.Expr]]] = {
    "isnull": ({1}, lambda scope, node: scope.term(node).polars.is_null()),
    "isnotnull": ({1}, lambda scope, node: scope.term(node).polars.is_not_null()),
    "pmod": ({2}, _positive_remainder),
    "bround": ({1, 2}, _round_to_even),
    "e": ({0}, lambda _: pl.lit(math.e)),
    **TIME_NAMED,
}


def _named(scope: Scope, node: exp.Anonymous) -> pl.Expr:
    counts, build = NAMED.get(node.name.lower(), ((), None))
    if build is None or len(node.expressions) not in counts:
        raise scope.unsupported(node)
    return build(scope, *node.expressions)


NUMBERS: dict[type[exp.Expr], Builder] = {
    exp.Abs: lambda scope, node: scope.of(node.this, "number").abs(),
    exp.Round: _round,
    exp.Floor: _whole(lambda x: x.floor()),
    exp.Ceil: _whole(lambda x: x.ceil()),
    exp.Sqrt: _double(lambda x: x.sqrt()),
    exp.Cbrt: _double(lambda x: x.cbrt()),
    exp.Exp: _double(lambda x: x.exp()),
    exp.Ln: _double(_logarithm),
    exp.Log: _log,
    exp.Pow: _power,
    exp.Sign: _double(lambda x: x.sign()),
    exp.IsNan: _isnan,
    exp.Sin: _double(lambda x: x.sin()),
    exp.Cos: _double(lambda x: x.cos()),
    exp.Tan: _double(lambda x: x.tan()),
    exp.Asin: _double(lambda x: x.arcsin()),
    exp.Acos: _double(lambda x: x.arccos()),
    exp.Atan: _double(lambda x: x.arctan()),
    exp.Atan2: _arctangent,
    exp.Radians: _double(lambda x: x.radians()),
    exp.Degrees: _double(lambda x: x.degrees()),
    exp.Sinh: _double(lambda x: x.sinh()),
    exp.Cosh: _double(lambda x: x.cosh()),
    exp.Tanh: _double(lambda x: x.tanh()),
    exp.Pi: lambda _, __: pl.lit(math.pi),
    exp.Rint: _double(lambda x: x.round(0, mode="half_to_even")),
    exp.IntDiv: _quotient,
    exp.Nanvl: _unless_nan,
    exp.BitwiseAnd: _bits(operator.and_),
    exp.BitwiseOr: _bits(operator.or_),
    exp.BitwiseXor: _bits(operator.xor),
    exp.BitwiseNot: _complement,
    exp.Anonymous: _named,
}

SCALARS: dict[type[exp.Expr], Builder] = {**SYNTAX, **NUMBERS, **TEXT, **REGEX, **TIME}
