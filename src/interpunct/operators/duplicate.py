"""Duplicate: the same stream several times. All outputs are identical, punctuations included."""

from __future__ import annotations

from interpunct.model.attribute_map import AttributeMap
from interpunct.model.page import Page
from interpunct.model.punctuation import Punctuation
from interpunct.operators.contract import Emission, Operator, Stream
from interpunct.operators.state import State


class Duplicate(Operator):
    """One input, `copies` outputs."""

    def __init__(
        self, name: str, stream: Stream, copies: int = 2, state: State | None = None
    ) -> None:
        outputs = [stream] * copies
        super().__init__(name, [stream], outputs, AttributeMap.identity(stream.schema), state)

    def on_page(self, port: int, page: Page) -> Emission:
        del port
        out = Page(self.output, page.frame)
        return Emission([(copy, out) for copy in range(len(self.outputs))])

    def on_punctuation(self, port: int, punctuation: Punctuation) -> Emission:
        del port
        out = Page(self.output, self.output.empty(), (punctuation,))
        return Emission([(copy, out) for copy in range(len(self.outputs))])
