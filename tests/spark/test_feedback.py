"""Feedback on Spark: from a sink to the source, across stages and queries, through restarts."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from pyspark.sql import SparkSession

import interpunct as ip
from interpunct.model.errors import FeedbackError
from interpunct.spark.channel import MOST_MESSAGES, Channel, Message
from interpunct.spark.files import put
from interpunct.spark.query import FlowQuery
from tests.spark.test_parity import read, written

READINGS = "segment bigint, ts timestamp, speed double"
START = datetime(2026, 1, 1, tzinfo=UTC)
SKEW = ip.bounds(skew="0s")


def speed_map() -> ip.Flow:
    flow = ip.Flow("speed-map")
    sensors = flow.source("sensors", READINGS, time=ip.external("ts", SKEW, ets="never"))
    good = sensors.where("speed between 0 and 120", name="quality")
    average = good.aggregate(by="segment", every="20s", speed="avg(speed)", name="average")
    flow.sink("map", average)
    flow.sink("now", average.partial)
    return flow


def city() -> ip.Flow:
    """Two stages: by segment, then for the whole city."""
    flow = ip.Flow("city")
    sensors = flow.source("sensors", READINGS, time=ip.external("ts", SKEW, ets="never"))
    average = sensors.aggregate(by="segment", every="20s", speed="avg(speed)", name="average")
    flow.sink("all", average.aggregate(every="20s", n="count(*)", name="city"))
    return flow


class Job:
    """A flow over Parquet files that are written one by one."""

    def __init__(self, spark: SparkSession, flow: ip.Flow, folder: Path, **options: Any) -> None:
        self.spark, self.flow, self.folder, self.options = spark, flow, folder, options
        self.files = 0
        (folder / "in").mkdir(parents=True, exist_ok=True)
        self.query = self.start()

    def start(self) -> FlowQuery:
        feed = self.spark.readStream.schema(READINGS).parquet(str(self.folder / "in"))
        return self.flow.start(
            self.spark, {"sensors": feed}, checkpoint=str(self.folder / "checkpoint"),
            sinks={n.name: str(self.folder / n.name) for n in self.flow.graph.sinks},
            **self.options,
        )  # fmt: skip

    def give(self, seconds: range, segments: int = 9) -> None:
        """A file of readings, one a second and segment, and the batch that reads it."""
        rows = [
            (s, START + timedelta(seconds=t), 50.0 + s) for t in seconds for s in range(segments)
        ]
        frame = pl.DataFrame(rows, {"segment": pl.Int64, "ts": pl.Datetime("us", "UTC"),
                                    "speed": pl.Float64}, orient="row")  # fmt: skip
        self.files += 1
        put(self.folder / "in" / f"{self.files:04d}.parquet", frame.write_parquet)
        self.query.query.processAllAvailable()

    def rows(self, sink: str) -> list[tuple[Any, ...]]:
        folder = self.folder / sink
        return read(folder).rows() if written(folder) else []

    def after(self, sink: str, seconds: int, at: int = 1) -> list[tuple[Any, ...]]:
        since = START + timedelta(seconds=seconds)
        return [row for row in self.rows(sink) if row[at] >= since]


@pytest.fixture
def job(spark: SparkSession, tmp_path: Path) -> Any:
    jobs: list[Job] = []

    def build(flow: ip.Flow, name: str = "job", **options: Any) -> Job:
        jobs.append(Job(spark, flow, tmp_path / name, **options))
        return jobs[-1]

    yield build
    for made in jobs:
        made.query.stop()


def until(seconds: int) -> str:
    return f"'{START + timedelta(seconds=seconds)}'"


def test_zooming_in_spares_the_source_and_a_restart_keeps_it(job: Callable[..., Job]) -> None:
    run = job(speed_map())
    run.give(range(60))
    run.query.feedback("map", f"¬[segment ∉ {{3}}, ts ≤ {until(200)}]")
    run.query.query.processAllAvailable()
    run.give(range(60, 120))
    channel = Channel.of(str(run.folder / "checkpoint"))
    assert channel.waiting() == 0, "the message is gone once its batch is committed"
    spared = sum(run.query.skipped()["sensors"].values())
    assert spared == 60 * 8, "ingest leaves out what all lanes do without"
    run.query.stop()
    run.query = run.start()
    run.give(range(120, 180))
    run.give(range(180, 400))
    assert {row[0] for row in run.after("map", 60) if row[1] < START + timedelta(seconds=200)} == {
        3
    }
    assert {row[0] for row in run.after("map", 220)} == set(range(9)), "what was said has ended"


def test_a_demand_is_answered_in_the_next_batch(job: Callable[..., Job]) -> None:
    run = job(speed_map())
    run.give(range(10))
    before = run.query.query.lastProgress["batchId"]
    run.query.feedback("map", "![segment=3]")
    run.query.query.processAllAvailable()
    assert run.query.query.lastProgress["batchId"] == before + 1
    (answer,) = run.rows("now")
    assert answer[:3] == (3, START, 53.0)
    assert run.rows("map") == [], "the window is still open"


def test_a_running_query_and_its_channel_refuse_alike(job: Callable[..., Job]) -> None:
    run = job(city())
    run.give(range(60))
    channel = Channel.of(str(run.folder / "checkpoint"))
    run.query.feedback("all", f"¬[ts ≤ {until(119)}]")
    for text, said in (
        ("![]", "which nobody does"),
        ("¬[n > 3]", "ends in time"),
        (f"?[ts ≤ {until(100)}]", "assumed away stays away"),
    ):
        for send in (run.query.feedback, channel.hand_in):
            with pytest.raises(FeedbackError, match=said):
                send("all", text)


def test_feedback_crosses_stages_and_only_once_all_lanes_agree(job: Callable[..., Job]) -> None:
    run = job(city())
    run.give(range(60))
    run.query.feedback("all", f"¬[ts ≤ {until(119)}]")
    for _ in range(3):  # to the last stage, to the one before, to the source
        run.query.query.processAllAvailable()
    run.give(range(60, 120))
    run.give(range(120, 200))
    skipped = run.query.skipped()
    assert sum(skipped["sensors"].values()) == 60 * 9, "two stages up, it is not even taken in"
    ends = [row[0] for row in run.rows("all")]
    assert min(t for t in ends if t >= START + timedelta(seconds=60)) == START + timedelta(0, 120)


def test_feedback_goes_from_one_query_to_the_one_that_feeds_it(
    spark: SparkSession, job: Callable[..., Job], tmp_path: Path
) -> None:
    first = job(speed_map(), "first")
    first.give(range(60))
    reader = ip.Flow("reader")
    ddl = "segment bigint, ts timestamp, speed double"
    speeds = reader.source("speeds", ddl, time=ip.external("ts", SKEW, ets="never"))
    reader.sink("slow", speeds.where("speed < 45"))
    feed = spark.readStream.schema(ddl).parquet(str(first.folder / "map" / "*"))
    upstream = ip.upstream(str(first.folder / "checkpoint"), sink="map")
    second = reader.start(
        spark, {"speeds": feed}, checkpoint=str(tmp_path / "second"),
        sinks={"slow": str(tmp_path / "slow")}, upstream={"speeds": upstream},
    )  # fmt: skip
    try:
        second.feedback("slow", f"¬[segment ≠ 3, ts ≤ {until(200)}]")
        second.query.processAllAvailable()
        first.query.query.processAllAvailable()
        first.give(range(60, 120))
        first.give(range(120, 180))
        assert {row[0] for row in first.after("map", 60)} == {3}
    finally:
        second.stop()


def test_an_upstream_without_such_a_sink_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    flow = city()
    feed = spark.readStream.schema(READINGS).parquet(str(tmp_path))
    for upstream, said in (
        ({"sensors": ip.upstream(str(tmp_path / "none"), sink="map")}, "has been started"),
        ({"cars": ip.upstream(str(tmp_path / "none"), sink="map")}, "one of the sources"),
    ):
        with pytest.raises(FeedbackError, match=said):
            flow.start(spark, {"sensors": feed}, checkpoint=str(tmp_path / "c"),
                       sinks={"all": str(tmp_path / "all")}, upstream=upstream)  # fmt: skip


# The channel --------------------------------------------------------------------------------------


def test_the_channel_is_idempotent_bounded_and_expires(tmp_path: Path) -> None:
    channel = Channel.of(str(tmp_path))
    schema = ip.Schema.of("k bigint, ts bigint", time="ts")
    first = Message.of("map", ip.Feedback.parse("¬[k=1, ts ≤ 10]", schema))
    channel.send(first)
    channel.send(first)
    assert channel.waiting() == 1
    assert channel.take(0) == 1
    assert [m.text for m in channel.messages(0, 1)] == ["¬[k=1, ts≤10]"]
    assert Channel.of(str(tmp_path)).take(0) == 1, "a query that died finds it again"
    channel.forget(1)
    assert channel.waiting() == 0
    channel.tell_reached({"map": 10})
    late = Channel.of(str(tmp_path))
    late.send(first)
    assert late.take(1) == 1, "the sink has passed what it speaks of"
    assert late.waiting() == 0
    for number in range(MOST_MESSAGES):
        late.send(Message.of("map", ip.Feedback.parse(f"¬[k={number}, ts ≤ 99]", schema)))
    with pytest.raises(FeedbackError, match="Is the query running"):
        late.send(Message.of("map", ip.Feedback.parse("¬[k=-1, ts ≤ 99]", schema)))
