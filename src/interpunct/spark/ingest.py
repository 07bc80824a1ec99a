"""Ingest: the tuples of one task become one page per lane, with facts for all lanes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl
import pyarrow as pa

from interpunct.model.page import Page
from interpunct.model.schema import Schema
from interpunct.spark.lanes import lane_of
from interpunct.spark.rows import to_frame
from interpunct.spark.wire import Row, to_batch


@dataclass(frozen=True)
class Ingest:
    """For `mapInArrow` on one source's DataFrame.

    Every task tells every lane what it saw of the whole stream, even when the lane gets no tuple:
    the shuffle is then the barrier behind which all lanes know the same.
    """

    source: str
    schema: Schema  # of the raw tuples; with the time attribute when it is external
    stages: tuple[tuple[int, tuple[str, ...]], ...]  # stage, attributes that choose the lane
    lane_ids: tuple[int, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        held = [b for b in batches if b.num_rows]
        if not held:
            return
        frame = to_frame(held, self.schema)
        greatest = self._greatest(frame)
        rows = [
            Row(lane, stage, self.source, 0, frame.height, greatest, page)
            for stage, keys in self.stages
            for lane, page in self._pages(frame, keys)
        ]
        yield to_batch(rows)

    def _greatest(self, frame: pl.DataFrame) -> int | None:
        if self.schema.time is None:
            return None
        greatest = self.schema.ticks(frame).max()
        return None if greatest is None else int(greatest)  # type: ignore[arg-type]

    def _pages(
        self, frame: pl.DataFrame, keys: tuple[str, ...]
    ) -> Iterator[tuple[int, bytes | None]]:
        """A page for each lane, or none where no tuple falls."""
        lanes = lane_of(frame, keys, len(self.lane_ids))
        for index, lane in enumerate(self.lane_ids):
            part = frame.filter(lanes == index)
            page = Page(self.schema, part).to_ipc(self.source) if part.height else None
            yield lane, page
