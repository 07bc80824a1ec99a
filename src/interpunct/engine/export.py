"""The end of a stage's stream that goes on in another stage."""

from __future__ import annotations

import polars as pl

from interpunct.model.feedback import Feedback
from interpunct.model.page import Page
from interpunct.model.punctuation import Punctuation
from interpunct.operators.agreement import Agreement
from interpunct.operators.contract import Emission, Held, Stream
from interpunct.operators.sink import Sink
from interpunct.operators.state import State


class Export(Sink):
    """The end of a stream that goes on in another stage: punctuation stays with it."""

    def __init__(self, name: str, stream: Stream, readers: int, state: State) -> None:
        self.frames: list[pl.DataFrame] = []
        super().__init__(name, stream, self.frames.append, state)
        self._agreement = Agreement(self.state, stream.schema, readers, "heard")

    def heard(self, feedback: Feedback, reader: int) -> list[Feedback]:
        """Feedback from one lane of a later stage, as what all of them have in common."""
        return self._agreement.hear(reader, feedback)

    def on_punctuation(self, port: int, punctuation: Punctuation) -> Emission:
        self._agreement.expire(punctuation)
        return super().on_punctuation(port, punctuation)

    def _held(self) -> Held:
        return Held(guards=len(self._agreement))

    def _save(self) -> None:
        super()._save()
        self._agreement.save()

    def page(self) -> Page:
        """Everything since the last batch, with the heartbeat reached so far."""
        schema = self.inputs[0].schema
        frame = pl.concat([schema.empty(), *self.frames])
        self.frames.clear()
        marks = (Punctuation.heartbeat(schema, self.reached),) if schema.time is not None else ()
        return Page(schema, frame, marks)
