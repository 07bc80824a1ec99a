"""Aggregates of Spark's SQL as Polars, whole and, where they decompose, in parts.

A decomposable aggregate is computed in three steps: `partial` over the tuples of a page gives
one column per part; `combine` merges partial rows, in any number and again and again (its result
has the type of its input); `finish` reads the value off the partial columns. A partial row stands
for at least one tuple, which is what lets FIRST and LAST respect nulls.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
from sqlglot import exp

from interpunct.model.errors import ExpressionError
from interpunct.model.scope import Scope, Term


@dataclass(frozen=True, eq=False)
class Part:
    """One partial column: what it is called, how tuples make it, how partial rows merge.

    Where it is just the sum of one double of each tuple, or the number of those that have one,
    `of` is that double: such parts can be had without grouping (`operators.dense`).
    """

    suffix: str
    partial: pl.Expr
    combine: Callable[[str], pl.Expr]
    of: pl.Expr | None = None
    counts: bool = False


Finish = Callable[[Sequence[str]], pl.Expr]


@dataclass(frozen=True, eq=False)
class Recipe:
    """How to compute one aggregate: over all its tuples, and by parts if it decomposes."""

    whole: pl.Expr
    parts: tuple[Part, ...] | None = None
    finish: Finish | None = None
    grows: int = 0  # 1: more tuples never lower it; -1: they never raise it


# Combining and finishing are plain functions of column names: they travel with a flow.


def _total(name: str) -> pl.Expr:
    return pl.col(name).sum()


def _sum_or_null(name: str) -> pl.Expr:
    return _summed(pl.col(name))


def _least(name: str) -> pl.Expr:
    return pl.col(name).min()


def _greatest(name: str) -> pl.Expr:
    return pl.col(name).max()


def _greatest_nan(name: str) -> pl.Expr:
    return pl.col(name).nan_max()


def _first(name: str) -> pl.Expr:
    return pl.col(name).first()


def _last(name: str) -> pl.Expr:
    return pl.col(name).last()


def _first_known(name: str) -> pl.Expr:
    return pl.col(name).drop_nulls().first()


def _last_known(name: str) -> pl.Expr:
    return pl.col(name).drop_nulls().last()


def _only(names: Sequence[str]) -> pl.Expr:
    return pl.col(names[0])


def _only_as(names: Sequence[str], *, dtype: pl.DataType) -> pl.Expr:
    return _fitted(pl.col(names[0]), dtype)


def _fitted(value: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    return value.cast(dtype, strict=False)


def _ratio(names: Sequence[str]) -> pl.Expr:
    total, count = (pl.col(n) for n in names)
    return pl.when(count > 0).then(total / count)


def _summed(values: pl.Expr) -> pl.Expr:
    """The sum, or null when there is nothing to add: Polars says 0 and SQL says null."""
    return pl.when(values.count() > 0).then(values.sum())


def _merged_moments(name: str) -> pl.Expr:
    """Counts, means and squared deviations of several samples as those of their union.

    Chan, Golub and LeVeque's pairwise update, over all rows at once: it never subtracts large
    squares, so it is as stable as the one-pass variance of each part.
    """
    n, mean, m2 = (pl.col(name).struct.field(f) for f in ("n", "mean", "m2"))
    count = n.sum()
    centre = pl.when(count > 0).then((mean * n).sum() / count).otherwise(0.0)
    spread = m2.sum() + (n * (mean - centre) ** 2).sum()
    return pl.struct(count.alias("n"), centre.alias("mean"), spread.alias("m2"))


def _variance(names: Sequence[str], *, ddof: int, root: bool) -> pl.Expr:
    n, m2 = (pl.col(names[0]).struct.field(f) for f in ("n", "m2"))
    value = pl.when(n > ddof).then(m2 / (n - ddof))
    return value.sqrt() if root else value


# Builders -----------------------------------------------------------------------------------

Builder = Callable[[Scope, Any], Recipe]


def _alone(
    suffix: str,
    whole: pl.Expr,
    combine: Callable[[str], pl.Expr],
    grows: int = 0,
    of: pl.Expr | None = None,
) -> Recipe:
    """An aggregate that is its own partial."""
    part = Part(suffix, whole, combine, of, counts=suffix == "count")
    return Recipe(whole, (part,), _only, grows)


def _values(scope: Scope, node: exp.Expr) -> Term:
    """The argument of an aggregate, one value per tuple even when it is a constant."""
    term = scope.term(node)
    return Term(node, per_tuple(term.polars), term.dtype)


def per_tuple(value: pl.Expr) -> pl.Expr:
    """A constant repeated for every tuple; anything else as it is."""
    return value if value.meta.root_names() else pl.repeat(value, pl.len())


def _numbers(scope: Scope, node: exp.Expr) -> Term:
    term = _values(scope, node)
    if term.kind not in ("number", "null"):
        raise scope.wrong_type(node, "a number", [term])
    return term


def _count(scope: Scope, node: exp.Count) -> Recipe:
    if isinstance(node.this, exp.Distinct):
        return _count_distinct(scope, node.this.expressions)
    if isinstance(node.this, exp.Star):
        return _alone("count", pl.len().cast(pl.Int64), _total, 1, of=pl.lit(1.0))
    if node.this is None:
        raise ExpressionError(
            scope.where, "count(*) or count(attribute)", "count()", "Say of what."
        )
    known = [_values(scope, a).polars.is_not_null() for a in (node.this, *node.expressions)]
    return _alone("count", pl.all_horizontal(known).sum().cast(pl.Int64), _total, 1)


def _count_distinct(scope: Scope, nodes: Sequence[exp.Expr]) -> Recipe:
    values = [_values(scope, n).polars for n in nodes]
    rows = pl.struct([v.alias(str(i)) for i, v in enumerate(values)])
    known = rows.filter(pl.all_horizontal([v.is_not_null() for v in values]))
    return Recipe(known.n_unique().cast(pl.Int64), grows=1)


def _count_if(scope: Scope, node: exp.CountIf) -> Recipe:
    test = per_tuple(scope.of(node.this, "boolean"))
    return _alone("count", test.sum().cast(pl.Int64), _total, 1)


def _sum(scope: Scope, node: exp.Sum) -> Recipe:
    term = _numbers(scope, node.this)
    if not isinstance(term.dtype, pl.Decimal):
        wide = pl.Float64 if term.dtype.is_float() else pl.Int64
        values = term.polars.cast(wide)
        of = values if term.dtype.is_float() else None
        return _alone("sum", _summed(values), _sum_or_null, of=of)
    total = _summed(term.polars.cast(pl.Decimal(38, term.dtype.scale)))
    spark = pl.Decimal(min(38, term.dtype.precision + 10), term.dtype.scale)
    finish = functools.partial(_only_as, dtype=spark)
    return Recipe(_fitted(total, spark), (Part("sum", total, _sum_or_null),), finish)


def _average(scope: Scope, node: exp.Expr) -> Recipe:
    x = _numbers(scope, node).polars.cast(pl.Float64)
    count = Part("count", x.count().cast(pl.Int64), _total, of=x, counts=True)
    return Recipe(x.mean(), (Part("sum", x.sum(), _total, of=x), count), _ratio)


def _min(scope: Scope, node: exp.Min) -> Recipe:
    return _alone("min", _ordered(scope, node).polars.min(), _least, -1)


def _max(scope: Scope, node: exp.Max) -> Recipe:
    term = _ordered(scope, node)
    if term.dtype.is_float():  # NaN is the greatest number in Spark; Polars' max passes over it
        return _alone("max", term.polars.nan_max(), _greatest_nan, 1)
    return _alone("max", term.polars.max(), _greatest, 1)


def _ordered(scope: Scope, node: exp.Min | exp.Max) -> Term:
    if node.expressions:
        raise scope.unsupported(node)
    term = _values(scope, node.this)
    if term.kind == "nested":
        raise scope.wrong_type(node, "a value with an order", [term])
    return term


def _first_value(scope: Scope, node: exp.Expr) -> Recipe:
    return _alone("first", _values(scope, node.this).polars.first(), _first)


def _last_value(scope: Scope, node: exp.Expr) -> Recipe:
    return _alone("last", _values(scope, node.this).polars.last(), _last)


def _ignoring_nulls(scope: Scope, node: exp.IgnoreNulls) -> Recipe:
    inner = node.this
    if isinstance(inner, exp.First | exp.FirstValue | exp.AnyValue):
        value = _values(scope, inner.this).polars.drop_nulls().first()
        return _alone("first", value, _first_known)
    if isinstance(inner, exp.Last | exp.LastValue):
        value = _values(scope, inner.this).polars.drop_nulls().last()
        return _alone("last", value, _last_known)
    raise scope.unsupported(node)


def _every(scope: Scope, node: exp.Expr) -> Recipe:
    return _alone("every", per_tuple(scope.of(node, "boolean")).min(), _least)


def _some(scope: Scope, node: exp.Expr) -> Recipe:
    return _alone("some", per_tuple(scope.of(node, "boolean")).max(), _greatest)


def _spread(*, ddof: int, root: bool) -> Builder:
    def build(scope: Scope, node: exp.Expr) -> Recipe:
        x = _numbers(scope, node.this).polars.cast(pl.Float64)
        n = x.count().cast(pl.Int64)
        moments = pl.struct(
            n.alias("n"),
            x.mean().fill_null(0.0).alias("mean"),
            (x.var(ddof=0) * n).fill_null(0.0).alias("m2"),
        )
        finish = functools.partial(_variance, ddof=ddof, root=root)
        whole = x.std(ddof=ddof) if root else x.var(ddof=ddof)
        return Recipe(whole, (Part("moments", moments, _merged_moments),), finish)

    return build


def _median(scope: Scope, node: exp.Median) -> Recipe:
    return Recipe(_numbers(scope, node.this).polars.cast(pl.Float64).median())


def _percentile(scope: Scope, node: exp.Quantile) -> Recipe:
    x = _numbers(scope, node.this).polars.cast(pl.Float64)
    return Recipe(x.quantile(_share(scope, node), interpolation="linear"))


def _percentile_approx(scope: Scope, node: exp.ApproxQuantile) -> Recipe:
    """Computed exactly: the least value with at least this share of values up to it."""
    share = _share(scope, node)
    values = _numbers(scope, node.this).polars.drop_nulls()
    rank = (values.len() * share).ceil().cast(pl.Int64) - 1
    return Recipe(values.sort().get(rank.clip(lower_bound=0), null_on_oob=True))


def _share(scope: Scope, node: exp.Quantile | exp.ApproxQuantile) -> float:
    share = float(scope.constant(node.args["quantile"], node))
    if not 0 <= share <= 1:
        raise ExpressionError(
            scope.where, "a share from 0 to 1", str(share), "Write 0.95 for the 95th percentile."
        )
    return share


def _collect_list(scope: Scope, node: exp.ArrayAgg) -> Recipe:
    return Recipe(_values(scope, node.this).polars.drop_nulls().implode())


def _collect_set(scope: Scope, node: exp.ArrayUniqueAgg) -> Recipe:
    values = _values(scope, node.this).polars.drop_nulls()
    return Recipe(values.unique(maintain_order=True).implode())


# Aggregates sqlglot keeps by name, given their one argument.
_NAMED: dict[str, Builder] = {"mean": _average, "every": _every, "some": _some}


def _named(scope: Scope, node: exp.Anonymous) -> Recipe:
    builder = _NAMED.get(node.name.lower())
    if builder is None or len(node.expressions) != 1:
        raise scope.unsupported(node)
    return builder(scope, node.expressions[0])


AGGREGATES: dict[type[exp.Expr], Builder] = {
    exp.Count: _count,
    exp.CountIf: _count_if,
    exp.Sum: _sum,
    exp.Avg: lambda scope, node: _average(scope, node.this),
    exp.Min: _min,
    exp.Max: _max,
    exp.First: _first_value,
    exp.FirstValue: _first_value,
    exp.AnyValue: _first_value,
    exp.Last: _last_value,
    exp.LastValue: _last_value,
    exp.IgnoreNulls: _ignoring_nulls,
    exp.LogicalAnd: lambda scope, node: _every(scope, node.this),
    exp.LogicalOr: lambda scope, node: _some(scope, node.this),
    exp.Any: lambda scope, node: _some(scope, node.this),
    exp.Stddev: _spread(ddof=1, root=True),
    exp.StddevSamp: _spread(ddof=1, root=True),
    exp.StddevPop: _spread(ddof=0, root=True),
    exp.Variance: _spread(ddof=1, root=False),
    exp.VariancePop: _spread(ddof=0, root=False),
    exp.Median: _median,
    exp.Quantile: _percentile,
    exp.ApproxQuantile: _percentile_approx,
    exp.ArrayAgg: _collect_list,
    exp.ArrayUniqueAgg: _collect_set,
    exp.ApproxDistinct: lambda scope, node: _count_distinct(scope, [node.this]),
    exp.Anonymous: _named,
}
