"""Patterns: one condition for each attribute of a schema, ``*`` where none is set.

>>> from interpunct.model.schema import Schema
>>> s = Schema.of("segment bigint, ts timestamp, speed double", time="ts")
>>> p = Pattern.parse("[3, ≤ '2008-12-08 09:00', *]", s)
>>> p.by_name()
"[segment=3, ts≤'2008-12-08 09:00']"
>>> p == Pattern.of(s, segment=3, ts=("≤", "2008-12-08 09:00"))
True
>>> p.implies(Pattern.of(s, segment={3, 4}))
True
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Any

import polars as pl

from interpunct.model import notation
from interpunct.model.comparisons import comparison
from interpunct.model.condition import ANY, Condition, NoneOf, OneOf, Range, Wildcard
from interpunct.model.errors import PatternError, SchemaError
from interpunct.model.masks import satisfying, where
from interpunct.model.schema import Attribute, Schema


@dataclass(frozen=True, init=False, eq=False, repr=False, slots=True)
class Pattern:
    """A conjunction of conditions, at most one for each attribute.

    Equal patterns ask the same, in the same words, of the same attributes; ``implies`` both ways
    says that two patterns match the same tuples.
    """

    schema: Schema
    conditions: tuple[tuple[str, Condition], ...]  # without wildcards, in the order of the schema

    def __init__(self, schema: Schema, conditions: Mapping[str, Condition]) -> None:
        for name in conditions:
            if name not in schema:
                raise SchemaError.unknown_attribute("pattern", name, schema.names)
        kept = (
            (a.name, _fitted(conditions[a.name], a))
            for a in schema.attributes
            if a.name in conditions
        )
        object.__setattr__(self, "schema", schema)
        object.__setattr__(
            self, "conditions", tuple((n, c) for n, c in kept if not isinstance(c, Wildcard))
        )

    @classmethod
    def of_fitted(cls, schema: Schema, conditions: Iterable[tuple[str, Condition]]) -> Pattern:
        """Without checks, for conditions known to be tidy, typed and in the schema's order."""
        self = object.__new__(cls)
        object.__setattr__(self, "schema", schema)
        object.__setattr__(self, "conditions", tuple(conditions))
        return self

    @classmethod
    def of(cls, schema: Schema, values: Mapping[str, Any] | None = None, /, **more: Any) -> Pattern:
        """Conditions by name: a value, a set of values, ``(op, value)`` or a Condition."""
        given = {**(values or {}), **more}
        return cls(schema, {name: _condition(value) for name, value in given.items()})

    @classmethod
    def wild(cls, schema: Schema) -> Pattern:
        """``[*, *, …]``: every tuple."""
        return cls.of_fitted(schema, ())

    @classmethod
    def parse(cls, text: str, schema: Schema) -> Pattern:
        return cls(schema, notation.parse(text, schema))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Pattern):
            return NotImplemented
        return self.conditions == other.conditions and _same_attributes(self.schema, other.schema)

    def __hash__(self) -> int:
        return hash(self.conditions)

    def __str__(self) -> str:
        return notation.by_position(self.schema, dict(self.conditions))

    def __repr__(self) -> str:
        return f"Pattern({self.by_name()})"

    def by_name(self) -> str:
        return notation.by_name(dict(self.conditions))

    def condition(self, name: str) -> Condition:
        """The condition on this attribute, ``*`` where none is set."""
        for known, condition in self.conditions:
            if known == name:
                return condition
        if name not in self.schema:
            raise SchemaError.unknown_attribute("pattern", name, self.schema.names)
        return ANY

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes with a condition."""
        return tuple(name for name, _ in self.conditions)

    @property
    def is_wild(self) -> bool:
        return not self.conditions

    @property
    def is_empty(self) -> bool:
        """Whether no tuple can match."""
        return any(condition.is_empty for _, condition in self.conditions)

    def restricted_to(self, names: Iterable[str]) -> Pattern:
        """Only the conditions on these attributes: matches what this does, and perhaps more."""
        wanted = set(names)
        for name in wanted:
            if name not in self.schema:
                raise SchemaError.unknown_attribute("pattern", name, self.schema.names)
        return self.of_fitted(self.schema, (c for c in self.conditions if c[0] in wanted))

    def expr(self) -> pl.Expr:
        """A Polars filter, never null; a literal for the wild pattern."""
        parts = [condition.expr(name) for name, condition in self.conditions]
        return reduce(and_, parts) if parts else pl.lit(True)

    def sql(self) -> str:
        """A Spark SQL filter, never null."""
        return " AND ".join(c.sql(name) for name, c in self.conditions) or "TRUE"

    def mask(self, frame: pl.DataFrame) -> pl.Series:
        """For each tuple of the frame, whether it matches."""
        if self.is_wild:
            return pl.repeat(True, frame.height, dtype=pl.Boolean, eager=True)
        return reduce(and_, (satisfying(c, frame.get_column(n)) for n, c in self.conditions))

    def without(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The tuples of the frame that do not match."""
        matching = self.mask(frame)
        return where(frame, ~matching) if matching.any() else frame

    def matches_any(self, frame: pl.DataFrame) -> bool:
        return self.mask(frame).any()

    def intersect(self, other: Pattern) -> Pattern:
        """Exactly the tuples that match both."""
        self._check_same(other)
        mine, theirs = dict(self.conditions), dict(other.conditions)
        return self.of_fitted(
            self.schema,
            (
                (name, mine.get(name, ANY).intersect(theirs.get(name, ANY)))
                for name in self.schema.names
                if name in mine or name in theirs
            ),
        )

    def implies(self, other: Pattern) -> bool:
        """Whether every tuple that matches this also matches the other."""
        self._check_same(other)
        return self.is_empty or all(
            self.condition(name).implies(theirs) for name, theirs in other.conditions
        )

    def union(self, other: Pattern) -> Pattern | None:
        """Exactly the tuples that match either, or None where no pattern says just that."""
        if self.implies(other):
            return other
        if other.implies(self):
            return self
        names = {*self.names, *other.names}
        apart = [n for n in names if not _equivalent(self.condition(n), other.condition(n))]
        if len(apart) != 1:
            return None
        joined = self.condition(apart[0]).union(other.condition(apart[0]))
        if joined is None:
            return None
        return Pattern(self.schema, {**dict(self.conditions), apart[0]: joined})

    def _check_same(self, other: Pattern) -> None:
        if not _same_attributes(self.schema, other.schema):
            raise PatternError(
                "pattern", f"a pattern over {self.schema.ddl}", f"one over {other.schema.ddl}",
                "Rewrite it with an AttributeMap first.",
            )  # fmt: skip


def _same_attributes(one: Schema, other: Schema) -> bool:
    return one is other or one.attributes == other.attributes


def _equivalent(one: Condition, other: Condition) -> bool:
    return one == other or (one.implies(other) and other.implies(one))


def _condition(value: Any) -> Condition:
    match value:
        case Condition():
            return value
        case set() | frozenset() | list():
            return OneOf(value)
        case (str(op), right):
            return comparison(op, right)
    return OneOf((value,))


def _fitted(condition: Condition, attribute: Attribute) -> Condition:
    """The condition with its values as the attribute's column holds them, in its simplest kind."""

    def fit(value: Any) -> Any:
        return notation.canonical(value, attribute)

    def fit_range(r: Range) -> Range:
        return Range(fit(r.low), r.low_closed, fit(r.high), r.high_closed)

    match condition:
        case OneOf():
            return OneOf(map(fit, condition.values))
        case Range():
            return fit_range(condition).tidy()
        case NoneOf():
            return NoneOf(map(fit, condition.values), fit_range(condition.within)).tidy()
    return condition
