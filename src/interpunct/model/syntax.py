"""The syntax of scalar SQL in Spark's dialect as Polars: names, literals, operators, CASE.

Decisions where Spark would fail while running: division and remainder by zero, a failed cast
and the overflow of a narrow integer give null; bigint wraps. A fractional literal is a double,
or a decimal where it meets one.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import polars as pl
from sqlglot import exp

from interpunct.model.conversions import TIMESTAMP
from interpunct.model.doubles import float_remainder, quotient
from interpunct.model.durations import duration
from interpunct.model.errors import ExpressionError, SchemaError
from interpunct.model.schema import parse_type
from interpunct.model.scope import Builder, Scope, Term, exact

# Names and literals -------------------------------------------------------------------------


def _column(scope: Scope, node: exp.Column) -> pl.Expr:
    if node.table:
        raise ExpressionError(
            scope.where, "an attribute's own name", node.sql("spark"),
            f"Write {node.name!r}; for a field of a struct use pl.col(...).struct.field(...).",
        )  # fmt: skip
    if node.name in scope.schema:
        return pl.col(node.name)
    near = [n for n in scope.schema.names if n.lower() == node.name.lower()]
    if len(near) != 1:
        raise SchemaError.unknown_attribute(scope.where, node.name, scope.schema.names)
    return pl.col(near[0])


def _literal(_scope: Scope, node: exp.Literal) -> pl.Expr:
    return pl.lit(node.name, dtype=pl.String) if node.is_string else _number(node.name)


def _number(text: str) -> pl.Expr:
    if not text.lstrip("-").isdigit():
        return pl.lit(float(text), dtype=pl.Float64)
    bits = int(text).bit_length()  # of the magnitude
    if bits > 63:
        return pl.lit(Decimal(text), dtype=pl.Decimal(38, 0))
    return pl.lit(int(text), dtype=pl.Int32 if bits < 32 else pl.Int64)


def _interval(scope: Scope, node: exp.Interval) -> pl.Expr:
    text = scope.constant(node.this, node)
    amount = text.removeprefix("-")
    ticks = duration(f"{amount} {node.unit or ''}", scope.where)
    return pl.lit(timedelta(microseconds=-ticks if text != amount else ticks))


def _cast(scope: Scope, node: exp.Cast) -> pl.Expr:
    _, target = parse_type(node.to, scope.where)
    term = scope.term(node.this)
    if isinstance(node, exp.TryCast):  # CAST in this dialect; a typed literal is a plain Cast
        term = Term(exp.Paren(this=term.node), term.polars, term.dtype)
    return scope.cast(term, target)


# Arithmetic ---------------------------------------------------------------------------------

_SUMS = {("time", "interval"), ("interval", "time"), ("interval", "interval")}
_DIFFERENCES = {("time", "interval"), ("time", "time"), ("interval", "interval")}


def _additive(compute: Callable[[Any, Any], Any], temporal: set[tuple[str, str]]) -> Builder:
    def build(scope: Scope, node: exp.Binary) -> pl.Expr:
        left, right = scope.term(node.this), scope.term(node.expression)
        if (left.kind, right.kind) in temporal:
            moved: pl.Expr = compute(_stamp(scope, left), _stamp(scope, right))
            return moved.cast(pl.Date) if _moves_a_date_by_days(left, right) else moved
        return _narrowed(compute, *scope.numbers(node))

    return build


def _stamp(scope: Scope, term: Term) -> pl.Expr:
    return scope.cast(term, TIMESTAMP) if isinstance(term.dtype, pl.Date) else term.polars


def _moves_a_date_by_days(left: Term, right: Term) -> bool:
    """A date moved by days stays a date; moved by less, it becomes a timestamp."""
    if {left.kind, right.kind} != {"time", "interval"}:
        return False
    date, interval = (left, right) if left.kind == "time" else (right, left)
    units = {str(i.unit).upper().rstrip("S") for i in interval.node.find_all(exp.Interval)}
    return isinstance(date.dtype, pl.Date) and bool(units) and units <= {"DAY", "WEEK"}


def _narrowed(compute: Callable[[Any, Any], Any], left: Term, right: Term) -> pl.Expr:
    """Integers below bigint are computed as bigint, so that an overflow shows, as null."""
    if left.dtype.is_integer():
        wide = compute(left.polars.cast(pl.Int64), right.polars.cast(pl.Int64))
        return wide.cast(left.dtype, strict=False)  # type: ignore[no-any-return]
    return compute(left.polars, right.polars)  # type: ignore[no-any-return]


def _multiply(scope: Scope, node: exp.Mul) -> pl.Expr:
    left, right = (exact(scope.term(n)) for n in (node.this, node.expression))
    if isinstance(left.dtype, pl.Decimal) and isinstance(right.dtype, pl.Decimal):
        scale = _product_scale(left.dtype, right.dtype)
        # Polars multiplies at the greater of the two scales; Spark's product may need more.
        working = pl.Decimal(38, max(scale, left.dtype.scale))
        product = left.polars.cast(working, strict=False) * right.polars
        return product.cast(pl.Decimal(38, scale), strict=False)
    return _narrowed(operator.mul, *scope.numbers(node))


def _product_scale(left: pl.Decimal, right: pl.Decimal) -> int:
    """Spark's rule: all fractional digits, or at least six when 38 digits cannot hold them."""
    scale, whole = left.scale + right.scale, left.precision - left.scale
    whole += right.precision - right.scale + 1
    return scale if whole + scale <= 38 else max(38 - whole, min(scale, 6))


