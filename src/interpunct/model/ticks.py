"""Conditions on a time attribute as whole ticks, and back.

>>> from interpunct.model.schema import Schema
>>> s = Schema.of("seq bigint, v double", time="seq")
>>> stretch(Range(low=3, low_closed=False, high=9))
(4, 9)
>>> within(s, 4, None)
Range(low=4, low_closed=True, high=None, high_closed=True)
"""

from __future__ import annotations

from interpunct.model.condition import EMPTY, Condition, OneOf, Range
from interpunct.model.schema import Schema, to_ticks

Ticks = tuple[int | None, int | None]  # the first and the last, None where there is no end


def stretch(condition: Condition) -> Ticks | None:
    """The ticks that a condition on a time attribute allows, if they are one stretch."""
    if isinstance(condition, OneOf) and len(condition.values) == 1 and not condition.nulls:
        (value,) = condition.values
        return to_ticks(value), to_ticks(value)
    if not isinstance(condition, Range):
        return None
    low, high = condition.low, condition.high
    return (
        None if low is None else to_ticks(low) + (not condition.low_closed),
        None if high is None else to_ticks(high) - (not condition.high_closed),
    )


def within(schema: Schema, low: int | None, high: int | None) -> Condition:
    """The condition on the time attribute that allows these ticks."""
    first, last = schema.time_range
    if (low is not None and (low > last or (high is not None and low > high))) or (
        high is not None and high < first
    ):
        return EMPTY
    low = None if low is None or low <= first else low
    high = None if high is None or high >= last else high
    values = (None if tick is None else schema.value_of(tick) for tick in (low, high))
    start, end = values
    return Range(low=start, high=end).tidy()
