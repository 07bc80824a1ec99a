"""What a pattern asks of one attribute: anything, a range, one of some values, none of some values.

The kinds are closed under intersection, and implication is decided exactly. What the notation
leaves open is fixed here, the same way for Polars and for Spark:

- null is matched only by ``*`` and by an explicit null: ``≠ 3`` and ``≤ 5`` never match it;
- NaN equals NaN and is greater than every number, so ``≥ 50`` matches it; -0.0 equals 0.0;
- integers, dates and timestamps are discrete: ``< 5`` is ``≤ 4``, and ``(3, 4)`` is empty.

>>> from interpunct.model.comparisons import at_least, at_most, none_of
>>> at_most(4).union(at_least(5)) == NOT_NULL
True
>>> at_most(9).intersect(none_of(3, 12))
NoneOf(values=frozenset({3}), within=Range(low=None, low_closed=True, high=9, high_closed=True))
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import and_
from typing import Any, TypeVar

import polars as pl

from interpunct.model.values import (
    BOTTOM,
    EVERYTHING,
    TOP,
    Cut,
    Span,
    after,
    before,
    in_order,
    merged,
    plain,
    quoted,
    sql_literal,
)

Column = TypeVar("Column", pl.Expr, pl.Series)


class Condition(ABC):
    """What one attribute must satisfy. Immutable and hashable."""

    @property
    @abstractmethod
    def nulls(self) -> bool:
        """Whether null matches."""

    @cached_property
    def _spans(self) -> list[Span]:
        return self.spans()

    @abstractmethod
    def spans(self) -> list[Span]:
        """The non-null values that match: disjoint, in order, never touching."""

    @abstractmethod
    def expr(self, name: str) -> pl.Expr:
        """The condition on this column in Polars; never null. ``*`` gives a literal."""

    @abstractmethod
    def sql(self, name: str) -> str:
        """The condition on this column in Spark SQL; never null."""

    def tidy(self) -> Condition:
        """The same condition in its simplest kind, e.g. ``[5, 5]`` as the constant 5."""
        return self

    @property
    def is_empty(self) -> bool:
        return not self.nulls and not self._spans

    def admits(self, value: Any) -> bool:
        """Whether this value matches."""
        if value is None:
            return self.nulls
        place = before(plain(value))
        return any(low <= place < high for low, high in self._spans)

    def implies(self, other: Condition) -> bool:
        """Whether every value that matches this also matches the other."""
        if self is other or isinstance(other, Wildcard):
            return True
        if self.nulls and not other.nulls:
            return False
        theirs = other._spans
        return all(
            any(low <= mine[0] and mine[1] <= high for low, high in theirs) for mine in self._spans
        )

    def intersect(self, other: Condition) -> Condition:
        """Exactly the values that match both."""
        if isinstance(self, Wildcard):
            return other.tidy()
        if isinstance(other, Wildcard):
            return self.tidy()
        if isinstance(self, OneOf):
            return OneOf(v for v in self.values if other.admits(v))
        if isinstance(other, OneOf):
            return OneOf(v for v in other.values if self.admits(v))
        (mine, without), (theirs, without_too) = _range_part(self), _range_part(other)
        return NoneOf(without | without_too, mine.overlap(theirs)).tidy()

    def union(self, other: Condition) -> Condition | None:
        """Exactly the values that match either, or None where no condition says just that."""
        if self.implies(other):
            return other
        if other.implies(self):
            return self
        spans = merged([*self._spans, *other._spans])
        nulls = self.nulls or other.nulls
        if spans == EVERYTHING:
            return ANY if nulls else NOT_NULL
        if isinstance(self, OneOf) and isinstance(other, OneOf):
            return OneOf(self.values | other.values)
        if nulls:
            return None
        (mine, without), (theirs, without_too) = _range_part(self), _range_part(other)
        named = {*without, *without_too, mine.low, mine.high, theirs.low, theirs.high}
        gaps = (v for v in named if not self.admits(v) and not other.admits(v))
        candidate = NoneOf(gaps, mine.hull(theirs)).tidy()
        return candidate if candidate.spans() == spans else None


@dataclass(frozen=True)
class Wildcard(Condition):
    """``*``: every value, and null."""

    @property
    def nulls(self) -> bool:
        return True

    def spans(self) -> list[Span]:
        return list(EVERYTHING)

    def expr(self, name: str) -> pl.Expr:  # noqa: ARG002  (no column is read)
        return pl.lit(True)

    def sql(self, name: str) -> str:  # noqa: ARG002  (no column is read)
        return "TRUE"


@dataclass(frozen=True, eq=False)
class Range(Condition):
    """Non-null values between two bounds; None leaves a side open. Without bounds: ``≠ null``."""

    low: Any = None
    low_closed: bool = True
    high: Any = None
    high_closed: bool = True

    def __post_init__(self) -> None:
        if isinstance(self.low, float):
            object.__setattr__(self, "low", plain(self.low))
        if isinstance(self.high, float):
            object.__setattr__(self, "high", plain(self.high))
        # The end that is not there is closed, so that equal ranges compare equal.
        if self.low is None and not self.low_closed:
            object.__setattr__(self, "low_closed", True)
        if self.high is None and not self.high_closed:
            object.__setattr__(self, "high_closed", True)

    def _fields(self) -> tuple[Any, ...]:
        return self.low, self.low_closed, self.high, self.high_closed

    def __eq__(self, other: object) -> bool:
        # Tuples compare by identity first, so that a NaN bound equals itself.
        return isinstance(other, Range) and self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash(self._fields())

    def __reduce__(self) -> tuple[type[Range], tuple[Any, ...]]:
        # Through the constructor, so that a NaN from another process becomes ours.
        return Range, self._fields()

    @property
    def nulls(self) -> bool:
        return False

    @property
    def _low_cut(self) -> Cut:
        if self.low is None:
            return BOTTOM
        return before(self.low) if self.low_closed else after(self.low)

    @property
    def _high_cut(self) -> Cut:
        if self.high is None:
            return TOP
        return after(self.high) if self.high_closed else before(self.high)

    def spans(self) -> list[Span]:
        low, high = self._low_cut, self._high_cut
        return [(low, high)] if low < high else []

    def tidy(self) -> Condition:
        spans = self.spans()
        if not spans:
            return EMPTY
        for value in (self.low, self.high):
            if value is not None and spans == [(before(value), after(value))]:
                return OneOf((value,))
        return self

    def overlap(self, other: Range) -> Range:
        low = self if self._low_cut >= other._low_cut else other
        high = self if self._high_cut <= other._high_cut else other
        return Range(low.low, low.low_closed, high.high, high.high_closed)

    def hull(self, other: Range) -> Range:
        low = self if self._low_cut <= other._low_cut else other
        high = self if self._high_cut >= other._high_cut else other
        return Range(low.low, low.low_closed, high.high, high.high_closed)

    def expr(self, name: str) -> pl.Expr:
        parts = self.comparisons(pl.col(name))
        return reduce(and_, parts).fill_null(False) if parts else pl.col(name).is_not_null()

    def comparisons(self, column: Column) -> list[Column]:
        """What is to be true of a column, by name or with its values: one test for each bound."""
        parts = []
        if self.low is not None:
            parts.append(column >= self.low if self.low_closed else column > self.low)
        if self.high is not None:
            parts.append(column <= self.high if self.high_closed else column < self.high)
        return parts

    def sql(self, name: str) -> str:
        column = quoted(name)
        parts = [f"{column} IS NOT NULL"]
        if self.low is not None:
            parts.append(f"{column} {'>=' if self.low_closed else '>'} {sql_literal(self.low)}")
        if self.high is not None:
            parts.append(f"{column} {'<=' if self.high_closed else '<'} {sql_literal(self.high)}")
        return f"({' AND '.join(parts)})"


@dataclass(frozen=True, init=False)
class OneOf(Condition):
    """One of these values, null among them or not. One value is a constant; none, the empty set."""

    values: frozenset[Any]

    def __init__(self, values: Iterable[Any] = ()) -> None:
        object.__setattr__(self, "values", frozenset(map(plain, values)))

    def __reduce__(self) -> tuple[type[OneOf], tuple[Any, ...]]:
        return OneOf, (tuple(self.values),)

    @property
    def nulls(self) -> bool:
        return None in self.values

    @property
    def is_empty(self) -> bool:
        return not self.values

    @property
    def present(self) -> list[Any]:
        """The values that are not null, in order."""
        return in_order(self.values)

    def spans(self) -> list[Span]:
        return merged([(before(v), after(v)) for v in self.present])

    def expr(self, name: str) -> pl.Expr:
        column, present = pl.col(name), self.present
        if not present:
            return column.is_null() if self.nulls else column.is_null() & False
        found = column == present[0] if len(present) == 1 else column.is_in(present)
        return found.fill_null(self.nulls)

    def sql(self, name: str) -> str:
        column, present = quoted(name), self.present
        if not present:
            return f"({column} IS NULL)" if self.nulls else "FALSE"
        null = "IS NULL OR" if self.nulls else "IS NOT NULL AND"
        return f"({column} {null} {_sql_among(column, present)})"


@dataclass(frozen=True, init=False)
class NoneOf(Condition):
    """The non-null values of a range except these: ``≠ v``, ``∉ {…}``, ``[1, 9] ∧ ∉ {4, 5}``."""

    values: frozenset[Any]
    within: Range

    def __init__(self, values: Iterable[Any], within: Range | None = None) -> None:
        present = frozenset(plain(v) for v in values if v is not None)
        object.__setattr__(self, "values", present)
        object.__setattr__(self, "within", NOT_NULL if within is None else within)

    def __reduce__(self) -> tuple[type[NoneOf], tuple[Any, ...]]:
        return NoneOf, (tuple(self.values), self.within)

    @property
    def nulls(self) -> bool:
        return False

    def spans(self) -> list[Span]:
        result = []
        for start, end in self.within.spans():
            place = start
            for value in in_order(self.values):
                low, high = before(value), after(value)
                if place < low:
                    result.append((place, min(low, end)))
                place = max(place, high)
                if place >= end:
                    break
            if place < end:
                result.append((place, end))
        return result

    def tidy(self) -> Condition:
        if not self.spans():
            return EMPTY
        within = self.within
        values = [v for v in in_order(self.values) if within.admits(v)]
        # A value that stands at a bound moves the bound instead: [3, 5] without 5 is [3, 5).
        while values and within.low is not None and before(values[0]) == within._low_cut:
            within = replace(within, low=values.pop(0), low_closed=False)
        while values and within.high is not None and after(values[-1]) == within._high_cut:
            within = replace(within, high=values.pop(), high_closed=False)
        return NoneOf(values, within) if values else within.tidy()

    def expr(self, name: str) -> pl.Expr:
        return self.within.expr(name) & ~OneOf(self.values).expr(name)

    def sql(self, name: str) -> str:
        column = quoted(name)
        among = _sql_among(column, in_order(self.values)) if self.values else "FALSE"
        return f"({self.within.sql(name)} AND NOT ({among}))"


ANY = Wildcard()
EMPTY = OneOf()
NOT_NULL = Range()


def _range_part(condition: Condition) -> tuple[Range, frozenset[Any]]:
    """The least range around a condition without null, and the values it leaves out by name."""
    if isinstance(condition, Range):
        return condition, frozenset()
    if isinstance(condition, NoneOf):
        return condition.within, condition.values
    assert isinstance(condition, OneOf), condition
    return Range(condition.present[0], True, condition.present[-1], True), frozenset()


def _sql_among(column: str, present: list[Any]) -> str:
    # Spark's IN turns into a hash set for long lists, which tells -0.0 from 0.0; <=> does not.
    if len(present) == 1 or isinstance(present[0], float):
        return " OR ".join(f"{column} <=> {sql_literal(v)}" for v in present).join("()")
    return f"{column} IN ({', '.join(map(sql_literal, present))})"
