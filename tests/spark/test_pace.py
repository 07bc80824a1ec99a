"""PACE and IMPUTE on Spark: the plan of Experiment 1, a backlog in state, a budget a batch."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
from pyspark.sql import SparkSession

import interpunct as ip
from tests.spark.test_parity import read

pytestmark = pytest.mark.xdist_group("spark")

DDL = "segment bigint, ts timestamp, speed double"
START = datetime(2026, 1, 1, tzinfo=UTC)


def archive(folder: Path) -> str:
    path = folder / "archive.db"
    with sqlite3.connect(path) as database:
        database.execute("create table readings (segment integer, speed real)")
        rows = [(s, 40.0 + s) for s in range(9)]
        database.executemany("insert into readings values (?, ?)", rows)
    return f"sqlite:///{path}"


def plan(address: str, **options: object) -> ip.Flow:
    """Clean tuples go straight on, dirty ones by way of the archive (Feedback Figure 4 (a))."""
    flow = ip.Flow("imputation")
    sensors = flow.source("sensors", DDL, time=ip.external("ts", ordered=True, ets="never"))
    clean, dirty = sensors.split("speed is not null")
    look_up = "select speed from readings where segment = :segment"
    filled = dirty.impute("speed", archive=address, query=look_up, **options)  # type: ignore[arg-type]
    flow.sink("map", clean.pace(filled, within="60s"))
    return flow


def readings(count: int) -> pl.DataFrame:
    """Clean and dirty tuples in turn, a second apart."""
    return pl.DataFrame(
        {
            "segment": [n % 9 for n in range(count)],
            "ts": [START + timedelta(seconds=n) for n in range(count)],
            "speed": [50.0 if n % 2 == 0 else None for n in range(count)],
        },
        schema_overrides={"ts": pl.Datetime("us", "UTC"), "speed": pl.Float64},
    )


def test_the_imputation_plan_gives_the_same_rows_on_spark_as_in_process(
    spark: SparkSession, tmp_path: Path
) -> None:
    address, rows = archive(tmp_path), readings(100)
    expected = plan(address).run({"sensors": rows}, clock=ip.ScriptedClock())
    (tmp_path / "in").mkdir()
    rows.write_parquet(tmp_path / "in" / "1.parquet")
    flow = plan(address, batch=10, budget="1ms")
    feed = spark.readStream.schema(DDL).parquet(str(tmp_path / "in"))
    query = flow.start(
        spark,
        {"sensors": feed},
        checkpoint=str(tmp_path / "c"),
        sinks={"map": str(tmp_path / "map")},
    )
    try:
        for _ in range(20):  # each batch does what its budget allows, and wakes the next
            query.query.processAllAvailable()
            got = read(tmp_path / "map") if (tmp_path / "map").exists() else rows.clear()
            late = tmp_path / "c" / "late"
            behind = sum(read(p).height for p in late.glob("*")) if late.exists() else 0
            if got.height + behind == rows.height:
                break
    finally:
        query.stop()
    columns = expected["map"].columns
    if behind:  # what had to wait for a later batch may have come too late for PACE
        assert got.select(columns).join(expected["map"], on=columns, how="anti").is_empty()
    else:
        assert sorted(got.select(columns).rows()) == sorted(expected["map"].rows())
    assert got.filter(pl.col("speed").is_null()).is_empty()
    assert got.height + behind == rows.height
