"""The clock source: wakes a flow that waits for time, and runs no batch when nothing waits.

    lane ─ row with the moment it waits for ─ driver ─ a file ─ ClockReader.latestOffset ─ tick

Its offset moves only when some lane has asked to be woken and the moment has come. The file is a
hint: after a restart the clock ticks once, every lane looks at its state and asks again.

A lane that waits for proof that a source is caught up is woken twice: at the moment that would have
to be proven, so that a batch asks the source, and when Spark has told what it answered. The proof
is part of the offset, so all lanes have it in the same batch, and in that batch run again as well.
"""

from __future__ import annotations

import atexit
import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from interpunct.progress.clock import RealClock
from interpunct.spark.channel import Channel, Message
from interpunct.spark.files import JsonFolder
from interpunct.spark.program import Program
from interpunct.spark.wire import BLOCKED, CLOCK, FEEDBACK, IDLE, WIRE, Note, Row, to_batch

Offset = dict[str, Any]


@dataclass(frozen=True)
class Wanted:
    """What the lanes wait for, in microseconds: the earliest moment, and by source the earliest at
    which it would have to be caught up."""

    wake: int | None = None
    proofs: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Silence:
    """What Spark has told of the sources: when each last had nothing unread, and when it last
    had."""

    idle: dict[str, int] = field(default_factory=dict)
    blocked: dict[str, int] = field(default_factory=dict)


class WakeFile:
    """What the lanes want, in a file that is replaced as a whole; beside it, in another, what is
    known of the sources' silence."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._files = JsonFolder(str(self.path.parent))

    @classmethod
    def passing(cls) -> WakeFile:
        """One in a folder of its own, which goes when the query ends, or this process."""
        wake = cls(Path(tempfile.mkdtemp(prefix="interpunct-")) / "wake")
        atexit.register(wake.remove)
        return wake

    def remove(self) -> None:
        atexit.unregister(self.remove)
        shutil.rmtree(self.path.parent, ignore_errors=True)

    def write(self, wanted: Wanted) -> None:
        """Where the flow's driver runs, which on Spark Connect is not where it was started."""
        self._files.write(self.path.name, asdict(wanted))

    def read(self) -> Wanted:
        return Wanted(**(self._files.read(self.path.name) or {}))

    def tell(self, silence: Silence) -> None:
        self._files.write(f"{self.path.name}-silence", asdict(silence))

    def told(self) -> Silence:
        return Silence(**(self._files.read(f"{self.path.name}-silence") or {}))


class ClockReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """An offset is the moment of the last tick, in microseconds, and what was known by then."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._wake = WakeFile(options["wake"])
        self._lanes: list[tuple[int, int]] = json.loads(options["lanes"])
        self._channel = Channel(options["channel"]) if "channel" in options else None
        self._homes: dict[str, int] = json.loads(options.get("homes", "{}"))
        self._clock = RealClock()
        self._asked: int | None = None  # when it was last asked for its offset
        self._bounded = False

    def initialOffset(self) -> Offset:  # noqa: N802
        return {"tick": 0}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._bounded = True  # a bounded run waits for nobody

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        del limit
        if self._bounded:
            return self._with_feedback(start, start)
        now, before = self._clock.now(), self._asked
        self._asked = now
        if before is None:
            return self._with_feedback(start, {"tick": max(now, start["tick"] + 1)})
        wanted, known = self._wake.read(), self._wake.told()
        if not self._due(start, wanted, known, before, now):
            return self._with_feedback(start, start)
        return self._with_feedback(start, {"tick": now, **asdict(known)})

    def _with_feedback(self, start: Offset, end: Offset) -> Offset:
        """The offset, and the number of the last message taken so far."""
        last: int = start.get("feedback", 0)
        number = last if self._channel is None else self._channel.take(last)
        return {**end, "feedback": number} if number else end

    def commit(self, end: Offset) -> None:
        """What the committed batches carried to the lanes is in their state now."""
        if self._channel is not None and end.get("feedback"):
            self._channel.forget(end["feedback"])

    def _due(self, start: Offset, wanted: Wanted, known: Silence, before: int, now: int) -> bool:
        """Whether a moment has come that was asked for, a proof, or the moment to look for one: a
        batch asks the sources after it has begun, which is after the clock was asked before."""
        if wanted.wake is not None and start["tick"] < wanted.wake <= now:
            return True
        had = start.get("idle", {})
        return any(
            start["tick"] < moment <= before or had.get(name, 0) < moment <= known.idle.get(name, 0)
            for name, moment in wanted.proofs.items()
        )

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        said = start.get("feedback", 0)
        return [InputPartition({**end, "said": said})] if end != start else []

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        known = partition.value
        messages = self._heard(known["said"], known.get("feedback", 0))
        idle, blocked = (known.get(kind, {}).items() for kind in ("idle", "blocked"))
        told = [
            Note(CLOCK),
            *(Note(f"{IDLE}{name}", greatest=at) for name, at in idle),
            *(Note(f"{BLOCKED}{name}", greatest=at) for name, at in blocked),
        ]
        said = {stage: [_feedback(m) for m in found] for stage, found in messages.items()}
        if self._lanes:
            yield to_batch(
                Row.of_notes(lane, stage, [*told, *said.get(stage, ())])
                for stage, lane in self._lanes
            )

    def _heard(self, after: int, upto: int) -> dict[int, list[Message]]:
        """The messages of a batch, by the stage that hears them."""
        found: dict[int, list[Message]] = {}
        for message in self._channel.messages(after, upto) if self._channel is not None else ():
            if message.target in self._homes:
                found.setdefault(self._homes[message.target], []).append(message)
        return found


def _feedback(message: Message) -> Note:
    sender = -1 if message.sender is None else message.sender
    return Note(f"{FEEDBACK}{message.target}", sender, words=message.text)


class ClockSource(DataSource):
    """Format `interpunct-clock`, options `wake`, the file with the wanted moment, and `lanes`, whom
    to wake."""

    @classmethod
    def name(cls) -> str:
        return "interpunct-clock"

    def schema(self) -> StructType:
        return WIRE

    def streamReader(self, schema: StructType) -> ClockReader:  # noqa: N802
        del schema
        return ClockReader(self.options)


def ticks(spark: SparkSession, wake: WakeFile, program: Program) -> DataFrame:
    """The clock as rows on the wire: a tick is a row for every lane of every stage."""
    spark.dataSource.register(ClockSource)
    reader = spark.readStream.format(ClockSource.name()).option("wake", str(wake.path))
    lanes = [[stage.number, lane] for stage in program.stages for lane in program.lane_ids]
    if program.channel is not None:
        reader = reader.option("channel", program.channel.path)
        reader = reader.option("homes", json.dumps(program.homes))
    return reader.option("lanes", json.dumps(lanes)).load()
