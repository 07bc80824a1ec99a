"""Feedback: a pattern with an intent, sent upstream (Feedback section 3).

>>> s = Schema.of("segment bigint, speed double")
>>> str(Feedback.parse("~[segment not in {3, 4}]", s))
'¬[∉ {3, 4}, *]'
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from interpunct.model import notation
from interpunct.model.errors import PatternError
from interpunct.model.pattern import Pattern
from interpunct.model.schema import Schema


class Intent(Enum):
    """What the sender says of the tuples that match."""

    ASSUMED = "¬"  # I act as if they did not exist
    DESIRED = "?"  # I would like them first
    DEMANDED = "!"  # I need them now, as they are


_PREFIX = re.compile(r"\s*(?:(?P<assumed>¬|~|not\b)|(?P<desired>\?)|(?P<demanded>!))", re.I)


@dataclass(frozen=True, slots=True)
class Feedback:
    """An intent about every tuple that matches the pattern."""

    intent: Intent
    pattern: Pattern

    @classmethod
    def parse(cls, text: str, schema: Schema) -> Feedback:
        """``¬[…]`` (also ``~[…]``, ``not […]``), ``?[…]`` or ``![…]``."""
        found = _PREFIX.match(text)
        if found is None:
            raise PatternError(
                "feedback text, column 1", "an intent, one of ~ (or ¬), ? and !", repr(text),
                f"Put one before the pattern, in brackets: ~[{text.strip('[] ')}]",
            )  # fmt: skip
        intent = Intent[str(found.lastgroup).upper()]
        return cls(intent, Pattern(schema, notation.parse(text, schema, found.end())))

    @property
    def schema(self) -> Schema:
        return self.pattern.schema

    def __str__(self) -> str:
        return f"{self.intent.value}{self.pattern}"
