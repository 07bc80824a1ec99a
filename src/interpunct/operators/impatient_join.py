"""Impatient join: asks for the partners of what it has (Feedback section 3.4).

    "I have vehicle data for segment 3 and period 7":     sensors ◀── ?[7, 3, *]

Desired feedback changes no result, only when it comes: whoever upstream can choose what to do
next does this first.
"""

from __future__ import annotations

from interpunct.model.condition import Condition, OneOf
from interpunct.model.feedback import Feedback, Intent
from interpunct.model.page import Page
from interpunct.model.pattern import Pattern
from interpunct.model.ticks import within
from interpunct.operators.join import WindowJoin

MOST_KEYS = 256  # values of a key in one wish; with more of them everything is wanted


class ImpatientJoin(WindowJoin):
    """A window join that sends desired feedback for what its tuples are waiting to meet."""

    def produce(self, port: int, page: Page | None) -> list[tuple[int, Feedback]]:
        told = super().produce(port, page)
        if page is None or not page.height:
            return told
        ticks = self.inputs[port].schema.ticks(page.frame)
        first, last = int(ticks.min()), int(ticks.max())  # type: ignore[arg-type]
        wanted = self._keys(page)
        for other, stream in enumerate(self.inputs):
            upto = last + self.spec.windows[port]
            if other == port or self._tsm.sure_of(other) >= upto:
                continue  # nothing more of it can be a partner
            time = within(stream.schema, first - self.spec.windows[other], upto)
            conditions = {**wanted, stream.schema.ordered_by: time}
            told.append((other, Feedback(Intent.DESIRED, Pattern(stream.schema, conditions))))
        return told

    def _keys(self, page: Page) -> dict[str, Condition]:
        """The join keys of the page, each by itself: a wish may be wider than what is wanted."""
        found: dict[str, Condition] = {}
        for key in self.spec.keys:
            values = page.frame.get_column(key).drop_nulls().unique()
            if 0 < values.len() <= MOST_KEYS:
                found[key] = OneOf(values.to_list())
        return found
