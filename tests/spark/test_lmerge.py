"""Replicas merged on Spark: the table of the merge is the table they all tell."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from random import Random

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from typer.testing import CliRunner

import interpunct as ip
from interpunct.cli.main import app
from interpunct.model.element_forms import changes_schema
from interpunct.model.elements import element_schema, elements, insert, stable
from interpunct.model.errors import FeedError, FlowError, SchemaError
from interpunct.model.page import Page
from interpunct.model.properties import Properties
from interpunct.model.schema import END_OF_TIME, Schema
from interpunct.model.tdb import equivalent, last_stable, tdb, violations
from interpunct.spark.lanes import lane_ids, lane_of
from interpunct.spark.lmerge_batches import ATTACH, DETACH, net
from interpunct.spark.replica import ElementFiles, checkpoint_of, elements_of, merger_checkpoint
from interpunct.spark.replica import merged as replicas_merged
from interpunct.spark.rows import spark_schema
from interpunct.testing.revisable import SCHEMA, Event, Telling, from_time, retold, table
from tests.spark.streams import Delivered, read, run, write

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")

KEYED = Properties(insert_only=False, keyed=True)
ORDERED = Properties(ordered=True, deterministic=True)
SKEW = ip.bounds(skew=0)
SCHEMA_KV = element_schema(Schema.of("k string, v bigint"))


def output(delivered: Delivered) -> pl.DataFrame:
    """What came out: of each batch the elements and then the stables, as a stream."""
    return pl.concat([SCHEMA.empty(), *(in_batch(delivered, b) for b in sorted(delivered.batches))])


def in_batch(delivered: Delivered, batch: int) -> pl.DataFrame:
    rows = [tuple(r) for r in delivered.batches[batch]]
    return elements(SCHEMA, sorted(rows, key=lambda r: r[0] == "stable"))


def reference(events: Sequence[Event]) -> pl.DataFrame:
    return elements(SCHEMA, [insert(*event) for event in events])


def check(delivered: Delivered, events: Sequence[Event], *, keyed: bool = True) -> None:
    found = output(delivered)
    assert equivalent(SCHEMA, found, reference(events)), tdb(SCHEMA, found).rows()
    assert not violations(SCHEMA, found, keyed=keyed)
    assert last_stable(found) == END_OF_TIME


def test_an_input_that_comes_later_takes_over_without_a_restart(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The first replica leaves half way; the second is guaranteed from 10, which is stable when it
    comes, and shows no event that ended before."""
    early, late = [("A", 1, 4), ("B", 2, 7), ("C", 6, 30)], [("D", 15, 18), ("A", 21, 25)]
    first = [*(insert(*e) for e in early), stable(12), (DETACH, None, None, None)]
    joins = (ATTACH, 10, None, None)
    second = [joins, *(insert(*e) for e in from_time(early, 10)), *(insert(*e) for e in late)]
    batches = [("a", first[:3]), ("a", first[3:]), ("b", [*second, stable("∞")])]
    named = [elements(SCHEMA, rows).with_columns(replica=pl.lit(name)) for name, rows in batches]
    frame = read(spark, write(tmp_path / "all", named))
    merged = ip.lmerge(frame, by="replica", properties=KEYED)
    check(run(merged, tmp_path / "checkpoint"), early + late)


def payload_in(lane: int) -> str:
    """One whose events go to this lane."""
    payloads = pl.DataFrame({"p": list("ABCDEFGH")})
    return str(payloads.filter(lane_of(payloads, ["p"], 2) == lane)[0, 0])


