"""Start a flow as one streaming query, with all its sinks and late outputs."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import polars as pl
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from interpunct.engine.blame import table
from interpunct.engine.vitals import Snapshot
from interpunct.flow.feedback import voices
from interpunct.flow.graph import Graph
from interpunct.flow.outline import Outline
from interpunct.model.errors import FlowError
from interpunct.model.feedback import Feedback
from interpunct.model.schema import Schema
from interpunct.spark.channel import Channel
from interpunct.spark.clock import WakeFile
from interpunct.spark.compile import Leaving, compiled, late_rows
from interpunct.spark.courier import Courier, Upstream, check_upstream
from interpunct.spark.display import shown
from interpunct.spark.files import absolute
from interpunct.spark.hints import Hints
from interpunct.spark.ownership import claim, refuse_others
from interpunct.spark.program import Program
from interpunct.spark.reporter import Reporter, seen
from interpunct.spark.session import check_session
from interpunct.spark.silence import SilenceListener, provable
from interpunct.spark.wire import LATE, SINK
from interpunct.spark.writers import Batches, Parquet, Writer, writer
from interpunct.spark.zone import check_zone


@dataclass
class FlowQuery:
    """A running flow. What Spark's own query tells (`isActive`, `lastProgress`, `exception()`, …)
    this one tells too."""

    query: StreamingQuery
    program: Program
    checkpoint: str
    wake: WakeFile
    silence: SilenceListener | None = None
    reporter: Reporter | None = None

    def feedback(
        self,
        sink: str,
        feedback: str | Feedback,
        *,
        lasting: str | timedelta | int | None = None,
        undelimited: bool = False,
    ) -> Feedback:
        """Send feedback into the running flow from one of its sinks; the next batch carries it.

        ``query.feedback("map", "¬[segment ∉ {3, 4, 5}]", lasting="2m")``: someone zoomed in. What
        makes no sense, contradicts earlier feedback, demands what nobody answers or would leave
        guards behind for ever is refused (`judged`). Returns what was accepted.
        """
        return self._channel.hand_in(sink, feedback, lasting=lasting, undelimited=undelimited)

    def skipped(self) -> dict[str, dict[str, int]]:
        """Tuples that feedback spared each operator, by what it said, as of the last batch."""
        hints, found = self.program.hints, dict[str, dict[str, int]]()
        for stage in self.program.stages if hints is not None else ():
            assert hints is not None
            for left in hints.assumed(stage.number, self.program.lane_ids):
                for name, counts in ({} if left is None else left["skipped"]).items():
                    mine = found.setdefault(name, {})
                    for text, count in counts.items():
                        mine[text] = mine.get(text, 0) + count
        return found

    @property
    def _channel(self) -> Channel:
        if self.program.channel is None:
            raise FlowError(
                f"flow {self.program.graph.name!r}", "a checkpoint that Arrow can reach",
                self.checkpoint, "Feedback travels through files beside the checkpoint.",
            )  # fmt: skip
        return self.program.channel

    def stop(self) -> None:
        self.query.stop()
        if self.silence is not None:
            self.silence.remove()
        self._end()

    def await_termination(self, timeout: int | None = None) -> bool:
        """Wait for the end; False when it has not come within `timeout` seconds."""
        try:
            ended = self.query.awaitTermination(*(() if timeout is None else (timeout,)))
        finally:  # a failure is an end as well, and is told like one before the session goes
            if not self.query.isActive:
                self._end()
        return timeout is None or bool(ended)

    awaitTermination = await_termination  # noqa: N815 (as PySpark calls it)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(StreamingQuery, name):
            raise AttributeError(f"'FlowQuery' object has no attribute {name!r}")
        return getattr(self.query, name)

    def _end(self) -> None:
        """Nobody wakes what has ended, and whoever looks at it is told."""
        if self.reporter is not None:
            self.reporter.close()
        self.wake.remove()

    def blame(self) -> pl.DataFrame:
        """Which source holds each operator and sink back, by how much, since when, and what would
        release it, as of the last batch."""
        if self.program.hints is None:
            raise FlowError(
                f"flow {self.program.graph.name!r}", "a checkpoint that Arrow can reach",
                self.checkpoint, "Lanes leave their reports beside the checkpoint.",
            )  # fmt: skip
        return table(self.program.hints.vitals().waiting)

    def snapshot(self) -> Snapshot:
        """All that can be seen of the flow, as of the last batch."""
        return seen(self.checkpoint)

    @property
    def progress(self) -> list[Any]:
        return list(self.query.recentProgress)

    def __repr__(self) -> str:
        state = "running" if self.query.isActive else "ended"
        return f"FlowQuery({self.program.graph.name!r}, {state})"

    def _repr_html_(self) -> str:
        """What a notebook shows: the last batches, and who waits for whom."""
        blame = None if self.program.hints is None else self.blame()
        return shown(self.program.graph.name, self.query, blame)


def outputs(graph: Graph) -> dict[str, Schema]:
    """Everything that can leave a flow: its sinks, and the late outputs that nobody reads."""
    sinks = {f"{SINK}{n.name}": n.streams[0].schema for n in graph.sinks}
    return sinks | {f"{LATE}{name}": schema for name, schema in graph.late_outputs.items()}


def leaving(program: Program, schemas: Mapping[str, Schema]) -> Leaving:
    """What leaves a program."""
    return Leaving(schemas, program.direct[0] if program.direct is not None else None)


def stream_named(graph: Graph, sink: str | None) -> tuple[str, Schema]:
    """The output a user names: a sink, `late:node`, or the only sink there is."""
    known = outputs(graph)
    if sink is None:
        if len(graph.sinks) != 1:
            names = ", ".join(n.name for n in graph.sinks)
            raise FlowError("to_df", "sink='…' where there are several", names, "Name one.")
        sink = graph.sinks[0].name
    name = sink if sink.startswith(LATE) else f"{SINK}{sink}"
    if name not in known:
        raise FlowError("to_df", f"one of {', '.join(sorted(known))}", sink, "Check the name.")
    return name, known[name]


def to_df(
    graph: Graph,
    feeds: Mapping[str, DataFrame],
    *,
    sink: str | None = None,
    lanes: int = 2,
    checkpoint: str | None = None,
) -> DataFrame:
    """One output of a flow as a streaming DataFrame, to go on with in PySpark. Beside the
    `checkpoint`, if it is named, lanes leave what ingest tasks and people want to know. Late rows,
    which are another output, are counted among the query's observed metrics."""
    stream, schema = stream_named(graph, sink)
    hints = None if checkpoint is None else Hints.under(absolute(checkpoint))
    program = Program.of(graph, lanes, hints)
    program.check_start()
    if hints is not None:
        hints.announce(Outline.of(graph))
    rows = compiled(program, feeds)
    check_session(rows.sparkSession, lanes)
    check_zone(rows.sparkSession, graph)
    counted = rows.observe(f"{graph.name} late {uuid.uuid4().hex[:8]}", late_rows())
    return leaving(program, {stream: schema}).rows_of(counted, stream)


