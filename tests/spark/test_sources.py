"""The replay and workload sources: the same rows in batches as asked, at the speed asked, and
again the same after a restart."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from pyspark.sql.types import StructType

import interpunct as ip
from interpunct.model.errors import FeedError, SchemaError
from interpunct.model.schema import Schema
from interpunct.spark.options import Options
from interpunct.spark.recording import Recording
from interpunct.spark.replay import ReplayReader
from interpunct.spark.workloads import KINDS, Workload, WorkloadReader, workload
from tests.spark.streams import SECOND, T0, Delivered, frame, run, steady

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")

ROWS = steady(0, 50)  # a hundred


def recorded(folder: Path, kind: str, rows: pl.DataFrame = ROWS) -> str:
    """The rows as one file of a kind, or as a folder of Parquet files with small row groups."""
    path = folder / f"rows.{kind}"
    text = rows.with_columns(pl.col("ts").dt.to_string("iso:strict"))
    if kind == "csv":
        text.write_csv(path)
    elif kind == "jsonl":
        text.write_ndjson(path)
    elif kind == "parquet":
        rows.write_parquet(path)
    else:
        path.mkdir()
        rows.head(33).write_parquet(path / "0.parquet", row_group_size=10)
        rows.slice(33).write_parquet(path / "1.parquet", row_group_size=10)
    return str(path)


def struct(schema: Schema) -> StructType:
    return from_arrow_schema(schema.empty().to_arrow().schema)


class Scripted:
    """A clock that says what it is told."""

    def __init__(self) -> None:
        self.at = 0

    def now(self) -> int:
        return self.at


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet", "folder"])
def test_a_recording_reads_any_range_of_rows_from_any_format(tmp_path: Path, kind: str) -> None:
    recording = Recording.at(recorded(tmp_path, kind))
    assert recording.schema.ddl == "ts timestamp, key bigint, n bigint"
    assert recording.rows == 100
    for start, end in [(0, 100), (0, 1), (30, 36), (99, 100), (40, 40)]:
        found = [recording.schema.empty(), *recording.read(start, end, ["ts", "key", "n"])]
        assert pl.concat(found).rows() == ROWS.slice(start, end - start).rows()
    assert recording.arrivals("ts")[:2].tolist() == [T0, T0 + SECOND // 2]


def test_replay_delivers_every_row_once_in_batches_as_asked_and_goes_on_after_a_restart(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = tmp_path / "rows"
    folder.mkdir()
    ROWS.head(60).write_parquet(folder / "0.parquet")
    delivered = Delivered()
    for part in (ROWS.head(0), ROWS.slice(60)):
        part.write_parquet(folder / "1.parquet")
        rows = ip.replay(spark, str(folder), rows_per_batch=25, columns=["n", "ts"])
        run(rows.select("n", F.unix_micros("ts")), tmp_path / "check", delivered)
    assert sorted(n for n, _ in delivered.rows) == list(range(100))
    assert delivered.counts() == [25, 25, 10, 25, 15]


def test_a_paced_replay_gives_rows_when_their_arrival_says(tmp_path: Path) -> None:
    path = recorded(tmp_path, "parquet")
    options = {"path": path, "arrival": "ts", "speed": "10"}
    reader = ReplayReader(struct(Recording.at(path).schema), options)
    clock = Scripted()
    reader._clock = clock  # type: ignore[assignment]
    everything = ReadAllAvailable()
    assert reader.latestOffset({"row": 0}, everything) == {"row": 1}
    clock.at = SECOND  # ten seconds of the recording: rows at 0, 0.5 … 10.0
    assert reader.latestOffset({"row": 1}, everything) == {"row": 21}
    assert reader.latestOffset({"row": 1}, ReadMaxRows(5)) == {"row": 6}
    clock.at = 3600 * SECOND
    assert reader.latestOffset({"row": 21}, everything) == {"row": 100}
    assert reader.latestOffset({"row": 100}, everything) == {"row": 100}
    assert reader.partitions({"row": 100}, {"row": 100}) == []


def test_a_replay_that_cannot_be_is_refused_with_a_fix(spark: SparkSession, tmp_path: Path) -> None:
    path = recorded(tmp_path, "parquet")
    with pytest.raises(FeedError, match="nothing there"):
        ip.replay(spark, str(tmp_path / "absent"))
    recorded(tmp_path, "csv")
    with pytest.raises(FeedError, match="files of one kind"):
        ip.replay(spark, str(tmp_path))
    with pytest.raises(FeedError, match="Name one of ts, key, n"):
        ip.replay(spark, path, speed=1.0)
    with pytest.raises(SchemaError, match="got 'when'"):
        ip.replay(spark, path, speed=1.0, arrival="when")
    with pytest.raises(SchemaError, match="got 'x'"):
        ip.replay(spark, path, columns=["x"])
    unordered = recorded(tmp_path, "jsonl", frame([T0 + 1, T0]))
    with pytest.raises(FeedError, match="Sort the recording"):
        ip.replay(spark, unordered, speed=1.0, arrival="ts")
    source = spark.readStream.format("interpunct-replay").option("ROWSPERBATCH", "many")
    with pytest.raises(AnalysisException, match="option 'path': expected a value"):
        source.load()
    with pytest.raises(StreamingQueryException, match="option 'rowsPerBatch'"):
        run(source.option("path", path).load(), tmp_path / "check")


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_workload_is_a_poisson_stream_that_any_cut_into_batches_leaves_the_same(
    kind: str,
) -> None:
    options = {"kind": kind, "rate": "40", "seed": "3", "disorder": "5s", "disordered": "0.3"}
    load = Workload.of(Options("workload", options))
    whole = load.rows(0, 600)  # a minute
    assert whole.equals(pl.concat([load.rows(0, 1), load.rows(1, 350), load.rows(350, 600)]))
    assert whole.schema == load.kind.schema.polars
    assert abs(whole.height - 2400) < 5 * np.sqrt(2400)
    behind = (whole["arrived"] - whole["ts"]).cast(pl.Int64)
    assert whole["arrived"].is_sorted()
    assert 0 < behind.max() < 5 * SECOND  # type: ignore[operator]
    assert abs((behind > 0).mean() - 0.3) < 0.05  # type: ignore[operator]
    other = Workload.of(Options("workload", {**options, "seed": "4"})).rows(0, 600)
    assert not whole.equals(other)


def test_a_workload_is_quiet_when_asked_and_ends_when_asked(
    spark: SparkSession, tmp_path: Path
) -> None:
    made = {"rate": 40, "seconds": 10, "quietFrom": 2, "quietFor": 5, "rowsPerBatch": 40}
    rows = workload(spark, "poisson", **made).select(F.unix_micros("arrived").alias("at"))
    delivered = run(rows, tmp_path)
    seconds = [(at - 1_767_225_600 * SECOND) // SECOND for (at,) in delivered.rows]
    assert set(seconds) == {0, 1, 7, 8, 9}
    text = {name: str(value) for name, value in made.items()}
    expected = Workload.of(Options("workload", {"kind": "poisson", **text})).rows(0, 100)
    assert delivered.rows == sorted(
        expected.select(pl.col("arrived").cast(pl.Int64)).rows(), key=repr
    )


def test_a_paced_workload_comes_with_the_clock() -> None:
    options = {"kind": "traffic", "speed": "2", "rate": "10"}
    reader = WorkloadReader(struct(KINDS["traffic"].schema), options)
    clock = Scripted()
    reader._clock = clock  # type: ignore[assignment]
    assert reader.latestOffset({"slot": 0}, ReadAllAvailable()) == {"slot": 0}
    clock.at = SECOND
    assert reader.latestOffset({"slot": 0}, ReadAllAvailable()) == {"slot": 20}
    assert reader.latestOffset({"slot": 0}, ReadMaxRows(5)) == {"slot": 5}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "option 'kind'"),
        ({"kind": "weather"}, "traffic, auction, poisson, leases"),
        ({"kind": "poisson", "rate": "0"}, "a number above 0"),
        ({"kind": "poisson", "disordered": "1.5"}, "at most 1"),
        ({"kind": "poisson", "start": "noon"}, "an ISO timestamp"),
        ({"kind": "poisson", "seed": "x"}, "a whole number"),
    ],
)
def test_a_workload_that_cannot_be_is_refused_with_a_fix(
    options: dict[str, str], message: str
) -> None:
    with pytest.raises(FeedError, match=message):
        Workload.of(Options("workload", options))
