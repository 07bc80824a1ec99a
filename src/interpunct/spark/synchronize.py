"""Synchronize: DataFrames whose native Spark watermark is our heartbeat.

    A:  10:00:05   10:00:41   10:01:12 …         heartbeat of both = greatest seen on A or B − δ
    B:  10:00:07   (quiet)

As long as one stream sends, skew bounds move the heartbeats of all (Heartbeats section 3.3). Every
ingest task tells every lane the greatest timestamp it saw; the lanes of each stream take its late
rows out, and tell Spark how far time has come with a punctuation row. That row exists only as far
as the watermark: a filter removes it again, and `observe` keeps Spark from pushing that filter, or
one of the user's, below the watermark.

Two ways to release rows, with the same watermark:

at once   The watermark's delay is δ, and a punctuation row is dated at the greatest timestamp on
          any stream. No row is dated later, so Spark computes: greatest − δ, our heartbeat.
held      Rows wait in their lane until the heartbeat covers them; the delay is zero and
          punctuation is dated at the heartbeat. Needed where bounds have a delay, because a row
          passed on at once would move Spark's watermark before that delay is over; and where they
          are learned, because Spark's delay cannot follow a δ that moves.

Either way a row released in a batch is above the heartbeat of the batch before, which is the
watermark that Spark compares it with: Spark never drops one.

A row dated too far ahead of the clock must not move Spark's watermark when it passes. Then that is
taken of a column of its own, in which such a row has no say, and the time column is marked as the
one that Spark is to compare with it.
"""

from __future__ import annotations

import uuid
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import reduce

import polars as pl
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, StructField, StructType

from interpunct.flow.builder import FlowBuilder
from interpunct.model.durations import duration
from interpunct.model.errors import (
    ExpressionError,
    FeedError,
    FlowError,
    SchemaError,
    levels_to_the_user,
)
from interpunct.model.late import SOURCE as STREAM
from interpunct.model.late import late_schema
from interpunct.model.page import Page
from interpunct.model.schema import FIRST_YEAR, LAST_YEAR, START_OF_TIME, Schema
from interpunct.progress.adaptive import Adaptive
from interpunct.progress.timestamps import UNSAID, Bounds, external
from interpunct.spark.compile import (
    batch_time,
    ingested,
    late_rows,
    leaving_columns,
    unpacked,
)
from interpunct.spark.processor import LaneProcessor
from interpunct.spark.rows import arrow_schema, column, ddl_of, to_batches
from interpunct.spark.session import check_session
from interpunct.spark.synchronized import Synchronized
from interpunct.spark.synchronizing import HELD, SOURCE, Synchronizing
from interpunct.spark.wire import BEAT, LATE, SINK, Note, row_column

_WATERMARKED = "spark.watermarkDelayMs"  # what Spark writes into a time column's metadata
_RELEASED = "released"
_NOTED_BEAT = f'["{BEAT}'  # how the note of a heartbeat begins
_GREATEST = f"$[{Note._fields.index('greatest')}]"  # where a note has it
MILLISECOND = 1_000  # microseconds