def _divide(scope: Scope, node: exp.Binary) -> pl.Expr:
    left, right = scope.numbers(node)
    divisor = _nonzero(right.polars)
    if isinstance(left.dtype, pl.Decimal):
        return left.polars.cast(pl.Decimal(38, max(6, left.dtype.scale)), strict=False) / divisor
    return quotient(left.polars.cast(pl.Float64), divisor.cast(pl.Float64))


def _remainder(scope: Scope, node: exp.Mod) -> pl.Expr:
    return remainder(*scope.numbers(node))


def remainder(left: Term, right: Term) -> pl.Expr:
    """With the sign of the dividend, as in Java; Polars follows the divisor."""
    dividend, divisor = left.polars, _nonzero(right.polars)
    if left.dtype.is_float():
        return float_remainder(dividend, divisor, left.dtype)
    return dividend.sign() * (dividend.abs() % divisor.abs())


def _nonzero(divisor: pl.Expr) -> pl.Expr:
    return pl.when(divisor != 0).then(divisor)


def _negate(scope: Scope, node: exp.Neg) -> pl.Expr:
    if isinstance(node.this, exp.Literal) and not node.this.is_string:
        return _number(f"-{node.this.name}")
    term = scope.term(node.this)
    return -term.polars if term.kind == "interval" else -scope.of(node.this, "number")


# Comparison and logic -----------------------------------------------------------------------


def _comparison(compare: Callable[[Any, Any], Any]) -> Builder:
    def build(scope: Scope, node: exp.Binary) -> pl.Expr:
        left, right = scope.alike(node, node.this, node.expression)
        return compare(left.polars, right.polars)  # type: ignore[no-any-return]

    return build


def _logic(combine: Callable[[Any, Any], Any]) -> Builder:
    def build(scope: Scope, node: exp.Binary) -> pl.Expr:
        left, right = scope.of(node.this, "boolean"), scope.of(node.expression, "boolean")
        return combine(left, right)  # type: ignore[no-any-return]

    return build


def _is(scope: Scope, node: exp.Is) -> pl.Expr:
    if isinstance(node.expression, exp.Null):
        return scope.term(node.this).polars.is_null()
    return scope.of(node.this, "boolean").eq_missing(scope.of(node.expression, "boolean"))


def _between(scope: Scope, node: exp.Between) -> pl.Expr:
    value, low, high = scope.alike(node, node.this, node.args["low"], node.args["high"])
    return (value.polars >= low.polars) & (value.polars <= high.polars)


