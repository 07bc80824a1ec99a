"""The processor: one stage in one lane, inside transformWithStateInPandas."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import polars as pl
from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

from interpunct.engine.lane import Lane, LaneBatch, LaneOutput, Said
from interpunct.engine.lane_source import Facts
from interpunct.engine.vitals import Vitals
from interpunct.flow.nodes import Ref
from interpunct.model.page import Page
from interpunct.spark.channel import Message
from interpunct.spark.hints import Hint, Hints, current_batch
from interpunct.spark.lanes import lane_of
from interpunct.spark.program import Program
from interpunct.spark.quiet import QuietProcessor
from interpunct.spark.rows import AT_ONCE, as_rows, to_spark
from interpunct.spark.state import KEY, VALUE, SparkState
from interpunct.spark.warm import Warm, freeze_once
from interpunct.spark.wire import (
    BEAT,
    BLOCKED,
    CLOCK,
    COLUMNS,
    END,
    FEEDBACK,
    IDLE,
    LATE,
    LEAVING,
    MADE,
    OUT,
    PROOF,
    RAW,
    SINK,
    SKIPPED,
    WAKE,
    Row,
    passing,
    row_column,
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
        freeze_once(LaneProcessor)
        self._entries = handle.getMapState("state", KEY, VALUE)

    def handleInputRows(  # noqa: N802 (Spark's name)
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: Any,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        import pandas as pd

        del timerValues
        lane_id = int(key[0])
        arrived = pd.concat(list(rows))
        mine = arrived["stage"] == self._stage
        others = arrived.loc[~mine, COLUMNS]
        if not self._last and len(others):
            yield others
        leaving = passing(others) if self._last else []
        if not mine.any():
            yield from self._to_leave([], leaving)
            return
        output = self._run(lane_id, self._batch(arrived[mine]))
        pieces: list[pl.DataFrame] = []
        if self._direct is not None:
            name, _ = self._direct
            frame = output.sinks.pop(name.removeprefix(SINK), None)
            if frame is not None and frame.height:
                leaving.append(Row(lane_id, OUT, name, rows=frame.height))
                pieces += frame.iter_slices(AT_ONCE)
        leaving += self._leaving(lane_id, output)
        if self._last:
            yield from self._to_leave(pieces, leaving)
        elif leaving:
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

    def _batch(self, arrived: pd.DataFrame) -> LaneBatch:
        """Pages and facts of one batch, by stream."""
        import pandas as pd

        batch = LaneBatch(now=int(arrived["now"].iloc[0]))
        sources = {n.name for n in self._program.graph.sources}
        names = ("stream", "sender", "rows", "greatest", "least", "late", "page")
        columns = (arrived[c] for c in names)
        for stream, sender, rows, greatest, least, late, data in zip(*columns, strict=True):
            says = data is None or stream.startswith(FEEDBACK)
            page = None if says else Page.from_ipc(data)
            if stream in sources:
                facts = batch.facts.setdefault(stream, Facts())
                high, low = (None if pd.isna(end) else int(end) for end in (greatest, least))
                behind = None if late is None else bytes(late)
                facts.add(int(rows), high, low, behind, int(sender))
                if page is not None:
                    batch.entering.setdefault(stream, []).append(page.frame)
            elif stream.startswith(END):
                batch.finished.add(stream.removeprefix(END))
            elif stream.startswith(IDLE):
                batch.idle[stream.removeprefix(IDLE)] = int(greatest)
            elif stream.startswith(BLOCKED):
                batch.blocked[stream.removeprefix(BLOCKED)] = int(greatest)
            elif stream.startswith(FEEDBACK):
                target, reader = stream.removeprefix(FEEDBACK), int(sender)
                words = bytes(data).decode()
                batch.feedback.append(Said(target, words, None if reader < 0 else reader))
            elif stream.startswith(SKIPPED):
                name = stream.removeprefix(SKIPPED)
                batch.skipped[name] = batch.skipped.get(name, 0) + int(rows)
            elif stream.startswith(MADE):
                name = stream.removeprefix(MADE)
                batch.made[name] = batch.made.get(name, 0) + int(rows)
            elif stream.startswith(RAW) and page is not None:
                batch.raw.setdefault(stream.removeprefix(RAW), []).append(page.frame)
            elif stream != CLOCK and page is not None:
                node, port = stream.rsplit(":", 1)
                batch.pages.setdefault(Ref(node, int(port)), []).append((int(sender), page))
        return batch

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

    def _to_leave(self, pieces: list[pl.DataFrame], rows: list[Row]) -> Iterator[pd.DataFrame]:
        """Tuples in columns of their own; below the last of them, pages and notes."""
        schema = None if self._direct is None else self._direct[1]
        columns = [*LEAVING, *map(row_column, () if schema is None else schema.names)]
        tuples = (as_rows(piece, schema) for piece in pieces if schema is not None)
        for _ in pieces[:-1]:
            yield to_spark(next(tuples), columns=columns)
        if pieces or rows:
            yield to_spark(*tuples, to_leaving(rows), columns=columns)

    def _leaving(self, lane_id: int, output: LaneOutput) -> Iterator[Row]:
        for name, frame in output.sinks.items():
            data = Page(self._program.graph.nodes[name].streams[0].schema, frame).to_ipc(name)
            yield Row(lane_id, OUT, f"{SINK}{name}", page=data)
        for name, reached in output.reached.items():
            yield Row(lane_id, OUT, f"{BEAT}{name}", greatest=reached)
        for name, frame in output.late.items():
            data = Page(self._program.graph.nodes[name].outputs[1].schema, frame).to_ipc(name)
            yield Row(lane_id, OUT, f"{LATE}{name}", rows=frame.height, page=data)
        for ref, page in output.onward.items():
            yield from self._onward(lane_id, ref, page)
        if output.wake_at is not None:
            yield Row(lane_id, OUT, WAKE, greatest=output.wake_at)
        for ref, feedback in output.feedback:
            message = Message.of(f"{ref.node}:{ref.port}", feedback)
            entered = ref.node not in self._program.stages[self._stage].nodes
            reader = self._program.reader(ref, self._stage, lane_id) if entered else -1
            row = (f"{FEEDBACK}{message.target}", self._program.lane_ids.index(lane_id), reader)
            yield Row(lane_id, OUT, *row, page=message.text.encode())
        for name, moment in output.unproven.items():
            yield Row(lane_id, OUT, f"{PROOF}{name}", greatest=moment)

    def _onward(self, lane_id: int, ref: Ref, page: Page) -> Iterator[Row]:
        """A page for every lane of every later stage that reads the stream."""
        ids = self._program.lane_ids
        sender = ids.index(lane_id)
        stream = f"{ref.node}:{ref.port}"
        for stage, keys in self._program.readers_of(ref):
            lanes = lane_of(page.frame, keys, len(ids))
            for index, lane in enumerate(ids):
                part = Page(page.schema, page.frame.filter(lanes == index), page.punctuations)
                yield Row(lane, stage, stream, sender, page=part.to_ipc(stream))
