"""One flow with every operator, and batches for it: the same rows must come out everywhere."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

import interpunct as ip
from interpunct.engine.run import Engine
from interpunct.model.page import Page
from interpunct.spark.files import put

DDL = "k bigint, ts timestamp, v double, tag string"
T0 = 1_700_000_000_000_000
SECOND = 1_000_000
BATCHES = 4
CLOSING = 3600 * SECOND  # the last batch jumps ahead, so that everything before it comes out


def everything() -> ip.Flow:
    """Two ordered sources, one disordered one, and a sink behind each operator."""
    flow = ip.Flow("everything")
    ordered = ip.external("ts", ordered=True, ets="never")
    a = flow.source("a", DDL, time=ordered)
    b = flow.source("b", DDL, time=ordered)
    c = flow.source("c", DDL, time=ip.external("ts", ip.bounds(skew="4s"), ets="never"))
    flow.sink("select", a.where("v < 0.7 AND tag <> 'x'"))
    flow.sink("project", a.select("ts", key="k", double_v="v * 2", label="upper(tag)"))
    flow.sink("union", flow.union(a, b))
    flow.sink("arrival_union", flow.union(a, c, in_order=False))
    flow.sink("merge", flow.merge(a, b))
    flow.sink("sort", c.sort())
    flow.sink("inner", a.join(b, on="k", within="3s"))
    flow.sink("left", c.where("v > 0.3").join(b, on="k", within=("2s", "1s"), how="left"))
    flow.sink("three", a.join(b, c, on="k", within="1s"))
    tumbling = c.where("v > 0.1").aggregate(
        by="k", every="5s", n="count(*)", avg="avg(v)", low="min(v)", high="max(v)"
    )
    flow.sink("tumbling", tumbling)
    flow.sink("sliding", c.aggregate(by="k", every="2s", size="6s", total="sum(v)"))
    flow.sink("median", c.aggregate(by=["k", "tag"], every="10s", middle=pl.col("v").median()))
    flow.sink("global", tumbling.aggregate(every="10s", groups="count(*)", n="sum(n)"))
    flow.sink("last", a.aggregate(by="k", rows=4, slide=2, mean="avg(v)"))
    thirds = c.select("ts", "v", third="k % 3").where("v > 0.2").with_columns(twice="v * 2")
    flow.sink("by_computed", thirds.aggregate(by="third", every="5s", n="count(*)", v="sum(twice)"))
    loud = b.with_columns(loud="upper(tag)").select("ts", word="loud", w="v")
    flow.sink("on_computed", a.with_columns(word=pl.col("tag").str.to_uppercase())
              .join(loud, on="word", within="1s"))  # fmt: skip
    low, rest = a.split("v < 0.5")
    flow.sink("low", low)
    flow.sink("rest", rest)
    one, two = b.duplicate()
    flow.sink("one", one.where("v > 0.5"))
    flow.sink("two", two.where("v <= 0.5"))
    return flow


def batches(
    seed: int = 7, rows: int = 40, count: int = BATCHES, lag: int = 5
) -> list[dict[str, pl.DataFrame]]:
    """Per batch and source a frame; `c` lags by up to 5 s, and sometimes by half a minute."""
    random = np.random.default_rng(seed)
    result = []
    for number in range(count):
        start = T0 + number * 10 * SECOND
        frames = {}
        for source in "abc":
            quiet = source == "b" and number == 3
            size = 0 if quiet else rows
            ticks = start + np.sort(random.integers(0, 10 * SECOND, size))
            if source == "c" and size:
                ticks = ticks - random.integers(0, lag * SECOND, size)
                ticks = ticks - 25 * SECOND * (random.random(size) < 0.1)
                ticks = np.sort(ticks)  # on Spark a batch has no order inside, so late is by batch
            frames[source] = _frame(random, ticks)
        result.append(frames)
    ahead = T0 + CLOSING
    result.append({s: _frame(random, np.array([ahead + i])) for i, s in enumerate("abc")})
    return result


def _frame(random: np.random.Generator, ticks: np.ndarray) -> pl.DataFrame:
    size = len(ticks)
    return pl.DataFrame(
        {
            "k": random.integers(0, 5, size),
            "ts": pl.Series(ticks.astype(np.int64)).cast(pl.Datetime("us", "UTC")),
            "v": random.random(size).round(3),
            "tag": random.choice(["x", "y", "żółć", ""], size),
        },
        schema_overrides={"tag": pl.String},
    )


def in_process(flow: ip.Flow, data: list[dict[str, pl.DataFrame]]) -> dict[str, pl.DataFrame]:
    """What the engine delivers for these batches, sink by sink, and what was late."""
    frames: dict[str, list[pl.DataFrame]] = {n.name: [] for n in flow.graph.sinks}
    clock = ip.ScriptedClock()
    engine = Engine(flow.graph, clock, deliver={n: f.append for n, f in frames.items()})
    schemas = {n.name: n.raw for n in flow.graph.sources}
    for batch in data:
        for source, frame in batch.items():
            if frame.height:
                engine.feed(source, Page.checked(schemas[source], frame))
        engine.settle()
        clock.advance(SECOND)
    collected = {n: pl.concat(f) for n, f in frames.items() if f}
    return collected | {f"late:{n}": pl.concat(f) for n, f in engine.late.items()}


def write_files(data: list[dict[str, pl.DataFrame]], folder: Path) -> None:
    """One Parquet file per batch and source, in an order that file sources keep."""
    for number, batch in enumerate(data):
        for source, frame in batch.items():
            path = folder / source / f"{number:04d}.parquet"
            put(path, frame.write_parquet, moment=1_700_000_000 + number)


def comparable(frame: pl.DataFrame) -> list[tuple[object, ...]]:
    """Rows as a sorted list, without those of the batch that closes everything."""
    times = [n for n, t in frame.schema.items() if isinstance(t, pl.Datetime)]
    for name in times:
        ticks = pl.col(name).cast(pl.Int64)
        frame = frame.filter(ticks.is_null() | (ticks < T0 + CLOSING))
    floats = [n for n, t in frame.schema.items() if t.is_float()]
    rounded = frame.with_columns(pl.col(floats).round(9))
    return sorted(rounded.select(sorted(rounded.columns)).rows(), key=repr)
