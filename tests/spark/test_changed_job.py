"""A synchronized job that is started again on its checkpoint, and is another one."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest
from pyspark import TaskContext
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

import interpunct as ip
from interpunct.engine.lane import LaneBatch, LaneOutput
from interpunct.engine.lane_source import Facts
from interpunct.flow.builder import FlowBuilder
from interpunct.model.errors import FlowError, SchemaError
from interpunct.operators.state import DictState
from interpunct.progress.timestamps import external
from interpunct.spark import refusal
from interpunct.spark.synchronizing import HELD, Synchronizing
from tests.spark.streams import SECOND, T0, frame, read, run, steady, write

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")

BOUNDS = ip.bounds(skew="3s")


# A lane in process ------------------------------------------------------------------------------


def ran(
    state: DictState, ddl: str, rows: pl.DataFrame, *, hold: bool = True
) -> pl.DataFrame | None:
    """What a job with these columns releases of a batch, on the state of the job before it."""
    flow = FlowBuilder("synchronize")
    stream = flow.source("s", ddl, time=external("ts", BOUNDS, ets="never"))
    flow.sink("released", stream.sort(name=HELD) if hold else stream)
    lane = Synchronizing.of(flow.graph, 1).lane(0, state)
    ticks = rows["ts"].cast(pl.Int64)
    facts = Facts(rows.height, ticks.max(), ticks.min())  # type: ignore[arg-type]
    output: LaneOutput = lane.run(LaneBatch(T0, {"s": facts}, {"s": [rows]}))
    lane.save()
    return output.sinks.get("released")


def at(seconds: list[int], **columns: pl.Series) -> pl.DataFrame:
    ticks = pl.Series([T0 + s * SECOND for s in seconds]).cast(pl.Datetime("us", "UTC"))
    return pl.DataFrame({"ts": ticks, **columns})


def ints(*values: int) -> pl.Series:
    return pl.Series(values, dtype=pl.Int64)


def with_two_held() -> DictState:
    """Three rows came, and one of them has left."""
    state = DictState()
    first = ran(state, "ts timestamp, v bigint", at([1, 5, 6], v=ints(1, 5, 6)))
    assert first is not None
    assert first["v"].to_list() == [1]
    return state


def test_rows_that_were_held_have_null_in_a_new_column() -> None:
    more = at([20], v=ints(20), w=ints(7))
    found = ran(with_two_held(), "ts timestamp, v bigint, w bigint", more)
    assert found is not None
    assert found.select("v", "w").rows() == [(5, None), (6, None)]


def test_rows_that_were_held_go_on_without_a_column_that_was_removed() -> None:
    found = ran(with_two_held(), "ts timestamp", at([20]))
    assert found is not None
    assert found["ts"].cast(pl.Int64).to_list() == [T0 + 5 * SECOND, T0 + 6 * SECOND]


def test_rows_that_were_held_are_not_read_as_other_columns() -> None:
    with pytest.raises(FlowError, match=r"or fewer: `?ts`? timestamp.* Values of v would be lost"):
        ran(with_two_held(), "ts timestamp, w bigint", at([20], w=ints(1)))
    with pytest.raises(SchemaError, match="rows it holds"):
        ran(with_two_held(), "ts timestamp, v string", at([20], v=pl.Series(["x"])))


def test_rows_that_were_held_take_a_wider_type() -> None:
    found = ran(with_two_held(), "ts timestamp, v double", at([20], v=pl.Series([2.5])))
    assert found is not None
    assert found["v"].to_list() == [5.0, 6.0]


def test_rows_that_were_held_leave_at_once_where_none_are_held_any_more() -> None:
    state = with_two_held()
    found = ran(state, "ts timestamp, v bigint", at([7], v=ints(7)), hold=False)
    assert found is not None
    assert sorted(found["v"]) == [5, 6, 7]
    assert not [key for key in state.entries if key.startswith(HELD)]


def test_nothing_is_let_in_twice() -> None:
    state = with_two_held()
    more = "ts timestamp, v bigint, w bigint"
    ran(state, more, at([7], v=ints(7), w=ints(7)))
    found = ran(state, more, at([20], v=ints(20), w=ints(7)))
    assert found is not None
    assert found["v"].to_list() == [5, 6, 7]


# A query on Spark -------------------------------------------------------------------------------

A = [steady(10 * i, 10, first=100 * i) for i in range(4)]
CLOSING = frame([T0 + 3600 * SECOND], first=999)


def counted(rows: DataFrame) -> DataFrame:
    windows = rows.groupBy(F.window("ts", "10 seconds")).agg(F.count("*").alias("n"))
    return windows.select(F.unix_micros("window.start").alias("start"), "n")


@pytest.mark.parametrize("before", [True, False])
def test_a_job_with_another_column_and_another_way_to_release_goes_on(
    spark: SparkSession, tmp_path: Path, before: bool
) -> None:
    """Spark's windows see every row once, and drop none."""
    a, check = tmp_path / "a", tmp_path / "check"
    write(a, A[:2])
    (rows,) = ip.synchronize(read(spark, a), time="ts", bounds=BOUNDS, hold=before)
    found = run(counted(rows), check)
    write(a, [*A[2:], CLOSING], first=2)
    more = read(spark, a).withColumn("more", F.lit("x"))
    (rows,) = ip.synchronize(more, time="ts", bounds=BOUNDS, hold=not before)
    run(counted(rows), check, found)
    assert found.rows == [(T0 + 10 * i * SECOND, 20) for i in range(4)]
    assert found.dropped == 0


