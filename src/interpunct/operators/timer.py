"""Timer: a stream of clock readings at a fixed rate, minus an offset (Punctuate section 2).

every 60s, offset 5m:    12:00:00 → 11:55:00,  12:01:00 → 11:56:00, …
"""

from __future__ import annotations

from interpunct.model.attribute_map import AttributeMap
from interpunct.model.page import Page
from interpunct.model.properties import Properties
from interpunct.model.schema import Schema, TimeKind
from interpunct.operators.contract import Emission, Stream
from interpunct.operators.source import SourceOperator
from interpunct.operators.state import Record, State
from interpunct.progress.clock import Clock

TIMER_SCHEMA = Schema.of("time timestamp", time="time", kind=TimeKind.INTERNAL)


class Timer(SourceOperator):
    """Fires at each multiple of `every`; readings missed while busy are not made up for."""

    def __init__(
        self, name: str, every: int, offset: int, clock: Clock, state: State | None = None
    ) -> None:
        outputs = [Stream(TIMER_SCHEMA, Properties(ordered=True, strict=True))]
        super().__init__(name, [], outputs, AttributeMap({}, {}), state)
        self._every, self._offset, self._clock = every, offset, clock
        last = (clock.now() - 1) // every * every  # so that it fires first at the next multiple
        self._record = Record(self.state, "timer", {"fired": last})

    def wake_at(self) -> int:
        fired: int = self._record["fired"]
        return fired + self._every

    def on_wake(self) -> Emission:
        now = self._clock.now()
        if now < self.wake_at():
            return Emission()
        self._record["fired"] = now - now % self._every
        reading = TIMER_SCHEMA.value_of(self._record["fired"] - self._offset)
        return Emission([(0, Page.of_rows(TIMER_SCHEMA, [(reading,)]))])

    def on_page(self, port: int, page: Page) -> Emission:
        raise AssertionError(f"timer {self.name} has no input {port} for {page.height} tuples")

    def _save(self) -> None:
        self._record.save()