def synchronize(
    *frames: DataFrame,
    time: str | None = None,
    bounds: Bounds | Adaptive | None = None,
    lanes: int = 2,
    hold: bool | None = None,
    names: Sequence[str] | None = None,
    future: str | timedelta | int | None = None,
) -> Synchronized:
    """One DataFrame per input with the same columns and a watermark that all inputs move.

    `bounds.skew` (δ) says that no row of any stream comes δ or more behind the greatest timestamp
    seen before it on any of them. Rows that do are in `.late`, with the reason, and with what the
    stream is called in `names`. Where δ is learned it is the greatest of what each stream needs to
    be as complete as was asked for. A row dated more than `future` after the clock does not move
    time.
    """
    if not frames:
        raise FlowError(
            "synchronize", "one or more DataFrames", "none", "synchronize(readings, alerts, …)"
        )
    if not isinstance(time, str):
        raise SchemaError(
            "synchronize", "time= the name of a column",
            "none" if time is None else f"a {type(time).__name__}", "time='ts'",
        )  # fmt: skip
    if not isinstance(hold, bool | None):
        raise FlowError("synchronize", "hold=True or False", repr(hold), "Or leave it out.")
    bounds = _checked_bounds(bounds)
    called = _checked_names(names, len(frames))
    waits = isinstance(bounds, Adaptive) or bounds.delay > 0
    if waits and hold is False:
        raise FlowError(
            "synchronize", "rows held where the bounds have a delay or are learned",
            f"hold=False with {bounds}",
            "Leave hold out, or give bounds(skew=…) without a delay.",
        )  # fmt: skip
    hold = waits if hold is None else hold
    ahead = None if future is None else duration(future, "synchronize(future=…)")
    branches = [
        _branch((number, len(frames)), name, frame, time, bounds, lanes, hold, ahead)
        for number, (name, frame) in enumerate(zip(called, frames, strict=True))
    ]
    check_session(frames[0].sparkSession, lanes)
    # One shuffle, written once and read by every branch that a query uses.
    entering = [b.ingested() for b in branches]
    shuffled = reduce(DataFrame.union, entering).repartition("lane")
    leaving = [b.leaving(shuffled) for b in branches]
    released = [b.released(rows) for b, rows in zip(branches, leaving, strict=True)]
    late = [b.late(rows) for b, rows in zip(branches, leaving, strict=True)]
    return Synchronized.of(released, late, called)


