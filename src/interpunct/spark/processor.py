"""The processor: one stage in one lane, inside transformWithStateInPandas."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import polars as pl
from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

from interpunct.engine.lane import Lane, LaneBatch, LaneOutput, Said
from interpunct.engine.lane_source import Facts
from interpunct.engine.vitals import Vitals
from interpunct.flow.nodes import Ref
from interpunct.model.page import Page
from interpunct.spark import wire
from interpunct.spark.channel import Message
from interpunct.spark.hints import Hint, Hints, current_batch
from interpunct.spark.lanes import lane_of
from interpunct.spark.program import Program
from interpunct.spark.quiet import QuietProcessor
from interpunct.spark.rows import AT_ONCE, as_rows, to_spark
from interpunct.spark.state import KEY, VALUE, SparkState
from interpunct.spark.warm import Warm, freeze_first
from interpunct.spark.wire import (
    BEAT,
    FEEDBACK,
    LATE,
    OUT,
    PROOF,
    RAW,
    SINK,
    WAKE,
    Note,
    Row,
    opened,
    row_column,
    sketch,
    to_leaving,
    to_pandas,
)

if TYPE_CHECKING:
    import pandas as pd

COUNTS = "counts"  # the record of what a lane has counted
_warm: Warm[Lane] = Warm()


class LaneProcessor(QuietProcessor):
    """Rows addressed to another stage, or leaving, pass through."""

    def __init__(self, program: Program, stage: int, *, last: bool = False) -> None:
        """From the `last` stage rows leave the flow, in the form for that."""
        self._program, self._stage, self._last = program, stage, last
        self._direct = program.direct if last else None

    def init(self, handle: StatefulProcessorHandle) -> None:
        freeze_first(LaneProcessor)
        self._entries = handle.getMapState("state", KEY, VALUE)

    def handleInputRows(  # noqa: N802 (Spark's name)
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: Any,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        del timerValues
        lane_id, now = int(key[0]), 0
        mine, others = list[bytes](), list[Row]()
        for frame in rows:
            now = int(frame["now"].iloc[0])
            for stage, load in zip(frame["stage"].tolist(), frame["load"], strict=True):
                if load is None:  # meant for others who share the shuffle
                    continue
                if stage == self._stage:
                    mine.append(load)
                else:
                    others.append(Row(lane_id, stage, load))
        output = self._run(lane_id, self._batch(now, mine)) if mine else None
        if self._last:
            yield from self._to_leave(others, lane_id, output)
        elif leaving := [*others, *(() if output is None else self._leaving(lane_id, output))]:
            yield to_pandas(leaving)

    def _run(self, lane_id: int, batch: LaneBatch) -> LaneOutput:
        """A batch through the lane, which is saved and leaves its hints."""
        place = (self._program.run, self._stage, lane_id)
        lane, state = _warm.take(place, self._entries, partial(self._built, lane_id))
        output = lane.run(batch)
        lane.save()
        if self._program.hints is not None:
            vitals = lane.vitals()
            state.put(COUNTS, vitals.counts())
            self._leave_hints(self._program.hints, lane_id, lane, vitals)
        _warm.keep(place, lane, state)
        return output

    def close(self) -> None:
        """State is Spark's; there is nothing to close."""

    # In ---------------------------------------------------------------------------------------

    def _batch(self, now: int, loads: Iterable[bytes]) -> LaneBatch:
        """Pages and notes of one batch, by stream."""
        batch = LaneBatch(now)
        sources = {n.name for n in self._program.graph.sources}
        for load in loads:
            held = opened(load)
            if isinstance(held, Page):
                self._enter(batch, held, sources)
            else:
                for note in held:
                    self._hear(batch, self._program.heard(note), sources)
        return batch

    def _enter(self, batch: LaneBatch, page: Page, sources: set[str]) -> None:
        if page.stream in sources:
            batch.entering.setdefault(page.stream, []).append(page.frame)
        elif page.stream.startswith(RAW):
            batch.raw.setdefault(page.stream.removeprefix(RAW), []).append(page.frame)
        else:
            node, port = page.stream.rsplit(":", 1)
            batch.pages.setdefault(Ref(node, int(port)), []).append((page.sender, page))

    def _hear(self, batch: LaneBatch, note: Note, sources: set[str]) -> None:
        stream, sender, rows, greatest, least, words = note
        if stream in sources:
            facts = batch.facts.setdefault(stream, Facts())
            facts.add(rows, greatest, least, sketch(words), sender)
            return
        kind, _, name = stream.partition(":")
        match f"{kind}:":
            case wire.END:
                batch.finished.add(name)
            case wire.IDLE if greatest is not None:
                batch.idle[name] = greatest
            case wire.BLOCKED if greatest is not None:
                batch.blocked[name] = greatest
            case wire.FEEDBACK if words is not None:
                batch.feedback.append(Said(name, words, None if sender < 0 else sender))
            case wire.SKIPPED:
                batch.skipped[name] = batch.skipped.get(name, 0) + rows
            case wire.MADE:
                batch.made[name] = batch.made.get(name, 0) + rows

    # The lane ---------------------------------------------------------------------------------

    def _built(self, lane_id: int, state: SparkState) -> Lane:
        """The lane from its state, if that is of the same program."""
        stored = state.get("program")
        assert stored is None or isinstance(stored, bytes)
        described = self._program.check(self._stage, stored)
        if stored is None:
            state.put("program", described)
            hints, batch = self._program.hints, current_batch()
            if hints is not None and batch is not None and lane_id == self._program.lane_ids[0]:
                hints.remember(self._stage, batch, described)
        lane, counted = self._program.lane(self._stage, state), state.get(COUNTS)
        if isinstance(counted, bytes):
            lane.before = Vitals.of_counts(counted)
        return lane

    def _leave_hints(self, hints: Hints, lane_id: int, lane: Lane, vitals: Vitals) -> None:
        """One lane speaks for all: their sources' times are the same."""
        batch = current_batch()
        if batch is not None and lane_id == self._program.lane_ids[0]:
            times = lane.source_times()
            told = {name: Hint(time.given, time.greatest) for name, time in times.items()}
            hints.write(self._stage, batch, told)
        hints.report(self._stage, lane_id, vitals)
        hints.assume(self._stage, lane_id, lane.assumed(), lane.skipped())

    # Out --------------------------------------------------------------------------------------

    def _to_leave(
        self, others: Iterable[Row], lane_id: int, output: LaneOutput | None
    ) -> Iterator[pd.DataFrame]:
        """From the last stage: tuples in columns of their own; below the last of them, pages and
        notes."""
        pieces, columns = list[pl.DataFrame](), list(wire.LEAVING.names)
        loads = [row.load for row in others]
        if self._direct is not None:
            name, schema = self._direct
            columns += map(row_column, schema.names)
            frame = None if output is None else output.sinks.pop(name.removeprefix(SINK), None)
            if frame is not None and frame.height:
                pieces = list(frame.iter_slices(AT_ONCE))
                loads.append(Row.of_notes(lane_id, OUT, [Note(name, rows=frame.height)]).load)
        if output is not None:
            loads += [row.load for row in self._leaving(lane_id, output)]
        tuples = (as_rows(piece, schema) for piece in pieces)
        for _ in pieces[:-1]:
            yield to_spark(next(tuples), columns=columns)
        if pieces or loads:
            yield to_spark(*tuples, to_leaving(loads), columns=columns)

    def _leaving(self, lane_id: int, output: LaneOutput) -> Iterator[Row]:
        """Pages for sinks, for late outputs and for later stages; the rest in one row of notes."""
        nodes = self._program.graph.nodes
        for name, frame in output.sinks.items():
            page = Page(nodes[name].streams[0].schema, frame)
            yield Row.of_page(lane_id, OUT, page, f"{SINK}{name}")
        for name, frame in output.late.items():
            page = Page(nodes[name].outputs[1].schema, frame)
            yield Row.of_page(lane_id, OUT, page, f"{LATE}{name}")
        for ref, page in output.onward.items():
            yield from self._onward(lane_id, ref, page)
        if notes := list(self._notes(lane_id, output)):
            yield Row.of_notes(lane_id, OUT, notes)

    def _notes(self, lane_id: int, output: LaneOutput) -> Iterator[Note]:
        for name, reached in output.reached.items():
            yield Note(f"{BEAT}{name}", greatest=reached)
        for name, frame in output.late.items():
            yield Note(f"{LATE}{name}", rows=frame.height)
        if output.wake_at is not None:
            yield Note(WAKE, greatest=output.wake_at)
        for ref, feedback in output.feedback:
            message = Message.of(f"{ref.node}:{ref.port}", feedback)
            entered = ref.node not in self._program.stages[self._stage].nodes
            reader = self._program.reader(ref, self._stage, lane_id) if entered else -1
            sender = self._program.lane_ids.index(lane_id)
            yield Note(f"{FEEDBACK}{message.target}", sender, reader, words=message.text)
        for name, moment in output.unproven.items():
            yield Note(f"{PROOF}{name}", greatest=moment)

    def _onward(self, lane_id: int, ref: Ref, page: Page) -> Iterator[Row]:
        """A page for every lane of every later stage that reads the stream."""
        ids = self._program.lane_ids
        stream, sender = f"{ref.node}:{ref.port}", ids.index(lane_id)
        for stage, keys in self._program.readers_of(ref):
            lanes = lane_of(page.frame, keys, len(ids))
            for index, lane in enumerate(ids):
                part = Page(page.schema, page.frame.filter(lanes == index), page.punctuations)
                yield Row.of_page(lane, stage, part, stream, sender)
