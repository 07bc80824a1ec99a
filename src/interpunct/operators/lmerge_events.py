"""Tuples as events: a stream that is never revised, as a logical merge takes it.

    (7, "a")   (9, "b")   ┃≤ 9┃        lasting 5:  insert(a, 7, 12)  insert(b, 9, 14)  stable(10)

A tuple is an event that begins at its time; the rest of it is the payload. A heartbeat says of
tuples what a stable says of events. The properties of the stream stay as they are, which is how
order that an operator has made reaches the choice of the merge (LMerge section IV-D).
"""

from __future__ import annotations

import polars as pl

from interpunct.model.attribute_map import AttributeMap, Origin
from interpunct.model.elements import INSERT, KIND, VE, VOLD, VS, element_schema, framed, infinity
from interpunct.model.errors import FlowError
from interpunct.model.page import Page
from interpunct.model.pattern import Pattern
from interpunct.model.punctuation import Punctuation
from interpunct.model.schema import START_OF_TIME, Schema
from interpunct.model.ticks import within
from interpunct.operators.contract import Emission, Operator, Stream
from interpunct.operators.lmerge_fast_forward import last_start
from interpunct.operators.lmerge_rows import Output
from interpunct.operators.responses import Response, at_input, at_output
from interpunct.operators.state import Record, State


class Events(Operator):
    """Every event lives `lasting` ticks."""

    def __init__(
        self, name: str, stream: Stream, lasting: int = 1, state: State | None = None
    ) -> None:
        if lasting < 1:
            raise FlowError(
                f"events {name!r}", "a lifetime of at least one tick", str(lasting),
                "Give lasting=… a length above zero.",
            )  # fmt: skip
        schema, time = stream.schema, stream.schema.ordered_by
        payload = Schema(tuple(a for a in schema.attributes if a.name != time))
        output = element_schema(payload, schema[time].type)
        start = Origin(0, time)
        mapping = AttributeMap(
            {VS: (start,), **{n: (Origin(0, n),) for n in payload.names}},
            {VE: frozenset([start])},
        )
        super().__init__(name, [stream], [Stream(output, stream.properties)], mapping, state)
        self._lasting = lasting
        self._record = Record(self.state, "events", {"given": START_OF_TIME})

    def on_page(self, port: int, page: Page) -> Emission:
        """On an ordered stream the last tuple also says that what is before it is complete."""
        del port
        start = self.inputs[0].schema.ticks_expr()
        times = [
            pl.lit(INSERT).alias(KIND),
            start.alias(VS),
            pl.lit(None, pl.Int64).alias(VOLD),
            (start + self._lasting).alias(VE),
        ]
        payload = [pl.col(n) for n in self.output.names[len(times) :]]
        emission = self.tuples(framed(self.output, page.frame, [*times, *payload]))
        if self.inputs[0].properties.ordered:
            last = int(self.inputs[0].schema.ticks(page.frame)[-1])
            emission.extend(self._stable(last))
        return emission

    def on_punctuation(self, port: int, punctuation: Punctuation) -> Emission:
        del port
        heartbeat = punctuation.heartbeat_ticks
        return Emission() if heartbeat is None else self._stable(heartbeat + 1)

    def _stable(self, at: int) -> Emission:
        at = min(at, infinity(self.output))
        if at <= self._record["given"]:
            return Emission()
        self._record["given"] = at
        out = Output(self.output)
        out.stable(at)
        return self.tuples(out.taken())

    def characterise(self, pattern: Pattern, port: int) -> Response:
        """Conditions on the payload are those of the tuples; what is past is a matter of time."""
        schema = self.inputs[0].schema
        if set(pattern.names) <= set(schema.names):
            return at_input("¬[payload]", {0: Pattern(schema, dict(pattern.conditions))})
        last = last_start(pattern, self._lasting, revised=False)
        if last is None:
            return at_output("¬[…]", pattern, port)
        times = within(schema, None, last)
        return at_input("¬[past]", {0: Pattern(schema, {schema.ordered_by: times})})

    def _save(self) -> None:
        self._record.save()
