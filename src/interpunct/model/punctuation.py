"""Punctuation: a pattern that no later tuple of the stream matches (Punctuate section 2)."""

from __future__ import annotations

from datetime import datetime

from interpunct.model.condition import EMPTY, NOT_NULL, Condition, Range
from interpunct.model.pattern import Pattern
from interpunct.model.schema import END_OF_TIME, Schema, to_ticks

_FIRST_TICK = to_ticks(datetime.min)
_LAST_TICK = to_ticks(datetime.max)


class Punctuation:
    """A promise: no later tuple matches the pattern.

    A heartbeat is kept as its tick, and its pattern is made when someone asks for it: most
    heartbeats only ever move registers.

    >>> s = Schema.of("segment bigint, seq bigint", time="seq")
    >>> str(Punctuation.heartbeat(s, 40))
    '[*, ≤ 40]'
    """

    __slots__ = ("_pattern", "_schema", "_ticks")

    _pattern: Pattern | None
    _schema: Schema
    _ticks: int | None

    def __init__(self, pattern: Pattern) -> None:
        self._pattern, self._schema = pattern, pattern.schema
        self._ticks = _ticks_of(pattern)

    @classmethod
    def heartbeat(cls, schema: Schema, ticks: int) -> Punctuation:
        """``[time ≤ τ]``: no later tuple is stamped at or before this tick.

        At the end of time it covers every tuple that has a timestamp, ``[time ≠ null]``. A tick
        that no datetime reaches becomes the strongest promise below it.
        """
        if not (_FIRST_TICK <= ticks <= _LAST_TICK or ticks >= END_OF_TIME):
            return cls(_at_or_before(schema, ticks))
        self = object.__new__(cls)
        self._pattern, self._schema, self._ticks = None, schema, min(ticks, END_OF_TIME)
        return self

    @classmethod
    def parse(cls, text: str, schema: Schema) -> Punctuation:
        return cls(Pattern.parse(text, schema))

    @property
    def pattern(self) -> Pattern:
        if self._pattern is None:
            assert self._ticks is not None
            self._pattern = _at_or_before(self._schema, self._ticks)
        return self._pattern

    @property
    def schema(self) -> Schema:
        return self._schema

    @property
    def heartbeat_ticks(self) -> int | None:
        """The last tick it covers, if it bounds the time attribute from above and nothing else."""
        return self._ticks

    def implies(self, other: Punctuation) -> bool:
        """Whether the pattern matches no more than the other's, so that the other promises this."""
        if self._ticks is not None and other._ticks is not None and self._schema is other._schema:
            return self._ticks <= other._ticks
        return self.pattern.implies(other.pattern)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Punctuation) and self.pattern == other.pattern

    def __hash__(self) -> int:
        return hash(self.pattern)

    def __reduce__(self) -> tuple[type[Punctuation], tuple[Pattern]]:
        return Punctuation, (self.pattern,)

    def __repr__(self) -> str:
        return f"Punctuation({self.pattern!r})"

    def __str__(self) -> str:
        return str(self.pattern)


def _at_or_before(schema: Schema, ticks: int) -> Pattern:
    """``[time ≤ τ]``, at the end of time ``[time ≠ null]``."""
    condition: Condition
    if ticks >= END_OF_TIME:
        condition = NOT_NULL
    else:
        try:
            condition = Range(high=schema.value_of(ticks))
        except OverflowError:
            condition = EMPTY if ticks < 0 else Range(high=schema.value_of(_LAST_TICK))
    return Pattern.of_fitted(schema, ((schema.ordered_by, condition),))


def _ticks_of(pattern: Pattern) -> int | None:
    """The last tick of a pattern that bounds the time attribute from above and nothing else."""
    conditions = pattern.conditions
    if len(conditions) != 1 or conditions[0][0] != pattern.schema.time:
        return None
    bound = conditions[0][1]
    if not isinstance(bound, Range) or bound.low is not None:
        return None
    if bound.high is None:
        return END_OF_TIME
    return to_ticks(bound.high) - (not bound.high_closed)
