"""Four kinds of silence: a source that has paused, one that has finished, one never seen."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
from pyspark.sql import SparkSession

import interpunct as ip
from interpunct.spark.query import FlowQuery

pytestmark = pytest.mark.xdist_group("spark")

T0 = datetime(2026, 1, 1, tzinfo=UTC)
TIMES = {"finished": [0, 100, 200], "paused": [50], "unseen": []}  # milliseconds after T0


def flow(*, strict: bool) -> ip.Flow:
    """One union waits for the source that has paused, another for the one never seen."""
    flow = ip.Flow("quiet", strict=strict)
    time = ip.external("ts", ip.bounds(skew="500ms"))
    sources = {n: flow.source(n, "v bigint, ts timestamp", time=time) for n in TIMES}
    for name in ("paused", "unseen"):
        union = flow.union(sources["finished"], sources[name], name=f"with_{name}")
        flow.sink(f"out_{name}", union)
    return flow


def started(spark: SparkSession, folder: Path, *, strict: bool) -> FlowQuery:
    feeds = {}
    for name, offsets in TIMES.items():
        stamps = [T0 + timedelta(milliseconds=o) for o in offsets]
        rows = {"v": list(range(len(stamps))), "ts": stamps}
        types = {"v": pl.Int64, "ts": pl.Datetime("us", "UTC")}
        pl.DataFrame(rows, schema=types).write_parquet(folder / f"{name}.parquet")
        path = str(folder / f"{name}.parquet")
        feeds[name] = ip.replay(spark, path, rows_per_batch=1, finish=name == "finished")
    sinks = {f"out_{n}": folder / f"out_{n}" for n in ("paused", "unseen")}
    return flow(strict=strict).start(spark, feeds, checkpoint=str(folder / "c"), sinks=sinks)


def rows(folder: Path) -> int:
    files = [f for f in folder.rglob("*.parquet") if f.with_name("_SUCCESS").exists()]
    return sum(pl.read_parquet(f).height for f in files)


def after(query: FlowQuery, seconds: int, folder: Path, wanted: int) -> int:
    """The rows there are once there are as many as wanted, or the time is over."""
    for _ in range(seconds):
        if rows(folder) >= wanted:
            break
        assert not query.await_termination(1)
    return rows(folder)


@pytest.mark.parametrize("strict", [False, True])
def test_blame_names_the_source_that_has_paused_and_the_one_never_seen(
    spark: SparkSession, tmp_path: Path, strict: bool
) -> None:
    query = started(spark, tmp_path, strict=strict)
    try:
        everything = len(TIMES["finished"]) + len(TIMES["paused"])
        query.query.processAllAvailable()
        paused = after(query, 0 if strict else 60, tmp_path / "out_paused", everything)
        assert rows(tmp_path / "out_unseen") == 0
        # By the clock the source that has paused would have gone on; strictly, who knows.
        assert (paused == everything) != strict
        blamed = {
            line["operator"]: (line["source"], line["quiet"])
            for line in query.blame().iter_rows(named=True)
        }
        assert blamed["with_unseen"] == ("unseen", "never seen")
        if strict:
            assert blamed["with_paused"] == ("paused", "not heard since")
        else:
            assert "with_paused" not in blamed
    finally:
        query.stop()
