"""Native Spark operators behind `synchronize`: they go on while a source is quiet, lose nothing
within the bounds, and everything else is in the late output."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import interpunct as ip
from interpunct.model.errors import ExpressionError, FeedError, FlowError, SchemaError
from interpunct.progress.timestamps import Bounds
from interpunct.spark.synchronized import Synchronized
from tests.spark.streams import SECOND, T0, Delivered, frame, read, run, steady, write

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")

SKEW = 3
BOUNDS = ip.bounds(skew=f"{SKEW}s")
CLOSING = T0 + 3600 * SECOND  # a last row far ahead, so that everything before it comes out

# `a` sends ten seconds a batch; `b` sends nine seconds once and is quiet from then on.
A = [steady(10 * i, 10, first=100 * i) for i in range(4)]
B = [steady(0, 9, first=1000)]
QUIET = 2  # the first batch in which nothing of what b sent can explain an output


@pytest.fixture(scope="module")
def feeds(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("quiet")
    closing = frame([CLOSING], first=999)
    return write(folder / "a", [*A, closing]), write(folder / "b", B)


def synchronized(
    spark: SparkSession,
    feeds: tuple[Path, Path],
    *,
    hold: bool | None = None,
    bounds: Bounds = BOUNDS,
) -> Synchronized:
    a, b = (read(spark, f) for f in feeds)
    return ip.synchronize(a, b, time="ts", bounds=bounds, hold=hold)


def windows(a: DataFrame, b: DataFrame) -> DataFrame:
    counted = a.union(b).groupBy(F.window("ts", "10 seconds"), "key").agg(F.count("*").alias("n"))
    return counted.select(F.unix_micros("window.start").alias("start"), "key", "n")


def expected_windows(*batches: pl.DataFrame) -> list[tuple[int, ...]]:
    rows = pl.concat(batches or [*A, *B]).with_columns(
        start=pl.col("ts").dt.truncate("10s").cast(pl.Int64)
    )
    return sorted(rows.group_by("start", "key").agg(n=pl.len().cast(pl.Int64)).rows(), key=repr)


def joined(a: DataFrame, b: DataFrame, how: str) -> DataFrame:
    near = F.expr(
        "a.key = b.key AND b.ts BETWEEN a.ts - INTERVAL 1 SECOND AND a.ts + INTERVAL 1 SECOND"
    )
    pairs = a.alias("a").join(b.alias("b"), near, how)
    before = F.unix_micros("a.ts") < CLOSING
    return pairs.filter(before).select(F.col("a.n").alias("a"), F.col("b.n").alias("b"))


def expected_join(how: str) -> list[tuple[int | None, ...]]:
    a, b = pl.concat(A), pl.concat(B)
    near = (pl.col("ts") - pl.col("ts_right")).abs() <= pl.duration(seconds=1)
    pairs = a.join(b, on="key").filter(near).select("n", "n_right").rows()
    if how == "left_outer":
        matched = {n for n, _ in pairs}
        pairs += [(n, None) for n in a["n"] if n not in matched]
    return sorted(pairs, key=repr)


def closing(start: int) -> int:
    return start < CLOSING - 10 * SECOND


@pytest.mark.parametrize("hold", [False, True])
def test_windows_over_a_union_close_while_a_source_is_quiet(
    spark: SparkSession, feeds: tuple[Path, Path], tmp_path: Path, hold: bool
) -> None:
    a, b = synchronized(spark, feeds, hold=hold)
    # What a user puts behind it must not swallow the heartbeats.
    kept = a.filter("key >= 0 AND n IS NOT NULL").select("ts", "key", "n")
    delivered = run(windows(kept, b), tmp_path)
    assert [r for r in delivered.rows if closing(r[0])] == expected_windows()
    assert all(n > 0 for n in delivered.counts()[QUIET:-1])  # a window each batch of ten seconds
    assert delivered.dropped == 0
    assert delivered.read == sum(map(len, [*A, *B])) + 1, "each row once, for both streams"


@pytest.mark.parametrize("how", ["inner", "left_outer"])
def test_stream_stream_joins_are_complete_while_a_source_is_quiet(
    spark: SparkSession, feeds: tuple[Path, Path], tmp_path: Path, how: str
) -> None:
    delivered = run(joined(*synchronized(spark, feeds), how), tmp_path)
    assert delivered.rows == expected_join(how)
    assert delivered.dropped == 0
    if how == "left_outer":
        assert all(n > 0 for n in delivered.counts()[QUIET:-1])


def test_duplicates_within_the_skew_are_removed_and_their_state_goes(
    spark: SparkSession, tmp_path: Path
) -> None:
    again = A[0].tail(2).with_columns(pl.col("ts") + pl.duration(seconds=2))  # in the next batch
    a = write(tmp_path / "a", [A[0], pl.concat([A[1], again]), A[2], A[3]])
    b = write(tmp_path / "b", B)
    left, right = synchronized(spark, (a, b))
    distinct = left.union(right).dropDuplicatesWithinWatermark(["n"]).select("n")
    delivered = run(distinct, tmp_path / "checkpoint")
    assert delivered.rows == sorted(pl.concat([*A, *B]).select("n").rows(), key=repr)
    kept = [s["numRowsTotal"] for p in delivered.progress for s in p["stateOperators"]
            if s["operatorName"] == "dedupeWithinWatermark"]  # fmt: skip
    assert kept[-1] < sum(f.height for f in A)


@pytest.mark.parametrize("hold", [False, True])
def test_a_row_dated_far_ahead_of_the_clock_moves_no_time(
    spark: SparkSession, tmp_path: Path, hold: bool
) -> None:
    """With its row in the year 2100 `a` would make everything after it late."""
    wild = frame([4_102_444_800 * SECOND], first=900)
    a = write(tmp_path / "a", [A[0], pl.concat([A[1], wild]), *A[2:], frame([CLOSING], first=999)])
    b = write(tmp_path / "b", B)
    left, right = (read(spark, folder).withColumnRenamed("n", "a.n") for folder in (a, b))
    passed = ip.synchronize(left, right, time="ts", bounds=BOUNDS, hold=hold, future="1h")
    named = [rows.withColumnsRenamed({"a.n": "n", "ts": "at"}) for rows in passed]
    kept = [
        rows.filter("at IS NOT NULL AND n >= 0").withColumnRenamed("at", "ts") for rows in named
    ]
    delivered = run(windows(*kept), tmp_path / "check")
    assert [r for r in delivered.rows if closing(r[0])] == expected_windows()
    assert all(n > 0 for n in delivered.counts()[QUIET:-1])
    assert delivered.dropped == 0
    assert delivered.late == {"stream_0": 0, "stream_1": 0}
    assert delivered.ahead == (0 if hold else 1)
    assert max(delivered.greatest) <= datetime(2024, 1, 1, tzinfo=UTC)
    outer = run(joined(*kept, "left_outer"), tmp_path / "joined")
    assert outer.rows == expected_join("left_outer")
    assert outer.dropped == 0


def disordered(seed: int) -> list[pl.DataFrame]:
    """Ten seconds a batch, most rows up to 2 s behind, some much more, with other columns."""
    random = np.random.default_rng(seed)
    batches = []
    for number in range(4):
        behind = np.where(random.random(40) < 0.2, 9, 2) * random.random(40) * SECOND
        ticks = T0 + number * 10 * SECOND + random.integers(0, 10 * SECOND, 40)
        rows = frame((ticks - behind.astype(np.int64)).tolist(), first=100 * number)
        batches.append(rows.with_columns(
            word=pl.Series(random.choice(["", "żółć", "a'b"], 40)),
            day=pl.lit(date(2026, 2, 28)), cents=pl.lit(Decimal("1.50")).cast(pl.Decimal(9, 2)),
            tags=pl.lit([1, 2], pl.List(pl.Int32)), pair=pl.struct(x="key", y=pl.lit("z")),
        ))  # fmt: skip
    batches[2] = batches[2].with_columns(
        ts=pl.when(pl.col("n") == 200).then(None).otherwise(pl.col("ts"))
    )
    return batches


def judged(streams: list[list[pl.DataFrame]]) -> set[tuple[int, int]]:
    """(stream, n) of the rows that come behind the heartbeat of the batch before."""
    late, greatest = set(), -(2**62)
    for number in range(max(map(len, streams))):
        batch = [(i, s[number]) for i, s in enumerate(streams) if number < len(s)]
        for i, rows in batch:
            behind = rows.filter(
                pl.col("ts").is_null() | (pl.col("ts").cast(pl.Int64) <= greatest - SKEW * SECOND)
            )
            late |= {(i, n) for n in behind["n"]}
        greatest = max([greatest, *(f["ts"].cast(pl.Int64).max() for _, f in batch)])
    return late


@pytest.mark.parametrize("hold", [False, True])
def test_every_row_is_delivered_or_in_the_late_output(
    spark: SparkSession, tmp_path: Path, hold: bool
) -> None:
    end = (
        disordered(1)[0]
        .head(1)
        .with_columns(
            n=pl.lit(-1, pl.Int64), ts=pl.lit(CLOSING, pl.Int64).cast(pl.Datetime("us", "UTC"))
        )
    )
    streams = [[*disordered(1), end], disordered(2)[:3]]
    found = [read(spark, write(tmp_path / str(i), s)) for i, s in enumerate(streams)]
    names = ("readings", "alerts")
    result = ip.synchronize(*found, time="ts", bounds=BOUNDS, hold=hold, names=names)
    assert [f.columns for f in result] == [f.columns for f in found]
    columns = [c for c in found[0].columns if c != "ts"]
    parts = [
        part.select(stream.alias("stream"), F.unix_micros("ts"), *columns, reason)
        for name, on_time, late in zip(names, result, result.late, strict=True)
        for part, stream, reason in (
            (on_time, F.lit(name), F.lit("").alias("_reason")),
            (late, F.col("_source"), F.col("_reason")),
        )
    ]
    delivered = run(parts[0].union(parts[1]).union(parts[2]).union(parts[3]), tmp_path / "check")
    rows = [r for r in delivered.rows if r[3] >= 0]  # without the closing one
    given = [
        (name, *r)
        for name, batches in zip(names, streams, strict=True)
        for r in pl.concat(batches).filter(pl.col("n") >= 0).select(
            pl.col("ts").cast(pl.Int64), *columns
        ).rows()
    ]  # fmt: skip
    assert [_plain(r[:-1]) for r in rows] == sorted((_plain(r) for r in given), key=repr)
    assert {(names.index(r[0]), r[3]) for r in rows if r[-1]} == judged(streams)
    assert {r[-1].split(":")[0] for r in rows} == {"", "late", "null time"}


def _plain(row: tuple[object, ...]) -> tuple[object, ...]:
    return tuple(tuple(v.values()) if isinstance(v, dict) else v for v in map(_unrow, row))


def _unrow(value: object) -> object:
    return value.asDict() if hasattr(value, "asDict") else value


def test_a_query_started_again_delivers_the_same_rows(spark: SparkSession, tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    write(b, B)
    delivered = Delivered()
    for number, batch in enumerate([*A, frame([CLOSING], first=999)]):
        write(a, [batch], first=number)
        if number not in (0, 2):  # three runs on one checkpoint, each built anew
            delivered = run(
                windows(*synchronized(spark, (a, b), hold=True)), tmp_path / "check", delivered
            )
    assert [r for r in delivered.rows if closing(r[0])] == expected_windows()
    assert delivered.dropped == 0


@pytest.mark.parametrize(("skew", "hold"), [(9, False), (2, True)])
def test_bounds_may_be_others_when_a_query_is_started_again(
    spark: SparkSession, tmp_path: Path, skew: int, hold: bool
) -> None:
    """What was promised stands; what comes is judged by the new bounds, by Spark as well."""
    a, b, check = (tmp_path / name for name in ("a", "b", "check"))
    write(b, B)
    write(a, A[:2])
    found = run(windows(*synchronized(spark, (a, b), hold=hold)), check)
    late = frame([T0 + 14 * SECOND], first=500)  # behind what was promised: 19.5 s less 3
    behind = frame([T0 + 23 * SECOND], first=501)  # 6.5 s behind what has come by then
    write(a, [late, A[2], behind, frame([CLOSING], first=999)], first=2)
    bounds = ip.bounds(skew=f"{skew}s")
    run(windows(*synchronized(spark, (a, b), hold=hold, bounds=bounds)), check, found)
    in_time = [*A[:3], *B, *([behind] if skew == 9 else [])]
    assert [r for r in found.rows if closing(r[0])] == expected_windows(*in_time)
    assert found.dropped == 0
    late_ones = {"stream_0": 1 if skew == 9 else 2, "stream_1": 0}
    assert found.late == late_ones, "counted, though nobody reads them"
    rows = pl.concat([*in_time, frame([CLOSING], first=999)])
    times = set(rows["ts"].dt.truncate("1s").to_list())
    assert found.greatest <= times, "moments of rows, not of punctuations"


def test_what_cannot_be_synchronized_is_refused_with_a_fix(
    spark: SparkSession, feeds: tuple[Path, Path]
) -> None:
    a, b = (read(spark, f) for f in feeds)
    with pytest.raises(FlowError, match="one or more DataFrames"):
        ip.synchronize(time="ts", bounds=BOUNDS)
    with pytest.raises(SchemaError, match=r"DataFrame 1: expected a column 'ts', .*Renamed"):
        ip.synchronize(a, b.withColumnRenamed("ts", "at"), time="ts", bounds=BOUNDS)
    with pytest.raises(SchemaError, match=r"timestamp in 'key', got a .*F\.timestamp_seconds"):
        ip.synchronize(a, b, time="key", bounds=BOUNDS)
    ntz = b.withColumn("ts", F.col("ts").cast("timestamp_ntz"))
    with pytest.raises(SchemaError, match="got a timestamp_ntz"):
        ip.synchronize(a, ntz, time="ts", bounds=BOUNDS)
    with pytest.raises(FeedError, match="Remove that line"):
        ip.synchronize(a, b.withWatermark("ts", "1 second"), time="ts", bounds=BOUNDS)
    with pytest.raises(FeedError, match="readStream"):
        ip.synchronize(a, spark.read.parquet(str(feeds[1])), time="ts", bounds=BOUNDS)
    with pytest.raises(FlowError, match="Leave hold out"):
        ip.synchronize(a, b, time="ts", bounds=ip.bounds(delay="1s", skew="3s"), hold=False)
    with pytest.raises(FeedError, match="DataFrame 0: expected a DataFrame, got a list"):
        ip.synchronize([a, b], time="ts", bounds=BOUNDS)  # type: ignore[arg-type]
    with pytest.raises(SchemaError, match="the name of a column, got a Column"):
        ip.synchronize(a, b, time=F.col("ts"), bounds=BOUNDS)  # type: ignore[arg-type]
    with pytest.raises(FlowError, match=r"got '2s'. ip.bounds\(skew="):
        ip.synchronize(a, b, time="ts", bounds="2s")  # type: ignore[arg-type]
    with pytest.raises(ExpressionError, match=r"synchronize\(future=…\).*got 'soon'"):
        ip.synchronize(a, b, time="ts", bounds=BOUNDS, future="soon")
    with pytest.raises(ExpressionError, match=r"DataFrame 0: .* counts microseconds. Write '5s'"):
        ip.synchronize(a, b, time="ts", bounds=BOUNDS, future=5)
    with pytest.raises(FlowError, match=r"got 2 microseconds. .* skew='2s'\?"):
        ip.synchronize(a, b, time="ts", bounds=ip.bounds(skew=2))
    for wrong in ("ab", ("a",), ("a", "a"), ("a", "b", "c")):
        with pytest.raises(FlowError, match="2 different names, one for each DataFrame, got"):
            ip.synchronize(a, b, time="ts", bounds=BOUNDS, names=wrong)
    named = ip.synchronize(a, b, time="ts", bounds=BOUNDS, names=("readings", "alerts"))
    assert named.late["alerts"] is named.late[1]
    assert named["readings"] is named[0]
    with pytest.raises(FlowError, match="one of readings, alerts, got nobody"):
        named.late["nobody"]
    with pytest.raises(
        SchemaError, match=r"synchronize, DataFrame 0 \(x\): expected a column 'at'"
    ):
        ip.synchronize(a, b, time="at", bounds=BOUNDS, names=("x", "y"))
    with pytest.raises(SchemaError, match=r"got columns ts, key, n. time='ts'\?"):
        ip.synchronize(a, b, time="TS", bounds=BOUNDS)
    odd = b.withColumn("m", F.create_map("key", "n"))
    with pytest.raises(SchemaError, match="DataFrame 1: expected a Spark type this system carries"):
        ip.synchronize(a, odd, time="ts", bounds=BOUNDS)


def test_columns_and_fields_of_any_name_pass_as_they_are(
    spark: SparkSession, feeds: tuple[Path, Path], tmp_path: Path
) -> None:
    names = ["user id", "läng", "null"]
    fields = F.struct(*(F.col("n").alias(name) for name in names)).alias("a.b")
    oddly, b = (read(spark, folder) for folder in feeds)
    oddly = oddly.select("ts", fields, F.array(fields).alias("d`x"), F.col("n").alias("user id"))
    both = ip.synchronize(oddly, b, time="ts", bounds=BOUNDS)
    assert both[0].schema.simpleString() == oddly.schema.simpleString()
    rows = run(both[0], tmp_path / "check").rows
    assert rows
    assert all(row[1] == (n, n, n) and row[2] == [row[1]] for *row, n in rows)


@pytest.mark.parametrize("hold", [False, True])
def test_plain_values_pass_as_they_are(
    spark: SparkSession, feeds: tuple[Path, Path], tmp_path: Path, hold: bool
) -> None:
    """They leave as rows, which Spark reads without another pass through Python."""
    n = F.col("n")
    kinds = ["tinyint", "smallint", "int", "float", "double", "string", "binary"]
    small = n % 100
    values = [small.cast("string").cast(k).alias(f"a {k}") for k in kinds]
    values += [(n % 3 == 0).alias("a boolean")]
    values += [F.date_add(F.lit("1969-12-30"), n.cast("int") % 5).alias("a`date")]
    values += [F.timestamp_micros(n - 2).alias("moment"), F.lit(None).cast("int").alias("none")]
    values += [F.when(n % 2 == 0, "even\0").alias("some")]
    oddly, b = (read(spark, folder) for folder in feeds)
    wanted = oddly.select("ts", "n", *values)
    both = ip.synchronize(wanted, b, time="ts", bounds=BOUNDS, hold=hold)
    assert both[0].schema.simpleString() == wanted.schema.simpleString()
    passed = [F.col(f"`{name.replace('`', '``')}`") for name in both[0].columns[2:]]
    rows = run(both[0].select(F.struct(*passed), F.struct(*values)), tmp_path / "check").rows
    assert len(rows) > 5
    assert all(tuple(found) == tuple(given) for found, given in rows)


def test_importing_the_package_needs_no_spark() -> None:
    check = "import sys, interpunct; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0


def test_what_is_not_unpacked_says_how_to(spark: SparkSession, tmp_path: Path) -> None:
    feed = read(spark, write(tmp_path / "in", [steady(0, 5)]))
    both = ip.synchronize(feed, feed, time="ts", bounds=ip.bounds(skew="2s"))
    with pytest.raises(AttributeError, match=r"readings, alerts = ip.synchronize"):
        both.groupBy
    with pytest.raises(AttributeError, match=r"'writeStream' is a word of theirs: late\[0\] is"):
        both.late.writeStream
    for frames in (both, both.late):
        with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
            frames.nonsense


def test_a_second_watermark_is_refused_where_it_is_set(spark: SparkSession, tmp_path: Path) -> None:
    feed = read(spark, write(tmp_path / "in", [steady(0, 5)]))
    readings, _ = ip.synchronize(feed, feed, time="ts", bounds=BOUNDS, names=("readings", "more"))
    with pytest.raises(FeedError, match=r"synchronize, readings: .* got withWatermark\('ts', '2"):
        readings.withWatermark("ts", "2 seconds")
