"""Slack: Aurora's way with disorder, kept as a baseline to compare punctuation with.

After the first tuple of a later window, `slack` more tuples are read before the windows before it
are closed (Punctuate section 3). Here that closing is a heartbeat, so the same aggregates run on
it; a tuple for a closed window leaves by the late output. The bound counts tuples, not time: when
the stream goes quiet, so does progress.
"""

from __future__ import annotations

import polars as pl

from interpunct.model.attribute_map import AttributeMap
from interpunct.model.late import Reason, late_rows, late_schema
from interpunct.model.page import Page
from interpunct.model.schema import START_OF_TIME
from interpunct.operators.contract import Emission, Held, Operator, Stream
from interpunct.operators.state import Record, State


class Slack(Operator):
    """Keeps only the greatest timestamps as of the last `slack` + 1 tuples."""

    def __init__(
        self, name: str, stream: Stream, window: int, slack: int, state: State | None = None
    ) -> None:
        outputs = [stream, Stream(late_schema(stream.schema))]
        super().__init__(name, [stream], outputs, AttributeMap.identity(stream.schema), state)
        self._window, self._slack = window, slack
        initial = {"recent": [START_OF_TIME] * (slack + 1), "given": START_OF_TIME}
        self._record = Record(self.state, "slack", initial)

    def on_page(self, port: int, page: Page) -> Emission:
        del port
        ticks = self.output.ticks(page.frame)
        recent = pl.Series("t", self._record["recent"], pl.Int64)
        greatest = pl.concat([recent, ticks.alias("t")]).cum_max()
        # The windows before the one of the greatest tuple `slack` + 1 tuples ago are closed.
        closed = greatest.head(ticks.len()) // self._window * self._window - 1
        late = ticks <= closed
        emission = self.tuples(page.frame.filter(~late))
        if late.any():
            rows = late_rows(
                self.output, page.frame.filter(late), self.name, Reason.LATE, closed.filter(late)
            )
            emission.extend(self.tuples(rows, port=1))
        self._record["recent"] = greatest.tail(self._slack + 1).to_list()
        reached = self._record["recent"][0] // self._window * self._window - 1
        if reached > self._record["given"]:
            self._record["given"] = reached
            emission.extend(self.heartbeat(reached))
        return emission

    def _held(self) -> Held:
        return Held(punctuations=self._slack + 1)

    def _save(self) -> None:
        self._record.save()
