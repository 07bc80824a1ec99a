"""Duplicate: the same stream several times. All outputs are identical, punctuations included.

Because they are identical, feedback affects all of them or none (Feedback section 4.1): a pattern
is acted upon once every output has been told to do without it.
"""

from __future__ import annotations

from interpunct.model.attribute_map import AttributeMap
from interpunct.model.feedback import Feedback, Intent
from interpunct.model.page import Page
from interpunct.model.pattern import Pattern
from interpunct.model.punctuation import Punctuation
from interpunct.operators.agreement import Agreement
from interpunct.operators.contract import Emission, Held, Operator, Stream
from interpunct.operators.responses import Response, at_input
from interpunct.operators.state import State

ALL = "once every output has said it"


class Duplicate(Operator):
    """One input, `copies` outputs."""

    def __init__(
        self, name: str, stream: Stream, copies: int = 2, state: State | None = None
    ) -> None:
        outputs = [stream] * copies
        super().__init__(name, [stream], outputs, AttributeMap.identity(stream.schema), state)
        self._agreement = Agreement(self.state, stream.schema, copies, "heard")

    def on_page(self, port: int, page: Page) -> Emission:
        del port
        out = Page(self.output, page.frame)
        return Emission([(copy, out) for copy in range(len(self.outputs))])

    def on_punctuation(self, port: int, punctuation: Punctuation) -> Emission:
        del port
        self._agreement.expire(punctuation)
        out = Page(self.output, self.output.empty(), (punctuation,))
        return Emission([(copy, out) for copy in range(len(self.outputs))])

    def characterise(self, pattern: Pattern, port: int) -> Response:
        """Once all outputs have said it; until then nothing."""
        del port
        return at_input("¬[…]", {0: pattern}, when=ALL)

    def on_feedback(self, feedback: Feedback, port: int = 0) -> Emission:
        if feedback.intent is not Intent.ASSUMED:
            return super().on_feedback(feedback, port)
        emission = self._alone(feedback.pattern, port)
        for agreed in self._agreement.hear(port, feedback):
            emission.extend(self._exploit(at_input("¬[…]", {0: agreed.pattern})))
        return emission

    def _alone(self, pattern: Pattern, port: int) -> Emission:
        """What can be done for one output whatever the others want: here nothing."""
        del pattern, port
        return Emission()

    def _held(self) -> Held:
        return Held(guards=len(self._agreement))

    def _save(self) -> None:
        self._agreement.save()
