"""A quarter of a power company's outages as two replicas of one change log, merged.

    log        I 17, U 17, D 17 …      each version of an outage is an event, ended by the next
    replica 0  in order, thousands of changes in a page, few stables
    replica 1  each outage's changes up to two hours late, so in another order, in smaller pages

Real revisions: estimated ends that move, outages that vanish and come back. The merged stream must
come to the table that the log itself comes to, every version with its time, and the outages that
are open in it must be those that are open when the changes are applied one after another.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import polars as pl

from interpunct.lab.folders import passing
from interpunct.lab.isolated import Report, silent
from interpunct.model.element_forms import AT, CHANGE, DELETE, UPDATE, from_changes
from interpunct.model.elements import INSERT, VE, VS, element_schema, infinity, ticks
from interpunct.model.errors import FeedError
from interpunct.model.frames import stacked
from interpunct.model.page import Page
from interpunct.model.properties import Properties
from interpunct.model.schema import Schema
from interpunct.model.tdb import equivalent, tdb
from interpunct.operators.contract import Stream
from interpunct.operators.lmerge import lmerge
from interpunct.operators.lmerge_rows import Output

FILE = "pge_outages_2019Q4.parquet"
PLACES = (".", "data", "../shared/data")  # where it is looked for, from the current directory
KEY = "outage_id"
SCHEMA = element_schema(
    Schema.of(f"{KEY} string, outage_start timestamp_ntz, etor timestamp_ntz, crew string"),
    "timestamp_ntz",
)
KEYED = Stream(SCHEMA, Properties(insert_only=False, keyed=True))
LANES, BATCHES = 2, 12  # on Spark
LATEST = 7_200_000_000  # microseconds that a change of the second replica may be late


@dataclass(frozen=True)
class Setup:
    """`changes` from the beginning of the log, None for all; `pages` of each replica."""

    path: Path | None = None
    changes: int | None = None
    pages: tuple[int, int] = (60, 150)
    seed: int = 1
    spark: bool = False  # whether the same is done on Spark as well


@dataclass(frozen=True)
class LmergeOutages:
    setup: Setup
    changes: int
    versions: int
    open_outages: int
    leads: tuple[int, int]  # how often each replica took the output's stable forward
    quarantined: int
    same_table: bool
    same_state: bool
    on_spark: bool | None = None  # whether the table of the merge on Spark is that of the log

    def expected(self) -> dict[str, bool]:
        spark = {} if self.on_spark is None else {"and_so_it_is_on_spark": self.on_spark}
        return {
            "merged_table_is_that_of_the_log": self.same_table,
            "open_outages_are_those_of_the_log": self.same_state,
            "both_replicas_led": min(self.leads) > 0,
            "nobody_was_quarantined": self.quarantined == 0,
            **spark,
        }

    def to_json(self) -> dict[str, Any]:
        return {
            "experiment": "lmerge-outages",
            "seed": self.setup.seed,
            "rows": [
                {
                    "changes": self.changes,
                    "versions": self.versions,
                    "open_outages": self.open_outages,
                    "led_by_0": self.leads[0],
                    "led_by_1": self.leads[1],
                }
            ],
            "expected": self.expected(),
        }


def found() -> Path | None:
    """The log, where it is looked for."""
    return next((p for place in PLACES if (p := Path(place) / FILE).exists()), None)


def lmerge_outages(setup: Setup, report: Report = silent) -> LmergeOutages:
    """Both replicas, their pages mixed at random, through one merge."""
    log = read_log(setup)
    report(0.1, "making replicas")
    delay = (pl.col(KEY).hash(setup.seed) % LATEST).cast(pl.Int64)
    streams = [list(_replica(log, pl.lit(0), setup.pages[0])),
               list(_replica(log, delay, setup.pages[1]))]  # fmt: skip
    merge, leads, out = lmerge("outages", [KEYED, KEYED]), [0, 0], [SCHEMA.empty()]
    for port, page in _mixed(streams, Random(setup.seed)):
        before = merge.max_stable
        out += [made.frame for _, made in merge.accept(port, page).pages]
        leads[port] += merge.max_stable > before
    report(0.9, "comparing tables")
    merged, (whole, _) = stacked(out), from_changes(SCHEMA, log, [KEY])
    table = tdb(SCHEMA, merged)
    still = table.filter(ticks(table, VE) == infinity(SCHEMA)).drop(VS, VE)
    again = _on_spark(streams, whole) if setup.spark else None
    return LmergeOutages(
        setup, log.height, table.height, still.height, (leads[0], leads[1]), len(merge.reports()),
        equivalent(SCHEMA, merged, whole), _alike(still, open_outages(log)), again,
    )  # fmt: skip


def _on_spark(streams: list[list[Page]], whole: pl.DataFrame) -> bool:
    """The same pages as files, a few of each replica in a batch, into a table that is the log's."""
    from interpunct.spark.files import put
    from interpunct.spark.lmerge import lmerge as merged
    from interpunct.spark.merge_sink import MergedTable
    from interpunct.spark.merge_tables import ParquetTable, read_table
    from interpunct.spark.rows import spark_schema
    from interpunct.spark.session import session

    spark = session(LANES)
    with passing() as folder:
        frames = []
        for number, pages in enumerate(streams):
            place = folder / str(number)
            for at, page in enumerate(pages):  # Spark reads in the order of moments
                put(place / f"{at:05d}.parquet", page.frame.write_parquet, moment=at)
            reader = spark.readStream.schema(spark_schema(SCHEMA))
            most = -(-len(pages) // BATCHES)
            frames.append(reader.option("maxFilesPerTrigger", most).parquet(str(place)))
        table = MergedTable(folder / "ledger", ParquetTable(folder / "table"))
        out = merged(*frames, properties=KEYED.properties, lanes=LANES)
        stream = out.writeStream.foreachBatch(table).trigger(availableNow=True)
        stream.option("checkpointLocation", f"{folder}/checkpoint").start().awaitTermination()
        found = read_table(folder / "table")
    return _alike(found, tdb(SCHEMA, whole))


def read_log(setup: Setup) -> pl.DataFrame:
    """The changes as insert, update and delete of keys, in the order they came.

    The log begins in the middle: an update of what was never inserted is an insert, a delete of it
    says nothing. A version that is replaced in the same instant was never in force.
    """
    path = setup.path or found()
    if path is None:
        raise FeedError(
            "lmerge-outages", f"{FILE} in one of {', '.join(PLACES)}", "none",
            "Go to where it is, or name it with --log.",
        )  # fmt: skip
    raw = pl.scan_parquet(path).head(setup.changes or 2**31).collect()
    named = raw.sort("arrival", maintain_order=True).select(
        pl.col("op").alias(CHANGE),
        pl.col("arrival").alias(AT),
        KEY,
        "outage_start",
        "etor",
        pl.col("crew_status").alias("crew"),
    )
    last = named.unique([KEY, AT], keep="last", maintain_order=True)
    deleted = pl.col(CHANGE) == "D"
    there = (~deleted.shift(1).over(KEY)).fill_null(value=False)
    told = last.with_columns(there.alias("there")).filter(pl.col("there") | ~deleted)
    known = pl.when(deleted).then(pl.lit(DELETE)).when(pl.col("there")).then(pl.lit(UPDATE))
    return told.with_columns(known.otherwise(pl.lit(INSERT)).alias(CHANGE)).drop("there")


def open_outages(log: pl.DataFrame) -> pl.DataFrame:
    """What the log leaves when its changes are applied one after another."""
    last = log.group_by(KEY, maintain_order=True).last()
    return last.filter(pl.col(CHANGE) != DELETE)


def _replica(log: pl.DataFrame, late: pl.Expr, pages: int) -> Iterator[Page]:
    """The log with its changes so many microseconds late, in so many pages, a stable after each."""
    at = pl.col(AT).cast(pl.Int64)
    arrived = log.with_columns((at + late).alias("come")).sort("come", maintain_order=True)
    ahead = arrived.select(at.reverse().cum_min().reverse()).to_series()
    current, size = None, -(-arrived.height // pages)
    for start in range(0, arrived.height, size):
        part = arrived.slice(start, size)
        frame, current = from_changes(SCHEMA, part.drop("come"), [KEY], current)
        end = start + part.height
        mark = Output(SCHEMA)
        mark.stable(int(ahead[end]) if end < arrived.height else infinity(SCHEMA))
        yield Page(SCHEMA, frame.vstack(mark.taken()))


def _mixed(streams: list[list[Page]], random: Random) -> Iterator[tuple[int, Page]]:
    places = [0] * len(streams)
    while left := [p for p, pages in enumerate(streams) if places[p] < len(pages)]:
        port = random.choices(left, [len(streams[p]) - places[p] for p in left])[0]
        yield port, streams[port][places[port]]
        places[port] += 1


def _alike(one: pl.DataFrame, other: pl.DataFrame) -> bool:
    """The same rows, in any order."""
    columns = one.columns
    return one.sort(columns).equals(other.select(columns).sort(columns))
