"""Sink: where tuples leave. Punctuation stops here; it was only needed inside (ETS section 3)."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from interpunct.model.attribute_map import AttributeMap
from interpunct.model.page import Page
from interpunct.model.pattern import Pattern
from interpunct.model.punctuation import Punctuation
from interpunct.model.schema import START_OF_TIME
from interpunct.operators.contract import Emission, Operator, Stream
from interpunct.operators.responses import Response, at_input
from interpunct.operators.state import Record, State


class Sink(Operator):
    """Hands every frame to `deliver`, and remembers how far time has come."""

    def __init__(
        self,
        name: str,
        stream: Stream,
        deliver: Callable[[pl.DataFrame], None],
        state: State | None = None,
    ) -> None:
        super().__init__(name, [stream], [], AttributeMap.identity(stream.schema), state)
        self._deliver = deliver
        self._record = Record(self.state, "sink", {"reached": START_OF_TIME, "delivered": 0})

    @property
    def reached(self) -> int:
        """The greatest heartbeat seen: nothing at or below it will be delivered any more."""
        reached: int = self._record["reached"]
        return reached

    def on_page(self, port: int, page: Page) -> Emission:
        del port
        self._record["delivered"] += page.height
        self._deliver(page.frame)
        return Emission()

    def on_punctuation(self, port: int, punctuation: Punctuation) -> Emission:
        del port
        heartbeat = punctuation.heartbeat_ticks
        if heartbeat is not None:
            self._record["reached"] = max(self._record["reached"], heartbeat)
        return Emission()

    def characterise(self, pattern: Pattern, port: int) -> Response:
        """What a reader no longer wants is not delivered, and those upstream are told."""
        del port
        return at_input("¬[…]", {0: pattern})

    def _save(self) -> None:
        self._record.save()