def _in(scope: Scope, node: exp.In) -> pl.Expr:
    if not node.expressions:
        raise scope.unsupported(node)
    value, *choices = scope.alike(node, node.this, *node.expressions)
    return pl.any_horizontal([value.polars == c.polars for c in choices])


def _case(scope: Scope, node: exp.Case) -> pl.Expr:
    ifs = node.args["ifs"]
    default = node.args.get("default") or exp.Null()
    *results, last = scope.alike(node, *(i.args["true"] for i in ifs), default)
    built = last.polars
    for branch, result in zip(reversed(ifs), reversed(results), strict=True):
        test = exp.EQ(this=node.this, expression=branch.this) if node.this else branch.this
        built = pl.when(scope.of(test, "boolean")).then(result.polars).otherwise(built)
    return built


def _if(scope: Scope, node: exp.If) -> pl.Expr:
    return _case(scope, exp.Case(ifs=[node], default=node.args.get("false")))


def _if_not_null(scope: Scope, node: exp.Nvl2) -> pl.Expr:
    given, missing = scope.alike(node, node.args["true"], node.args["false"])
    value = scope.term(node.this).polars
    return pl.when(value.is_not_null()).then(given.polars).otherwise(missing.polars)


def _coalesce(scope: Scope, node: exp.Coalesce) -> pl.Expr:
    return pl.coalesce(*(t.polars for t in scope.alike(node, node.this, *node.expressions)))


def _nullif(scope: Scope, node: exp.Nullif) -> pl.Expr:
    left, right = scope.alike(node, node.this, node.expression)
    same = (left.polars == right.polars).fill_null(value=False)
    return pl.when(~same).then(scope.term(node.this).polars)


def _greatest(scope: Scope, node: exp.Greatest) -> pl.Expr:
    terms = scope.alike(node, node.this, *node.expressions)
    values = [t.polars for t in terms]
    largest = pl.max_horizontal(values)
    if not terms[0].dtype.is_float():
        return largest
    some_nan = pl.any_horizontal([v.is_nan() for v in values])  # Polars passes over NaN
    return pl.when(some_nan).then(float("nan")).otherwise(largest)


def _least(scope: Scope, node: exp.Least) -> pl.Expr:
    return pl.min_horizontal([t.polars for t in scope.alike(node, node.this, *node.expressions)])


SYNTAX: dict[type[exp.Expr], Builder] = {
    exp.Column: _column,
    exp.Literal: _literal,
    exp.Boolean: lambda _, node: pl.lit(bool(node.this)),
    exp.Null: lambda _, __: pl.lit(None),
    exp.Paren: lambda scope, node: scope.term(node.this).polars,
    exp.Interval: _interval,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Add: _additive(operator.add, _SUMS),
    exp.Sub: _additive(operator.sub, _DIFFERENCES),
    exp.Mul: _multiply,
    exp.Div: _divide,
    exp.SafeDivide: _divide,
    exp.Mod: _remainder,
    exp.Neg: _negate,
    exp.EQ: _comparison(operator.eq),
    exp.NEQ: _comparison(operator.ne),
    exp.LT: _comparison(operator.lt),
    exp.LTE: _comparison(operator.le),
    exp.GT: _comparison(operator.gt),
    exp.GTE: _comparison(operator.ge),
    exp.EqualNull: _comparison(lambda left, right: left.eq_missing(right)),
    exp.NullSafeEQ: _comparison(lambda left, right: left.eq_missing(right)),
    exp.NullSafeNEQ: _comparison(lambda left, right: left.ne_missing(right)),
    exp.And: _logic(operator.and_),
    exp.Or: _logic(operator.or_),
    exp.Not: lambda scope, node: ~scope.of(node.this, "boolean"),
    exp.Is: _is,
    exp.Between: _between,
    exp.In: _in,
    exp.Case: _case,
    exp.If: _if,
    exp.Coalesce: _coalesce,
    exp.Nvl2: _if_not_null,
    exp.Nullif: _nullif,
    exp.Greatest: _greatest,
    exp.Least: _least,
}
