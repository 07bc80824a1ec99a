"""PACE and IMPUTE on Spark: the plan of Experiment 1, a backlog in state, a budget a batch."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
from pyspark.sql import SparkSession

import interpunct as ip
from tests.spark.test_parity import read, written

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


def test_the_imputation_plan_fills_or_reports_every_tuple(
    spark: SparkSession, tmp_path: Path
) -> None:
    """With a budget too small for one batch the backlog waits in state and wakes the next; what
    is too late by then leaves by PACE's late output."""
    rows = readings(100)
    (tmp_path / "in").mkdir()
    rows.write_parquet(tmp_path / "in" / "1.parquet")
    flow = plan(archive(tmp_path), batch=10, budget="1ms")
    feed = spark.readStream.schema(DDL).parquet(str(tmp_path / "in"))
    out, late = tmp_path / "map", tmp_path / "c" / "late"
    query = flow.start(
        spark, {"sensors": feed}, checkpoint=str(tmp_path / "c"), sinks={"map": str(out)}
    )
    try:
        for _ in range(300):
            query.query.processAllAvailable()
            got = read(out) if written(out) else rows.clear()
            behind = sum(read(p).height for p in late.glob("*")) if late.exists() else 0
            if got.height + behind == rows.height:
                break
    finally:
        query.stop()
    assert got.height + behind == rows.height
    assert query.query.lastProgress["batchId"] > 1, "one batch was not enough"
    filled = rows.with_columns(pl.col("speed").fill_null(40.0 + pl.col("segment")))
    assert got.select(rows.columns).join(filled, on=rows.columns, how="anti").is_empty()
    clean = rows.filter(pl.col("speed").is_not_null())
    assert clean.join(got, on=rows.columns, how="anti").is_empty(), "clean tuples set the pace"
