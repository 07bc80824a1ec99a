"""Ingest: the tuples of one task become one page per lane, with facts for all lanes.

Tuples that are surely in time go through the stateless prefix here, and are aggregated in part
where an aggregate follows; the rest, and all of them when there is no hint what is late, are sent
as they are for the lanes to judge.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import polars as pl
import pyarrow as pa

from interpunct.engine.lane import through_prefix
from interpunct.engine.lane_source import Facts
from interpunct.flow.graph import Graph
from interpunct.flow.pushdown import Prefix
from interpunct.model.page import Page
from interpunct.model.schema import START_OF_TIME, Schema, TimeKind
from interpunct.progress.adaptive import Adaptive
from interpunct.progress.clock import RealClock
from interpunct.progress.confidence import PageSketch, lateness, sketched
from interpunct.progress.timestamps import TimeSpec
from interpunct.spark.hints import Hint, Hints, current_batch
from interpunct.spark.lanes import lane_of
from interpunct.spark.rows import to_frame
from interpunct.spark.wire import END, RAW, Row, to_batch

CHUNK = 250_000  # tuples taken through the prefix at once, while more of them are on their way


@dataclass(frozen=True)
class Target:
    """A stage that a source enters."""

    stage: int
    keys: tuple[str, ...]  # attributes of the raw tuples that choose the lane
    prefix: Prefix
    entry_keys: tuple[str, ...]  # the same attributes after the prefix


@dataclass(frozen=True)
class Ingest:
    """For `mapInArrow` on one source's DataFrame, and for the readers of our own sources.

    Every task tells every lane what it saw of the whole stream, even when the lane gets no tuple:
    the shuffle is then the barrier behind which all lanes know the same.
    """

    graph: Graph
    source: str
    schema: Schema  # of the raw tuples; with the time attribute when it is external
    time: TimeSpec
    targets: tuple[Target, ...]
    lane_ids: tuple[int, ...]
    hints: Hints | None = None
    listeners: tuple[int, ...] = ()  # stages that only want the facts

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return self.pages(self._chunks(batches))

    def pages(
        self, frames: Iterable[pl.DataFrame], *, last: bool = False
    ) -> Iterator[pa.RecordBatch]:
        """The rows on the wire for one task's frames; `last` says that none will follow, ever."""
        seen = Facts()
        hint = self._hint()
        study = self._study(hint)
        entering: list[list[pl.DataFrame]] = [[] for _ in self.targets]
        raw: list[pl.DataFrame] = []
        for frame in frames:
            ticks = self._ticks(frame)
            seen.add(frame.height, _as_int(ticks.max()), _as_int(ticks.min()))
            if study is not None:
                study.add(ticks)
            sure, doubtful = self._divided(frame, hint)
            if doubtful.height:
                raw.append(doubtful)
            if sure.height:
                for target, passed in zip(self.targets, entering, strict=True):
                    passed.append(through_prefix(self.graph, target.prefix, sure))
        if seen.rows:
            if study is not None and seen.greatest is not None:
                seen.late.append(study.to_bytes())
            yield to_batch(list(self._rows(seen, raw, entering)))
        if last:
            stages = [target.stage for target in self.targets]
            yield to_batch([Row(n, s, END + self.source) for s in stages for n in self.lane_ids])

    def _chunks(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pl.DataFrame]:
        held: list[pa.RecordBatch] = []
        for batch in batches:
            held.append(batch)
            if sum(b.num_rows for b in held) >= CHUNK:
                yield to_frame(held, self.schema)
                held = []
        if any(b.num_rows for b in held):
            yield to_frame(held, self.schema)

    def _hint(self) -> Hint | None:
        """What the lanes promised in the batch before this one."""
        batch = current_batch()
        if self.hints is None or batch is None:
            return None
        return self.hints.read(self.targets[0].stage, batch - 1).get(self.source)

    def _divided(self, frame: pl.DataFrame, hint: Hint | None) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Tuples that are surely in time, and those the lanes must look at."""
        if self.time.kind is TimeKind.LATENT:
            return frame, frame.clear()
        if self.time.kind is TimeKind.INTERNAL or hint is None:
            return frame.clear(), frame
        since = max(hint.given, hint.greatest - 1) if self.time.ordered else hint.given
        low, high = self.schema.time_range
        ticks = self.schema.ticks(frame)
        sure = ticks.is_between(max(low, since + 1), high).fill_null(value=False)
        if sure.all():
            return frame, frame.clear()
        return frame.filter(sure), frame.filter(~sure)

    def _ticks(self, frame: pl.DataFrame) -> pl.Series:
        """The times that make sense, and may move time: not those absurdly in the future."""
        if self.schema.time is None:
            return pl.Series(dtype=pl.Int64)
        low, high = self.schema.time_range
        limit = self.time.believable(RealClock().now())
        high = high if limit is None else min(high, limit)
        ticks = self.schema.ticks(frame)
        least, greatest = _as_int(ticks.min()), _as_int(ticks.max())
        if least is None or greatest is None or (least >= low and greatest <= high):
            return ticks
        return ticks.filter(ticks.is_between(low, high))

    def _study(self, hint: Hint | None) -> Study | None:
        """Where lateness is learned: against the greatest time of the batches before, if that is
        known or there are none."""
        if not isinstance(self.time.bounds, Adaptive):
            return None
        if hint is None:
            return Study(None) if current_batch() == 0 else None
        return Study(hint.greatest if hint.greatest > START_OF_TIME else None)

    def _rows(
        self, seen: Facts, raw: list[pl.DataFrame], entering: list[list[pl.DataFrame]]
    ) -> Iterator[Row]:
        late = seen.late[0] if seen.late else None
        for stage in self.listeners:
            for lane in self.lane_ids:
                yield Row(lane, stage, self.source, 0, seen.rows, seen.greatest, seen.least)
        for target, frames in zip(self.targets, entering, strict=True):
            mine = self._pages(pl.concat(frames), target.entry_keys) if frames else {}
            theirs = self._pages(pl.concat(raw), target.keys) if raw else {}
            for lane in self.lane_ids:
                facts = (seen.rows, seen.greatest, seen.least, late)
                yield Row(lane, target.stage, self.source, 0, *facts, mine.get(lane))
                if lane in theirs:
                    yield Row(lane, target.stage, RAW + self.source, page=theirs[lane])

    def _pages(self, frame: pl.DataFrame, keys: tuple[str, ...]) -> dict[int, bytes]:
        """A page for each lane that gets tuples."""
        lanes = lane_of(frame, keys, len(self.lane_ids))
        parts = ((n, frame.filter(lanes == i)) for i, n in enumerate(self.lane_ids))
        return {n: Page(Schema.of_frame(p), p).to_ipc(self.source) for n, p in parts if p.height}


class Study:
    """How late a task's tuples are, sketched."""

    def __init__(self, reached: int | None) -> None:
        self._reached = reached
        self._parts: list[bytes] = []

    def add(self, ticks: pl.Series) -> None:
        self._parts.append(sketched(lateness(ticks.drop_nulls().to_numpy(), self._reached)))

    def to_bytes(self) -> bytes:
        return PageSketch.merged(self._parts).to_bytes()


def _as_int(value: object) -> int | None:
    return None if value is None else int(value)  # type: ignore[call-overload]
