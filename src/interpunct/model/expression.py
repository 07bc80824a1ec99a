"""Expressions: SQL text in Spark's dialect, or Polars, that reveal which attributes they read.

>>> schema = Schema.of("segment bigint, speed double")
>>> kmh = scalar("speed * 1.609", schema, "map")
>>> sorted(kmh.inputs), kmh.attribute, kmh.dtype
(['speed'], None, Float64)
>>> scalar("segment", schema, "map").attribute
'segment'

An expression gives one value per tuple; give it a name with `.polars.alias(...)`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl
import sqlglot
from sqlglot import exp

from interpunct.model.aggregates import AGGREGATES, Finish, Part, Recipe, per_tuple
from interpunct.model.condition import Condition, Range
from interpunct.model.conjunction import conjunction
from interpunct.model.dialect import StreamSql, written
from interpunct.model.errors import ExpressionError, SchemaError
from interpunct.model.functions import SCALARS
from interpunct.model.pattern import Pattern
from interpunct.model.schema import Schema, ddl_type
from interpunct.model.scope import Scope, evaluated_type

__all__ = [
    "Aggregate",
    "Expression",
    "Part",
    "aggregate",
    "carried",
    "named",
    "predicate",
    "scalar",
]


_NAMED = re.compile(r"(.+)\s+as\s+(?:`(.+)`|(\w+))\s*", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, eq=False)
class Expression:
    """One value per tuple. `attribute` names the input it carries unchanged, if it does."""

    text: str
    polars: pl.Expr
    inputs: frozenset[str]
    attribute: str | None
    dtype: pl.DataType
    pattern: Pattern | None = None  # that says the same, of a predicate, if there is one


@dataclass(frozen=True, eq=False)
class Aggregate:
    """One value per group: `polars` over its tuples or, if it decomposes, by `parts`.

    A page's tuples become one partial row per group with ``part.partial``; partial rows, in
    stream order, merge with ``part.combine(column)``; ``finish(columns)`` gives the value.
    """

    text: str
    polars: pl.Expr
    inputs: frozenset[str]
    dtype: pl.DataType
    parts: tuple[Part, ...] | None
    finish: Finish | None
    grows: int = 0  # 1: more tuples never lower it (count, max); -1: never raise it (min)

    def settles(self, condition: Condition) -> bool:
        """Whether the condition, once it holds of some tuples of a group, holds of all of them."""
        if not isinstance(condition, Range):
            return False
        if condition.low is None and condition.high is None:
            return self.grows != 0  # not null: there is a value, and it stays
        upward, downward = condition.high is None, condition.low is None
        return (self.grows > 0 and upward) or (self.grows < 0 and downward)


def scalar(source: str | pl.Expr, schema: Schema, where: str) -> Expression:
    """An expression over one tuple."""
    _refuse_others(source, schema, where)
    if isinstance(source, pl.Expr):
        built, text = _examined(source, schema, where), str(source)
        _refuse_unless_per_tuple(source, schema, where)
    else:
        tree, text = _parsed(source, where), source.strip()
        built = Scope(schema, where, SCALARS).term(tree).polars
    carried = built.meta.undo_aliases()
    attribute = carried.meta.root_names()[0] if carried.meta.is_column() else None
    value, dtype = _carried(per_tuple(built), schema, where, text)
    return Expression(text, value, frozenset(built.meta.root_names()), attribute, dtype)


def carried(name: str, schema: Schema) -> Expression:
    """An attribute as it is, whatever it is called: `null` and `user id` are names as well."""
    return Expression(name, pl.col(name), frozenset({name}), name, schema[name].dtype)


def named(source: str, schema: Schema, where: str) -> tuple[str, str]:
    """The name of a column and what is in it: an attribute is its own, the rest says ``… as n``.

    >>> named("speed * 1.609 as kmh", Schema.of("speed double"), "map")
    ('kmh', 'speed * 1.609')
    """
    if source in schema or source.isidentifier():
        return source, source
    found = _NAMED.fullmatch(source)
    if found is None:
        raise ExpressionError(
            where, "the name of a column, or an expression with one", repr(source),
            f"Write {source + ' as total'!r}, or total={source!r}.",
        )  # fmt: skip
    return found[2] or found[3], found[1]


def predicate(source: str | pl.Expr, schema: Schema, where: str) -> Expression:
    """A condition over one tuple; where it is unknown (null) it does not hold."""
    test = scalar(source, schema, where)
    if not isinstance(test.dtype, pl.Boolean):
        raise SchemaError.wrong_type(where, test.text, "a boolean", ddl_type(test.dtype))
    holds = test.polars.fill_null(value=False)
    same = conjunction(_parsed(source, where), schema) if isinstance(source, str) else None
    return Expression(test.text, holds, test.inputs, None, test.dtype, same)


def aggregate(source: str | pl.Expr, schema: Schema, where: str) -> Aggregate:
    """An aggregate: one SQL call such as ``avg(speed * 2)``, or any Polars aggregation."""
    _refuse_others(source, schema, where)
    if isinstance(source, pl.Expr):
        text, recipe = str(source), Recipe(_examined(source, schema, where))
        _refuse_unless_aggregated(source, where)
    else:
        text, recipe = source.strip(), _recipe(_parsed(source, where), schema, where)
    whole, dtype = _carried(recipe.whole, schema, where, text)
    inputs = frozenset(whole.meta.root_names())
    return Aggregate(text, whole, inputs, dtype, recipe.parts, recipe.finish, recipe.grows)


def _refuse_others(source: object, schema: Schema, where: str) -> None:
    """What is neither text nor of Polars: a Column of PySpark, mostly, or a function."""
    if isinstance(source, str | pl.Expr):
        return
    kind = type(source).__name__
    of = "PySpark's " if type(source).__module__.startswith("pyspark.") else "a "
    raise ExpressionError(
        where, "SQL as text, or a Polars expression", f"{of}{kind}",
        f"Write it as text: '{schema.names[0]} is not null', 'max({schema.names[0]})'.",
    )  # fmt: skip


def _recipe(tree: exp.Expr, schema: Schema, where: str) -> Recipe:
    builder = AGGREGATES.get(type(tree))
    if builder is None:
        raise ExpressionError(
            where, "one call of an aggregate Interpunct knows", written(tree),
            f"{_instead_of(tree)}, or give a Polars aggregation.",
        )  # fmt: skip
    scope = Scope(schema, where, SCALARS)
    scope.require_understood(tree)
    return builder(scope, tree)


def _instead_of(tree: exp.Expr) -> str:
    """What to write where no aggregate is, or none that is known."""
    inner = tree.find(exp.AggFunc)
    if isinstance(tree, exp.Filter) and inner is not None and isinstance(inner.this, exp.Expr):
        case = exp.Case().when(tree.expression.this, inner.this)
        return f"Write {written(type(inner)(this=case))}"
    if isinstance(tree, exp.AggFunc):
        return "Write one of those that docs/sql.md lists"
    if inner is not None:
        return f"Compute {written(inner)} here and the rest in a projection after it"
    return "Wrap it in one, such as max(...)"


def _parsed(text: str, where: str) -> exp.Expr:
    try:
        return sqlglot.parse_one(text, read=StreamSql, into=exp.Condition)
    except sqlglot.errors.ParseError as error:
        found = error.errors[0] if error.errors else {}
        at = f"line {found['line']}, column {found['col']}" if found else "the start"
        token = found.get("highlight") or "nothing"
        raise ExpressionError(
            where, "a SQL expression", f"{text!r}, unreadable at {at}: {token!r}",
            f"The parser said: {found.get('description', 'no expression')}",
        ) from None  # fmt: skip
    except sqlglot.errors.TokenError:
        raise ExpressionError(
            where, "a SQL expression", repr(text), "Close the quote or comment that is open."
        ) from None


# Polars expressions: examined, because feedback needs to know what they read -----------------


def _examined(source: pl.Expr, schema: Schema, where: str) -> pl.Expr:
    if source.meta.has_multiple_outputs():
        raise ExpressionError(
            where, "an expression that names its columns", str(source),
            f"Replace the selector by pl.col(...) of {', '.join(schema.names)}.",
        )  # fmt: skip
    for name in source.meta.root_names():
        if name not in schema:
            raise SchemaError.unknown_attribute(where, name, schema.names)
    return source


def _refuse_unless_per_tuple(source: pl.Expr, schema: Schema, where: str) -> None:
    """Windows, aggregations, sorts and shifts see other tuples: pages would change them."""
    for node in _nodes(source, schema):
        try:
            separable = node.meta.is_row_separable()
            lengthy = node.meta.is_length_preserving() or not node.meta.root_names()
        except pl.exceptions.ColumnNotFoundError:
            continue  # a Python function is opaque, and taken at its word; its inputs are not
        if not (node.meta.is_literal() or (separable and lengthy)):
            raise ExpressionError(
                where, "an expression over one tuple at a time", str(node),
                "Aggregations belong in aggregate(...); windows over a stream need an operator.",
            )  # fmt: skip


def _nodes(source: pl.Expr, schema: Schema) -> Iterator[pl.Expr]:
    pending = [source]
    while pending:
        node = pending.pop()
        yield node
        pending.extend(node.meta.pop(schema=schema.polars))


def _refuse_unless_aggregated(source: pl.Expr, where: str) -> None:
    try:
        scalar_result = source.meta.is_scalar()
    except pl.exceptions.ColumnNotFoundError:
        return  # a Python function over the group, taken at its word
    if not scalar_result:
        raise ExpressionError(
            where, "an aggregation, one value per group", str(source),
            "End it in one, such as .max(), .last() or .implode().",
        )  # fmt: skip


def _carried(built: pl.Expr, schema: Schema, where: str, text: str) -> tuple[pl.Expr, pl.DataType]:
    """The value as a type a stream can carry: Spark has no unsigned integers or nanoseconds."""
    dtype = evaluated_type(built, schema, where, text)
    target = _CARRIERS.get(type(dtype), dtype)
    if isinstance(dtype, pl.Datetime):
        target = pl.Datetime("us", None if dtype.time_zone is None else "UTC")
    try:
        ddl_type(target)
    except SchemaError:
        raise SchemaError.wrong_type(where, text, "a type Spark has", str(dtype)) from None
    return (built if target == dtype else built.cast(target)), target


_CARRIERS: dict[type[pl.DataType], pl.DataType] = {
    pl.Null: pl.String(),
    pl.Categorical: pl.String(),
    pl.Enum: pl.String(),
    pl.UInt8: pl.Int16(),
    pl.UInt16: pl.Int32(),
    pl.UInt32: pl.Int64(),
    pl.UInt64: pl.Int64(),
}
