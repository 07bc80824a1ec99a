"""A batch with one output is one job; where another output turns up after all, nothing is lost."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from pyspark.sql import DataFrame, SparkSession

import interpunct as ip
from interpunct.model.errors import FlowError
from interpunct.spark.expectation import MEMORY
from interpunct.spark.writers import Batches
from tests.spark.scenario import comparable, in_process, write_files
from tests.spark.test_parity import files_of, read

DDL = "k bigint, ts bigint, v bigint"
BATCHES = MEMORY + 4
LATE_IN = MEMORY + 2  # the batch with a late tuple, when none is expected any more


def flow(every: int = 10) -> ip.Flow:
    made = ip.Flow("one-job")
    rows = made.source("rows", DDL, time=ip.external("ts", ip.bounds(skew=5), ets="never"))
    made.sink("sums", rows.where("v >= 5").aggregate(by="k", every=every, total="sum(v)"))
    return made


def arrivals() -> list[dict[str, pl.DataFrame]]:
    """Two windows' worth of tuples in each batch, and once one of long ago."""
    found = []
    for batch in range(BATCHES):
        ticks = [3] * (batch == LATE_IN) + list(range(20 * batch, 20 * batch + 20))
        found.append(pl.DataFrame({"k": [t % 3 for t in ticks], "ts": ticks, "v": ticks}))
    return [{"rows": frame} for frame in found]


def test_a_late_tuple_that_nobody_expected_is_written_and_so_is_all_else(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sufficed: list[bool] = []
    in_one_job = Batches._in_one_job

    def noted(self: Batches, rows: DataFrame, batch: int, alone: str) -> bool:
        sufficed.append(in_one_job(self, rows, batch, alone))
        return sufficed[-1]

    monkeypatch.setattr(Batches, "_in_one_job", noted)
    data = arrivals()
    write_files(data, tmp_path)
    (source,) = flow().graph.sources
    query = flow().start(
        spark, {"rows": files_of(spark, source, tmp_path)}, checkpoint=str(tmp_path / "checkpoint"),
        sinks={"sums": tmp_path / "sums"}, trigger={"availableNow": True},
    )  # fmt: skip
    query.await_termination()
    assert not query.wake.path.parent.exists(), "nobody wakes what has ended"
    expected = in_process(flow(), data)
    assert comparable(read(tmp_path / "sums")) == comparable(expected["sums"])
    late = read(tmp_path / "checkpoint" / "late" / "rows")
    assert comparable(late) == comparable(expected["late:rows"])
    assert late.height == 1
    assert sufficed == [True] * (LATE_IN - MEMORY) + [False]
    counted = query.snapshot().vitals
    assert counted.operators["aggregate_1"].made[0] == (read(tmp_path / "sums").height), "not twice"
    rows = pl.concat(batch["rows"] for batch in data)
    assert counted.sources["rows"].rows == rows.height
    assert counted.sources["rows"].late == 1
    assert counted.operators["rows"].made == (rows.height - 1, 1), "before the shuffle too"
    assert counted.operators["where_1"].made[0] == rows.filter(pl.col("v") >= 5).height
    assert counted.operators["sums"].made[0] == read(tmp_path / "sums").height
    with pytest.raises(FlowError, match="expected what its checkpoint was made with"):
        flow(every=20).start(
            spark, {"rows": files_of(spark, source, tmp_path)},
            checkpoint=str(tmp_path / "checkpoint"), sinks={"sums": tmp_path / "sums"},
        )  # fmt: skip
