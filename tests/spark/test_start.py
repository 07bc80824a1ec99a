"""What `flow.start` is given: feeds and sinks that do not fit are refused in the user's words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import interpunct as ip
from interpunct.model.errors import FlowError, SchemaError


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


@pytest.mark.parametrize("trigger", ["5 seconds", {"procTime": "5 seconds"}, {}], ids=str)
def test_a_trigger_is_asked_for_as_it_is_written(
    trigger: Any, spark: SparkSession, tmp_path: Path
) -> None:
    feed = spark.readStream.format("rate").load().selectExpr("value", "timestamp AS ts")
    with pytest.raises(FlowError, match=r"Write trigger={'processingTime': '5 seconds'}"):
        readings().start(
            spark, {"s": feed}, checkpoint=str(tmp_path), sinks={"o": "out"}, trigger=trigger
        )
