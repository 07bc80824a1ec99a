"""Ingest: the tuples of one task become one page per lane, with facts for all lanes.

Tuples that are surely in time go through the stateless prefix here, and are aggregated in part
where an aggregate follows; the rest, and all of them when there is no hint what is late, are sent
as they are for the lanes to judge.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import polars as pl
import pyarrow as pa

from interpunct.engine.lane import through_prefix
from interpunct.engine.lane_source import Facts
from interpunct.flow.graph import Graph
from interpunct.flow.pushdown import Prefix
from interpunct.model.page import Page
from interpunct.model.schema import Schema, TimeKind
from interpunct.progress.adaptive import Adaptive
from interpunct.progress.clock import RealClock
from interpunct.progress.spread import Spread
from interpunct.progress.timestamps import TimeSpec
from interpunct.spark.assumed import Assumed, Unread
from interpunct.spark.hints import Hint, Hints, current_batch
from interpunct.spark.lanes import lane_of
from interpunct.spark.rows import to_frame
from interpunct.spark.warm import freeze_once
from interpunct.spark.wire import END, MADE, RAW, SKIPPED, Row, to_batch

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
        return self.pages(self._chunks(batches), self.assumed())

    def pages(
        self,
        frames: Iterable[pl.DataFrame | Unread],
        assumed: Sequence[Assumed],
        *,
        last: bool = False,
    ) -> Iterator[pa.RecordBatch]:
        """The rows on the wire for one task's frames, but for what is `assumed` away; `last` says
        that none will follow, ever."""
        freeze_once(Ingest)
        seen, skipped = Facts(), [0] * len(self.targets)
        made: list[Counter[str]] = [Counter() for _ in self.targets]
        hint = self._hint()
        learns, spreads = isinstance(self.time.bounds, Adaptive), list[Spread]()
        entering: list[list[pl.DataFrame]] = [[] for _ in self.targets]
        raw: list[list[pl.DataFrame]] = [[] for _ in self.targets]
        for frame in frames:
            if isinstance(frame, Unread):
                seen.add(frame.rows, frame.greatest, frame.least)
                skipped = [n + frame.rows for n in skipped]
                continue
            ticks = self._ticks(frame)
            seen.add(frame.height, _as_int(ticks.max()), _as_int(ticks.min()))
            if learns and ticks.count():
                spreads.append(Spread.of(ticks.drop_nulls().to_numpy()))
            for number, (target, without) in enumerate(zip(self.targets, assumed, strict=True)):
                wanted = without.wanted(frame, target.keys) if without else frame
                skipped[number] += frame.height - wanted.height
                sure, doubtful = self._divided(wanted, hint)
                if doubtful.height:
                    raw[number].append(doubtful)
                if sure.height:
                    rows = through_prefix(self.graph, target.prefix, sure, made[number])
                    entering[number].append(rows)
        if seen.rows:
            behind = Spread.merged(spreads).behind if spreads else None
            pages = self._rows(seen, behind, raw, entering)
            yield to_batch([*pages, *self._counted(skipped, made)])
        if last:
            stages = [target.stage for target in self.targets]
            yield to_batch([Row(n, s, END + self.source) for s in stages for n in self.lane_ids])

    def assumed(self) -> list[Assumed]:
        """What the lanes of each stage that the source enters do without."""
        return [
            Assumed.of(self.hints, t.stage, self.lane_ids, self.source, self.schema)
            for t in self.targets
        ]

    def _counted(self, skipped: list[int], made: list[Counter[str]]) -> Iterator[Row]:
        """How many tuples were left out, and how many the operators here have put out, for one lane
        of each stage to remember."""
        lane = self.lane_ids[0]
        for target, left_out, put_out in zip(self.targets, skipped, made, strict=True):
            if left_out:
                yield Row(lane, target.stage, f"{SKIPPED}{self.source}", rows=left_out)
            for name, tuples in put_out.items():
                yield Row(lane, target.stage, f"{MADE}{name}", rows=tuples)

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

    def _rows(
        self,
        seen: Facts,
        behind: bytes | None,
        raw: list[list[pl.DataFrame]],
        entering: list[list[pl.DataFrame]],
    ) -> Iterator[Row]:
        for stage in self.listeners:
            for lane in self.lane_ids:
                yield Row(lane, stage, self.source, 0, seen.rows, seen.greatest, seen.least)
        for target, frames, doubtful in zip(self.targets, entering, raw, strict=True):
            mine = self._pages(pl.concat(frames), target.entry_keys) if frames else {}
            theirs = self._pages(pl.concat(doubtful), target.keys) if doubtful else {}
            for lane in self.lane_ids:
                facts = (seen.rows, seen.greatest, seen.least, behind)
                yield Row(lane, target.stage, self.source, 0, *facts, mine.get(lane))
                if lane in theirs:
                    yield Row(lane, target.stage, RAW + self.source, page=theirs[lane])

    def _pages(self, frame: pl.DataFrame, keys: tuple[str, ...]) -> dict[int, bytes]:
        """A page for each lane that gets tuples."""
        lanes = lane_of(frame, keys, len(self.lane_ids))
        parts = ((n, frame.filter(lanes == i)) for i, n in enumerate(self.lane_ids))
        return {n: Page(Schema.of_frame(p), p).to_ipc(self.source) for n, p in parts if p.height}


def _as_int(value: object) -> int | None:
    return None if value is None else int(value)  # type: ignore[call-overload]
