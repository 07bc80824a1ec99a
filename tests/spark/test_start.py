"""What `flow.start` is given: feeds and sinks that do not fit are refused in the user's words."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from pyspark.sql import DataFrame, SparkSession

import interpunct as ip
from interpunct.model.errors import FlowError, SchemaError
from interpunct.model.values import quoted
from interpunct.spark.files import put
from interpunct.spark.workloads import workload
from interpunct.spark.writers import Writer


def readings() -> ip.Flow:
    flow = ip.Flow("readings")
    source = flow.source("s", "value bigint, ts timestamp", time=ip.external("ts", ordered=True))
    flow.sink("o", source)
    return flow


def test_a_feed_without_a_column_is_told_which(spark: SparkSession, tmp_path: Path) -> None:
    feed = spark.readStream.format("rate").load().selectExpr("timestamp AS ts")
    with pytest.raises(SchemaError) as error:
        readings().start(spark, {"s": feed}, checkpoint=str(tmp_path), sinks={"o": "out"})
    assert str(error.value) == (
        "feed of source 's': expected a column 'value', got columns ts. Rename or add the column."
    )


@pytest.mark.parametrize(("sinks", "got"), [({}, "none"), ({"sink:o": "out"}, "sink:o")], ids=str)
def test_sinks_are_asked_for_by_the_names_to_write(
    sinks: dict[str, str], got: str, spark: SparkSession, tmp_path: Path
) -> None:
    feed = spark.readStream.format("rate").load().selectExpr("value", "timestamp AS ts")
    with pytest.raises(FlowError) as error:
        readings().start(spark, {"s": feed}, checkpoint=str(tmp_path), sinks=sinks)
    assert str(error.value) == (
        "flow 'readings': expected a path or function for each of o (and, if it is to go elsewhere,"
        f" of late:s), got {got}. sinks={{'o': 'path or function(rows, batch)'}}"
    )


def test_two_outputs_do_not_share_a_path(spark: SparkSession, tmp_path: Path) -> None:
    flow = readings()
    flow.sink("p", flow.source("t", "value bigint, ts timestamp", time=ip.internal("at")))
    feed = spark.readStream.format("rate").load().selectExpr("value", "timestamp AS ts")
    out, late = tmp_path / "out", tmp_path / "c" / "late" / "s"
    for sinks in ({"o": out, "p": f"{out}/"}, {"o": out, "p": late}):
        with pytest.raises(FlowError, match="a path of its own for each output, got") as error:
            flow.start(spark, {"s": feed, "t": feed}, checkpoint=str(tmp_path / "c"), sinks=sinks)
        assert error.value.fix == "Give one of them another path."


def test_a_query_answers_to_the_words_of_pyspark(spark: SparkSession, tmp_path: Path) -> None:
    feed = workload(spark, "poisson", seed=1, rate=10, rowsPerBatch=50, seconds=5)
    query = readings().start(
        spark, {"s": feed.selectExpr("key AS value", "ts")}, checkpoint=str(tmp_path / "c"),
        sinks={"o": tmp_path / "out"}, trigger={"availableNow": True},
    )  # fmt: skip
    assert query.awaitTermination()
    assert not query.isActive
    assert query.exception() is None
    assert query.lastProgress["name"] == query.name == "readings"
    with pytest.raises(AttributeError, match="'FlowQuery' object has no attribute 'explained'"):
        query.explained


@pytest.mark.parametrize("trigger", ["5 seconds", {"procTime": "5 seconds"}, {}], ids=str)
def test_a_trigger_is_asked_for_as_it_is_written(
    trigger: Any, spark: SparkSession, tmp_path: Path
) -> None:
    feed = spark.readStream.format("rate").load().selectExpr("value", "timestamp AS ts")
    with pytest.raises(FlowError, match=r"Write trigger={'processingTime': '5 seconds'}"):
        readings().start(
            spark, {"s": feed}, checkpoint=str(tmp_path), sinks={"o": "out"}, trigger=trigger
        )


def test_columns_of_any_name_enter_and_leave(spark: SparkSession, tmp_path: Path) -> None:
    names = ["user id", "a.b", "d`x", "läng", "null"]
    rows = pl.DataFrame({**{name: [f"{name} {i}" for i in range(3)] for name in names},
                         "ts": pl.Series([1, 2, 60], dtype=pl.Int64)})  # fmt: skip
    put(tmp_path / "in" / "0.parquet", rows.write_parquet, moment=1)
    ddl = ", ".join(f"{quoted(name)} string" for name in names) + ", ts bigint"
    flow = ip.Flow("odd")
    visits = flow.source("visits", ddl, time=ip.external("ts", ordered=True))
    flow.sink("kept", visits.where("`a.b` <> 'a.b 1'").with_columns(later="ts + 1"))
    feed = spark.readStream.schema(ddl).parquet(str(tmp_path / "in"))
    for run, sinks in enumerate([{"kept": tmp_path / "kept"}, {"kept": kept_rows(tmp_path)}]):
        query = flow.start(
            spark, {"visits": feed}, checkpoint=str(tmp_path / f"c{run}"), sinks=sinks,
            trigger={"availableNow": True},
        )  # fmt: skip
        query.await_termination()
    found = pl.read_parquet(tmp_path / "kept" / "**" / "*.parquet", hive_partitioning=False)
    expected = rows.filter(pl.col("a.b") != "a.b 1").with_columns(later=pl.col("ts") + 1)
    assert found.sort("ts").equals(expected)
    assert pl.read_parquet(tmp_path / "by hand.parquet").sort("ts").equals(expected)


def kept_rows(folder: Path) -> Writer:
    def keep(rows: DataFrame, batch: int) -> None:
        found = pl.from_arrow(rows.toArrow())
        assert isinstance(found, pl.DataFrame)
        if found.height:
            found.write_parquet(folder / "by hand.parquet")

    return keep


def started(spark: SparkSession, flow: ip.Flow, feeds: Any, **how: Any) -> str:
    """What is said to a flow that is started so."""
    with pytest.raises(ip.InterpunctError) as error:
        flow.start(spark, feeds, **how)
    return str(error.value)


def test_feeds_that_are_no_streams_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    how = {"checkpoint": str(tmp_path), "sinks": {"o": tmp_path / "out"}}
    static = spark.sql("SELECT 1L AS value, TIMESTAMP '2024-01-01' AS ts")
    assert started(spark, readings(), {"s": static}, **how).startswith(
        "feed of source 's': expected a streaming DataFrame, got a static one. Read it with"
    )
    assert "a streaming DataFrame, got a list" in started(spark, readings(), {"s": [(1, 2)]}, **how)
    assert "one DataFrame for each of ['s'], got a DataFrame" in started(
        spark, readings(), static, **how
    )
    swapped: Any = {"s": static}
    assert "a SparkSession first, and then the feeds, got a dict" in started(
        swapped, readings(), spark, **how
    )
    lanes = started(spark, readings(), {"s": static}, lanes=0, **how)
    assert lanes.startswith("lanes=…: expected at least one, got 0")


def test_a_folder_of_results_belongs_to_one_query(spark: SparkSession, tmp_path: Path) -> None:
    """Batches of a new checkpoint count from 0 and would replace those that are there."""
    feed = workload(spark, "poisson", seed=1, rate=10, rowsPerBatch=50, seconds=5)
    feeds, out = {"s": feed.selectExpr("key AS value", "ts")}, tmp_path / "out"
    how: dict[str, Any] = {"sinks": {"o": out}, "trigger": {"availableNow": True}}
    for _ in range(2):  # the second goes on with the same checkpoint
        query = readings().start(spark, feeds, checkpoint=str(tmp_path / "one"), **how)
        assert query.awaitTermination()
    written = spark.read.parquet(str(out)).count()
    assert written > 0
    refused = started(spark, readings(), feeds, checkpoint=str(tmp_path / "two"), **how)
    assert refused == (
        f"flow 'readings': expected a path in which no other query has written, got {out} with "
        f"batches of another one, whose checkpoint is {tmp_path / 'one'}. They would be replaced: "
        "give it another path, or go on with that checkpoint."
    )
    shutil.rmtree(tmp_path / "one")  # a checkpoint that begins anew is another one
    assert "no other query" in started(
        spark, readings(), feeds, checkpoint=str(tmp_path / "one"), **how
    )
    (out / "_interpunct.json").unlink()  # as earlier versions left it
    assert "batches of another one. They" in started(
        spark, readings(), feeds, checkpoint=str(tmp_path / "two"), **how
    )
    assert spark.read.parquet(str(out)).count() == written
