"""Sources leave unread what nobody wants: row groups of a replayed Parquet file."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import polars as pl
import pytest
from pyspark.sql import SparkSession

import interpunct as ip
from interpunct.model.schema import to_ticks
from interpunct.operators.guards import OTHERWISE
from interpunct.spark.assumed import Assumed, Unread
from interpunct.spark.channel import Channel, Message
from interpunct.spark.lanes import lane_of
from interpunct.spark.recording import Recording
from tests.spark.test_parity import read

START = datetime(2026, 1, 1, tzinfo=UTC)
DDL = "segment bigint, ts timestamp, speed double"


def recording(folder: Path, minutes: int = 8) -> Path:
    """A row group a minute, segment 0 in even ones and segment 1 in odd ones."""
    seconds = range(60 * minutes)
    frame = pl.DataFrame(
        {
            "segment": [s // 60 % 2 for s in seconds],
            "ts": [START + timedelta(seconds=s) for s in seconds],
            "speed": [float(s) for s in seconds],
        },
        schema_overrides={"ts": pl.Datetime("us", "UTC")},
    )
    path = folder / "recording.parquet"
    frame.write_parquet(path, row_group_size=60, statistics=True)
    return path


def pattern(text: str) -> ip.Pattern:
    return ip.Pattern.parse(text, ip.Schema.of(DDL, time="ts"))


@pytest.mark.parametrize(
    ("text", "unread"),
    [
        ("[segment=0]", [0, 2]),
        ("[segment ≠ 0]", [1, 3]),
        ("[segment=1, ts < '2026-01-01 00:02']", [1]),
        ("[ts < '2026-01-01 00:01:30']", [0]),
        ("[segment=7]", []),
        ("[speed < 1000.0]", []),  # statistics do not count NaN
    ],
)
def test_row_groups_that_are_unwanted_as_a_whole_stay_unread(
    tmp_path: Path, text: str, unread: list[int]
) -> None:
    parts = list(
        Recording.at(str(recording(tmp_path, 4))).read(
            0, 240, ["segment", "ts", "speed"], [pattern(text)]
        )
    )
    left = [n for n, part in enumerate(parts) if isinstance(part, Unread)]
    assert left == unread
    for number in left:
        part = parts[number]
        assert isinstance(part, Unread)
        first = to_ticks(START + timedelta(minutes=number))
        assert part == Unread(60, first, first + 59_000_000), "time goes on being told"


def test_what_one_lane_does_without_is_dropped_on_the_way_to_it_alone() -> None:
    frame = pl.DataFrame({"segment": list(range(100))}, schema={"segment": pl.Int64})
    schema = ip.Schema.of("segment bigint")
    low = ip.Pattern.of(schema, segment=("<", 50))
    lanes = partial(lane_of, keys=("segment",), lanes=2)
    both = Assumed(((low,), (low,)))
    assert both.wanted(frame, lanes)["segment"].to_list() == list(range(50, 100))
    one = Assumed(((low,), ()))
    kept = set(one.wanted(frame, lanes)["segment"])
    assert set(range(50, 100)) < kept < set(range(100))


def test_a_replay_reads_less_and_gives_the_same_for_what_is_wanted(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = recording(tmp_path)
    flow = ip.Flow("speeds")
    cars = flow.source("cars", DDL, time=ip.external("ts", ordered=True, ets="never"))
    flow.sink("map", cars.aggregate(by="segment", every="20s", speed="avg(speed)"))
    schema = flow.graph.nodes["map"].streams[0].schema
    said = ip.Feedback.parse("¬[segment=0, ts < '2026-01-01 01:00']", schema)
    Channel.of(str(tmp_path / "c")).send(Message.of("map", said))
    query = flow.start(
        spark, {"cars": ip.replay(spark, str(path), rows_per_batch=60, partitions=1)},
        checkpoint=str(tmp_path / "c"), sinks={"map": str(tmp_path / "map")},
        trigger={"availableNow": True},
    )  # fmt: skip
    query.await_termination()
    got = read(tmp_path / "map")
    assert set(got["segment"]) == {1}
    assert got.height == 11, "all windows of segment 1 but the last, which is open"
    skipped = query.skipped()["cars"]
    assert skipped.pop(OTHERWISE) == 180, "three row groups were not read at all"
    assert list(skipped.values()) == [60], "and one had been read before the lanes were told"
