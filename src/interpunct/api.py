"""Flow: what a user builds and runs, in process or on Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from interpunct.engine.live import Live
from interpunct.engine.run import Result, run
from interpunct.engine.trace import Trace
from interpunct.flow.builder import FlowBuilder
from interpunct.flow.drawing import shown
from interpunct.flow.merge_nodes import refuse_on_spark
from interpunct.model.properties import Properties
from interpunct.operators.lmerge_policy import MergePolicy
from interpunct.progress.adaptive import Adaptive
from interpunct.progress.clock import Clock
from interpunct.progress.timestamps import Bounds
from interpunct.sql.build import build

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from interpunct.spark.courier import Upstream
    from interpunct.spark.lmerge_notes import Quarantine
    from interpunct.spark.query import FlowQuery
    from interpunct.spark.synchronized import Synchronized
    from interpunct.spark.writers import Writer


class Flow(FlowBuilder):
    """A query graph: sources, operators, sinks.

    >>> import interpunct as ip
    >>> flow = ip.Flow("speeds")
    >>> cars = flow.source("cars", "ts bigint, mph double", time=ip.external("ts"))
    >>> flow.sink("fast", cars.where("mph > 50"))
    >>> flow.run({"cars": [(1, 40.0), (2, 60.0)]})["fast"].rows()
    [(2, 60.0)]
    """

    def run(
        self,
        feeds: Mapping[str, Any],
        *,
        clock: Clock | None = None,
        sinks: Mapping[str, Callable[[pl.DataFrame], None]] | None = None,
        trace: bool = False,
        cost: int = 0,
    ) -> Result:
        """Run in process until the feeds end.

        `clock` is real unless a ScriptedClock is given, which replays arrivals at once and always
        the same way; `cost` is what one step costs on it, in microseconds. `sinks` gives a sink a
        function to call with each frame; the others are collected in the result.
        """
        kept = Trace() if trace else None
        return run(self.graph, feeds, clock=clock, sinks=sinks, trace=kept, cost=cost)

    def live(self, clock: Clock | None = None) -> Live:
        """The flow running in process, fed by hand: `feed`, `feedback`, `take`."""
        return Live(self.graph, clock)

    def to_df(
        self,
        feeds: Mapping[str, DataFrame],
        *,
        sink: str | None = None,
        lanes: int = 2,
        checkpoint: str | None = None,
    ) -> DataFrame:
        """One sink, or `late:source`, as a streaming DataFrame to go on with in PySpark.

        With `checkpoint`, the one that the query is given, tuples are aggregated before the
        shuffle, which takes half the time where there are many, and `interpunct status` sees it.
        """
        from interpunct.spark.query import to_df

        refuse_on_spark(self.graph)
        return to_df(self.graph, feeds, sink=sink, lanes=lanes, checkpoint=checkpoint)

    def start(
        self,
        spark: SparkSession,
        feeds: Mapping[str, DataFrame],
        *,
        checkpoint: str,
        sinks: Mapping[str, str | Path | Writer] | None = None,
        lanes: int = 2,
        trigger: Mapping[str, Any] | None = None,
        upstream: Mapping[str, Upstream] | None = None,
    ) -> FlowQuery:
        """Run on Spark as one streaming query; each sink is a path (Parquet) or a function.

        `upstream` names the sink of another running flow that feeds a source:
        ``upstream={"speeds": ip.upstream("/checkpoints/a", sink="speeds")}``; feedback about the
        source is then sent on to it.
        """
        from interpunct.spark.query import start

        refuse_on_spark(self.graph)
        return start(
            self.graph, spark, feeds,
            checkpoint=checkpoint, sinks=sinks, lanes=lanes, trigger=trigger, upstream=upstream,
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"Flow({self.name!r}, {len(self.nodes)} nodes)"

    def _repr_html_(self) -> str:
        """What a notebook shows: the graph, and a table of its operators."""
        return shown(self.graph)


def sql(text: str, *, name: str = "sql", flow: Flow | None = None) -> Flow:
    """The flow that SQL describes: Spark's dialect, with the papers' clauses.

    >>> flow = sql('''CREATE STREAM cars (ts bigint, mph double) TIMESTAMP BY ts ORDERED;
    ...               SELECT * FROM cars WHERE mph > 50''')
    >>> flow.run({"cars": [(1, 40.0), (2, 60.0)]})["result"].rows()
    [(2, 60.0)]

    With `flow` the statements are added to a flow that is there, and may read its nodes by their
    names. EXPLAIN before a query prints what the flow will do. `to_sql` is the way back.
    """
    built = Flow(name) if flow is None else flow
    if build(text, built):
        print(built.explain())
    return built


# pyspark is imported when one of these is called, so that flows in process need no JVM.


def session(
    lanes: int = 2,
    *,
    master: str | None = None,
    name: str = "interpunct",
    log: str | Path | None = None,
    **more: str,
) -> SparkSession:
    """A SparkSession with the settings that make small batches cheap.

    With `log`, what Spark prints goes to this file and not to the terminal. `more` holds further
    settings, with `__` for the dots: ``spark__driver__memory="8g"``.
    """
    from interpunct.spark.session import session

    return session(lanes, master=master, name=name, log=log, **more)


def synchronize(
    *frames: DataFrame,
    time: str | None = None,
    bounds: Bounds | Adaptive | None = None,
    lanes: int = 2,
    hold: bool | None = None,
    names: Sequence[str] | None = None,
    future: str | timedelta | int | None = None,
) -> Synchronized:
    """Streaming DataFrames with one watermark for all: a quiet one does not stop the others.

    `bounds.skew` says how far a row may come behind the greatest time seen on any of them; rows
    behind that are in `.late`, where the streams have their `names`. ``readings, alerts =
    ip.synchronize(a, b, time="ts", bounds=ip.bounds(skew="30s"))``; or leave it to be learned:
    ``bounds=ip.adaptive()``. A row dated more than `future` after the clock, ``future="1h"``, does
    not move time.
    """
    from interpunct.spark.synchronize import synchronize

    return synchronize(
        *frames, time=time, bounds=bounds, lanes=lanes, hold=hold, names=names, future=future
    )


def lmerge(
    *frames: DataFrame,
    policy: str | float | MergePolicy = "first",
    variant: str | None = None,
    properties: Properties = Properties(insert_only=False),  # noqa: B008 (frozen)
    by: str | None = None,
    keys: Sequence[str] = (),
    order: str | None = None,
    lanes: int = 2,
    checkpoint: str | None = None,
    upstream: Mapping[int | str, Upstream] | None = None,
) -> DataFrame:
    """Streaming DataFrames of elements that tell one table in their own ways, as one of them.

    ``merged = ip.lmerge(replica_a, replica_b, policy="first")``. `properties` says what is known of
    every input; `by` names a column that tells inputs apart within a DataFrame, so that they may
    come and go while the query runs; with `keys` the inputs are logs of a table's changes. `order`
    names the column by which elements of equal Vs come in one order on every input, if they do.

    With `checkpoint`, the one that the query is given, an input that contradicts what is final is
    believed by no lane any more, and `ip.quarantined(checkpoint)` says why. `upstream` names the
    queries that write the inputs, by the number of the DataFrame or the name of the input: slower
    ones are told what they need not compute.
    """
    from interpunct.spark.lmerge import lmerge

    return lmerge(
        *frames,
        policy=policy,
        variant=variant,
        properties=properties,
        by=by,
        keys=keys,
        order=order,
        lanes=lanes,
        checkpoint=checkpoint,
        upstream=upstream,
    )


def quarantined(checkpoint: str) -> list[Quarantine]:
    """The inputs that the merge with this checkpoint stopped believing, and why."""
    from interpunct.spark.lmerge import quarantined

    return quarantined(checkpoint)


def upstream(checkpoint: str, *, sink: str, lifetime: int | None = None) -> Upstream:
    """A sink of another running flow, named where a source, or a merge, reads what it writes.

    `lifetime` is for a merge whose input makes events of the sink's rows: how long each lasts.
    """
    if lifetime is None:
        from interpunct.spark.courier import Upstream

        return Upstream(checkpoint, sink)
    from interpunct.spark.lmerge_relay import Feeder

    return Feeder(checkpoint, sink, lifetime)


def replay(
    spark: SparkSession,
    path: str,
    *,
    arrival: str | None = None,
    speed: float | None = None,
    rows_per_batch: int | None = None,
    partitions: int = 2,
    columns: Sequence[str] | None = None,
    finish: bool = False,
) -> DataFrame:
    """Recorded rows (Parquet, CSV, JSON Lines) as a streaming DataFrame.

    With `speed` rows come when their `arrival` says, 1.0 being the speed of the recording;
    without, as fast as they are taken, `rows_per_batch` at a time. With `finish` a flow that is
    given this DataFrame as it is learns that nothing follows the last row, and waits no longer.
    """
    from interpunct.spark.replay import replay

    return replay(
        spark, path, arrival=arrival, speed=speed,
        rows_per_batch=rows_per_batch, partitions=partitions, columns=columns, finish=finish,
    )  # fmt: skip
