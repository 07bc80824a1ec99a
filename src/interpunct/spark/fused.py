"""Fused sources: ingest inside the reader of a source that is ours.

    any source:   read ─ Arrow ─ JVM rows ─ Arrow ─ mapInArrow: Ingest ─ pages
    our sources:  read ─ Ingest ─ pages

A replay or a workload given to a flow as it is makes its frames in a Python task already; ingest
runs there, and tuples never become rows of the JVM. A DataFrame derived from one, by as little as
a filter, is no longer the source's, and takes the long way.
"""

from __future__ import annotations

import base64
import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable
from weakref import WeakKeyDictionary

import polars as pl
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from interpunct.model.pattern import Pattern
from interpunct.model.schema import Schema
from interpunct.spark.assumed import Unread, in_common
from interpunct.spark.ingest import Ingest
from interpunct.spark.rows import spark_schema
from interpunct.spark.session import same_python
from interpunct.spark.wire import WIRE

Offset = dict[str, int]


class FrameReader(Protocol):
    """A reader of ours: a stream reader that can hand out frames."""

    def initialOffset(self) -> Offset: ...  # noqa: N802
    def getDefaultReadLimit(self) -> ReadLimit: ...  # noqa: N802
    def prepareForTriggerAvailableNow(self) -> None: ...  # noqa: N802
    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset: ...  # noqa: N802
    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]: ...
    def frames(self, partition: InputPartition) -> Iterator[pl.DataFrame]: ...
    def ends(self, partition: InputPartition) -> bool: ...


@runtime_checkable
class PruningReader(Protocol):
    """A reader that need not read what nobody wants."""

    def frames_without(
        self, partition: InputPartition, unwanted: Sequence[Pattern]
    ) -> Iterator[pl.DataFrame | Unread]: ...


@dataclass(frozen=True)
class Origin:
    """How a DataFrame of one of our sources was opened."""

    source: type[DataSource]
    options: Mapping[str, str]
    schema: Schema


_origins: WeakKeyDictionary[DataFrame, Origin] = WeakKeyDictionary()


def opened(
    spark: SparkSession, source: type[DataSource], options: Mapping[str, Any], schema: Schema
) -> DataFrame:
    """A streaming DataFrame of one of our sources, which remembers that it is one."""
    same_python(spark)
    spark.dataSource.register(source)
    given = {name: str(value) for name, value in options.items() if value is not None}
    frame = spark.readStream.format(source.name()).schema(schema.ddl).options(**given).load()
    _origins[frame] = Origin(source, given, schema)
    return frame


def fused(frame: DataFrame, ingest: Ingest, raw: Schema) -> DataFrame | None:
    """The pages of a source of ours, straight from its reader; None for any other DataFrame."""
    origin = _origins.get(frame)
    if origin is None or any(
        a.name not in origin.schema or origin.schema[a.name].type != a.type for a in raw.attributes
    ):
        return None
    spark = frame.sparkSession
    spark.dataSource.register(FusedSource)
    inner = (origin.source, spark_schema(raw), ingest)  # parsed here: a task has no JVM
    given = {**origin.options, "fused": base64.b64encode(pickle.dumps(inner)).decode()}
    return spark.readStream.format(FusedSource.name()).options(**given).load()


class FusedReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The offsets and partitions of the inner reader, the pages of ingest."""

    def __init__(self, inner: FrameReader, ingest: Ingest) -> None:
        self._inner, self._ingest = inner, ingest

    def initialOffset(self) -> Offset:  # noqa: N802
        return self._inner.initialOffset()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return self._inner.getDefaultReadLimit()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._inner.prepareForTriggerAvailableNow()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        return self._inner.latestOffset(start, limit)

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        return self._inner.partitions(start, end)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        last = self._inner.ends(partition)
        assumed = self._ingest.assumed()
        unwanted = in_common([a.by_all for a in assumed])
        frames: Iterator[pl.DataFrame | Unread] = self._inner.frames(partition)
        if unwanted and isinstance(self._inner, PruningReader):
            frames = self._inner.frames_without(partition, unwanted)
        return self._ingest.pages(frames, assumed, last=last)


class FusedSource(DataSource):
    """Format `interpunct-fused`; its options are those of the source within it."""

    @classmethod
    def name(cls) -> str:
        return "interpunct-fused"

    def schema(self) -> StructType:
        return WIRE

    def streamReader(self, schema: StructType) -> FusedReader:  # noqa: N802
        del schema
        source, raw, ingest = pickle.loads(base64.b64decode(self.options["fused"]))
        inner = source(self.options).streamReader(raw)
        return FusedReader(inner, ingest)
