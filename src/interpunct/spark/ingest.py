"""Ingest: the tuples of one task become pages for the lanes, with facts for all of them.

Tuples that are surely in time go through the stateless prefix here, and are aggregated in part
where an aggregate follows; the rest, and all of them when there is no hint what is late, are sent
as they are for the lanes to judge.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl
import pyarrow as pa

from interpunct.engine.lane import through_prefix
from interpunct.engine.lane_source import Facts
from interpunct.flow.graph import Graph
from interpunct.flow.lane_key import LaneKey, keyed
from interpunct.flow.pushdown import Prefix
from interpunct.model.schema import Schema, TimeKind
from interpunct.progress.adaptive import Adaptive
from interpunct.progress.clock import RealClock
from interpunct.progress.spread import Spread
from interpunct.progress.timestamps import TimeSpec
from interpunct.spark.assumed import Assumed, Unread
from interpunct.spark.hints import Hint, Hints, current_batch
from interpunct.spark.lanes import LanesOf, lane_of
from interpunct.spark.outgoing import Outgoing
from interpunct.spark.packed import UnpackedOnce
from interpunct.spark.rows import to_frame
from interpunct.spark.warm import freeze_first
from interpunct.spark.wire import END, MADE, RAW, SKIPPED, Note, Row, sketched, to_batch

CHUNK = 100_000  # tuples taken through the prefix at once: few enough to stay in a core's cache


@dataclass(frozen=True)
class Target:
    """A stage that a source enters."""

    stage: int
    keys: tuple[LaneKey, ...]  # what of the raw tuples chooses the lane
    prefix: Prefix
    entry_keys: tuple[LaneKey, ...]  # the same after the prefix


@dataclass(frozen=True)
class Ingest(UnpackedOnce):
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
        freeze_first(Ingest)
        seen, skipped = Facts(), [0] * len(self.targets)
        made: list[Counter[str]] = [Counter() for _ in self.targets]
        hint = self._hint()
        learns, spreads = isinstance(self.time.bounds, Adaptive), list[Spread]()
        sure = [self._outgoing(t.stage, self.source, t.entry_keys) for t in self.targets]
        doubtful = [self._outgoing(t.stage, RAW + self.source, t.keys) for t in self.targets]
        for frame in frames:
            if isinstance(frame, Unread):
                seen.add(frame.rows, frame.greatest, frame.least)
                skipped = [n + frame.rows for n in skipped]
                continue
            times = self._times(frame)
            seen.add(frame.height, times.greatest, times.least)
            if learns and times.greatest is not None:
                spreads.append(Spread.of(times.believable.drop_nulls().to_numpy()))
            for number, (target, without) in enumerate(zip(self.targets, assumed, strict=True)):
                wanted = without.wanted(frame, self._lanes_by(target.keys)) if without else frame
                skipped[number] += frame.height - wanted.height
                in_time, others = self._divided(wanted, times, hint)
                doubtful[number].add(others)
                if in_time.height:
                    rows = through_prefix(self.graph, target.prefix, in_time, made[number])
                    sure[number].add(rows)
            full = [row for pages in (*sure, *doubtful) for row in pages.full()]
            if full:
                yield to_batch(full)
        behind = Spread.merged(spreads).behind if spreads else None
        rest = [row for pages in (*sure, *doubtful) for row in pages.rest()]
        rest += self._told(seen, behind, self._counted(skipped, made), last=last)
        if rest:
            yield to_batch(rest)

    def assumed(self) -> list[Assumed]:
        """What the lanes of each stage that the source enters do without."""
        return [
            Assumed.of(self.hints, t.stage, self.lane_ids, self.source, self.schema)
            for t in self.targets
        ]

    def _counted(self, skipped: list[int], made: list[Counter[str]]) -> dict[int, list[Note]]:
        """By stage, how many tuples were left out, and how many the operators here have put out."""
        return {
            target.stage: [
                *([Note(f"{SKIPPED}{self.source}", rows=left_out)] if left_out else []),
                *(Note(f"{MADE}{name}", rows=tuples) for name, tuples in put_out.items()),
            ]
            for target, left_out, put_out in zip(self.targets, skipped, made, strict=True)
        }

    def _chunks(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pl.DataFrame]:
        held: list[pa.RecordBatch] = []
        for batch in batches:  # its columns are in the order of the schema, whatever their names
            held.append(batch.rename_columns(list(self.schema.names)))
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

    def _outgoing(self, stage: int, stream: str, keys: tuple[LaneKey, ...]) -> Outgoing:
        return Outgoing(stage, stream, self._lanes_by(keys), self.lane_ids)

    def _lanes_by(self, keys: tuple[LaneKey, ...]) -> LanesOf:
        def lanes_of(frame: pl.DataFrame) -> pl.Series:
            return lane_of(*keyed(self.graph, keys, frame), len(self.lane_ids))

        return lanes_of

    def _times(self, frame: pl.DataFrame) -> _Times:
        """Of the times that make sense those count that may move time: not those absurdly in the
        future."""
        if self.schema.time is None:
            return _Times(None, None, pl.Series(dtype=pl.Int64), whole=False)
        low, high = self.schema.time_range
        limit = self.time.believable(RealClock().now())
        most = high if limit is None else min(high, limit)
        ticks = self.schema.ticks(frame)
        least, greatest = _as_int(ticks.min()), _as_int(ticks.max())
        if least is None or greatest is None:
            return _Times(None, None, ticks, whole=False)
        if low <= least and greatest <= most:
            return _Times(least, greatest, ticks, whole=not ticks.null_count())
        sound = ticks.filter(ticks.is_between(low, most))
        return _Times(_as_int(sound.min()), _as_int(sound.max()), sound, whole=False)

    def _divided(
        self, frame: pl.DataFrame, times: _Times, hint: Hint | None
    ) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Tuples that are surely in time, and those the lanes must look at."""
        if self.time.kind is TimeKind.LATENT:
            return frame, frame.clear()
        if self.time.kind is TimeKind.INTERNAL or hint is None:
            return frame.clear(), frame
        since = max(hint.given, hint.greatest - 1) if self.time.ordered else hint.given
        if times.whole and times.least is not None and times.least > since:
            return frame, frame.clear()
        low, high = self.schema.time_range
        sure = self.schema.ticks(frame).is_between(max(low, since + 1), high).fill_null(value=False)
        return frame.filter(sure), frame.filter(~sure)

    def _told(
        self, seen: Facts, behind: bytes | None, counted: Mapping[int, list[Note]], *, last: bool
    ) -> Iterator[Row]:
        """What was seen of the whole stream, for every lane; what was counted, for the first lane
        of each stage to remember."""
        facts = Note(self.source, 0, seen.rows, seen.greatest, seen.least, sketched(behind))
        told = [facts] if seen.rows else []
        ends = [Note(END + self.source)] if last else []
        for stage in (*self.listeners, *(target.stage for target in self.targets)):
            for lane in self.lane_ids:
                entered = stage in counted
                first = counted[stage] if entered and lane == self.lane_ids[0] else []
                notes = [*told, *first, *(ends if entered else [])]
                if notes:
                    yield Row.of_notes(lane, stage, notes)


@dataclass(frozen=True)
class _Times:
    """The times of a frame: the least and greatest that may move time, and those that may."""

    least: int | None
    greatest: int | None
    believable: pl.Series
    whole: bool  # whether they are all there are: every tuple has a time that makes sense


def _as_int(value: object) -> int | None:
    return None if value is None else int(value)  # type: ignore[call-overload]
