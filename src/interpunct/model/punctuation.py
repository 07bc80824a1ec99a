"""Punctuation: a pattern that no later tuple of the stream matches (Punctuate section 2)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from interpunct.model.condition import EMPTY, NOT_NULL, Condition, Range
from interpunct.model.pattern import Pattern
from interpunct.model.schema import END_OF_TIME, Schema, to_ticks

_LAST_TICK = to_ticks(datetime.max)


@dataclass(frozen=True, slots=True)
class Punctuation:
    """A promise: no later tuple matches the pattern.

    >>> s = Schema.of("segment bigint, seq bigint", time="seq")
    >>> str(Punctuation.heartbeat(s, 40))
    '[*, ≤ 40]'
    """

    pattern: Pattern

    @classmethod
    def heartbeat(cls, schema: Schema, ticks: int) -> Punctuation:
        """``[time ≤ τ]``: no later tuple is stamped at or before this tick.

        At the end of time it covers every tuple that has a timestamp, ``[time ≠ null]``. A tick
        that no datetime reaches becomes the strongest promise below it.
        """
        condition: Condition
        if ticks >= END_OF_TIME:
            condition = NOT_NULL
        else:
            try:
                condition = Range(high=schema.value_of(ticks))
            except OverflowError:
                condition = EMPTY if ticks < 0 else Range(high=schema.value_of(_LAST_TICK))
        return cls(Pattern.of_fitted(schema, ((schema.ordered_by, condition),)))

    @classmethod
    def parse(cls, text: str, schema: Schema) -> Punctuation:
        return cls(Pattern.parse(text, schema))

    @property
    def schema(self) -> Schema:
        return self.pattern.schema

    @property
    def heartbeat_ticks(self) -> int | None:
        """The last tick it covers, if it bounds the time attribute from above and nothing else."""
        conditions = self.pattern.conditions
        if len(conditions) != 1 or conditions[0][0] != self.pattern.schema.time:
            return None
        bound = conditions[0][1]
        if not isinstance(bound, Range) or bound.low is not None:
            return None
        if bound.high is None:
            return END_OF_TIME
        return to_ticks(bound.high) - (not bound.high_closed)

    def implies(self, other: Punctuation) -> bool:
        """Whether the pattern matches no more than the other's, so that the other promises this."""
        return self.pattern.implies(other.pattern)

    def __str__(self) -> str:
        return str(self.pattern)
