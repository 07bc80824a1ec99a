"""Punctuate: embeds punctuations into a data stream, and enforces them (Punctuate section 2).

Input 0 is data, input 1 a timer. At each timer value v it writes the punctuation `[time ≤ v]`:

    <bid time=5567 person=p1 price=10.00 item=i1>       <PUNCT:bid time=[,5567] * * *>

From then on a tuple stamped at or below v is late: it leaves by the late output (output 1) with
its lateness. Where a stream gives no guarantee of its own, this is the policy that makes one.
"""

from __future__ import annotations

from interpunct.model.attribute_map import AttributeMap
from interpunct.model.late import Reason, late_rows, late_schema
from interpunct.model.page import Page
from interpunct.model.pattern import Pattern
from interpunct.model.punctuation import Punctuation
from interpunct.model.schema import START_OF_TIME
from interpunct.operators.contract import Emission, Operator, Stream
from interpunct.operators.responses import Response, at_input, at_output
from interpunct.operators.state import Record, State

DATA, TIMER = 0, 1


class Punctuate(Operator):
    """Tuples pass in arrival order; nothing is held."""

    def __init__(self, name: str, data: Stream, timer: Stream, state: State | None = None) -> None:
        outputs = [data, Stream(late_schema(data.schema))]
        super().__init__(name, [data, timer], outputs, AttributeMap.identity(data.schema), state)
        self._record = Record(self.state, "punctuate", {"given": START_OF_TIME})

    def on_page(self, port: int, page: Page) -> Emission:
        return self._on_data(page) if port == DATA else self._on_timer(page)

    def _on_data(self, page: Page) -> Emission:
        given: int = self._record["given"]
        late = self.output.ticks(page.frame) <= given
        if not late.any():
            return self.tuples(page.frame)
        emission = self.tuples(page.frame.filter(~late))
        rows = page.frame.filter(late)
        emission.extend(
            self.tuples(late_rows(self.output, rows, self.name, Reason.LATE, given), port=1)
        )
        return emission

    def _on_timer(self, page: Page) -> Emission:
        """A punctuation at each timer value that says something new."""
        emission = Emission()
        for value in self.inputs[TIMER].schema.ticks(page.frame):
            emission.extend(self._raise(value))
        return emission

    def on_punctuation(self, port: int, punctuation: Punctuation) -> Emission:
        """What the data stream promises itself holds as well; the timer's own time does not."""
        if port == TIMER:
            return Emission()
        heartbeat = punctuation.heartbeat_ticks
        return (
            super().on_punctuation(port, punctuation)
            if heartbeat is None
            else self._raise(heartbeat)
        )

    def _raise(self, heartbeat: int) -> Emission:
        if heartbeat <= self._record["given"]:
            return Emission()
        self._record["given"] = heartbeat
        return self.heartbeat(heartbeat)

    def characterise(self, pattern: Pattern, port: int) -> Response | None:
        """Nobody wants the tuples that match, be they late or not; of the late output alone
        nothing can be said to those upstream."""
        if port != DATA:
            return at_output("¬[…] of late tuples", pattern, port)
        return at_input("¬[…]", {DATA: pattern})

    def _save(self) -> None:
        self._record.save()
