"""Definitions 1 and 2 of Feedback on Spark, for every operator and random feedback.

Each operator has sources of its own, so that what it tells those upstream gets to them: a source
with several readers goes on for all of them unless all agree. Every tuple is there twice, with
another key. Of the second copies the sources leave out, at random, what operators will tell them
of, even before they are told; so that one query shows both definitions, by copy.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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
from tests.spark.test_parity import files_of, read, written

SEED = 20
COPY = 10  # what is added to the key of a second copy
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
        database.executemany("insert into known values (?, ?)", [(k, k / 4) for k in range(20)])
    return f"sqlite:///{path}"


def drawn(schema: ip.Schema, random: Random) -> ip.Feedback:
    """On the key, the time, the value or several of them, so that it speaks of what is there."""
    conditions: dict[str, Any] = {}
    keys = [n for n in ("k", "key") if n in schema]
    values = [n for n, t in schema.polars.items() if t.is_float()]
    if keys and random.random() < 0.6:
        chosen = random.sample(range(5), random.randint(1, 3))
        conditions[keys[0]] = [*chosen, *(k + COPY for k in chosen)]
    if values and random.random() < 0.4:
        name = random.choice(values)
        conditions[name] = (random.choice("<≥"), round(random.uniform(0.2, 0.8), 2))
    if schema.time is not None and (not conditions or random.random() < 0.5):
        until = T0 + random.randint(4, 24) * SECOND
        conditions[schema.time] = ("≤", schema.value_of(until))
    return ip.Feedback(ip.Intent.ASSUMED, ip.Pattern.of(schema, conditions))


class Scenario:
    """The flow, its input, what it delivers when nobody says anything, and what will be said."""

    def __init__(self, folder: Path) -> None:
        random = Random(SEED)
        self.flow = apart(archive(folder))
        self.said = {n.name: drawn(n.streams[0].schema, random) for n in self.flow.graph.sinks}
        names = [n.name for n in self.flow.graph.sources]
        rows = [{n: batch[n[-1]] for n in names} for batch in batches(SEED, rows=30, count=2)]
        told = self.propagated()
        self.full = in_process(self.flow, [{n: twice(f) for n, f in b.items()} for b in rows])
        *begun, closing = rows
        thinned = [{n: twice(f, told[n], random) for n, f in b.items()} for b in begun]
        self.data = [*thinned, {n: twice(f) for n, f in closing.items()}]

    def propagated(self) -> dict[str, list[ip.Pattern]]:
        """By source, what its only reader tells it because of what was said to a sink."""
        found: dict[str, list[ip.Pattern]] = {n.name: [] for n in self.flow.graph.sources}
        for sink, feedback in self.said.items():
            for step in follow(self.flow.graph, sink, feedback.pattern):
                if step.node in found:
                    found[step.node].append(step.pattern)
        return found

    def run(self, spark: SparkSession, folder: Path) -> FlowQuery:
        """What is said is there before the query begins."""
        write_files(self.data, folder)
        channel = Channel.of(str(folder / "checkpoint"))
        for sink, feedback in self.said.items():
            channel.send(Message.of(sink, feedback))
        graph = self.flow.graph
        query = self.flow.start(
            spark, {n.name: files_of(spark, n, folder) for n in graph.sources},
            checkpoint=str(folder / "checkpoint"), lanes=2, trigger={"availableNow": True},
            sinks={n.name: str(folder / "out" / n.name) for n in graph.sinks},
        )  # fmt: skip
        query.await_termination()
        return query


def twice(
    frame: pl.DataFrame, told: Sequence[ip.Pattern] = (), random: Random | None = None
) -> pl.DataFrame:
    """A frame and its copy, in the order of time; the copy without some of what patterns match."""
    copy = frame.with_columns(pl.col("k") + COPY)
    for pattern in told:
        chosen = [random is not None and random.random() < 0.7 for _ in range(copy.height)]
        copy = copy.filter(~(pattern.mask(copy) & pl.Series(chosen, dtype=pl.Boolean)))
    return pl.concat([frame, copy]).sort("ts", maintain_order=True)


def bag(frame: pl.DataFrame) -> Counter[tuple[Any, ...]]:
    floats = [n for n, t in frame.schema.items() if t.is_float()]
    return Counter(hashable(row) for row in frame.with_columns(pl.col(floats).round(9)).rows())


@dataclass
class Heard:
    """The flow after it has heard everything, and what each sink delivered."""

    scenario: Scenario
    skipped: set[str]  # the operators and sources that left something out
    out: dict[str, pl.DataFrame]

    def check(self, *, copies: bool) -> None:
        """SR − subset(SR, f) ⊆ S ⊆ SR at every sink."""
        for sink, feedback in self.scenario.said.items():
            whole = self.scenario.full[sink]
            mine = pl.col("k" if "k" in whole.columns else "key").ge(COPY) == copies
            whole = whole.filter(mine)
            found = bag(self.out[sink].select(whole.columns).filter(mine))
            kept = bag(whole.filter(~feedback.pattern.mask(whole)))
            where = f"seed {SEED}, {sink}, {feedback}"
            assert found <= bag(whole), f"{where}: {found - bag(whole)} is invented"
            assert kept <= found, f"{where}: {kept - found} is missing"


@pytest.fixture(scope="module")
def heard(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Heard:
    folder = tmp_path_factory.mktemp("definitions")
    scenario = Scenario(folder)
    query = scenario.run(spark, folder)
    skipped = {node for node, counts in query.skipped().items() if sum(counts.values())}
    empty = {n: f.clear() for n, f in scenario.full.items()}
    out = {path.name: read(path) for path in (folder / "out").iterdir() if written(path)}
    return Heard(scenario, skipped, empty | out)


@pytest.mark.slow
def test_definition_1_every_operator_exploits_feedback_correctly(heard: Heard) -> None:
    heard.check(copies=False)
    sources = {n.name for n in heard.scenario.flow.graph.sources}
    assert len(heard.skipped) > len(heard.scenario.said) // 2, "most make use of it"
    passed_on = heard.skipped & sources
    assert len(passed_on) > len(sources) // 4, "and what they pass on gets to the sources"


@pytest.mark.slow
def test_definition_2_what_every_operator_propagates_is_safe_to_act_upon(heard: Heard) -> None:
    told = heard.scenario.propagated()
    assert sum(1 for patterns in told.values() if patterns) > len(told) // 3
    rows = pl.concat(f.select("k") for batch in heard.scenario.data for f in batch.values())
    copies = rows.filter(pl.col("k") >= COPY).height
    assert copies < 0.9 * (rows.height - copies), "sources left out something"
    heard.check(copies=True)
