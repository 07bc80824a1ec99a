"""A stream about which somebody who knows says more than could be inferred.

    logs.declare(keyed=True, insert_only=False)      →  R3 instead of R4

Properties "might be stipulated by input sources" (LMerge section III-A). Tuples and punctuations
pass unchanged; a merge that is told of an order quarantines the input that breaks it.
"""

from __future__ import annotations

from interpunct.model.attribute_map import AttributeMap
from interpunct.model.page import Page
from interpunct.model.pattern import Pattern
from interpunct.model.properties import Properties
from interpunct.model.punctuation import Punctuation
from interpunct.operators.contract import Emission, Operator, Stream
from interpunct.operators.responses import Response, at_input
from interpunct.operators.state import State


class Declared(Operator):
    """The same stream with other properties."""

    def __init__(
        self, name: str, stream: Stream, properties: Properties, state: State | None = None
    ) -> None:
        schema = stream.schema
        output = Stream(schema, properties)
        super().__init__(name, [stream], [output], AttributeMap.identity(schema), state)

    def on_page(self, port: int, page: Page) -> Emission:
        del port
        return self.tuples(page.frame, stamp=page.stamp)

    def on_punctuation(self, port: int, punctuation: Punctuation) -> Emission:
        del port
        return self.promise(punctuation)

    def characterise(self, pattern: Pattern, port: int) -> Response:
        del port
        return at_input("¬[…]", {0: pattern})
