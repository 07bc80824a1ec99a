"""Thrifty join: tells one input what cannot meet anything on the other (Feedback section 3.3).

    vehicles   ━━ window 3: ● ● ━━ window 4:     ━━ ┃all of window 4 seen┃
    sensors    ◀────── ¬[window 4] ──────

Once an input has promised to be complete up to some time, a tuple of another input that finds no
partner there never will. With one join key the feedback is as fine as the key: ¬[key ∉ {…}] for
the keys that are there. In a left join a left tuple is a result by itself, so only the right
inputs are told.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from interpunct.model.condition import ANY, Condition, NoneOf
from interpunct.model.feedback import Feedback, Intent
from interpunct.model.page import Page
from interpunct.model.pattern import Pattern
from interpunct.model.schema import START_OF_TIME
from interpunct.model.ticks import within
from interpunct.operators.contract import Stream
from interpunct.operators.join import JoinSpec, WindowJoin
from interpunct.operators.state import Record, State

MOST_KEYS = 256  # keys that are there before the feedback would be longer than it is worth


class ThriftyJoin(WindowJoin):
    """A window join that sends assumed feedback for empty windows."""

    def __init__(
        self, name: str, inputs: Sequence[Stream], spec: JoinSpec, state: State | None = None
    ) -> None:
        super().__init__(name, inputs, spec, state)
        start = [[START_OF_TIME] * len(inputs) for _ in inputs]
        self._told = Record(self.state, "thrifty", {"upto": start})

    def produce(self, port: int, page: Page | None) -> list[tuple[int, Feedback]]:
        told = super().produce(port, page)
        for other in range(len(self.inputs)):
            if other != port and not (self.spec.how == "left" and other == 0):
                told += self._useless(port, other)
        return told

    def _useless(self, port: int, other: int) -> list[tuple[int, Feedback]]:
        """What of `other` meets nothing on `port`, as far as that is known by now.

        A tuple of `other` stamped t meets those of `port` stamped from t − windows[port] to
        t + windows[other]. It is worked out a window at a time, so that a tuple is looked at a
        few times at most.
        """
        mine, theirs = self.spec.windows[port], self.spec.windows[other]
        upto = self._tsm.sure_of(port) - theirs
        before: int = self._told["upto"][port][other]
        since = max(before, self._tsm.sure_of(other))
        if self._tsm.sure_of(port) <= START_OF_TIME or upto - since < max(mine, theirs, 1):
            return []
        self._told["upto"] = _replaced(self._told["upto"], port, other, upto)
        there = self._stamped_above(port, since - mine)
        keys = self._absent(there)
        if keys is None:
            return []
        schema = self.inputs[other].schema
        first = None if since <= START_OF_TIME else since + 1
        conditions = {**keys, schema.ordered_by: within(schema, first, upto)}
        return [(other, Feedback(Intent.ASSUMED, Pattern(schema, conditions)))]

    def _stamped_above(self, port: int, ticks: int) -> list[pl.DataFrame]:
        """The stored and the waiting tuples of an input after some time."""
        stored, waiting = self._windows[port].all(), self._tsm.waiting[port].all()
        late = self.inputs[port].schema.ticks_expr() > ticks
        return [stored.filter(pl.col(self._shape.tick(port)) > ticks), waiting.filter(late)]

    def _absent(self, there: list[pl.DataFrame]) -> dict[str, Condition] | None:
        """The condition for keys that are not there; None if it cannot be said in a few words."""
        if not any(frame.height for frame in there):
            return dict.fromkeys(self.spec.keys, ANY)
        if len(self.spec.keys) != 1:
            return None
        (key,) = self.spec.keys
        present = pl.concat(frame.get_column(key) for frame in there).unique()
        return {key: NoneOf(present.to_list())} if present.len() <= MOST_KEYS else None

    def _save(self) -> None:
        super()._save()
        self._told.save()


def _replaced(rows: list[list[int]], port: int, other: int, ticks: int) -> list[list[int]]:
    """A copy with one entry changed: a record notices only what is put into it."""
    copy = [list(row) for row in rows]
    copy[port][other] = ticks
    return copy
