"""What Spark can tell of a source that sends nothing: that it has nothing, or that it has.

    idle      its end offset is the latest there is; or it was asked for more and had none
    blocked   it has a later offset than was read: a limit on what a batch may take, say

After each batch Spark reports the offsets of its sources (StreamingQueryProgress). A source that
was caught up when a batch began had been read to its end: what comes later also arrives later. That
proves its silence up to then, and is passed on to the lanes with the next tick of the clock. Time
in which a query is busy, or in which a source may not hand out what it has, is no such proof.

Sources that report a latest offset (Kafka, rate) are taken by their word. The others (files, ours)
have nothing if they gave nothing in a batch for which they were asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.listener import (
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)
from pyspark.sql.streaming.query import StreamingQuery

from interpunct.flow.graph import Graph
from interpunct.model.schema import TimeKind, to_ticks
from interpunct.spark.clock import Silence, WakeFile

NOTHING = (None, "None", "null")  # PySpark's ways to say that there is no such offset


def provable(graph: Graph) -> tuple[str, ...]:
    """The sources for which it matters whether they are caught up: those that may go on with the
    clock while they are silent."""
    return tuple(
        node.name
        for node in graph.sources
        if node.time.kind is TimeKind.EXTERNAL
        and not node.time.ordered
        and node.time.ets.mode != "never"
    )


class SilenceListener(StreamingQueryListener):
    """Hears what Spark tells of one query, and leaves it for the query's clock.

    Sources are told apart by their place in the plan, so each feed must come from one source.
    """

    def __init__(self, spark: SparkSession, order: Sequence[str], wake: WakeFile) -> None:
        """`order` names the sources in the order of the plan, with "" for those that do not
        matter."""
        self._spark, self._order, self._wake = spark, tuple(order), wake
        self._run: str | None = None
        self._begun = False
        self._known = Silence()

    @classmethod
    def on(
        cls,
        spark: SparkSession,
        feeds: Mapping[str, DataFrame],
        names: Sequence[str],
        wake: WakeFile,
    ) -> SilenceListener | None:
        """A listener for a query on these feeds; none where nothing is to be told, or where it
        would not be known of whom: then no silence is proven."""
        local = all(hasattr(frame, "_jdf") for frame in feeds.values())
        if not names or not local or any(_leaves(frame) != 1 for frame in feeds.values()):
            return None
        listener = cls(spark, [name if name in names else "" for name in feeds], wake)
        spark.streams.addListener(listener)
        return listener

    def hear(self, query: StreamingQuery) -> None:
        """Of this query and of no other."""
        self._run = str(query.runId)

    def remove(self) -> None:
        self._spark.streams.removeListener(self)

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        """Nothing is known yet."""

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        """Without a batch no source was asked."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """There is nobody left to be told."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        progress = event.progress
        if str(progress.runId) != self._run:
            return
        if not self._begun:  # the first batch may be one that is run again, for which none is asked
            self._begun = True
            return
        sources = progress.sources
        if len(sources) != len(self._order) + 1:  # the last is the clock
            return
        self._known = after(
            self._known, self._order, sources, to_ticks(datetime.fromisoformat(progress.timestamp))
        )
        self._wake.tell(self._known)


def after(known: Silence, order: Sequence[str], sources: Sequence[Any], began: int) -> Silence:
    """What is known of the sources once a batch that began at this moment is over."""
    idle, blocked = dict(known.idle), dict(known.blocked)
    for name, source in zip(order, sources, strict=False):
        caught_up = has_nothing(source.startOffset, source.endOffset, source.latestOffset)
        if name and caught_up:
            idle[name] = began
        elif name and caught_up is False:
            blocked[name] = began
    return Silence(idle, blocked)


def has_nothing(start: str | None, end: str | None, latest: str | None) -> bool | None:
    """Whether a source had been read to its end as a batch began; None when that is not known."""
    if latest not in NOTHING:
        return end == latest
    return True if end not in NOTHING and start == end else None


def _leaves(frame: DataFrame) -> int:
    return int(frame._jdf.queryExecution().analyzed().collectLeaves().size())