def start(
    graph: Graph,
    spark: SparkSession,
    feeds: Mapping[str, DataFrame],
    *,
    checkpoint: str,
    sinks: Mapping[str, str | Path | Writer] | None = None,
    lanes: int = 2,
    trigger: Mapping[str, Any] | None = None,
    upstream: Mapping[str, Upstream] | None = None,
) -> FlowQuery:
    """Run a flow on Spark until it is stopped, or until its sources end with `availableNow`.

    Late tuples without a writer of their own go to `<checkpoint>/late/<source>` as Parquet.
    `upstream` names, by source, the sink of another query that feeds it, to which feedback about
    the source is sent on.
    """
    if not hasattr(spark, "conf"):
        raise FlowError(
            f"flow {graph.name!r}", "a SparkSession first, and then the feeds",
            f"a {type(spark).__name__}", "flow.start(spark, {'source': DataFrame}, checkpoint='…')",
        )  # fmt: skip
    check_session(spark, lanes)
    check_zone(spark, graph)
    check_upstream(graph, upstream or {})
    _check_trigger(graph, trigger)
    checkpoint = absolute(checkpoint)
    hints = Hints.under(checkpoint)
    channel = None if hints is None else Channel.of(checkpoint)
    program = Program.of(graph, lanes, hints, channel)
    program.check_start()
    writers = _writers(graph, sinks or {}, checkpoint)
    folders = [w.path for w in writers.values() if isinstance(w, Parquet)]
    folders = [path for path in folders if not path.startswith(f"{checkpoint}/")]
    refuse_others(folders, checkpoint, program.where)
    wake = WakeFile.passing()
    rows = compiled(program, feeds, wake)
    names = provable(graph)
    courier = None
    if channel is not None:
        channel.announce(voices(graph))
        courier = Courier(graph, lanes, channel, upstream or {})
    if hints is not None:
        hints.announce(Outline.of(graph))
    batches = Batches(leaving(program, outputs(graph)), writers, wake, names, courier)
    stream = (
        rows.writeStream.queryName(graph.name)
        .foreachBatch(batches)
        .option("checkpointLocation", checkpoint)
        .trigger(**(trigger or {"processingTime": "0 seconds"}))
    )
    bounded = trigger is not None and "processingTime" not in trigger
    silence = None if bounded else SilenceListener.on(spark, feeds, names, wake)
    query = stream.start()
    claim(folders, query.id, checkpoint)
    if silence is not None:
        silence.hear(query)
    reporter = None if hints is None else Reporter.of(query, hints)
    return FlowQuery(query, program, checkpoint, wake, silence, reporter)


