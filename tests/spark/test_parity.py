"""The same flow over the same batches gives the same rows in process and on Spark."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from pyspark.sql import DataFrame, SparkSession

from interpunct.flow.nodes import SourceNode
from interpunct.spark.rows import spark_schema
from tests.spark.scenario import batches, comparable, everything, in_process, write_files

ROOT = Path(__file__).parents[2]


def files_of(spark: SparkSession, source: SourceNode, folder: Path) -> DataFrame:
    """A source's files as a stream, one a batch."""
    reader = spark.readStream.schema(spark_schema(source.raw)).option("maxFilesPerTrigger", 1)
    return reader.parquet(str(folder / source.name))


def on_spark(spark: SparkSession, folder: Path, lanes: int) -> dict[str, pl.DataFrame]:
    """Run the flow over files, one a batch and source, and read its sinks back."""
    flow = everything()
    feeds = {n.name: files_of(spark, n, folder) for n in flow.graph.sources}
    out = folder / "out"
    query = flow.start(
        spark, feeds,
        checkpoint=str(folder / "checkpoint"),
        sinks={n.name: str(out / n.name) for n in flow.graph.sinks},
        lanes=lanes, trigger={"availableNow": True},
    )  # fmt: skip
    query.await_termination()
    found = {n.name: out / n.name for n in flow.graph.sinks}
    late = folder / "checkpoint" / "late"
    found |= {f"late:{p.name}": p for p in late.glob("*")} if late.exists() else {}
    return {name: read(path) for name, path in found.items() if written(path)}


def written(path: Path) -> bool:
    """Whether there are rows; a sink's folder bears its query's name before there are any."""
    return any(path.glob("**/*.parquet"))


def read(path: Path) -> pl.DataFrame:
    """Spark's Parquet without its partition column, timestamps as the flow has them."""
    frame = pl.read_parquet(path / "**/*.parquet").drop("batch", strict=False)
    times = [n for n, t in frame.schema.items() if isinstance(t, pl.Datetime)]
    return frame.with_columns(pl.col(times).dt.cast_time_unit("us").dt.replace_time_zone("UTC"))


def check_parity(spark: SparkSession, folder: Path, lanes: int) -> None:
    data = batches()
    write_files(data, folder)
    expected = in_process(everything(), data)
    got = on_spark(spark, folder, lanes)
    assert set(got) == set(expected)
    for name, frame in expected.items():
        assert comparable(got[name]) == comparable(frame), name
        assert len(comparable(frame)) > 0 or name.startswith("late"), name


def test_every_operator_gives_the_same_rows_as_in_process(
    spark: SparkSession, tmp_path: Path
) -> None:
    check_parity(spark, tmp_path, lanes=2)


@pytest.mark.slow
def test_every_operator_gives_the_same_rows_in_executors_of_their_own(tmp_path: Path) -> None:
    """`local-cluster` has separate executor processes, and a driver of its own here."""
    script = (
        "import interpunct as ip; from pathlib import Path; "
        "from tests.spark.test_parity import check_parity; "
        "spark = ip.session(2, master='local-cluster[2,1,1024]'); "
        f"check_parity(spark, Path({str(tmp_path)!r}), lanes=2); spark.stop()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