def test_an_input_that_one_lane_does_not_believe_is_believed_by_none(
    spark: SparkSession, tmp_path: Path
) -> None:
    """In batch 1 it breaks its own stable, which the first lane sees. What it says after that to
    the other lane, an event that never was and a stable over one that is to come, counts for
    nothing."""
    here, there = payload_in(0), payload_in(1)
    honest = [[insert(here, 1, 4), stable(8)], [insert(there, 9, 12)], [stable(15)],
              [insert(there, 20, 25), stable("∞")]]  # fmt: skip
    liar = [[insert(here, 1, 4), stable(5)], [insert(here, 2, 3)],
            [insert(there, 21, 22), stable(30)], [insert(there, 31, 32)]]  # fmt: skip
    frames = [
        read(spark, write(tmp_path / str(n), [elements(SCHEMA, rows) for rows in told]))
        for n, told in enumerate((honest, liar))
    ]
    checkpoint = tmp_path / "checkpoint"
    merged = ip.lmerge(*frames, properties=KEYED, checkpoint=str(checkpoint))
    delivered = run(merged, checkpoint)
    check(delivered, [(here, 1, 4), (there, 9, 12), (there, 20, 25)])
    (report,) = ip.quarantined(str(checkpoint))
    assert (report.input, report.batch, report.lane) == ("1", 1, lane_ids(2)[0])
    assert report.element == f"insert({here}, 2, 3)"
    assert report.contradicts == "its own stable"
    said = CliRunner().invoke(app, ["status", str(checkpoint), "--json"])
    assert json.loads(said.stdout)["quarantined"] == [asdict(report)]
    merge = json.loads(said.stdout)["merge"]
    assert (merge["variant"], merge["leader"]) == ("R3", "0")
    assert {n: i["status"] for n, i in merge["inputs"].items()} == {
        "0": "joined",
        "1": "quarantined",
    }
    assert merge["inputs"]["1"]["why"] == report.why
    shown = CliRunner().invoke(app, ["status", str(checkpoint)]).stdout
    assert "logical merge R3, stable: ∞" in shown


