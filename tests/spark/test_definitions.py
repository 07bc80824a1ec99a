"""Definitions 1 and 2 of Feedback on Spark, for every operator and random feedback.

Each operator has sources of its own, so that what it tells those upstream gets to them: a source
with several readers goes on for all of them unless all agree.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pytest
from pyspark.sql import SparkSession

import interpunct as ip
from interpunct.flow.feedback import follow
from interpunct.spark.channel import Channel, Message
from interpunct.spark.query import FlowQuery
from interpunct.testing.cases import hashable
from tests.spark.scenario import DDL, SECOND, T0, batches, in_process, write_files
from tests.spark.test_parity import files_of, read

Batches = list[dict[str, pl.DataFrame]]
SEED = 20
ORDERED = ip.external("ts", ordered=True, ets="never")
SKEWED = ip.external("ts", ip.bounds(skew="4s"), ets="never")


def apart(archive: str) -> ip.Flow:
    """Every operator, each behind sources that nobody else reads."""
    flow = ip.Flow("apart")

    def of(operator: str, letters: str) -> Iterator[Any]:
        for letter in letters:
            time = SKEWED if letter == "c" else ORDERED
            yield flow.source(f"{operator}_{letter}", DDL, time=time)

    (a,) = of("select", "a")
    flow.sink("select", a.where("v < 0.7 AND tag <> 'x'"))
    (a,) = of("project", "a")
    flow.sink("project", a.select("ts", key="k", double_v="v * 2"))
    flow.sink("union", flow.union(*of("union", "ab")))
    flow.sink("arrival", flow.union(*of("arrival", "ac"), in_order=False))
    flow.sink("merge", flow.merge(*of("merge", "ab")))
    (c,) = of("sort", "c")
    flow.sink("sort", c.sort())
    for kind in ("inner", "left", "thrifty", "impatient"):
        one, other = of(kind, "ab")
        how = "left" if kind == "left" else "inner"
        told = {kind: True} if kind in ("thrifty", "impatient") else {}
        flow.sink(kind, one.join(other, on="k", within="3s", how=how, **told))
    a, b, c = of("three", "abc")
    flow.sink("three", a.join(b, c, on="k", within="1s"))
    for aggregate, value in (
        ("count", "count(*)"), ("total", "sum(v)"), ("mean", "avg(v)"), ("low", "min(v)"),
        ("high", "max(v)"), ("middle", pl.col("v").median()),
    ):  # fmt: skip
        (c,) = of(aggregate, "c")
        flow.sink(aggregate, c.aggregate(by="k", every="2s", size="4s", **{aggregate: value}))
    (a,) = of("rows", "a")
    flow.sink("rows", a.aggregate(by="k", rows=4, slide=2, mean="avg(v)"))
    (a,) = of("split", "a")
    for number, part in enumerate(a.split("v < 0.5")):
        flow.sink(f"part_{number}", part)
    (a,) = of("duplicate", "a")
    for number, part in enumerate(a.duplicate()):
        flow.sink(f"copy_{number}", part)
    (c,) = of("punctuate", "c")
    flow.sink("punctuate", c.punctuate(every="1s", delay="1000000h"))
    a, b = of("pace", "ab")
    flow.sink("pace", a.pace(b, within="30s"))
    (a,) = of("impute", "a")
    look_up = "select v from known where k = :k"
    flow.sink("impute", a.impute("v", archive=archive, query=look_up, overwrite=True))
    return flow


def archive(folder: Path) -> str:
    path = folder / "known.db"
    with sqlite3.connect(path) as database:
        database.execute("create table known (k integer, v real)")
        database.executemany("insert into known values (?, ?)", [(k, k / 4) for k in range(5)])
    return f"sqlite:///{path}"


def drawn(schema: ip.Schema, random: Random) -> ip.Feedback:
    """On the key, the time, the value or several of them, so that it speaks of what is there."""
    conditions: dict[str, Any] = {}
    keys = [n for n in ("k", "key") if n in schema]
    values = [n for n, t in schema.polars.items() if t.is_float()]
    if keys and random.random() < 0.6:
        conditions[keys[0]] = random.sample(range(5), random.randint(1, 3))
    if values and random.random() < 0.4:
        name = random.choice(values)
        conditions[name] = (random.choice("<≥"), round(random.uniform(0.2, 0.8), 2))
    if schema.time is not None and (not conditions or random.random() < 0.5):
        until = T0 + random.randint(4, 24) * SECOND
        conditions[schema.time] = ("≤", schema.value_of(until))
    return ip.Feedback(ip.Intent.ASSUMED, ip.Pattern.of(schema, conditions))


class Scenario:
    """The flow, its input, what it delivers when nobody says anything, and what will be said."""

    def __init__(self, folder: Path, seed: int) -> None:
        random = Random(seed)
        self.flow = apart(archive(folder))
        rows = batches(seed, rows=30, count=2)
        self.data: Batches = [
            {n.name: batch[n.name[-1]] for n in self.flow.graph.sources} for batch in rows
        ]
        self.full = in_process(self.flow, self.data)
        self.said = {n.name: drawn(n.streams[0].schema, random) for n in self.flow.graph.sinks}

    def propagated(self) -> dict[str, list[ip.Pattern]]:
        """By source, what its only reader tells it because of what was said to a sink."""
        found: dict[str, list[ip.Pattern]] = {n.name: [] for n in self.flow.graph.sources}
        for sink, feedback in self.said.items():
            for step in follow(self.flow.graph, sink, feedback.pattern):
                if step.node in found:
                    found[step.node].append(step.pattern)
        return found

    def check(self, got: dict[str, pl.DataFrame], seed: int) -> None:
        """SR − subset(SR, f) ⊆ S ⊆ SR at every sink."""
        for sink, feedback in self.said.items():
            whole = self.full[sink]
            found = bag(got[sink].select(whole.columns)) if sink in got else Counter()
            kept = bag(whole.filter(~feedback.pattern.mask(whole)))
            where = f"seed {seed}, {sink}, {feedback}"
            assert found <= bag(whole), f"{where}: {found - bag(whole)} is invented"
            assert kept <= found, f"{where}: {kept - found} is missing"


def bag(frame: pl.DataFrame) -> Counter[tuple[Any, ...]]:
    floats = [n for n, t in frame.schema.items() if t.is_float()]
    return Counter(hashable(row) for row in frame.with_columns(pl.col(floats).round(9)).rows())


def heard(
    spark: SparkSession, scenario: Scenario, data: Batches, folder: Path
) -> tuple[FlowQuery, dict[str, pl.DataFrame]]:
    """The flow over these batches; what is said is there before it begins."""
    write_files(data, folder)
    channel = Channel.of(str(folder / "checkpoint"))
    for sink, feedback in scenario.said.items():
        channel.send(Message.of(sink, feedback))
    graph = scenario.flow.graph
    query = scenario.flow.start(
        spark, {n.name: files_of(spark, n, folder) for n in graph.sources},
        checkpoint=str(folder / "checkpoint"), lanes=2, trigger={"availableNow": True},
        sinks={n.name: str(folder / "out" / n.name) for n in graph.sinks},
    )  # fmt: skip
    query.await_termination()
    return query, {path.name: read(path) for path in (folder / "out").iterdir()}


@pytest.mark.slow
def test_definition_1_every_operator_exploits_feedback_correctly(
    spark: SparkSession, tmp_path: Path
) -> None:
    scenario = Scenario(tmp_path, SEED)
    query, got = heard(spark, scenario, scenario.data, tmp_path)
    scenario.check(got, SEED)
    skipped = {node for node, counts in query.skipped().items() if sum(counts.values())}
    sources = {n.name for n in scenario.flow.graph.sources}
    assert len(skipped) > len(scenario.said) // 2, "most make use of it"
    assert len(skipped & sources) > len(sources) // 4, "and what they pass on gets to the sources"


@pytest.mark.slow
def test_definition_2_what_every_operator_propagates_is_safe_to_act_upon(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Sources leave out, at random, what they will be told of, even before they are told."""
    scenario, random = Scenario(tmp_path, SEED), Random(SEED)
    told = scenario.propagated()
    assert sum(1 for patterns in told.values() if patterns) > len(told) // 3
    *batches, closing = scenario.data
    thinned = [{n: without(f, told[n], random) for n, f in b.items()} for b in batches]
    before, after = (sum(f.height for b in d for f in b.values()) for d in (batches, thinned))
    assert after < 0.9 * before
    _, got = heard(spark, scenario, [*thinned, closing], tmp_path)
    scenario.check(got, SEED)


def without(frame: pl.DataFrame, told: list[ip.Pattern], random: Random) -> pl.DataFrame:
    """A frame without some of the tuples that patterns match."""
    chosen = pl.Series([random.random() < 0.7 for _ in range(frame.height)], dtype=pl.Boolean)
    for pattern in told:
        kept = ~(pattern.mask(frame) & chosen)
        frame, chosen = frame.filter(kept), chosen.filter(kept)
    return frame
