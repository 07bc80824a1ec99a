"""The clock source: wakes a flow that waits for time, and runs no batch when nothing waits.

    lane ─ row with the moment it waits for ─ driver ─ a file ─ ClockReader.latestOffset ─ tick

Its offset moves only when some lane has asked to be woken and the moment has come. The file is a
hint: after a restart the clock ticks once, every lane looks at its state and asks again.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from interpunct.progress.clock import RealClock
from interpunct.spark.program import Program
from interpunct.spark.wire import CLOCK, WIRE, Row, to_batch

Offset = dict[str, int]


class WakeFile:
    """The earliest moment (µs) any lane waits for, in a file that is replaced as a whole."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def write(self, moment: int | None) -> None:
        """Where the flow's driver runs, which on Spark Connect is not where it was started."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=self.path.parent)
        with os.fdopen(handle, "w") as out:
            out.write("" if moment is None else str(moment))
        os.replace(temporary, self.path)

    def read(self) -> int | None:
        try:
            text = self.path.read_text()
        except FileNotFoundError:
            return None
        return int(text) if text else None


class ClockReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """An offset is the moment of the last tick, in microseconds."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._wake = WakeFile(options["wake"])
        self._lanes: list[tuple[int, int]] = json.loads(options["lanes"])
        self._clock = RealClock()
        self._started = False
        self._bounded = False

    def initialOffset(self) -> Offset:  # noqa: N802
        return {"tick": 0}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._bounded = True  # a bounded run waits for nobody

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        del limit
        if self._bounded:
            return start
        now = self._clock.now()
        if not self._started:
            self._started = True
            return {"tick": max(now, start["tick"] + 1)}
        wanted = self._wake.read()
        due = wanted is not None and start["tick"] < wanted <= now
        return {"tick": now} if due else start

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        return [InputPartition(end["tick"])] if end != start else []

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        del partition
        yield to_batch([Row(lane, stage, CLOCK) for stage, lane in self._lanes])


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
    return reader.option("lanes", json.dumps(lanes)).load()
