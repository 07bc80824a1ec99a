"""Learned bounds and blame on Spark: the same numbers from the same arrivals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from pyspark.sql import SparkSession

import interpunct as ip

ROWS, BATCH, SEED = 6_000, 500, 11


def arrivals() -> pl.DataFrame:
    """A tuple a tick, most a little late, a few very late."""
    print("seed", SEED)
    random = np.random.default_rng(SEED)
    delay = random.integers(0, 40, ROWS) + (random.random(ROWS) < 0.01) * 400
    return pl.DataFrame({"id": np.arange(ROWS), "ts": 1000 + np.arange(ROWS) - delay})


def flow() -> ip.Flow:
    flow = ip.Flow("learned")
    policy = ip.adaptive(completeness=0.99)
    rows = flow.source("rows", "id bigint, ts bigint", time=ip.external("ts", policy, ets="never"))
    flow.sink("counts", rows.aggregate(every=100, n="count(*)"))
    return flow


@pytest.fixture
def recording(tmp_path: Path) -> str:
    arrivals().write_parquet(tmp_path / "rows.parquet")
    return str(tmp_path / "rows.parquet")


@pytest.mark.parametrize("fused", [True, False])
def test_learned_bounds_are_the_same_in_process_and_on_spark(
    spark: SparkSession, recording: str, tmp_path: Path, fused: bool
) -> None:
    rows = ip.replay(spark, recording, rows_per_batch=BATCH, partitions=1)
    query = flow().start(
        spark, {"rows": rows if fused else rows.select("*")}, checkpoint=str(tmp_path / "c"),
        sinks={"counts": tmp_path / "out"}, trigger={"availableNow": True},
    )  # fmt: skip
    query.await_termination()
    pages = [arrivals()[i : i + BATCH] for i in range(0, ROWS, BATCH)]
    expected = flow().run({"rows": pages})
    late = pl.read_parquet(tmp_path / "c" / "late" / "rows" / "**" / "*.parquet")
    assert sorted(late["id"]) == sorted(expected.late["rows"]["id"])
    assert 0 < late.height < 0.02 * ROWS
    counts = pl.read_parquet(tmp_path / "out" / "**" / "*.parquet")
    in_time = expected["counts"].head(counts.height)  # in process the feed ends and closes the rest
    assert sorted(counts.select("ts", "n").rows()) == in_time.select("ts", "n").rows()
    blamed = query.blame().row(by_predicate=pl.col("operator") == "counts", named=True)
    assert blamed["source"] == "rows"


def test_bounds_are_learned_behind_to_df_as_well(
    spark: SparkSession, recording: str, tmp_path: Path
) -> None:
    """No folder of ours is beside its checkpoint: what is needed travels with the rows."""
    rows = ip.replay(spark, recording, rows_per_batch=BATCH, partitions=2)
    late = flow().to_df({"rows": rows}, sink="late:rows").select("id")
    found: list[int] = []
    query = (
        late.writeStream.foreachBatch(lambda b, _: found.extend(r.id for r in b.collect()))
        .option("checkpointLocation", str(tmp_path / "c"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    pages = [arrivals()[i : i + BATCH] for i in range(0, ROWS, BATCH)]
    expected = flow().run({"rows": pages}).late["rows"].height
    assert len(found) == pytest.approx(expected, rel=0.3)  # two tasks sketch in two parts


def test_blame_follows_the_stages_back_to_the_source(spark: SparkSession, tmp_path: Path) -> None:
    for name, ticks in {"a": range(100), "b": range(1)}.items():
        frame = pl.DataFrame({"k": [1] * len(ticks), "ts": list(ticks)})
        frame.write_parquet(tmp_path / f"{name}.parquet")
    flow = ip.Flow("blame")
    a, b = (
        flow.source(n, "k bigint, ts bigint", time=ip.external("ts", ordered=True)) for n in "ab"
    )
    counted = flow.union(a, b, name="both").aggregate(by="k", every=10, n="count(*)", name="by_key")
    flow.sink("totals", counted.aggregate(every=50, total="sum(n)", name="in_all"))
    feeds = {n: ip.replay(spark, str(tmp_path / f"{n}.parquet")) for n in "ab"}
    query = flow.start(
        spark, feeds, checkpoint=str(tmp_path / "c"), sinks={"totals": tmp_path / "out"},
        trigger={"availableNow": True},
    )  # fmt: skip
    query.await_termination()
    blamed = {r["operator"]: r["source"] for r in query.blame().iter_rows(named=True)}
    assert blamed["both"] == "b"
    assert blamed["totals"] == "b"


def test_a_source_of_another_stage_tells_the_time_of_a_silent_one(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Two windows, by key and over all, are in stages of their own; `b` never sends."""
    for name, ticks in {"a": list(range(0, 100, 5)), "b": []}.items():
        frame = pl.DataFrame({"k": [1] * len(ticks), "ts": ticks}, schema_overrides={"ts": pl.Int64,
                             "k": pl.Int64})  # fmt: skip
        frame.write_parquet(tmp_path / f"{name}.parquet")

    def flow() -> ip.Flow:
        flow = ip.Flow("shared", skew=ip.distributed_sensors({"a": 2, "b": 3}))
        time = ip.external("ts", ip.bounds(skew=3), ets="never")
        a, b = (flow.source(n, "k bigint, ts bigint", time=time) for n in "ab")
        both = flow.union(a, b).aggregate(by="k", every=10, n="count(*)")
        flow.sink("counts", both.aggregate(every=20, n="sum(n)"))
        return flow

    feeds = {n: ip.replay(spark, str(tmp_path / f"{n}.parquet"), rows_per_batch=7) for n in "ab"}
    query = flow().start(
        spark, feeds, checkpoint=str(tmp_path / "c"), sinks={"counts": tmp_path / "out"},
        trigger={"availableNow": True},
    )  # fmt: skip
    query.await_termination()
    counts = pl.read_parquet(tmp_path / "out" / "**" / "*.parquet")
    assert sorted(counts.select("ts", "n").rows()) == [(0, 4), (20, 4), (40, 4), (60, 4)]


def test_what_is_on_time_and_what_is_late_is_all_that_was_replayed(
    spark: SparkSession, recording: str, tmp_path: Path
) -> None:
    flow = ip.Flow("all")
    bounds = ip.bounds(skew=50)
    rows = flow.source("rows", "id bigint, ts bigint", time=ip.external("ts", bounds, ets="never"))
    flow.sink("out", rows.where("true"))
    query = flow.start(
        spark, {"rows": ip.replay(spark, recording, rows_per_batch=BATCH)},
        checkpoint=str(tmp_path / "c"), sinks={"out": tmp_path / "out"},
        trigger={"availableNow": True},
    )  # fmt: skip
    query.await_termination()
    on_time = pl.read_parquet(tmp_path / "out" / "**" / "*.parquet")
    late = pl.read_parquet(tmp_path / "c" / "late" / "rows" / "**" / "*.parquet")
    assert late.height > 0
    assert sorted([*on_time["id"], *late["id"]]) == list(range(ROWS))
    assert set(late["_source"]) == {"rows"}
    assert (late["_lateness"] >= 0).all()
