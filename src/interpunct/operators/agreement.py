"""Agreement: a stream with several readers may do without only what all of them do without.

DUPLICATE's outputs are identical by definition, so that exploiting feedback affects all of them or
none (Feedback section 4.1); the same holds of any output that several operators read.
"""

from __future__ import annotations

from interpunct.model.feedback import Feedback, Intent
from interpunct.model.punctuation import Punctuation
from interpunct.model.schema import START_OF_TIME, Schema
from interpunct.operators.promises import PromiseBook
from interpunct.operators.state import State


class Agreement:
    """What each reader has assumed away, and what all have."""

    def __init__(self, state: State, schema: Schema, readers: int, key: str) -> None:
        self._book = PromiseBook(state, schema, readers, key)

    def __len__(self) -> int:
        return len(self._book)

    def hear(self, reader: int, feedback: Feedback) -> list[Feedback]:
        """One reader says this; returns what, because of it, all say now.

        Only assumed feedback needs them all: a wish harms nobody.
        """
        if feedback.intent is not Intent.ASSUMED:
            return [feedback]
        self._book.add(reader, feedback.pattern)
        agreed = self._book.settle([], START_OF_TIME)
        return [Feedback(Intent.ASSUMED, p.pattern) for p in agreed]

    def expire(self, punctuation: Punctuation) -> None:
        """The stream promises this: what was said of it need not be remembered."""
        heartbeat = punctuation.heartbeat_ticks
        if heartbeat is not None and self._book:
            self._book.settle([], heartbeat)

    def save(self) -> None:
        self._book.save()
