"""Split: disjoint streams from one (Feedback Example 3: clean and dirty).

Each tuple goes to the first output whose condition is true, and to the last output, the rest,
when none is. Every punctuation goes to all of them. Feedback about one output concerns the tuples
that go there: they are kept from it, and what every output does without is not taken in at all.
"""

from __future__ import annotations

from collections.abc import Sequence

from interpunct.model.attribute_map import AttributeMap
from interpunct.model.expression import Expression
from interpunct.model.page import Page
from interpunct.model.pattern import Pattern
from interpunct.operators.contract import Emission, Stream
from interpunct.operators.duplicate import Duplicate
from interpunct.operators.responses import Response, at_output
from interpunct.operators.state import State


class Split(Duplicate):
    """One input, one output per condition and one for the rest."""

    def __init__(
        self,
        name: str,
        stream: Stream,
        conditions: Sequence[Expression],
        state: State | None = None,
    ) -> None:
        super().__init__(name, stream, len(conditions) + 1, state)
        self.attributes = AttributeMap.identity(stream.schema)
        self._conditions = [c.polars for c in conditions]

    def on_page(self, port: int, page: Page) -> Emission:
        del port
        emission = Emission()
        rest = page.frame
        for output, condition in enumerate(self._conditions):
            chosen = rest.select(condition.alias("chosen")).to_series()
            emission.extend(self.tuples(rest.filter(chosen), output))
            rest = rest.filter(~chosen)
        emission.extend(self.tuples(rest, len(self._conditions)))
        return emission

    def characterise(self, pattern: Pattern, port: int) -> Response:
        return at_output("¬[…] from one output", pattern, port)

    def _alone(self, pattern: Pattern, port: int) -> Emission:
        return self._exploit(self.characterise(pattern, port))
