"""Gate: a stream held back until other streams have come as far (Heartbeats section 7.1).

    S1 (data):     1   4   6        |     registers  S1=6  S3=4
    S3 (a pacer):    2      4       |     out: 1 4            (6 waits for S3)

It is a piece of the paper's input manager: tuples stamped above τ = min(τ1, …, τn) are buffered,
the others go on in timestamp order. Input 0 is the stream; the other inputs pace it. Of a pacer
only the progress counts, its tuples go no further; they reach whoever wants them by an arc of
their own. An operator behind gates thus uses a heartbeat lower than it could, which costs latency
and, where the operator makes more tuples than it takes, saves memory (section 7.3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from interpunct.model.errors import FlowError
from interpunct.model.page import Page
from interpunct.model.pattern import Pattern
from interpunct.model.punctuation import Punctuation
from interpunct.model.schema import Schema
from interpunct.operators.contract import Emission, Stream
from interpunct.operators.responses import Response, at_input
from interpunct.operators.state import State
from interpunct.operators.tsm import TsmInputs
from interpunct.operators.union import Union

DATA = 0


class PacedInputs(TsmInputs):
    """Registers of all inputs; tuples wait on the first alone."""

    def __init__(self, state: State, inputs: Sequence[Stream]) -> None:
        super().__init__(state, inputs)
        del self.waiting[DATA + 1 :]

    def observe(self, port: int, page: Page) -> None:
        """Tuples of a pacer: when it is ordered the last one tells how far it has come.

        What is stamped like that tuple may pass, and then nothing of the stream waits at or below
        it. For the stream it is a heartbeat of its own time, not of a moment before.
        """
        stream = self._inputs[port]
        if stream.properties.ordered:
            last = stream.schema.ticks(page.frame)[-1] if page.stamp is None else page.stamp
            self.promise(port, int(last))


class Gate(Union):
    """The ordered union of one input, whose registers are also those of its pacers."""

    def __init__(
        self, name: str, stream: Stream, pacers: Sequence[Stream], state: State | None = None
    ) -> None:
        _check_times(name, [stream.schema, *(p.schema for p in pacers)])
        super().__init__(name, [stream], state)
        properties = replace(stream.properties, ordered=True, deterministic=False)
        self.inputs = (stream, *pacers)
        self.outputs = (Stream(stream.schema, properties),)
        self._tsm: PacedInputs = PacedInputs(self.state, self.inputs)

    def on_page(self, port: int, page: Page) -> Emission:
        if port == DATA:
            return super().on_page(port, page)
        self._tsm.observe(port, page)
        return self._release()

    def on_punctuation(self, port: int, punctuation: Punctuation) -> Emission:
        """A pacer promises nothing about the stream but how far time has come."""
        if port != DATA and punctuation.heartbeat_ticks is None:
            return Emission()
        return super().on_punctuation(port, punctuation)

    def characterise(self, pattern: Pattern, port: int) -> Response:
        """The pacers' tuples are signs of time only; the feedback does not speak of them."""
        del port
        return at_input("¬[…]", {DATA: pattern}, purge=True)


def comparable(one: Schema, other: Schema) -> bool:
    """Whether two streams count time alike: both by the clock, or both in numbers."""
    times = (s[s.ordered_by].dtype.is_integer() for s in (one, other) if s.time is not None)
    return list(times) in ([True, True], [False, False])


def _check_times(name: str, schemas: Sequence[Schema]) -> None:
    for port, schema in enumerate(schemas):
        if not comparable(schemas[DATA], schema):
            raise FlowError(
                f"gate {name!r}, input {port}", f"time like {schemas[DATA].time_type} of input 0",
                schema.time_type or "none", "Pace a stream by streams whose time is comparable.",
            )  # fmt: skip
