"""Compile a flow to Structured Streaming.

    source DataFrames ─ mapInArrow: Ingest ─ union ─ shuffle by lane ─
        transformWithStateInPandas: stage 0 ─ shuffle by lane ─ stage 1 … ─ rows that leave

Every row on the way is a page. What leaves early, and what is meant for a later stage, passes
through the stages in between, so that the whole flow is one chain and nothing is computed twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from interpunct.flow.graph import Graph
from interpunct.flow.nodes import SourceNode
from interpunct.model.errors import FeedError, SchemaError
from interpunct.model.page import Page
from interpunct.model.schema import Schema
from interpunct.operators.source import source_schema
from interpunct.spark.clock import WakeFile, ticks
from interpunct.spark.fused import fused
from interpunct.spark.ingest import Ingest, Target
from interpunct.spark.processor import LaneProcessor
from interpunct.spark.program import Program
from interpunct.spark.rows import arrow_schema, column, nullable, spark_schema, to_batches
from interpunct.spark.wire import LATE, WIRE, row_column, with_rows


def compiled(
    program: Program, feeds: Mapping[str, DataFrame], wake: WakeFile | None = None
) -> DataFrame:
    """A streaming DataFrame of the rows that leave the flow, as pages.

    With `wake` the flow has a clock of its own and is woken when its lanes wait for time.
    """
    sources = {n.name: n for n in program.graph.sources}
    if not isinstance(feeds, Mapping) or sources.keys() != feeds.keys():
        raise FeedError(
            f"flow {program.graph.name!r}", f"one DataFrame for each of {sorted(sources)}",
            f"{sorted(feeds)}" if isinstance(feeds, Mapping) else f"a {type(feeds).__name__}",
            "feeds={'source': DataFrame, …}",
        )  # fmt: skip
    entering = [ingested(program, sources[name], frame) for name, frame in feeds.items()]
    if wake is not None:
        entering.append(ticks(entering[0].sparkSession, wake, program))
    rows = reduce(DataFrame.union, entering)
    last = len(program.stages) - 1
    for stage in program.stages:
        timed = rows.withColumn("now", batch_time())
        ends = stage.number == last
        processor = LaneProcessor(program, stage.number, last=ends)
        rows = timed.groupBy("lane").transformWithStateInPandas(
            processor, leaving_columns(program) if ends else WIRE, "append", "none"
        )
    return rows


def leaving_columns(program: Program) -> StructType:
    """Pages and notes, and the columns of the sink whose tuples leave as rows, if there is one."""
    tuples = StructType() if program.direct is None else spark_schema(program.direct[1])
    return with_rows(tuples)


def batch_time() -> Column:
    """When the batch began, in microseconds.

    Plainly asked for, the moment is written into the code that Spark generates, which is therefore
    compiled anew in every batch. To sort an array it generates none: one of one moment is sorted,
    and the code stays the same.
    """
    return F.unix_micros(F.array_sort(F.array(F.current_timestamp()))[0])


def ingested(program: Program, source: SourceNode, frame: DataFrame) -> DataFrame:
    """A source's DataFrame as rows on the wire."""
    checked = _checked(source, frame)
    schema = source.raw
    if source.time.attribute in schema.names:
        schema = source_schema(schema, source.time)
    targets = program.targets(source.name)
    ingest = Ingest(
        _prefixes(program, targets), source.name, schema, source.time, targets, program.lane_ids,
        program.hints, program.listeners(source.name),
    )  # fmt: skip
    return fused(frame, ingest, source.raw) or checked.mapInArrow(ingest, WIRE)


def _prefixes(program: Program, targets: Iterable[Target]) -> Graph:
    """The nodes that run before the shuffle, or tell there what lane a tuple belongs to: every task
    is sent these, and not the whole flow."""
    names = {n for t in targets for n in (*t.prefix.nodes, t.prefix.aggregate) if n is not None}
    names |= {n for t in targets for key in t.keys for n in key.through}
    return Graph(program.graph.name, [n for n in program.graph if n.name in names])


def _checked(source: SourceNode, frame: DataFrame) -> DataFrame:
    """The columns the source declares, cast where that loses nothing, and numbered: PySpark finds
    no column for Python whose name has to be quoted."""
    where = f"feed of source {source.name!r}"
    if not hasattr(frame, "isStreaming") or not frame.isStreaming:
        static = "a static one" if hasattr(frame, "isStreaming") else f"a {type(frame).__name__}"
        raise FeedError(
            where, "a streaming DataFrame", static,
            "Read it with spark.readStream; flow.run(…) takes rows, frames and Polars.",
        )  # fmt: skip
    wanted = spark_schema(source.raw)
    columns = []
    for number, field in enumerate(wanted):
        if field.name not in frame.columns:
            raise SchemaError.missing_column(where, field.name, frame.columns)
        got = nullable(frame.schema[field.name].dataType)
        if got != field.dataType and not _widens(got.simpleString(), field.dataType.simpleString()):
            raise SchemaError.wrong_type(
                where, field.name, field.dataType.simpleString(), got.simpleString()
            )
        columns.append(column(field.name).cast(field.dataType).alias(f"column_{number}"))
    return frame.select(*columns)


def _widens(got: str, wanted: str) -> bool:
    order = ["tinyint", "smallint", "int", "bigint", "double"]
    if got == "float":
        return wanted == "double"
    return got in order and wanted in order and order.index(got) < order.index(wanted)


@dataclass(frozen=True)
class Unpack:
    """For `mapInArrow`: pages back to rows, punctuation removed."""

    target: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for data in batch.column(0):
                yield from to_batches(Page.from_ipc(data.as_buffer()).frame, self.target)


@dataclass(frozen=True)
class Leaving:
    """What leaves a flow, by name, and how to get at its rows."""

    schemas: Mapping[str, Schema]
    direct: str | None = None  # the output whose rows leave as rows

    def rows_of(self, leaving: DataFrame, name: str) -> DataFrame:
        """The rows of one sink or late output."""
        if name != self.direct:
            return unpacked(leaving, name, self.schemas[name])
        mine, columns = self._of_direct
        return leaving.filter(mine).select(*columns)

    @cached_property
    def _of_direct(self) -> tuple[Column, list[Column]]:
        """Which rows leave as rows, and their columns: made once, since each costs as much as a
        call to the JVM or two."""
        assert self.direct is not None
        names = self.schemas[self.direct].names
        columns = [column(row_column(name)).alias(name) for name in names]
        return F.col("stream").isNull(), columns


def late_rows() -> Column:
    """How many rows of a batch were late, by what the lanes note of them."""
    stream = F.col("stream")
    noted = F.get_json_object(stream, "$[2]").cast("long")  # the rows of a note
    late = F.when(stream.startswith(f'["{LATE}'), noted).otherwise(0)
    return F.coalesce(F.sum(late), F.lit(0)).alias("late")


def unpacked(rows: DataFrame, stream: str, schema: Schema) -> DataFrame:
    """The rows of an output that leaves as pages."""
    target = spark_schema(schema)
    pages = rows.filter(F.col("stream") == stream).select("page")
    return pages.mapInArrow(Unpack(arrow_schema(target)), target)
