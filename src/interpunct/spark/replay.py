"""Replay: recorded rows as a stream, as fast as possible or at the speed at which they arrived.

    spark.dataSource.register(ReplaySource)
    spark.readStream.format("interpunct-replay").option("path", "rides.parquet").load()

Options: `path`, a Parquet, CSV or JSON Lines file or a folder of such; `rowsPerBatch`, the most
rows of a batch (all there are); `partitions`, the tasks that read a batch (2); `speed`, 1 for the
speed of the recording, 60 for a minute a second (without it: as fast as possible); `arrival`, the
column with each row's moment of arrival, needed for `speed` only: a timestamp, or a number of
seconds; `finish`, true when nothing will ever follow the last row. Rows are replayed in the order
of the files, which must be that of their arrival.

An offset is `{"row": n}`: the n rows before it have been read. A stream that is started again goes
on at its offset, and its clock goes on with the arrival of the row there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from interpunct.model.errors import FeedError
from interpunct.model.pattern import Pattern
from interpunct.progress.clock import RealClock
from interpunct.spark.assumed import Unread
from interpunct.spark.fused import opened
from interpunct.spark.options import Options
from interpunct.spark.recording import Recording
from interpunct.spark.rows import arrow_schema, to_batches
from interpunct.spark.warm import freeze_first

Offset = dict[str, int]


@dataclass(frozen=True)
class Range(InputPartition):
    """Rows `start` up to `end`, read by one task."""

    start: int
    end: int


class ReplayReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """On the driver it chooses offsets; in the tasks `read` yields record batches."""

    def __init__(self, schema: StructType, options: Mapping[str, str]) -> None:
        found = Options("replay", options)
        self._recording = Recording.at(found.text("path"))
        self._rows = found.whole("rowsPerBatch", default=0)
        self._tasks = found.whole("partitions", default=2, least=1)
        self._speed = found.positive("speed")
        self._arrival = found.text("arrival", default="")
        self._finish = found.flag("finish")
        self._schema = schema
        self._clock = RealClock()
        self._began: tuple[int, int] | None = None  # clock and arrival of the first row replayed
        if self._speed is not None:
            self._recording.check_arrival(self._arrival)

    # On the driver ----------------------------------------------------------------------------

    def initialOffset(self) -> Offset:  # noqa: N802
        return {"row": 0}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxRows(self._rows) if self._rows else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._speed = None  # what is available now is all of it

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        end = self._arrived(start["row"])
        if isinstance(limit, ReadMaxRows):
            end = min(end, start["row"] + limit.max_rows)
        return {"row": max(end, start["row"])}

    def reportLatestOffset(self) -> Offset:  # noqa: N802
        return {"row": self._recording.rows}

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        first, rows = start["row"], end["row"] - start["row"]
        cuts = [first + rows * i // self._tasks for i in range(self._tasks + 1)]
        return [Range(a, b) for a, b in pairwise(cuts) if b > a]

    @cached_property
    def _arrivals(self) -> npt.NDArray[np.int64]:
        return self._recording.arrivals(self._arrival)

    def _arrived(self, start: int) -> int:
        """How many rows have arrived by now, on the recording's clock."""
        if self._speed is None or start >= self._recording.rows:
            return self._recording.rows
        now = self._clock.now()
        if self._began is None:
            self._began = (now, int(self._arrivals[start]))
        began, origin = self._began
        until = origin + int((now - began) * self._speed)
        return int(np.searchsorted(self._arrivals, until, side="right"))

    # In a task --------------------------------------------------------------------------------

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        freeze_first(ReplayReader)
        target = arrow_schema(self._schema)
        for frame in self.frames(partition):
            yield from to_batches(frame, target)

    def ends(self, partition: InputPartition) -> bool:
        """Whether the stream has finished once this range is read."""
        assert isinstance(partition, Range)
        return self._finish and partition.end == self._recording.rows

    def frames(self, partition: InputPartition) -> Iterator[pl.DataFrame]:
        """The frames of a range of rows."""
        assert isinstance(partition, Range)
        frames = self._recording.read(partition.start, partition.end, self._schema.fieldNames())
        return (frame for frame in frames if isinstance(frame, pl.DataFrame))

    def frames_without(
        self, partition: InputPartition, unwanted: Sequence[Pattern]
    ) -> Iterator[pl.DataFrame | Unread]:
        """The same, but for parts that the files' own statistics show to be unwanted as a whole."""
        assert isinstance(partition, Range)
        columns = self._schema.fieldNames()
        return self._recording.read(partition.start, partition.end, columns, unwanted)


class ReplaySource(DataSource):
    """Format `interpunct-replay`."""

    @classmethod
    def name(cls) -> str:
        return "interpunct-replay"

    def schema(self) -> str:
        path = Options("replay", self.options).text("path")
        return Recording.at(path).schema.ddl

    def streamReader(self, schema: StructType) -> ReplayReader:  # noqa: N802
        return ReplayReader(schema, self.options)


def replay(
    spark: SparkSession,
    path: str,
    *,
    arrival: str | None = None,
    speed: float | None = None,
    rows_per_batch: int | None = None,
    partitions: int = 2,
    columns: Sequence[str] | None = None,
    finish: bool = False,
) -> DataFrame:
    """Recorded rows as a streaming DataFrame: all its columns, or only those named.

    With `speed` the rows come when their `arrival` says, 1.0 being the speed of the recording;
    without, as fast as they are taken, `rows_per_batch` at a time. With `finish` a flow that is
    given this DataFrame as it is learns that nothing follows the last row, and waits no longer.
    """
    recording = Recording.at(path)
    if speed is not None:
        if arrival is None:
            raise FeedError(
                f"replay of {path}", "arrival='column' with speed=…", "no arrival column",
                f"Name one of {', '.join(recording.schema.names)}.",
            )  # fmt: skip
        recording.check_arrival(arrival)
    schema = recording.schema if columns is None else recording.only(columns)
    options = {
        "path": path, "arrival": arrival, "speed": speed, "partitions": partitions,
        "rowsPerBatch": rows_per_batch, "finish": str(finish).lower(),
    }  # fmt: skip
    return opened(spark, ReplaySource, options, schema)