def test_another_number_of_lanes_is_refused_in_the_users_own_words(
    spark: SparkSession, tmp_path: Path
) -> None:
    a = write(tmp_path / "a", [A[0]])
    (rows,) = ip.synchronize(read(spark, a), time="ts", bounds=BOUNDS)
    run(rows, tmp_path / "check")
    write(a, [A[1]], first=1)
    with pytest.warns(UserWarning, match="lanes"):
        (rows,) = ip.synchronize(read(spark, a), time="ts", bounds=BOUNDS, lanes=3)
    with pytest.raises(StreamingQueryException) as refused:
        run(rows, tmp_path / "check")
    told = str(refused.value)
    assert "synchronize: expected what its checkpoint was made with, got lanes: was '2'" in told
    assert "interpunct/spark" not in told  # no trace of calls of ours


def test_another_time_is_refused_in_the_first_line_of_the_error(
    spark: SparkSession, tmp_path: Path
) -> None:
    write(tmp_path / "a", [A[0]])
    started(spark, tmp_path, time="ts").awaitTermination()
    write(tmp_path / "a", [A[1]], first=1)
    with pytest.raises(StreamingQueryException) as refused:
        started(spark, tmp_path, time="at").awaitTermination()
    told = str(refused.value)
    said = "synchronize: expected what its checkpoint was made with, got time: was 'ts', is 'at'"
    assert said in told.splitlines()[0]
    assert "Traceback" not in told


def started(spark: SparkSession, folder: Path, time: str) -> StreamingQuery:
    """A job over two columns of times, of which one is the time."""
    rows = read(spark, folder / "a").withColumn("at", F.col("ts"))
    (rows,) = ip.synchronize(rows, time=time, bounds=BOUNDS)
    writer = rows.writeStream.format("noop").trigger(availableNow=True)
    return writer.option("checkpointLocation", str(folder / "check")).start()


# Refusals ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("context", "error", "hidden"),
    [
        (object(), FlowError("synchronize", "a", "b", "c"), True),
        (object(), ValueError("a fault"), False),
        (None, FlowError("synchronize", "a", "b", "c"), False),
    ],
)
def test_calls_are_hidden_of_refusals_by_workers_alone(
    monkeypatch: pytest.MonkeyPatch, context: object, error: Exception, hidden: bool
) -> None:
    monkeypatch.setattr(TaskContext, "_taskContext", context)
    found: dict[str, str] = {}
    monkeypatch.setattr(refusal, "os", SimpleNamespace(environ=found))
    with pytest.raises(type(error)), refusal.refusing():
        raise error
    assert found == ({refusal.HIDE: "1"} if hidden else {})
