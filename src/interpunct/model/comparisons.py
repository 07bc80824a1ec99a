"""Conditions as they are written: an operator and what stands to its right.

>>> comparison("≤", 5) == at_most(5)
True
>>> between(0, 10, "[)")
Range(low=0, low_closed=True, high=10, high_closed=False)
"""

from __future__ import annotations

from typing import Any

from interpunct.model.condition import Condition, NoneOf, OneOf, Range
from interpunct.model.errors import PatternError


def constant(value: Any) -> OneOf:
    return OneOf((value,))


def one_of(*values: Any) -> OneOf:
    return OneOf(values)


def none_of(*values: Any) -> Condition:
    return NoneOf(values).tidy()


def at_most(value: Any) -> Range:
    return Range(high=value)


def below(value: Any) -> Range:
    return Range(high=value, high_closed=False)


def at_least(value: Any) -> Range:
    return Range(low=value)


def above(value: Any) -> Range:
    return Range(low=value, low_closed=False)


def between(low: Any, high: Any, closed: str = "[]") -> Condition:
    """A range by its brackets, e.g. ``between(0, 10, "[)")``."""
    return Range(low, closed[0] == "[", high, closed[1] == "]").tidy()


_COMPARISONS = {
    "=": constant, "==": constant, "≠": none_of, "!=": none_of, "<>": none_of,
    "<": below, "≤": at_most, "<=": at_most, ">": above, "≥": at_least, ">=": at_least,
}  # fmt: skip
_MEMBERSHIPS = {"∈": one_of, "in": one_of, "∉": none_of, "not in": none_of}
COMPARISONS = tuple(_COMPARISONS)


def comparison(op: str, value: Any) -> Condition:
    """The condition that an operator and its right side stand for, e.g. ``("≤", 5)``."""
    if op in _MEMBERSHIPS:
        return _MEMBERSHIPS[op](*value)
    known = ", ".join((*_COMPARISONS, *_MEMBERSHIPS))
    if op not in _COMPARISONS:
        raise PatternError("condition", f"one of the operators {known}", repr(op), "Use one.")
    if value is None and op not in ("=", "==", "≠", "!=", "<>"):
        raise PatternError(
            "condition", f"a value after {op}", "null", "Nothing is above or below null."
        )
    return _COMPARISONS[op](value)
