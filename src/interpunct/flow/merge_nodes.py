"""Nodes of revisable streams: what makes them, what declares them, and what merges them.

    replica_a.aggregate(every="1m", n="count(*)", speculative=True) ─┐
    replica_b.aggregate(every="1m", n="count(*)", speculative=True) ─┴ flow.lmerge(a, b)

The node of a merge chooses the algorithm from what is known of its inputs, when it is built, and
`explain` says which and why (LMerge section IV-D).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import polars as pl

from interpunct.flow.graph import Graph
from interpunct.flow.nodes import Context, Node
from interpunct.model.durations import format_duration
from interpunct.model.elements import HEAD, KIND, STABLE, VE, VOLD
from interpunct.model.errors import FlowError
from interpunct.model.expression import Aggregate as AggregateExpression
from interpunct.model.expression import Expression, predicate
from interpunct.model.properties import Properties
from interpunct.model.schema import Schema
from interpunct.operators.contract import Stream
from interpunct.operators.lmerge import LogicalMerge, MergePolicy, lmerge
from interpunct.operators.lmerge_choice import reason
from interpunct.operators.lmerge_cleanse import Cleanse
from interpunct.operators.lmerge_declared import Declared
from interpunct.operators.lmerge_events import Events
from interpunct.operators.speculative_aggregate import SpeculativeAggregate
from interpunct.operators.windows import Windows


@dataclass(frozen=True)
class LMergeNode(Node):
    """`variant` is None where the properties of the inputs decide."""

    variant: str | None = None
    policy: MergePolicy = field(default_factory=MergePolicy)
    feedback: bool = True

    def build(self, context: Context) -> LogicalMerge:
        return lmerge(
            f"lmerge {self.name!r}", self.streams, self.variant, self.policy, context.state,
            fast_forward=self.feedback,
        )  # fmt: skip

    def describe(self) -> str:
        merge = self.prototype
        assert isinstance(merge, LogicalMerge)
        known = [s.properties for s in self.streams]
        asked = "as asked" if self.variant is not None else ""
        why = asked or reason(merge.variant, known, remembering=not self.policy.stateless)
        alone = "" if self.feedback else "; without feedback"
        return f"{merge.variant}: {why}; {_told(self.policy)}{alone}"


@dataclass(frozen=True)
class SpeculativeNode(Node):
    """An aggregate that puts out results early and revises them."""

    windows: Windows
    by: tuple[str, ...]
    aggregates: Mapping[str, AggregateExpression]

    def build(self, context: Context) -> SpeculativeAggregate:
        return SpeculativeAggregate(
            self.name, self.streams[0], self.windows, self.by, self.aggregates, context.state
        )

    def describe(self) -> str:
        size, slide = (_length(self.streams[0], t) for t in (self.windows.size, self.windows.slide))
        window = f"every {slide}" if self.windows.tumbling else f"{size} every {slide}"
        groups = f" by {', '.join(self.by)}" if self.by else ""
        computed = ", ".join(f"{n} = {a.text}" for n, a in self.aggregates.items())
        return f"{window}{groups}: {computed}, early and revised"


@dataclass(frozen=True)
class EventsNode(Node):
    lasting: int = 1

    def build(self, context: Context) -> Events:
        return Events(self.name, self.streams[0], self.lasting, context.state)

    def describe(self) -> str:
        return f"each lasting {_length(self.streams[0], self.lasting)}"


@dataclass(frozen=True)
class CleanseNode(Node):
    def build(self, context: Context) -> Cleanse:
        return Cleanse(self.name, self.streams[0], context.state)

    def describe(self) -> str:
        return "final events in the order of their starts"


@dataclass(frozen=True)
class DeclareNode(Node):
    properties: Properties = field(default_factory=Properties)

    def build(self, context: Context) -> Declared:
        return Declared(self.name, self.streams[0], self.properties, context.state)


def revisable(schema: Schema) -> bool:
    """Whether a stream is one of elements."""
    return schema.names[: len(HEAD)] == HEAD


def select_events(condition: str | pl.Expr, schema: Schema, where: str) -> Expression:
    """The condition on the events of a revisable stream; stables always pass.

    It must not ask for an event's end: the elements of one event, which differ in that, would be
    torn apart.
    """
    asked = predicate(condition, schema, where)
    torn = sorted({KIND, VOLD, VE} & set(asked.inputs))
    if torn:
        raise FlowError(
            where, "a condition on the payload or the start of events", f"one on {', '.join(torn)}",
            "Ends are revised: ask for them where the stream leaves, of its table.",
        )  # fmt: skip
    stays = (pl.col(KIND) == STABLE) | asked.polars
    return replace(asked, polars=stays, inputs=asked.inputs | {KIND}, pattern=None)


def refuse_on_spark(graph: Graph) -> None:
    """A stable is one row: lanes and tasks that each saw a part of a stream cannot pass it on."""
    nodes = in_process_only(graph)
    if nodes:
        raise FlowError(
            f"flow {graph.name!r} on Spark", "operators that run in lanes",
            f"{', '.join(nodes)}, which need a revisable stream as a whole",
            "Run the flow in process with flow.run(…), or merge the outputs of queries with "
            "ip.lmerge(df, df, …).",
        )  # fmt: skip


def in_process_only(graph: Graph) -> list[str]:
    """The nodes that make or take revisable streams."""
    kinds = (LMergeNode, SpeculativeNode, EventsNode, CleanseNode)
    return [f"{n.kind} {n.name!r}" for n in graph if isinstance(n, kinds)]


def _told(policy: MergePolicy) -> str:
    lag = f", {policy.stable_lag} behind" if policy.stable_lag else ""
    share = f"{policy.inserts:.0%} quorum" if policy.quorum else str(policy.inserts)
    return f"inserts {share}, adjusts {policy.adjusts}{lag}"


def _length(stream: Stream, ticks: int) -> str:
    timed = stream.schema.time_type in ("timestamp", "timestamp_ntz")
    return format_duration(ticks) if timed else str(ticks)
