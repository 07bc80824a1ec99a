"""Two streams in batches that a test decides, and what a query over them delivered in each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
from pyspark.sql import DataFrame, Row, SparkSession

from interpunct.spark.files import put

T0 = 1_700_000_000_000_000
SECOND = 1_000_000


def frame(ticks: Sequence[int], *, keys: int = 3, first: int = 0) -> pl.DataFrame:
    """Rows at these ticks; `n` tells them apart."""
    numbers = range(first, first + len(ticks))
    return pl.DataFrame(
        {
            "ts": pl.Series(ticks, dtype=pl.Int64).cast(pl.Datetime("us", "UTC")),
            "key": pl.Series([n % keys for n in numbers], dtype=pl.Int64),
            "n": pl.Series(list(numbers), dtype=pl.Int64),
        }
    )


def steady(start: float, seconds: float, *, per_second: int = 2, first: int = 0) -> pl.DataFrame:
    """A row every half second, say, from `start` seconds after T0."""
    count = int(seconds * per_second)
    step = SECOND // per_second
    return frame([T0 + int(start * SECOND) + i * step for i in range(count)], first=first)


def write(folder: Path, batches: Sequence[pl.DataFrame], *, first: int = 0) -> Path:
    """One Parquet file per batch, in the order that file sources keep."""
    for number, batch in enumerate(batches, first):
        path = folder / f"{number:04d}.parquet"
        put(path, batch.write_parquet, moment=1_700_000_000 + number)
    return folder


def read(spark: SparkSession, folder: Path) -> DataFrame:
    """The folder as a stream, one file a batch."""
    schema = spark.read.parquet(str(folder)).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))


@dataclass
class Delivered:
    """The rows of a query, by batch; a batch that is run again replaces itself."""

    batches: dict[int, list[Row]] = field(default_factory=dict)
    progress: list[Any] = field(default_factory=list)

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        return sorted((tuple(r) for b in self.batches.values() for r in b), key=repr)

    def counts(self) -> list[int]:
        return [len(self.batches[b]) for b in sorted(self.batches)]

    @property
    def read(self) -> int:
        """Rows that Spark read from the sources."""
        return sum(p["numInputRows"] for p in self.progress)

    @property
    def dropped(self) -> int:
        """Rows that Spark itself threw away as late."""
        return sum(
            o["numRowsDroppedByWatermark"] for p in self.progress for o in p["stateOperators"]
        )

    @property
    def late(self) -> dict[str, int]:
        """Late rows that `synchronize` counted among the observed metrics, by stream."""
        found: dict[str, int] = {}
        for name, seen in (m for p in self.progress for m in p["observedMetrics"].items()):
            stream, late, _ = name.rpartition(" late ")
            if late:
                found[stream] = found.get(stream, 0) + seen["late"]
        return found

    @property
    def ahead(self) -> int:
        """Rows that `synchronize` saw dated too far ahead of the clock."""
        observed = [seen for p in self.progress for seen in p["observedMetrics"].values()]
        return sum(seen.asDict().get("ahead", 0) for seen in observed)

    @property
    def greatest(self) -> set[datetime]:
        """The greatest times that `synchronize` saw in the rows of a batch; Spark tells seconds."""
        observed = [seen for p in self.progress for seen in p["observedMetrics"].values()]
        texts = [seen["greatest"] for seen in observed if seen.asDict().get("greatest") is not None]
        return {datetime.fromisoformat(text).replace(tzinfo=UTC) for text in texts}


def run(job: DataFrame, checkpoint: Path, into: Delivered | None = None) -> Delivered:
    """Everything available, then stop."""
    delivered = Delivered() if into is None else into

    def keep(rows: DataFrame, batch: int) -> None:
        delivered.batches[batch] = rows.collect()

    query = (
        job.writeStream.foreachBatch(keep)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    try:
        query.awaitTermination()
    finally:
        query.stop()
    delivered.progress += list(query.recentProgress)
    return delivered