def _writers(
    graph: Graph, sinks: Mapping[str, str | Path | Writer], checkpoint: str
) -> dict[str, Writer]:
    known = outputs(graph)
    given = {n if n.startswith(LATE) else f"{SINK}{n}": writer(t) for n, t in sinks.items()}
    unknown = given.keys() - known.keys()
    missing = {n for n in known if n.startswith(SINK)} - given.keys()
    if unknown or missing:
        names = [n.name for n in graph.sinks]
        others = ", ".join(sorted(n for n in known if n.startswith(LATE)))
        may = f" (and, if it is to go elsewhere, of {others})" if others else ""
        lacking = min(missing, default=f"{SINK}{names[0]}").removeprefix(SINK)
        raise FlowError(
            f"flow {graph.name!r}", f"a path or function for each of {', '.join(names)}{may}",
            ", ".join(sinks) or "none", f"sinks={{'{lacking}': 'path or function(rows, batch)'}}",
        )  # fmt: skip
    late = {n: Parquet(f"{checkpoint}/late/{n.removeprefix(LATE)}") for n in known}
    writers: dict[str, Writer] = {**{n: w for n, w in late.items() if n.startswith(LATE)}, **given}
    _check_paths(graph, writers)
    return writers


def _check_paths(graph: Graph, writers: Mapping[str, Writer]) -> None:
    """Each batch replaces its own folder, so two outputs in one would replace each other."""
    owners: dict[str, str] = {}
    for name, found in writers.items():
        if not isinstance(found, Parquet):
            continue
        other = owners.setdefault(found.path.rstrip("/"), name)
        if other != name:
            raise FlowError(
                f"flow {graph.name!r}", "a path of its own for each output",
                f"{found.path} for {other.removeprefix(SINK)} and {name.removeprefix(SINK)}",
                "Give one of them another path.",
            )  # fmt: skip


def _check_trigger(graph: Graph, trigger: object) -> None:
    known = ("processingTime", "availableNow", "once")
    if trigger is None or (isinstance(trigger, Mapping) and set(trigger) in [{k} for k in known]):
        return
    said = trigger if isinstance(trigger, str) and trigger not in known else "5 seconds"
    raise FlowError(
        f"flow {graph.name!r}", f"trigger={{…}} with one of {', '.join(known)}", repr(trigger),
        f"Write trigger={{'processingTime': {said!r}}}, or trigger={{'availableNow': True}}.",
    )  # fmt: skip
