"""Tuples on their way from a task to the lanes, in pages that leave as they fill.

So a task keeps no more than about a page for each lane, however much it reads, and the lanes' share
of one piece is on its way while the next is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import polars as pl

from interpunct.model.page import Page
from interpunct.model.schema import Schema
from interpunct.spark.lanes import LanesOf
from interpunct.spark.wire import Row

FULL = 50_000  # tuples of a page


@dataclass
class Outgoing:
    """What one task sends to the lanes of a stage under one name."""

    stage: int
    stream: str
    lanes_of: LanesOf
    lane_ids: Sequence[int]
    _waiting: list[pl.DataFrame] = field(default_factory=list)
    _rows: int = 0

    def add(self, frame: pl.DataFrame) -> None:
        if frame.height:
            self._waiting.append(frame)
            self._rows += frame.height

    def full(self) -> Iterator[Row]:
        """The pages of what waits, once there is about one for each lane."""
        return self.rest() if self._rows >= FULL * len(self.lane_ids) else iter(())

    def rest(self) -> Iterator[Row]:
        """The pages of all that waits."""
        if not self._waiting:
            return
        frame = pl.concat(self._waiting)
        self._waiting, self._rows = [], 0
        schema = Schema.of_frame(frame)
        lanes = self.lanes_of(frame)
        for index, lane in enumerate(self.lane_ids):
            for part in frame.filter(lanes == index).iter_slices(FULL):
                yield Row.of_page(lane, self.stage, Page(schema, part), self.stream)