@dataclass(frozen=True)
class _Branch:
    """One of the streams, and the program that releases its rows."""

    name: str
    called: str  # by the user; state and checkpoint know nothing of it
    frame: DataFrame
    schema: Schema
    skew: int  # from the heartbeat to the greatest timestamp; 0 where rows are held
    future: int | None  # how far after the clock a row that passes may be dated and still move time
    program: Synchronizing

    @property
    def time(self) -> str:
        return self.schema.ordered_by

    def ingested(self) -> DataFrame:
        """Pages of this stream, and facts about it for every lane."""
        (source,) = self.program.graph.sources
        return ingested(self.program, source, self.frame)

    def leaving(self, shuffled: DataFrame) -> DataFrame:
        """What leaves the lanes of this stream. What is meant for others is emptied, not filtered:
        Spark would filter before the shuffle, which would be another one for every stream."""
        mine = F.when(F.col("stage") == self.program.number, F.col("load")).alias("load")
        rows = shuffled.select("lane", F.lit(0).alias("stage"), mine, batch_time().alias("now"))
        return rows.groupBy("lane").transformWithStateInPandas(
            LaneProcessor(self.program, 0, last=True),
            leaving_columns(self.program), "append", "none",
        )  # fmt: skip

    def released(self, leaving: DataFrame) -> DataFrame:
        """The rows, with the heartbeat as their watermark. Late ones are counted among the query's
        observed metrics, whether or not somebody reads them."""
        unique = uuid.uuid4().hex[:8]  # no two observations of a session may share a name
        mark = _fresh("punctuation", self.frame.columns)
        counted = leaving.observe(f"{self.called} late {unique}", late_rows())
        marked = self._rows if self.program.direct is not None else self._unpacked
        row, believed = ~column(mark), self._believed()
        seen = [F.max(F.when(row & believed, column(self.time))).alias("greatest")]
        if self.future is not None:
            seen.append(F.count_if(row & ~believed).alias("ahead"))
        return (
            self._watermarked(marked(counted, mark), mark)
            .observe(f"{self.called} {unique}", *seen)
            .filter(~column(mark))
            .drop(mark)
        )

    def _believed(self) -> Column:
        """Whether a row is dated no further ahead of the clock than may be."""
        if self.future is None:
            return F.lit(True)
        return F.unix_micros(column(self.time)) <= batch_time() + self.future

    def _watermarked(self, rows: DataFrame, mark: str) -> DataFrame:
        """With Spark's watermark, which rows dated too far ahead of the clock do not move;
        punctuations speak of no such rows."""
        milliseconds = -(-self.skew // 1000)  # Spark counts in these; rounded up it drops nothing
        delay = f"{milliseconds} milliseconds"
        if self.future is None:
            return rows.withWatermark(self.time, delay)
        moving, time = _fresh("moving", rows.columns), column(self.time)
        believed = column(mark) | self._believed()
        no_say = F.timestamp_micros(F.lit(FIRST_YEAR))
        marked = time.alias(self.time, metadata={_WATERMARKED: milliseconds})
        return (
            rows.withColumn(moving, F.when(believed, time).otherwise(no_say))
            .withWatermark(moving, delay)
            .select(*(marked if name == self.time else column(name) for name in rows.columns))
        )

    def _rows(self, leaving: DataFrame, mark: str) -> DataFrame:
        """Tuples that left as rows, and a punctuation row for each heartbeat, marked."""
        stream = F.col("stream")
        is_row, is_beat = stream.isNull(), stream.startswith(_NOTED_BEAT)
        reached = F.get_json_object(stream, _GREATEST).cast("long")
        first, last = (F.lit(year - self.skew) for year in (FIRST_YEAR, LAST_YEAR))
        date = F.timestamp_micros(F.least(F.greatest(reached, first), last) + self.skew)
        columns = {name: column(row_column(name)) for name in self.schema.names}
        columns[self.time] = F.when(is_row, columns[self.time]).otherwise(date)
        return leaving.filter(is_row | (is_beat & (reached > START_OF_TIME))).select(
            *(value.alias(name) for name, value in columns.items()), stream.isNotNull().alias(mark)
        )

    def _unpacked(self, leaving: DataFrame, mark: str) -> DataFrame:
        """The same where tuples left in pages, as those with nested values do."""
        stream = F.col("stream")
        target = StructType([StructField(f.name, f.dataType) for f in self.frame.schema])
        marked = StructType([*target, StructField(mark, BooleanType())])
        release = _Release(self.time, self.skew, arrow_schema(marked))
        wanted = (stream == f"{SINK}{_RELEASED}") | stream.startswith(_NOTED_BEAT)
        return leaving.filter(wanted).mapInArrow(release, marked)

    def late(self, leaving: DataFrame) -> DataFrame:
        """The late rows."""
        rows = unpacked(leaving, f"{LATE}{self.name}", late_schema(self.schema))
        return rows.withColumn(STREAM, F.lit(self.called))


@dataclass(frozen=True)
class _Release:
    """For `mapInArrow`: pages back to rows, and heartbeats to punctuation rows."""

    time: str
    skew: int  # from the heartbeat to the date of the punctuation row
    target: pa.Schema  # ends with the mark that tells punctuation from rows

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for note, data in zip(batch.column(0), batch.column(1), strict=True):
                if data.is_valid:
                    frame = Page.from_ipc(data.as_buffer()).frame
                    marked = frame.with_columns(pl.lit(False).alias(self.target.names[-1]))
                    yield from to_batches(marked, self.target)
                    continue
                heartbeat = Note.of(note.as_py()).greatest
                if heartbeat is not None and heartbeat > START_OF_TIME:
                    yield self._punctuation(heartbeat + self.skew)

    def _punctuation(self, date: int) -> pa.RecordBatch:
        date = min(max(date, FIRST_YEAR), LAST_YEAR)
        arrays = [pa.nulls(1, field.type) for field in self.target]
        at = self.target.get_field_index(self.time)
        arrays[at] = pa.array([date], pa.int64()).cast(self.target.field(at).type)
        arrays[-1] = pa.array([True])
        return pa.RecordBatch.from_arrays(arrays, schema=self.target)


# Checks ----------------------------------------------------------------------------------------


def _branch(
    place: tuple[int, int],  # the number of the DataFrame, and of how many
    called: str,
    frame: DataFrame,
    time: str,
    bounds: Bounds | Adaptive,
    lanes: int,
    hold: bool,
    future: int | None,
) -> _Branch:
    number, frames = place
    name = SOURCE.format(number)
    where = f"synchronize, DataFrame {number}" + ("" if called == name else f" ({called})")
    if not hasattr(frame, "isStreaming"):
        raise FeedError(
            where, "a DataFrame", f"a {type(frame).__name__}",
            "Pass the DataFrames one by one: synchronize(readings, alerts, time='ts').",
        )  # fmt: skip
    if not frame.isStreaming:
        raise FeedError(
            where, "a streaming DataFrame", "a static one", "Read it with spark.readStream."
        )
    if time not in frame.columns:
        alike = [f"time={name!r}?" for name in frame.columns if name.lower() == time.lower()]
        raise SchemaError(
            where, f"a column {time!r}", f"columns {', '.join(frame.columns)}",
            *alike[:1] or [f"Where it has another name: df.withColumnRenamed('…', {time!r})."],
        )  # fmt: skip
    found = frame.schema[time]
    if found.dataType.simpleString() != "timestamp":  # Spark has no watermark on another type
        raise SchemaError(
            where, f"a timestamp in {time!r}", f"a {found.dataType.simpleString()}",
            f"df.withColumn({time!r}, F.to_timestamp({time!r})); of a number, by what it counts: "
            "F.timestamp_seconds, F.timestamp_millis or F.timestamp_micros.",
        )  # fmt: skip
    if any(_WATERMARKED in field.metadata for field in frame.schema):
        raise FeedError(
            where, "no watermark yet", "one set with withWatermark",
            "Remove that line: synchronize sets the watermark, from its bounds.",
        )  # fmt: skip
    columns = ddl_of(frame.schema, where)
    flow = FlowBuilder("synchronize")
    try:
        timed = external(time, bounds, ets="never", future=future)
        stream = flow.source(name, columns, time=timed)
    except (SchemaError, ExpressionError) as error:
        raise type(error)(where, error.expected, error.got, error.fix) from None
    flow.sink(_RELEASED, stream.sort(name=HELD) if hold else stream)
    program = replace(Synchronizing.of(flow.graph, lanes), number=number, streams=frames)
    skew = 0 if hold or isinstance(bounds, Adaptive) else bounds.skew
    ahead = None if hold else future  # no row that was held is ahead of the heartbeat
    return _Branch(name, called, frame, stream.schema, skew, ahead, program)


def _checked_bounds(bounds: Bounds | Adaptive | None) -> Bounds | Adaptive:
    if bounds is None:
        warnings.warn(
            f"synchronize: no bounds are given, so they are learned, and nothing comes out until a "
            f"stream has brought {UNSAID.least_rows:,} rows. Where streams are short, say how far "
            "behind a row may come: bounds=ip.bounds(skew='30s'). If learning is what you want, "
            "bounds=ip.adaptive() says so.", stacklevel=levels_to_the_user(),
        )  # fmt: skip
        return UNSAID
    if not isinstance(bounds, Bounds | Adaptive):
        raise FlowError(
            "synchronize", "bounds= ip.bounds(skew=…) or ip.adaptive(…)", repr(bounds),
            "ip.bounds(skew='30s')",
        )  # fmt: skip
    if isinstance(bounds, Bounds) and 0 < bounds.skew < MILLISECOND:
        raise FlowError(
            "synchronize", "a skew that Spark's watermark can tell from none, which is 1ms",
            f"{bounds.skew} microseconds", f"A number counts microseconds: skew='{bounds.skew}s'?",
        )  # fmt: skip
    return bounds


def _checked_names(names: Sequence[str] | None, frames: int) -> Sequence[str]:
    """What the late rows call their streams."""
    if names is None:
        return [SOURCE.format(number) for number in range(frames)]
    if isinstance(names, str) or len(set(names)) != frames or len(names) != frames:
        raise FlowError(
            "synchronize", f"{frames} different names, one for each DataFrame", repr(names),
            "names=('readings', 'alerts')",
        )  # fmt: skip
    return names


def _fresh(name: str, taken: Sequence[str]) -> str:
    while name in taken:
        name = f"_{name}"
    return name
