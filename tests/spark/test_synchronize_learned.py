"""`synchronize` with learned bounds: nobody names a skew, a stream never seen stops nobody, and
every row is delivered or in the late output."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import interpunct as ip
from interpunct.model.errors import FlowError
from tests.spark.streams import SECOND, T0, Delivered, frame, read, run, write

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")

POLICY = ip.adaptive(completeness=0.9, warm_up=1.0)  # ten rows, and δ of time
BATCHES = 6


def readings() -> list[pl.DataFrame]:
    """Ten seconds a batch, 40 rows, up to two seconds behind; at the end one far behind."""
    random = np.random.default_rng(5)
    made = []
    for number in range(BATCHES):
        ticks = T0 + number * 10 * SECOND + np.arange(40) * SECOND // 4
        behind = (random.random(40) * 2 * SECOND).astype(np.int64)
        made.append(frame((ticks - behind).tolist(), first=100 * number))
    made.append(frame([T0 + 5 * SECOND, T0 + 60 * SECOND], first=900))
    return made


def alerts() -> list[pl.DataFrame]:
    """Two rows a batch, five seconds behind the readings."""
    return [
        frame([T0 + (10 * n + 1) * SECOND, T0 + (10 * n + 4) * SECOND], first=2000 + 10 * n)
        for n in range(BATCHES)
    ]


def both(on_time: DataFrame, late: DataFrame, number: int) -> DataFrame:
    parts = (on_time.withColumn("_reason", F.lit("")), late)
    one, two = (p.select(F.lit(number).alias("stream"), "n", "_reason") for p in parts)
    return one.union(two)


def delivered(spark: SparkSession, folder: Path, *streams: list[pl.DataFrame]) -> Delivered:
    frames = [read(spark, write(folder / str(i), s)) for i, s in enumerate(streams)]
    result = ip.synchronize(*frames, time="ts", bounds=POLICY)
    parts = [both(a, b, i) for i, (a, b) in enumerate(zip(result, result.late, strict=True))]
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.union(part)
    return run(whole, folder / "checkpoint")


def test_a_stream_never_seen_does_not_stop_the_others_while_bounds_are_learned(
    spark: SparkSession, tmp_path: Path
) -> None:
    sent = readings()
    found = delivered(spark, tmp_path, sent, [frame([])])
    late = {n for _, n, reason in found.rows if reason}
    in_time = [n for _, n, reason in found.rows if not reason]
    assert 900 in late  # fifty seconds behind
    assert len(late) <= 0.1 * sum(f.height for f in sent)
    # Rows are held until a heartbeat covers them; it comes to within a few seconds of the end.
    assert len(in_time) >= 0.8 * sum(f.height for f in sent)
    assert len({*in_time} & late) == 0
    assert found.dropped == 0


def test_a_stream_of_few_rows_that_lags_is_waited_for(spark: SparkSession, tmp_path: Path) -> None:
    found = delivered(spark, tmp_path, readings()[:-1], alerts())
    late = [n for stream, n, reason in found.rows if reason and stream == 1]
    first = {2000, 2001, 2010, 2011}  # before anything was known of them
    assert set(late) <= first


def test_native_windows_close_behind_learned_bounds(spark: SparkSession, tmp_path: Path) -> None:
    a = read(spark, write(tmp_path / "a", readings()))
    b = read(spark, write(tmp_path / "b", [frame([])]))
    left, right = ip.synchronize(a, b, time="ts", bounds=POLICY)
    windows = left.union(right).groupBy(F.window("ts", "10 seconds")).count()
    counts = windows.select(F.unix_micros("window.start").alias("start"), "count")
    found = run(counts, tmp_path / "checkpoint")
    starts = sorted((r[0] - T0) // SECOND for r in found.rows)
    assert [s // 10 * 10 for s in starts][-1] >= 30
    assert found.dropped == 0


def test_learned_bounds_hold_rows_or_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    a = read(spark, write(tmp_path / "a", [frame([T0])]))
    with pytest.raises(FlowError, match="are learned"):
        ip.synchronize(a, time="ts", bounds=ip.adaptive(), hold=False)
    with pytest.warns(UserWarning, match=r"1,000 rows.*ip\.bounds\(skew="):
        assert len(ip.synchronize(a, time="ts")) == 1  # nothing said: learned, and told so