def test_what_a_merge_needs_no_more_a_slow_replica_below_another_merge_leaves_out(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Section V-D through three queries: slow replica, its merger, and a merge with a fast input,
    whose stable goes down to the replica's source."""
    flow = ip.Flow("counts")
    rows = flow.source("rows", "ts bigint, k bigint", time=ip.external("ts", SKEW, ets="never"))
    flow.sink("counts", rows.aggregate(by="k", every=10, n="count(*)", name="count"))
    sink = flow.graph.sinks[0].streams[0].schema
    schema, home = elements_of(sink), tmp_path / "home"

    def given(*ticks: int) -> pl.DataFrame:
        return pl.DataFrame({"ts": ticks, "k": [t % 2 for t in ticks]})

    (tmp_path / "in").mkdir()
    events = [((k, 5), vs, vs + 1) for vs in range(0, 100, 10) for k in (0, 1)]
    fast = elements(schema, [*(insert(*e) for e in events), stable(91)])
    feed = spark.readStream.schema("ts bigint, k bigint").parquet(str(tmp_path / "in"))
    slow = flow.start(
        spark, {"rows": feed}, checkpoint=str(checkpoint_of(home, "slow")),
        sinks={"counts": ElementFiles(home, "slow", sink)},
    )  # fmt: skip
    inner = (
        replicas_merged(spark, home, sink)
        .writeStream.option("checkpointLocation", str(merger_checkpoint(home)))
        .start(str(tmp_path / "inner"))
    )
    told = spark.readStream.schema(spark_schema(schema)).parquet(str(tmp_path / "inner"))
    outer = ip.lmerge(
        read(spark, write(tmp_path / "fast", [fast])), told, properties=KEYED,
        checkpoint=str(tmp_path / "outer"),
        upstream={1: ip.upstream(str(merger_checkpoint(home)), sink="merged")},
    )  # fmt: skip
    delivered = Delivered()
    try:
        for number, ticks in enumerate((range(20), range(20, 40), range(40, 100), [1000])):
            write(tmp_path / "in", [given(*ticks)], first=number)
            slow.query.processAllAvailable()
            inner.processAllAvailable()
            if number in (0, 3):
                run(outer, tmp_path / "outer", delivered)
        spared = sum(slow.skipped()["rows"].values())
    finally:
        slow.stop()
        inner.stop()
    assert spared == 50, "the windows from 40 to 89, of which 90 is the last that is needed"
    assert ip.quarantined(str(merger_checkpoint(home))) == []
    assert ip.quarantined(str(tmp_path / "outer")) == []
    found = [tuple(r) for b in delivered.batches.values() for r in b]
    assert equivalent(
        schema, elements(schema, found), elements(schema, [insert(*e) for e in events])
    )


CHANGES = changes_schema(SCHEMA_KV)
LOG = [
    ("insert", 1, "a", 10), ("insert", 2, "b", 20), ("update", 4, "a", 11),
    ("stable", 4, None, None),
    ("delete", 6, "b", None), ("update", 7, "a", 12), ("insert", 9, "b", 21),
    ("stable", END_OF_TIME, None, None),
]  # fmt: skip


def test_logs_of_one_table_are_merged_and_a_broken_one_is_not_believed(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Two logs in other batches, and a third that updates a key that it never inserted."""
    logs = [
        [LOG[:3], LOG[3:6], LOG[6:]],
        [LOG[:1], LOG[1:5], LOG[5:]],
        [[("update", 1, "c", 30)], [("insert", 2, "c", 31)]],
    ]
    frames = [
        read(spark, write(tmp_path / str(n), [Page.of_rows(CHANGES, part).frame for part in log]))
        for n, log in enumerate(logs)
    ]
    merged = ip.lmerge(*frames, keys=["k"], properties=KEYED)
    delivered = run(merged, tmp_path / "checkpoint")
    found = elements(SCHEMA_KV, [tuple(r) for b in delivered.batches.values() for r in b])
    assert sorted(tdb(SCHEMA_KV, found).rows()) == [
        (1, 4, "a", 10), (2, 6, "b", 20), (4, 7, "a", 11),
        (7, END_OF_TIME, "a", 12), (9, END_OF_TIME, "b", 21),
    ]  # fmt: skip


@given(st.integers(0, 2**32), st.booleans())
@settings(max_examples=40, deadline=None)
def test_a_batch_says_the_same_in_any_order(seed: int, duplicates: bool) -> None:
    random = Random(seed)
    events = table(random, duplicates=duplicates)
    rows = retold(events, random, Telling())
    shuffled = random.sample(rows, len(rows))
    said = net(SCHEMA, elements(SCHEMA, shuffled))
    assert equivalent(SCHEMA, said, reference(events))
    assert not violations(SCHEMA, said)
    assert last_stable(said) == END_OF_TIME


def test_bad_input_is_refused_with_what_to_do(spark: SparkSession, tmp_path: Path) -> None:
    good = read(spark, write(tmp_path / "good", [reference([("A", 1, 2)])]))
    static = spark.read.parquet(str(tmp_path / "good"))
    other = element_schema(Schema.of("q bigint"))
    different = read(spark, write(tmp_path / "other", [elements(other, [insert(1, 1, 2)])]))
    with pytest.raises(FlowError, match="one or more DataFrames"):
        ip.lmerge()
    with pytest.raises(FeedError, match="streaming"):
        ip.lmerge(good, static)
    with pytest.raises(SchemaError, match="DataFrame 1: expected the columns"):
        ip.lmerge(good, different)
    with pytest.raises(SchemaError, match="one of the attributes"):
        ip.lmerge(good.drop("vold"))
    with pytest.raises(SchemaError, match="one of the attributes"):
        ip.lmerge(good, by="replica")
    with pytest.raises(FlowError, match="keyed"):
        ip.lmerge(good, good, variant="R3")
    with pytest.raises(FlowError, match="order=, a column with the order among equal times"):
        ip.lmerge(good, good, variant="R1", properties=ORDERED)
    with pytest.raises(FlowError, match="a policy among"):
        ip.lmerge(good, good, policy="fastest")


def test_an_order_that_is_none_or_that_nobody_needs_is_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    told = elements(SCHEMA, [insert("A", 1, 2)]).with_columns(seq=pl.lit(1, pl.Int64))
    good = read(spark, write(tmp_path / "good", [told]))
    other = good.withColumn("seq", F.col("seq").cast("string"))
    listed = good.withColumn("seq", F.array("seq"))
    for frames, order, said in (
        ((good, good), "rank", "one of the attributes"),
        ((good, good), "vs", "a column of its own"),
        ((good, other), "seq", "bigint.*string"),
        ((listed, listed), "seq", "a type that can be sorted"),
    ):
        with pytest.raises(SchemaError, match=said):
            ip.lmerge(*frames, order=order, properties=ORDERED)
    for variant, properties in (
        (None, Properties(ordered=True, keyed=True)), (None, Properties(strict=True)),
        ("R4", ORDERED), ("R2", Properties(ordered=True, keyed=True, deterministic=True)),
    ):  # fmt: skip
        with pytest.raises(FlowError, match="R1, which order= is for"):
            ip.lmerge(good, good, variant=variant, order="seq", properties=properties)
    with pytest.raises(FlowError, match="R1, which order= is for"):
        ip.lmerge(good, good, order="seq", properties=ORDERED, policy=0.5)
    with pytest.raises(FlowError, match="deterministic, which R1 needs"):
        ip.lmerge(good, good, variant="R1", order="seq", properties=Properties(ordered=True))
    log = good.withColumnsRenamed({"element": "change", "vs": "at"}).drop("vold", "ve")
    with pytest.raises(FlowError, match="order= for elements"):
        ip.lmerge(log, log, keys=["p"], order="seq", properties=ORDERED)
