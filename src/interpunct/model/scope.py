"""What a builder of SQL may ask: terms of its operands, of the kinds and types it needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import polars as pl
from sqlglot import exp

from interpunct.model.conversions import DEFAULTS, common, convert, kind
from interpunct.model.dialect import written
from interpunct.model.errors import ExpressionError, SchemaError
from interpunct.model.nearest import nearest
from interpunct.model.schema import Attribute, Schema, coerce, ddl_type

# The arguments of syntax nodes that builders read, or that change nothing here.
UNDERSTOOD = {
    "this", "expression", "expressions", "negate", "low", "high", "ifs", "default", "true", "false",
    "to", "start", "length", "decimals", "position", "unit", "format", "quantile", "table",
    "typed", "safe", "coalesce", "ignore_nulls", "big_int", "nulls_excluded", "is_string",
    "accuracy", "group", "replacement", "null_if_pos_overflow", "delimiter", "part_index", "offset",
    "substr", "times", "fill_pattern", "is_left", "count", "from_", "flatten",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Term:
    """A built node: its Polars expression and the type that has under the schema."""

    node: exp.Expr
    polars: pl.Expr
    dtype: pl.DataType

    @property
    def kind(self) -> str:
        return kind(self.dtype)


@dataclass(frozen=True)
class Scope:
    """The schema an expression is read under, where it stands, and the table of builders."""

    schema: Schema
    where: str
    table: Mapping[type[exp.Expr], Builder]

    def term(self, node: exp.Expr) -> Term:
        builder = self.table.get(type(node))
        if builder is None:
            raise self.unsupported(node)
        self.require_understood(node)
        built = self.negated(node, builder(self, node))
        return Term(node, built, evaluated_type(built, self.schema, self.where, written(node)))

    def require_understood(self, node: exp.Expr) -> None:
        """Refuse a clause that no builder reads, rather than pass over it."""
        if any(value for name, value in node.args.items() if name not in UNDERSTOOD):
            raise self.unsupported(node)

    @staticmethod
    def negated(node: exp.Expr, built: pl.Expr) -> pl.Expr:
        """Some operators carry their NOT inside: ``s NOT LIKE 'a%'``."""
        return ~built if node.args.get("negate") else built

    def of(self, node: exp.Expr, expected: str) -> pl.Expr:
        """An operand of one kind; a null is of every kind, and text is read as a time."""
        term = self.term(node)
        if term.kind == expected:
            return term.polars
        if term.kind == "null" or (term.kind, expected) == ("string", "time"):
            return self.cast(term, DEFAULTS[expected])
        raise self.wrong_type(node, f"a {expected}", [term])

    def whole(self, node: exp.Expr) -> pl.Expr:
        """An operand that counts, as a bigint."""
        term = self.term(node)
        if term.dtype.is_integer() or term.kind == "null":
            return self.cast(term, pl.Int64())
        raise self.wrong_type(node, "a whole number", [term])

    def numbers(self, node: exp.Binary) -> list[Term]:
        """Both operands, numbers of the type they share."""
        terms = self.alike(node, node.this, node.expression)
        if terms[0].kind not in ("number", "null"):
            raise self.wrong_type(node, "numbers", terms)
        return terms

    def alike(self, parent: exp.Expr, *nodes: exp.Expr) -> list[Term]:
        """Operands brought to the one type they share."""
        terms = [self.term(n) for n in nodes]
        if any(isinstance(t.dtype, pl.Decimal) for t in terms):
            terms = [exact(t) for t in terms]
        shared = common([t.dtype for t in terms])
        if shared is None:
            raise self.wrong_type(parent, "operands of one type", terms)
        return [Term(t.node, self.cast(t, shared), shared) for t in terms]

    def cast(self, term: Term, target: pl.DataType) -> pl.Expr:
        """The term as another type; a time written as a literal must be one."""
        if kind(target) == "time" and isinstance(term.node, exp.Literal) and term.node.is_string:
            attribute = Attribute(written(term.node), ddl_type(target), target)
            return pl.lit(coerce(term.node.name, attribute, self.where), dtype=target)
        converted = convert(term.polars, term.dtype, target)
        if converted is None:
            raise self.wrong_type(term.node, f"something that casts to {ddl_type(target)}", [term])
        return converted

    def constant(self, node: exp.Expr | None, parent: exp.Expr) -> str:
        """The text of an operand that must be a literal."""
        if not isinstance(node, exp.Literal | exp.RawString):
            raise ExpressionError(
                self.where, "a literal", written(parent),
                "Only literals are supported there; use a Polars expression for more.",
            )  # fmt: skip
        return node.name

    def unsupported(self, node: exp.Expr) -> ExpressionError:
        if isinstance(node, exp.AggFunc):
            return ExpressionError(
                self.where, "an expression over one tuple", f"the aggregate {written(node)}",
                "Aggregates belong in aggregate(...).",
            )  # fmt: skip
        text, meant = written(node), None
        what = repr(text)
        if isinstance(node, exp.Anonymous):  # a function that sqlglot knows may well be meant
            what, meant = f"{node.name.lower()} in {text!r}", nearest(node.name, self._functions())
        elif isinstance(node, exp.Func):  # as it is called in SQL
            name = text.partition("(")[0].lower()
            if name == "cast" and not isinstance(node, exp.Cast):  # which Spark would be told
                name = node.sql_name().lower()
            known = type(node) in self.table
            what = f"{name} with such arguments, {text!r}" if known else f"{name} in {text!r}"
        read = next((c.name for c in node.find_all(exp.Column)), self.schema.names[0])
        return ExpressionError.unsupported(self.where, what, read, meant)

    def _functions(self) -> list[str]:
        """The names of the functions that the table builds, as sqlglot knows them."""
        known = (kind for kind in self.table if issubclass(kind, exp.Func))
        named = (kind for kind in known if not issubclass(kind, exp.Anonymous))
        return [name.lower() for kind in named for name in kind.sql_names()]

    def wrong_type(self, node: exp.Expr, expected: str, terms: list[Term]) -> SchemaError:
        got = " and ".join(type_name(t.dtype) for t in terms)
        return SchemaError.wrong_type(self.where, written(node), expected, got)


def evaluated_type(built: pl.Expr, schema: Schema, where: str, text: str) -> pl.DataType:
    """The type Polars gives an expression, found by evaluating it on no tuples."""
    try:
        return schema.empty().select(built.alias("value")).to_series().dtype
    except pl.exceptions.PolarsError as error:
        reason = str(error).splitlines()[0]
        raise SchemaError.wrong_type(where, text, "operands that fit", reason) from None


def type_name(dtype: pl.DataType) -> str:
    return "interval" if isinstance(dtype, pl.Duration) else ddl_type(dtype)


def exact(term: Term) -> Term:
    """A fractional literal beside a decimal is a decimal; with an exponent, 1e3, it stays a
    double, as in Spark."""
    sign, node = ("-", term.node.this) if isinstance(term.node, exp.Neg) else ("", term.node)
    if not isinstance(node, exp.Literal) or node.is_string or not term.dtype.is_float():
        return term
    if "e" in node.name.lower():
        return term
    value = Decimal(sign + node.name)
    scale = max(0, -int(value.as_tuple().exponent))
    dtype = pl.Decimal(max(scale, len(value.as_tuple().digits)), scale)
    return Term(term.node, pl.lit(value, dtype=dtype), dtype)


Builder = Callable[[Scope, Any], pl.Expr]
