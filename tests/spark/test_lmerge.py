"""Replicas merged on Spark: the table of the merge is the table they all tell."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from random import Random

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import interpunct as ip
from interpunct.model.element_forms import changes_schema
from interpunct.model.elements import Row, element_schema, elements, insert, stable
from interpunct.model.errors import FeedError, FlowError, SchemaError
from interpunct.model.page import Page
from interpunct.model.properties import Properties
from interpunct.model.schema import END_OF_TIME, Schema
from interpunct.model.tdb import equivalent, last_stable, tdb, violations
from interpunct.operators.lmerge_policy import MergePolicy
from interpunct.spark.lmerge_batches import ATTACH, DETACH, net
from interpunct.testing.revisable import SCHEMA, Event, Telling, from_time, in_order, retold, table
from tests.spark.streams import Delivered, read, run, write

pytestmark = [
    pytest.mark.xdist_group("spark"),
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning"),
]

KEYED = Properties(insert_only=False, keyed=True)
SCHEMA_KV = element_schema(Schema.of("k string, v bigint"))


def parts(rows: Sequence[Row], random: Random, most: int = 3) -> list[pl.DataFrame]:
    """A stream cut into a few batches anywhere."""
    cuts = sorted(random.sample(range(len(rows) + 1), min(most - 1, len(rows))))
    bounds = [0, *cuts, len(rows)]
    return [elements(SCHEMA, rows[a:b]) for a, b in itertools.pairwise(bounds)]


def output(delivered: Delivered) -> pl.DataFrame:
    """What came out: of each batch the elements and then the stables, as a stream."""
    frames = [SCHEMA.empty()]
    for batch in sorted(delivered.batches):
        rows = [tuple(r) for r in delivered.batches[batch]]
        frames.append(elements(SCHEMA, sorted(rows, key=lambda r: r[0] == "stable")))
    return pl.concat(frames)


def reference(events: Sequence[Event]) -> pl.DataFrame:
    return elements(SCHEMA, [insert(*event) for event in events])


def check(delivered: Delivered, events: Sequence[Event], *, keyed: bool = True) -> None:
    found = output(delivered)
    assert equivalent(SCHEMA, found, reference(events)), tdb(SCHEMA, found).rows()
    assert not violations(SCHEMA, found, keyed=keyed)
    assert last_stable(found) == END_OF_TIME


CASES = [
    pytest.param("R3", KEYED, "first", id="R3 first"),
    pytest.param(None, Properties(insert_only=False), "first", id="R4 by default"),
    pytest.param("R3", KEYED, MergePolicy("every"), id="R3 every adjust"),
    pytest.param("R4", KEYED, MergePolicy(inserts="half-frozen", stable_lag=2), id="R4 late"),
    pytest.param(None, KEYED, 0.5, id="quorum"),
]


@pytest.mark.parametrize(("variant", "properties", "policy"), CASES)
def test_the_merge_of_random_replicas_has_their_table(
    spark: SparkSession,
    tmp_path: Path,
    variant: str | None,
    properties: Properties,
    policy: str | float | MergePolicy,
) -> None:
    random = Random(5)
    events = table(random, 24, duplicates=not properties.keyed)
    told = [retold(events, random, Telling(disorder=d)) for d in (3, 9)]
    frames = [
        read(spark, write(tmp_path / str(n), parts(rows, random))) for n, rows in enumerate(told)
    ]
    merged = ip.lmerge(*frames, variant=variant, properties=properties, policy=policy)
    check(run(merged, tmp_path / "checkpoint"), events, keyed=properties.keyed)


def test_ordered_replicas_take_the_cheap_variant(spark: SparkSession, tmp_path: Path) -> None:
    random = Random(6)
    events = table(random, 16)
    told = [in_order(events, random, shuffled_ties=True) for _ in range(2)]
    frames = [
        read(spark, write(tmp_path / str(n), parts(rows, random))) for n, rows in enumerate(told)
    ]
    merged = ip.lmerge(*frames, properties=Properties(ordered=True, keyed=True))
    check(run(merged, tmp_path / "checkpoint"), events)


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


def test_an_input_that_contradicts_a_frozen_fact_is_not_believed(
    spark: SparkSession, tmp_path: Path
) -> None:
    honest = [[insert("A", 1, 4), stable(8)], [insert("B", 9, 12)], [stable("∞")]]
    liar = [[insert("A", 1, 4), stable(5)], [insert("E", 2, 3)], [insert("E", 20, 30)]]
    frames = [
        read(spark, write(tmp_path / str(n), [elements(SCHEMA, rows) for rows in told]))
        for n, told in enumerate((honest, liar))
    ]
    delivered = run(ip.lmerge(*frames, properties=KEYED), tmp_path / "checkpoint")
    check(delivered, [("A", 1, 4), ("B", 9, 12)])


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
    with pytest.raises(FlowError, match="no order among equal times"):
        ip.lmerge(good, good, variant="R1", properties=Properties(ordered=True))
    with pytest.raises(FlowError, match="a policy among"):
        ip.lmerge(good, good, policy="fastest")
