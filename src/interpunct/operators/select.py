"""Select: keep the tuples for which a condition is true (null counts as false).

>>> from interpunct.model.expression import predicate
>>> from interpunct.model.page import Page
>>> from interpunct.model.schema import Schema
>>> s = Schema.of("ts bigint, speed double", time="ts")
>>> keep = Select("slow", Stream(s), predicate("speed < 45", s, "where"))
>>> keep.accept(0, Page.of_rows(s, [(1, 40.0), (2, 50.0)])).pages[0][1].frame["ts"].to_list()
[1]
"""

from __future__ import annotations

import polars as pl

from interpunct.model.attribute_map import AttributeMap
from interpunct.model.expression import Expression
from interpunct.model.masks import SMALL, where
from interpunct.model.page import Page
from interpunct.model.pattern import Pattern
from interpunct.model.punctuation import Punctuation
from interpunct.operators.contract import Emission, Operator, Stream
from interpunct.operators.responses import Response, at_input
from interpunct.operators.state import State


class Select(Operator):
    """A filter: every punctuation of its input holds of its output as well."""

    def __init__(
        self, name: str, stream: Stream, condition: Expression, state: State | None = None
    ) -> None:
        super().__init__(name, [stream], [stream], AttributeMap.identity(stream.schema), state)
        self._condition, self._pattern = condition.polars, condition.pattern

    def on_page(self, port: int, page: Page) -> Emission:
        del port
        return self.tuples(self._kept(page), stamp=page.stamp)

    def _kept(self, page: Page) -> pl.DataFrame:
        """The tuples that satisfy the condition; of a small page without a query plan."""
        if self._pattern is None or page.height > SMALL:
            return page.frame.filter(self._condition)
        return where(page.frame, self._pattern.mask(page.frame))

    def on_punctuation(self, port: int, punctuation: Punctuation) -> Emission:
        """Unchanged: the output has the attributes of the input."""
        del port
        return self.promise(punctuation)

    def characterise(self, pattern: Pattern, port: int) -> Response:
        """Assumed feedback is one more condition (Feedback section 4.3)."""
        del port
        return at_input("¬[…]", {0: pattern})
