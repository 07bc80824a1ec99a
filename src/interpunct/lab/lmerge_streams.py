"""Streams with disorder and revisions for the experiments on logical merge (LMerge section VI-B).

    tuples, some of them moved back ── speculative count ── lifetime by count ── elements

As in the paper adjusts come from a sub-query: a count by group over windows, which is revised when
a tuple comes late, followed by a modification of lifetimes: an event lives the longer the more
there was to count. So every late tuple moves the end of an event. All replicas have the same tuples
and each has its own order, pages and stables: they are equivalent and physically different.

The payload is an integer and a string of 1,000 bytes, one string for each integer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from interpunct.model.elements import (
    ADJUST,
    INSERT,
    KIND,
    STABLE,
    VE,
    VOLD,
    VS,
    element_schema,
    framed,
)
from interpunct.model.expression import aggregate
from interpunct.model.page import Page
from interpunct.model.properties import Properties
from interpunct.model.punctuation import Punctuation
from interpunct.model.schema import END_OF_TIME, Schema
from interpunct.operators.contract import Stream
from interpunct.operators.speculative_aggregate import SpeculativeAggregate
from interpunct.operators.windows import Windows

TUPLES = Schema.of("ts bigint, number bigint", time="ts")
COUNT = aggregate("count(*)", TUPLES, "lmerge lab")
SCHEMA = element_schema(Schema.of("number bigint, text string"))
KEYED = Stream(SCHEMA, Properties(insert_only=False, keyed=True))
TEXT_BYTES = 1000


@dataclass(frozen=True)
class Shape:
    """Of one replica: `disorder` is the share of tuples that come up to `delay` ticks late, and
    `stables` the chance of a heartbeat after a tuple. Windows are `window` ticks long, one tuple
    comes a tick, and an event lives `life` ticks and one more for each tuple counted. Pages have
    `page` tuples on average."""

    tuples: int = 20_000
    disorder: float = 0.2
    delay: int = 2_000
    stables: float = 0.01
    groups: int = 400
    window: int = 1_000
    life: int = 4_000
    page: int = 100


def replicas(shape: Shape, count: int, seed: int) -> list[list[Page]]:
    """So many equivalent streams, each as its pages."""
    random = np.random.default_rng(seed)
    numbers = random.integers(0, shape.groups, shape.tuples, endpoint=True)
    texts = pl.Series(
        "text", [random.bytes(TEXT_BYTES // 2).hex() for _ in range(shape.groups + 1)]
    )
    return [list(_replica(shape, numbers, texts, random)) for _ in range(count)]


def _replica(
    shape: Shape, numbers: NDArray[np.int64], texts: pl.Series, random: np.random.Generator
) -> Iterator[Page]:
    query = SpeculativeAggregate(
        "count", Stream(TUPLES), Windows(shape.window, shape.window), ["number"], {"n": COUNT}
    )
    for page in _tuples(shape, numbers, random):
        for _, out in query.accept(0, page).pages:
            made = _lifetimes(out.frame, texts, shape.life)
            yield Page.from_ipc(Page(SCHEMA, made).to_ipc())  # in memory of its own


def _tuples(
    shape: Shape, numbers: NDArray[np.int64], random: np.random.Generator
) -> Iterator[Page]:
    """One replica's tuples in the order they come, with heartbeats that are true."""
    times = np.arange(shape.tuples)
    late = random.random(shape.tuples) < shape.disorder
    order = np.argsort(times + late * random.integers(1, shape.delay, shape.tuples), kind="stable")
    ts = times[order]
    ahead = np.minimum.accumulate(ts[::-1])[::-1]
    start = 0
    while start < shape.tuples:
        size = int(random.integers(shape.page // 2, 3 * shape.page // 2, endpoint=True))
        end, chances = start + size, 1 - (1 - shape.stables) ** size
        frame = pl.DataFrame({"ts": ts[start:end], "number": numbers[order[start:end]]})
        marks: tuple[Punctuation, ...] = ()
        if end >= shape.tuples:
            marks = (Punctuation.heartbeat(TUPLES, END_OF_TIME),)
        elif random.random() < chances:
            marks = (Punctuation.heartbeat(TUPLES, int(ahead[end]) - 1),)
        yield Page(TUPLES, frame, marks)
        start = end


def _lifetimes(frame: pl.DataFrame, texts: pl.Series, life: int) -> pl.DataFrame:
    """Counts as lifetimes: a count that replaces another becomes an adjust of one event."""
    key = [VS, "number"]
    old = frame.filter(pl.col(KIND) == ADJUST).select(*key, pl.col("n").alias("was"))
    new = frame.filter(pl.col(KIND) == INSERT).join(old, on=key, how="left", maintain_order="left")
    revised = pl.col("was").is_not_null()
    counted = framed(SCHEMA, new.with_columns(text=texts.gather(new["number"])), [
        pl.when(revised).then(pl.lit(ADJUST)).otherwise(pl.lit(INSERT)).alias(KIND),
        pl.col(VS),
        (pl.col(VS) + life + pl.col("was")).alias(VOLD),
        (pl.col(VS) + life + pl.col("n")).alias(VE),
        pl.col("number"),
        pl.col("text"),
    ])  # fmt: skip
    stables = frame.filter(pl.col(KIND) == STABLE)
    marks = stables.select(KIND, VS, VOLD, VE, "number", pl.lit(None, pl.String).alias("text"))
    return counted.vstack(marks.select(pl.col(n).cast(SCHEMA[n].dtype) for n in SCHEMA.names))


def in_turn(streams: list[list[Page]]) -> Iterator[tuple[int, Page]]:
    """The pages of all replicas, one of each at a time."""
    for at in range(max(map(len, streams))):
        for port, pages in enumerate(streams):
            if at < len(pages):
                yield port, pages[at]
