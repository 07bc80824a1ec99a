"""Workloads: made-up streams for demonstrations and experiments, the same again for the same seed.

    spark.dataSource.register(WorkloadSource)
    spark.readStream.format("interpunct-workload").option("kind", "traffic").load()

| kind    | columns beside `ts` and `arrived` | rows per second |
|---------|-----------------------------------|-----------------|
| traffic | segment, detector, speed          | 100             |
| auction | auction, bidder, price            | 100             |
| poisson | key, value                        | 50              |
| leases  | machine, tenant, until            | 20              |

Arrivals are a Poisson process of `rate` rows per second of stream time, which begins at `start`.
`ts` is when a row was made: `arrived`, less a delay of up to `disorder` for a share `disordered` of
the rows. From `quietFrom` on nothing comes for `quietFor` seconds. The stream ends after `seconds`;
with `finish` a flow that is given it is told so, unless it ends in the quiet.
With `speed` it comes at that many seconds a second, else as fast as it is taken, about
`rowsPerBatch` rows at a time; `partitions` tasks read a batch.

Stream time is cut into slots of a tenth of a second, each with a generator of its own, seeded by
its number. An offset is `{"slot": n}`: what is read again after a restart is the same again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
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

from interpunct.model.durations import duration
from interpunct.model.errors import FeedError
from interpunct.model.schema import Schema, to_ticks
from interpunct.progress.clock import RealClock
from interpunct.spark.fused import opened
from interpunct.spark.options import Options
from interpunct.spark.rows import arrow_schema, to_batches
from interpunct.spark.warm import freeze_first

SECOND = 1_000_000
SLOT = SECOND // 10
_DAY = 86_400 * SECOND
_AUCTION_LASTS = 60  # seconds; one opens each second

Ticks = npt.NDArray[np.int64]
Columns = dict[str, npt.NDArray[np.int64] | npt.NDArray[np.float64]]
Offset = dict[str, int]


def _traffic(random: np.random.Generator, ts: Ticks) -> Columns:
    """Speeds that sink twice a day, not everywhere at the same time."""
    segment = random.integers(0, 100, ts.size)
    phase = 4 * np.pi * ts / _DAY + segment / 10
    speed = 45 + 15 * np.sin(phase) + random.normal(0, 6, ts.size)
    detector = segment * 10 + random.integers(0, 10, ts.size)
    return {"segment": segment, "detector": detector, "speed": speed.clip(0, 120)}


def _auction(random: np.random.Generator, ts: Ticks) -> Columns:
    """Bids on the auctions open at the time; the longer one is open, the higher."""
    age = random.integers(0, _AUCTION_LASTS, ts.size)
    price = random.lognormal(3, 0.5, ts.size) * (1 + age / _AUCTION_LASTS)
    bidder = random.integers(0, 1000, ts.size)
    return {"auction": ts // SECOND - age, "bidder": bidder, "price": price.round(2)}


def _poisson(random: np.random.Generator, ts: Ticks) -> Columns:
    return {"key": random.integers(0, 10, ts.size), "value": random.random(ts.size)}


def _leases(random: np.random.Generator, ts: Ticks) -> Columns:
    """A tenant takes a machine, for ten minutes on average."""
    until = ts + (random.exponential(600, ts.size) * SECOND).astype(np.int64)
    machine, tenant = random.integers(0, 500, ts.size), random.integers(0, 50, ts.size)
    return {"machine": machine, "tenant": tenant, "until": until}


@dataclass(frozen=True)
class Kind:
    """What rows of a kind consist of."""

    number: int  # so that two kinds with one seed differ
    columns: str  # DDL
    rate: float
    make: Callable[[np.random.Generator, Ticks], Columns]

    @property
    def schema(self) -> Schema:
        return Schema.of(f"ts timestamp, arrived timestamp, {self.columns}")


KINDS = {
    "traffic": Kind(0, "segment bigint, detector bigint, speed double", 100.0, _traffic),
    "auction": Kind(1, "auction bigint, bidder bigint, price double", 100.0, _auction),
    "poisson": Kind(2, "key bigint, value double", 50.0, _poisson),
    "leases": Kind(3, "machine bigint, tenant bigint, until timestamp", 20.0, _leases),
}


def kind_of(options: Options) -> Kind:
    name = options.text("kind")
    if name not in KINDS:
        raise FeedError(
            "workload source, option 'kind'", f"one of {', '.join(KINDS)}", repr(name),
            '.option("kind", "traffic")',
        )  # fmt: skip
    return KINDS[name]


@dataclass(frozen=True)
class Workload:
    """The rows of every slot."""

    kind: Kind
    seed: int = 0
    rate: float = 1.0
    start: int = 0  # microseconds
    disorder: int = 0
    disordered: float = 0.1
    quiet: tuple[int, int] = (0, 0)  # slots, the second excluded

    @classmethod
    def of(cls, options: Options) -> Workload:
        kind = kind_of(options)
        first = round(options.number("quietFrom", 0.0) * SECOND) // SLOT
        lasts = round(options.number("quietFor", 0.0) * SECOND) // SLOT
        return cls(
            kind,
            options.whole("seed", 0),
            options.number("rate", kind.rate, above=0.0),
            _moment(options.text("start", "2026-01-01T00:00:00+00:00")),
            duration(options.text("disorder", "0s"), "workload source, option 'disorder'"),
            options.number("disordered", 0.1, most=1.0),
            (first, first + lasts),
        )

    def rows(self, first: int, last: int) -> pl.DataFrame:
        """The rows of the slots from `first` up to `last`, in the order of their arrival."""
        schema = self.kind.schema
        quiet_from, quiet_until = self.quiet
        made = [self._slot(n) for n in range(first, last) if not quiet_from <= n < quiet_until]
        if not made:
            return schema.empty()
        columns = {name: np.concatenate([c[name] for c in made]) for name in schema.names}
        return pl.DataFrame(columns).cast(schema.polars)  # type: ignore[arg-type]

    def _slot(self, number: int) -> Columns:
        random = np.random.default_rng([self.seed, self.kind.number, number])
        count = random.poisson(self.rate * SLOT / SECOND)
        arrived = self.start + number * SLOT + np.sort(random.integers(0, SLOT, count))
        delayed = random.random(count) < self.disordered
        ts = arrived - (delayed * random.random(count) * self.disorder).astype(np.int64)
        return {"ts": ts, "arrived": arrived, **self.kind.make(random, ts)}


def _moment(text: str) -> int:
    try:
        return to_ticks(datetime.fromisoformat(text))
    except ValueError:
        raise FeedError(
            "workload source, option 'start'", "an ISO timestamp", repr(text),
            '.option("start", "2026-01-01T00:00:00+00:00")',
        ) from None  # fmt: skip


@dataclass(frozen=True)
class Slots(InputPartition):
    """Slots `first` up to `last`, made by one task."""

    first: int
    last: int


class WorkloadReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """On the driver it chooses offsets; in the tasks `read` makes the rows."""

    def __init__(self, schema: StructType, options: Mapping[str, str]) -> None:
        found = Options("workload", options)
        self._workload = Workload.of(found)
        self._speed = found.positive("speed")
        default = 10_000 if self._speed is None else 0
        self._rows = found.whole("rowsPerBatch", default)
        self._tasks = found.whole("partitions", default=1, least=1)
        seconds = found.positive("seconds")
        self._end = None if seconds is None else round(seconds * SECOND) // SLOT
        self._finish = found.flag("finish")
        self._schema = schema
        self._clock = RealClock()
        self._began: tuple[int, int] | None = None  # clock and slot when the stream began

    def initialOffset(self) -> Offset:  # noqa: N802
        return {"slot": 0}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxRows(self._rows) if self._rows else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        if self._end is None:
            raise FeedError(
                "workload source", "an end where all that is available is asked for",
                "an endless stream", '.option("seconds", 60)',
            )  # fmt: skip
        self._speed = None

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        end = self._come(start["slot"], limit)
        if self._end is not None:
            end = min(end, self._end)
        return {"slot": max(end, start["slot"])}

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        first, slots = start["slot"], end["slot"] - start["slot"]
        quiet_from, quiet_until = self._workload.quiet
        if quiet_from <= first and first + slots <= quiet_until:
            return []
        cuts = [first + slots * i // self._tasks for i in range(self._tasks + 1)]
        return [Slots(a, b) for a, b in pairwise(cuts) if b > a]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        freeze_first(WorkloadReader)
        for frame in self.frames(partition):
            yield from to_batches(frame, arrow_schema(self._schema))

    def ends(self, partition: InputPartition) -> bool:
        assert isinstance(partition, Slots)
        return self._finish and partition.last == self._end

    def frames(self, partition: InputPartition) -> Iterator[pl.DataFrame]:
        assert isinstance(partition, Slots)
        rows = self._workload.rows(partition.first, partition.last)
        yield rows.select(self._schema.fieldNames())

    def _come(self, start: int, limit: ReadLimit) -> int:
        """The slots that have come by now, as far as a batch may take them."""
        per_slot = self._workload.rate * SLOT / SECOND
        most = None
        if isinstance(limit, ReadMaxRows):
            most = start + max(1, int(limit.max_rows / per_slot))
        if self._speed is None:
            if most is None:
                most = start + max(1, int(10_000 / per_slot))
            return most
        now = self._clock.now()
        if self._began is None:
            self._began = (now, start)
        began, origin = self._began
        come = origin + int((now - began) * self._speed) // SLOT
        return come if most is None else min(come, most)


class WorkloadSource(DataSource):
    """Format `interpunct-workload`."""

    @classmethod
    def name(cls) -> str:
        return "interpunct-workload"

    def schema(self) -> str:
        return kind_of(Options("workload", self.options)).schema.ddl

    def streamReader(self, schema: StructType) -> WorkloadReader:  # noqa: N802
        return WorkloadReader(schema, self.options)


def workload(spark: SparkSession, kind: str, **options: str | float) -> DataFrame:
    """A made-up stream as a DataFrame; `options` are those above, as `rowsPerBatch=1000`."""
    given = {"kind": kind, **{name: str(value) for name, value in options.items()}}
    schema = kind_of(Options("workload", given)).schema
    return opened(spark, WorkloadSource, given, schema)
