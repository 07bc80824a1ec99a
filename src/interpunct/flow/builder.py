"""The builder: sources, unions and sinks of a flow. What is in between grows from its streams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

from interpunct.flow.explain import explain
from interpunct.flow.graph import Graph
from interpunct.flow.labels import Heartbeats
from interpunct.flow.merge_nodes import LMergeNode, revisable
from interpunct.flow.nodes import MergeNode, Node, Ref, SinkNode, SourceNode, UnionNode
from interpunct.flow.stream import FlowStream
from interpunct.model.durations import duration, refuse_bare
from interpunct.model.errors import FlowError, SchemaError
from interpunct.model.schema import Schema, TimeKind
from interpunct.operators.contract import Stream
from interpunct.operators.lmerge_policy import MergePolicy
from interpunct.progress.skew import BoundsMatrix, Skew
from interpunct.progress.timestamps import UNSAID, Bounds, Ets, TimeSpec, latent

Inputs = tuple[tuple[Ref, ...], tuple[Stream, ...]]  # what a node reads, and what that is


class FlowBuilder:
    """A query graph under construction.

    `heartbeats` says how long operators wait (Heartbeats section 7): "operator", for the sources
    below them; "query", for all sources of the query; "memory", for as many as keep results from
    piling up, given each operator's tuples out per tuple in (`selectivity`, which the
    `selectivities` of a result are). The results are the same.

    `skew` bounds how far the sources' times can be apart, so that one tells the time of another
    that is silent (Heartbeats sections 2 and 3); after `timeout` without a tuple on any of them,
    what has come is taken for all there is. `needs_timeout` says whether one is needed.

    A `strict` flow never advances without proof: the time of an external source moves with what it
    sends, with what the bounds prove of it, and with the clock only as far as it is known that the
    source had nothing to send, which Spark can tell.
    """

    def __init__(
        self,
        name: str,
        *,
        heartbeats: str = "operator",
        selectivity: Mapping[str, float] | None = None,
        skew: BoundsMatrix | None = None,
        timeout: str | timedelta | int | None = None,
        strict: bool = False,
    ) -> None:
        self.name, self.strict = name, strict
        limit = None if timeout is None else duration(timeout, "Flow(timeout=…)")
        self.skew = None if skew is None else Skew(skew, limit)
        if skew is None and timeout is not None:
            raise FlowError(
                f"flow {name!r}", "skew=… with timeout=…", "a timeout alone", "Give both."
            )
        if strict and timeout is not None:
            raise FlowError(
                f"flow {name!r}", "no timeout in a strict flow", f"timeout={timeout!r}",
                "A timeout is a guess: drop it, or strict.",
            )  # fmt: skip
        self.heartbeats = Heartbeats(heartbeats, selectivity or {})
        self._built = Graph(name)

    @property
    def graph(self) -> Graph:
        """The graph that runs: what was built and leads to a sink, with the gates that its
        heartbeats ask for."""
        graph = self.heartbeats.planned(self._built.leading_to_sinks())
        graph.skew = self.skew
        if self.skew is not None:
            external = [n.name for n in graph.sources if n.time.kind is TimeKind.EXTERNAL]
            self.skew.check(self.name, external)
        return graph

    @property
    def nodes(self) -> dict[str, Node]:
        return self._built.nodes

    def add(self, node: Node) -> Node:
        return self._built.add(node)

    def fresh(self, kind: str, name: str | None) -> str:
        """The name asked for, or the next free one of its kind."""
        if name is not None:
            return name
        number = 1
        while f"{kind}_{number}" in self.nodes:
            number += 1
        return f"{kind}_{number}"

    def source(self, name: str, schema: str | Schema, time: TimeSpec | None = None) -> FlowStream:
        """A stream that enters: its schema as Spark DDL, and where its time comes from.

        A source of which no bounds are said has those that `skew` gives it against itself.
        """
        where = f"source {name!r}"
        if not isinstance(schema, str | Schema):
            raise SchemaError(
                where, "its columns as Spark DDL", f"a {type(schema).__name__}",
                "Write them as text, 'id bigint, ts timestamp'; a DataFrame's: ', '.join("
                "f'{name} {kind}' for name, kind in df.dtypes).",
            )  # fmt: skip
        raw = Schema.of(schema, where=where) if isinstance(schema, str) else schema
        spec = latent() if time is None else time
        if not isinstance(spec, TimeSpec):
            raise FlowError(
                where, "time=ip.external('ts', …), ip.internal('ts') or ip.latent()",
                repr(spec), f"Write time=ip.external({str(spec)!r}, bounds=ip.bounds(skew='30s')).",
            )  # fmt: skip
        if self.skew is not None and spec.bounds is UNSAID:
            spec = replace(spec, bounds=self.skew.own(name) or UNSAID)
        if self.strict and spec.kind is TimeKind.EXTERNAL and spec.ets.mode != "never":
            spec = replace(spec, ets=Ets("proven"))
        if spec.kind is TimeKind.EXTERNAL:
            _check_external(where, raw, spec)
        if spec.kind is TimeKind.INTERNAL and str(spec.attribute) in raw:
            raise SchemaError(
                where, "a new name for the time the system adds", repr(spec.attribute),
                "Rename it, or declare the attribute with external(…).",
            )  # fmt: skip
        self.add(SourceNode(name, (), (), raw.with_time(None), spec))
        return FlowStream(self, Ref(name))

    def union(
        self, *streams: FlowStream, in_order: bool = True, name: str | None = None
    ) -> FlowStream:
        """One stream from several of one schema: in time order, or as they arrive."""
        name = self.fresh("union", name)
        refs, inputs = self._alike(f"union {name!r}", streams)
        self.add(UnionNode(name, refs, inputs, in_order))
        return FlowStream(self, Ref(name))

    def merge(self, *streams: FlowStream, name: str | None = None) -> FlowStream:
        """The order-preserving merge of streams that are ordered already."""
        name = self.fresh("merge", name)
        refs, inputs = self._alike(f"merge {name!r}", streams)
        self.add(MergeNode(name, refs, inputs))
        return FlowStream(self, Ref(name))

    def lmerge(
        self,
        *streams: FlowStream,
        policy: MergePolicy | str | float | None = None,
        variant: str | None = None,
        feedback: bool = True,
        name: str | None = None,
    ) -> FlowStream:
        """One revisable stream from several that are equivalent but physically different.

        Streams that are not revisable are taken as events that last one tick. The algorithm is the
        cheapest that their properties allow, or the `variant` asked for; `policy` says what comes
        out when, in short by its inserts: "first", "leader", "half-frozen" or a quorum. Slower
        streams are told what they need not make any more, unless `feedback` is False.
        """
        name = self.fresh("lmerge", name)
        self.inputs(f"lmerge {name!r}", streams)
        merged = tuple(s if revisable(s.schema) else s.events() for s in streams)
        refs, inputs = self._alike(f"lmerge {name!r}", merged)
        chosen = MergePolicy() if policy is None else policy
        if not isinstance(chosen, MergePolicy):
            chosen = MergePolicy(inserts=chosen)  # type: ignore[arg-type]
        self.add(LMergeNode(name, refs, inputs, variant, chosen, feedback))
        return FlowStream(self, Ref(name))

    def sink(self, name: str, stream: FlowStream) -> None:
        """Where a stream leaves."""
        self.add(SinkNode(name, *self.inputs(f"sink {name!r}", (stream,))))

    def inputs(self, where: str, streams: Sequence[FlowStream]) -> Inputs:
        """What a node reads: streams of this flow. A name is another stream in another flow."""
        for stream in streams:
            if not isinstance(stream, FlowStream):
                raise FlowError(
                    where, f"streams of flow {self.name!r}", f"a {type(stream).__name__}",
                    "Streams begin with flow.source(…); what they are fed is said when it starts.",
                )  # fmt: skip
            if stream.flow is not self:
                raise FlowError(
                    where, f"streams of flow {self.name!r}", f"one of {stream.flow.name!r}",
                    "Build both in one flow.",
                )  # fmt: skip
        return tuple(s.ref for s in streams), tuple(s.stream for s in streams)

    def labels(self) -> dict[str, frozenset[str]]:
        """For each node, the sources whose heartbeats it waits for (Rᵢ of Heartbeats section 7)."""
        return self.heartbeats.labels(self._built)

    def explain(self, *, labels: bool = False) -> str:
        """The graph as text: what each node does, what is known of its output, who may wait; with
        `labels`, for the heartbeats of which sources."""
        return explain(self.graph, self.labels() if labels else {})

    def _alike(self, where: str, streams: Sequence[FlowStream]) -> Inputs:
        """What a node reads that needs several streams of one schema."""
        inputs = self.inputs(where, streams)
        if len(streams) < 2:
            raise FlowError(where, "two or more streams", str(len(streams)), "Add another.")
        first = streams[0].schema
        for port, stream in enumerate(streams):
            other = stream.schema
            if (other.ddl, other.time) != (first.ddl, first.time):
                raise FlowError(
                    f"{where}, input {port}", f"({first.ddl}) with time {first.time}",
                    f"({other.ddl}) with time {other.time}",
                    "Give them one shape first: stream.select('a', b='expression', …).",
                )  # fmt: skip
        return inputs


def _check_external(where: str, raw: Schema, spec: TimeSpec) -> None:
    """The time attribute of a source is there, is a time, and is bounded in its own measure."""
    name = str(spec.attribute)
    if name not in raw:
        raise SchemaError.unknown_attribute(where, name, raw.names)
    try:
        timed = raw.with_time(name)
    except SchemaError as error:
        raise SchemaError(
            f"{where}, {error.where}", error.expected, error.got, error.fix
        ) from None  # fmt: skip
    told = {"future": spec.future}
    if isinstance(spec.bounds, Bounds):
        told |= {"skew": spec.bounds.skew, "delay": spec.bounds.delay}
    for said, ticks in told.items():
        if ticks is not None:
            refuse_bare(ticks, timed, f"{where}, {said}")
    if spec.future is not None and raw[name].dtype.is_integer():
        raise SchemaError.wrong_type(
            f"{where}, future=…", name, "a timestamp, to compare with the clock", raw[name].type
        )
