"""Replicas of a query: each writes what it finds as elements, and one merger reads them all.

    home/elements/replica=a/   00000003-0.parquet   insert …          rows of batch 3
                               00000003-1.parquet   stable(10:05)     how far its sink has come
    home/elements/replica=b/   …                                      the same table, told by b

    flow.start(spark, feeds, checkpoint=…, sinks={"speeds": ElementFiles(home, "a", schema)})
    merged(spark, home, schema)                        the merge of all that write there

A row of a sink is final: it becomes an event that starts at its time and lasts `lifetime` ticks.
The sink's heartbeat h becomes stable(h + 1), since nothing at or below h will follow (Punctuate).
So replicas that compute the same rows are equivalent (LMerge section I: high availability), however
they batch, delay and order them. Sums of floating-point numbers depend on that order: round them,
or sum whole numbers.

The merger tells replicas that are behind which rows are past, and they leave them out (section
V-D); what it has quarantined is in `lmerge.quarantined(merger_checkpoint(home))`.

A batch that a restarted replica runs again finds its files there and leaves them: the merger may
have read them, and Spark's checkpoint makes the batch the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import polars as pl
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from interpunct.model.elements import (
    HEAD,
    INSERT,
    KIND,
    STABLE,
    VE,
    VOLD,
    VS,
    element_schema,
    framed,
    infinity,
    ticks_expr,
)
from interpunct.model.errors import FlowError
from interpunct.model.properties import Properties
from interpunct.model.schema import START_OF_TIME, Schema
from interpunct.spark.channel import Channel
from interpunct.spark.files import put
from interpunct.spark.lmerge import lmerge
from interpunct.spark.lmerge_batches import ATTACH, DETACH, mark
from interpunct.spark.lmerge_relay import Feeder
from interpunct.spark.merge_sink import collected
from interpunct.spark.rows import spark_schema

REPLICA = "replica"
_ROWS, _STABLE = 0, 1


def elements_of(sink: Schema) -> Schema:
    """The elements in which a sink's rows are told: its time becomes vs, the rest the payload."""
    if sink.time is None:
        raise FlowError("replica", "a sink with a time", sink.ddl, "Keep the time attribute.")
    payload = tuple(a for a in sink.attributes if a.name != sink.time)
    return element_schema(Schema(payload), sink[sink.time].type)


@dataclass(frozen=True)
class ElementFiles:
    """The writer of a replica: for `sinks={…}` of a flow on Spark."""

    home: str | Path
    name: str
    sink: Schema  # of the sink's rows
    lifetime: int = 1

    def __call__(self, rows: DataFrame, batch: int) -> None:
        schema = elements_of(self.sink)
        path = self._path(batch, _ROWS)
        if path.exists():
            return
        found = collected(rows, self.sink)
        start = ticks_expr(self.sink.ordered_by)
        payload = [pl.col(n) for n in schema.names[len(HEAD) :]]
        columns = [
            pl.lit(INSERT).alias(KIND), start.alias(VS), pl.lit(None, pl.Int64).alias(VOLD),
            (start + self.lifetime).alias(VE), *payload,
        ]  # fmt: skip
        put(path, framed(schema, found, columns).write_parquet)

    def reached(self, ticks: int, batch: int) -> None:
        """The sink's heartbeat after a batch."""
        schema = elements_of(self.sink)
        path = self._path(batch, _STABLE)
        if ticks > START_OF_TIME and not path.exists():
            at = min(ticks + 1, infinity(schema))
            put(path, mark(schema, STABLE, at).write_parquet)

    def attach(self, guaranteed_from: int) -> None:
        """Say, before anything else, from when this replica shows every event."""
        path = self.folder / "attach.parquet"
        if not path.exists():
            put(path, mark(elements_of(self.sink), ATTACH, guaranteed_from).write_parquet)

    def detach(self) -> None:
        """Say, after everything else, that this replica has ended for good."""
        leaves = mark(elements_of(self.sink), DETACH, 0)
        put(self.folder / "detach.parquet", leaves.write_parquet)

    @property
    def detached(self) -> bool:
        return (self.folder / "detach.parquet").exists()

    @property
    def folder(self) -> Path:
        return replica_folder(self.home, self.name)

    def _path(self, batch: int, part: int) -> Path:
        return self.folder / f"{batch:08d}-{part}.parquet"


def replica_folder(home: str | Path, name: str) -> Path:
    return Path(home) / "elements" / f"{REPLICA}={name}"


def told(home: str | Path, name: str, *, batch: int | None = None) -> pl.DataFrame | None:
    """What a replica has told, up to a batch of its own or until now; None if nothing."""
    paths = sorted(replica_folder(home, name).glob("[0-9]*-*.parquet"))
    kept = [p for p in paths if batch is None or int(p.name.partition("-")[0]) <= batch]
    return pl.concat([pl.read_parquet(p) for p in kept]) if kept else None


def stable_of(home: str | Path, name: str) -> int:
    """How far a replica has come, in ticks: what it said last, since its stables never go back."""
    paths = sorted(replica_folder(home, name).glob(f"[0-9]*-{_STABLE}.parquet"))
    return _greatest(pl.read_parquet(paths[-1]), VS) if paths else START_OF_TIME


def guaranteed_after(home: str | Path, name: str, batch: int) -> int:
    """From when a copy of a replica that goes on after this batch shows every event: later than
    anything that was told, and than what was stable."""
    frame = told(home, name, batch=batch)
    if frame is None:
        return START_OF_TIME
    stable = _greatest(frame.filter(pl.col(KIND) == STABLE), VS)
    last = _greatest(frame.filter(pl.col(KIND) == INSERT), VE)
    return max(stable, last + 1 if last > START_OF_TIME else last)


def merged(
    spark: SparkSession,
    home: str | Path,
    sink: Schema,
    *,
    keyed: bool = True,
    lanes: int = 2,
    lifetime: int = 1,
) -> DataFrame:
    """The merge of all replicas that write below this home, also of those that come later. Its
    query's checkpoint is `merger_checkpoint(home)`."""
    folder = Path(home) / "elements"
    folder.mkdir(parents=True, exist_ok=True)
    columns = spark_schema(elements_of(sink))
    everything = StructType([*columns, StructField(REPLICA, StringType())])
    frame = spark.readStream.schema(everything).parquet(str(folder))
    known = Properties(insert_only=False, keyed=keyed)
    return lmerge(
        frame, by=REPLICA, properties=known, lanes=lanes,
        checkpoint=str(merger_checkpoint(home)), upstream=Replicas(str(home), lifetime),
    )  # fmt: skip


@dataclass(frozen=True)
class Replicas:
    """The queries behind the inputs of a home's merger, by their names; each has one sink, which a
    rewritten one may call otherwise."""

    home: str
    lifetime: int

    def get(self, name: str, /) -> Feeder | None:
        checkpoint = str(checkpoint_of(self.home, name))
        sinks = Channel.of(checkpoint).sinks()
        return Feeder(checkpoint, sinks[0], self.lifetime) if len(sinks) == 1 else None


def checkpoint_of(home: str | Path, name: str) -> Path:
    return Path(home) / "replicas" / name / "checkpoint"


def merger_checkpoint(home: str | Path) -> Path:
    return Path(home) / "merger" / "checkpoint"


def _greatest(frame: pl.DataFrame, column: str) -> int:
    found = frame.select(ticks_expr(column)).to_series().max()
    return found if isinstance(found, int) else START_OF_TIME
