"""A flow as a DataFrame: with its query's checkpoint it knows what `flow.start` knows."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import interpunct as ip
from interpunct.model.errors import FlowError
from interpunct.spark import hints as hinting
from interpunct.spark.hints import FOLDER, Hint, Hints
from interpunct.spark.reporter import seen
from interpunct.spark.session import ROCKSDB
from tests.spark.streams import T0, frame, read, steady, write

LATE = T0 + 500_000


def averages(every: str = "5s") -> ip.Flow:
    flow = ip.Flow("averages")
    rows = flow.source(
        "rows", "ts timestamp, key bigint, n bigint", time=ip.external("ts", ip.bounds(skew="2s"))
    )
    flow.sink("out", rows.aggregate(by="key", every=every, mean="avg(n)", number="count(*)"))
    return flow


def delivered(rows: DataFrame, checkpoint: Path, name: str) -> list[tuple[object, ...]]:
    query = (
        rows.writeStream.format("memory")
        .queryName(name)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    told = [p["observedMetrics"] for p in query.recentProgress]
    assert sum(metrics.late for batch in told for metrics in batch.values()) == 1
    return sorted(tuple(row) for row in rows.sparkSession.table(name).collect())


def test_rows_are_the_same_with_a_checkpoint_and_without(
    spark: SparkSession, tmp_path: Path
) -> None:
    batches = [steady(5 * n, 5, first=10 * n) for n in range(5)]
    batches[3] = frame([LATE]).vstack(batches[3])  # for which the hint of the batch before counts
    feeds = {"rows": read(spark, write(tmp_path / "in", batches))}
    named = tmp_path / "named"
    plain = delivered(averages().to_df(feeds), tmp_path / "plain", "plain")
    hinted = delivered(averages().to_df(feeds, checkpoint=str(named)), named, "hinted")
    assert plain == hinted
    assert sum(row[-1] for row in plain) == 40  # type: ignore[misc]  # five batches but the last
    # Who looks at the checkpoint sees the flow, and what it counted.
    snapshot = seen(str(named))
    assert snapshot.outline is not None
    assert snapshot.vitals.sources["rows"].late == 1
    assert snapshot.query is None  # nobody reports for it
    assert snapshot.logged is not None
    assert (snapshot.logged.batches, snapshot.logged.unfinished) == (5, None)
    assert 0 <= snapshot.at - (snapshot.logged.began or 0) < 600_000_000
    # What another query left in the folder is not believed: it has come further.
    again = delivered(
        averages().to_df(feeds, checkpoint=str(named)), tmp_path / "other", "misnamed"
    )
    assert again == plain
    with pytest.raises(FlowError, match=r"was '… rows \[every 5s"):
        averages("10s").to_df(feeds, checkpoint=str(named))


def test_in_a_task_only_what_its_own_query_wrote_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left, told = Hints(str(tmp_path / FOLDER)), {"rows": Hint(7, 9)}
    monkeypatch.setattr(hinting, "current_query", lambda: "one")
    left.write(0, 3, told)
    left.assume(0, 12, {}, {"rows": {"¬[1]": 4}})
    assert left.read(0, 3) == told
    assert left.assumed(0, [12])[0]["skipped"] == {"rows": {"¬[1]": 4}}
    monkeypatch.setattr(hinting, "current_query", lambda: "another")
    assert left.read(0, 3) == {}
    assert left.assumed(0, [12]) == [None]
    (tmp_path / FOLDER / "hints" / "0" / "4").write_text('{"rows": [7, 9]}')  # of before
    assert left.read(0, 4) == {}
    monkeypatch.setattr(hinting, "current_query", lambda: None)  # on the driver
    assert left.read(0, 3) == told


def test_a_session_of_ones_own_is_asked_for_what_flows_need(
    spark: SparkSession, tmp_path: Path
) -> None:
    mine = spark.newSession()
    mine.conf.unset("spark.sql.streaming.stateStore.providerClass")
    mine.conf.set("spark.sql.shuffle.partitions", "5")
    feeds = {"rows": read(mine, write(tmp_path / "in", [steady(0, 5)]))}
    with pytest.warns(UserWarning, match="5 tasks for 2 lanes"):
        averages().to_df(feeds)
    assert mine.conf.get("spark.sql.streaming.stateStore.providerClass") == ROCKSDB


def test_hours_of_another_zone_are_warned_of(spark: SparkSession, tmp_path: Path) -> None:
    berlin = spark.newSession()
    berlin.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    feeds = {"rows": read(berlin, write(tmp_path / "in", [steady(0, 5)]))}
    averages().to_df(feeds)  # no hours, no warning
    flow = ip.Flow("hours")
    rows = flow.source(
        "rows", "ts timestamp, key bigint, n bigint", time=ip.external("ts", ip.bounds(skew="2s"))
    )
    flow.sink("out", rows.with_columns(at="hour(ts)"))
    with pytest.warns(UserWarning, match=r"hour\(…\) is in UTC.*Europe/Berlin") as told:
        flow.to_df(feeds)
    assert {w.filename for w in told} == {__file__}
