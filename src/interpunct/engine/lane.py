"""A lane: one stage of a flow, on one hash partition, driven batch by batch.

The third driver of the engine. It has no thread and no feeds: a batch comes in with its time and
the facts about every stream, and what leaves is returned. State goes through the State protocol
and is written at the end of the batch, only where it changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from interpunct.engine.arcs import Vertex, wired
from interpunct.engine.blame import ENTRY, EXPORT
from interpunct.engine.component import Component
from interpunct.engine.export import Export
from interpunct.engine.lane_source import Border, Entry, Facts, LaneSource
from interpunct.engine.metrics import Metrics
from interpunct.engine.shared_time import SharedTime
from interpunct.engine.vitals import Vitals, with_blame
from interpunct.flow.graph import Graph
from interpunct.flow.nodes import Context, Node, Ref, SinkNode, SourceNode, TimerNode
from interpunct.flow.planner import Stage
from interpunct.flow.pushdown import Prefix, prefix_of
from interpunct.model.feedback import Feedback
from interpunct.model.frames import stacked
from interpunct.model.page import Page
from interpunct.model.pattern import Pattern
from interpunct.operators.aggregate import Aggregate
from interpunct.operators.contract import Emission, Held, Operator
from interpunct.operators.sink import Sink
from interpunct.operators.state import Scoped, State
from interpunct.operators.tsm import put_in_order
from interpunct.progress.clock import ScriptedClock
from interpunct.progress.source_time import SourceTime

MILLISECOND = 1_000  # a batch's time is in whole ones: this much later is after whatever woke it


@dataclass
class LaneBatch:
    """What reaches a lane in one batch."""

    now: int
    facts: dict[str, Facts] = field(default_factory=dict)  # by source
    raw: dict[str, list[pl.DataFrame]] = field(default_factory=dict)  # by source, unchecked
    entering: dict[str, list[pl.DataFrame]] = field(default_factory=dict)  # by source, after prefix
    pages: dict[Ref, list[tuple[int, Page]]] = field(default_factory=dict)  # from earlier lanes
    finished: set[str] = field(default_factory=set)  # sources that will send nothing more
    idle: dict[str, int] = field(default_factory=dict)  # when sources had nothing unread
    blocked: dict[str, int] = field(default_factory=dict)  # when they had something unread
    feedback: list[Said] = field(default_factory=list)
    skipped: dict[str, int] = field(default_factory=dict)  # by source, left out before the lane
    made: dict[str, int] = field(default_factory=dict)  # by node, put out before the lane


@dataclass(frozen=True)
class Said:
    """Feedback that reaches a lane from outside: for a sink or, as `node:port`, for a stream that
    goes on to a later stage, of which then one reader says it."""

    target: str
    text: str
    reader: int | None = None


@dataclass
class LaneOutput:
    """What leaves: frames by sink, the heartbeat each sink has reached, late tuples by node, a
    page per stream to later stages, the moment at which the lane should run again, and by source
    the moment at which it would have to be caught up for someone to go on."""

    sinks: dict[str, pl.DataFrame]
    reached: dict[str, int]
    late: dict[str, pl.DataFrame]
    onward: dict[Ref, Page]
    wake_at: int | None
    unproven: dict[str, int] = field(default_factory=dict)
    feedback: list[tuple[Ref, Feedback]] = field(default_factory=list)  # about what enters


class Lane:
    """The operators of one stage in one lane."""

    def __init__(
        self,
        graph: Graph,
        stage: Stage,
        lanes: int,
        state: State,
        *,
        exports: Sequence[Ref] = (),
        silent: Collection[str] = (),
        readers: Mapping[Ref, int] | None = None,
    ) -> None:
        """`silent` names the sources whose late tuples another stage reports; `readers` says how
        many lanes of later stages read each export."""
        self._clock = ScriptedClock()
        self.state = state
        self.before = Vitals()  # what was counted before this lane was built on its state
        self._frames: dict[str, list[pl.DataFrame]] = {}
        self._late: dict[str, list[pl.DataFrame]] = {}
        self._readmitted: dict[str, pl.DataFrame] = {}
        self._exports: dict[Ref, Export] = {}
        self._readers = readers or {}
        self._lanes, self._silent = lanes, frozenset(silent)
        self._stage, self._graph = stage, graph
        self._vertices = self._wired(exports)
        self._prefixes = {
            n.name: prefix_of(graph, stage, n.name) for n in graph.sources if n.name in stage.nodes
        }
        self._shared = None if graph.skew is None else SharedTime(graph.skew, state)
        self._component = Component(
            list(self._vertices.values()), self._clock, Metrics(), self._keep_late
        )

    def run(self, batch: LaneBatch) -> LaneOutput:
        """One batch: everything enters, then the engine runs until nothing moves."""
        self._clock.wait_until(batch.now)
        for vertex in self._vertices.values():
            vertex.operator.begin()
        for said in batch.feedback:
            self._hear(said)
        self._component.control()  # before the batch's tuples, of which it may spare some
        self._count(batch.made)
        for name, vertex in self._vertices.items():
            operator = vertex.operator
            if isinstance(operator, LaneSource):
                self._enter_source(vertex, operator, batch)
            elif isinstance(operator, Entry):
                self._component.enter(vertex, operator.on_batch(batch.pages.get(_ref(name), ())))
        self._tell(batch)
        self._component.wake()
        while self._component.step():
            pass
        return self._output()

    def readmit(self, source: str, frame: pl.DataFrame) -> None:
        """Tuples that were let in before, and in time, enter with the next batch."""
        self._readmitted[source] = frame

    def _hear(self, said: Said) -> None:
        """Feedback for a sink goes in there; for a stream that leaves the stage, once all its
        readers have said it."""
        if said.reader is None:
            vertex = self._vertices[said.target]
            feedback = Feedback.parse(said.text, vertex.operator.inputs[0].schema)
            self._component.send_feedback(vertex, feedback)
            return
        ref = _ref(f"{ENTRY}{said.target}")
        export = self._exports[ref]
        feedback = Feedback.parse(said.text, export.inputs[0].schema)
        for agreed in export.heard(feedback, said.reader):
            self._component.send_feedback(self._vertices[export.name], agreed)

    def _tell(self, batch: LaneBatch) -> None:
        """What the batch's tuples say of the times of all sources, those of other stages too."""
        if self._shared is None:
            return
        for name, facts in sorted(batch.facts.items()):
            if facts.least is not None and facts.greatest is not None:
                self._shared.arrived(name, facts.rows, facts.least, facts.greatest, batch.now)
        for name, heartbeat in self._shared.heartbeats(batch.now).items():
            vertex = self._vertices.get(name)
            if vertex is not None and isinstance(vertex.operator, LaneSource):
                self._component.enter(vertex, vertex.operator.told(heartbeat))

    def _enter_source(self, vertex: Vertex, source: LaneSource, batch: LaneBatch) -> None:
        """What went through the prefix enters behind it, with what the lane itself lets in."""
        facts = batch.facts.get(source.name, Facts())
        raw = batch.raw.get(source.name, ())
        vertex.taken += facts.rows
        if batch.skipped.get(source.name):
            source.guards.count(batch.skipped[source.name])
        source.told_of_silence(batch.idle.get(source.name), batch.blocked.get(source.name))
        emission = source.on_batch(raw, facts)
        entering = list(batch.entering.get(source.name, ()))
        if source.name in self._readmitted:
            entering.insert(0, self._readmitted.pop(source.name))
        if entering:
            prefix = self._prefixes[source.name]
            entering += self._accepted(prefix, emission)
            self._enter_behind(prefix, entering)
        self._component.enter(vertex, emission)
        if source.name in batch.finished:
            self._component.finish(vertex)

    def _accepted(self, prefix: Prefix, emission: Emission) -> list[pl.DataFrame]:
        """Take accepted tuples out of an emission and through the prefix, to enter with the rest
        of the batch: a batch has no order inside."""
        frames = [page.frame for port, page in emission.pages if port == 0 and page.height]
        emission.pages = [
            (port, Page(page.schema, page.frame.clear(), page.punctuations) if port == 0 else page)
            for port, page in emission.pages
        ]
        made: Counter[str] = Counter()
        accepted = [through_prefix(self._graph, prefix, frame, made) for frame in frames]
        self._count(made)
        return accepted

    def _count(self, made: Mapping[str, int]) -> None:
        """Tuples that went through operators of the prefix, and not through their vertices."""
        for name, tuples in made.items():
            counts = self._vertices[name].made
            counts[0] = counts.get(0, 0) + tuples

    def _enter_behind(self, prefix: Prefix, frames: list[pl.DataFrame]) -> None:
        if prefix.aggregate is not None:
            vertex = self._vertices[prefix.aggregate]
            assert isinstance(vertex.operator, Aggregate)
            self._component.enter(vertex, vertex.operator.on_partial_rows(stacked(frames)))
            return
        vertex = self._vertices[prefix.entry]
        schema, ordered = vertex.operator.output, vertex.operator.outputs[0].properties.ordered
        frame = put_in_order(schema, frames) if ordered else stacked(frames)
        self._component.enter(vertex, Emission([(0, Page(schema, frame))]))

    def source_times(self) -> dict[str, SourceTime]:
        """The time registers of the sources, the same in every lane."""
        operators = (v.operator for v in self._vertices.values())
        return {o.name: o.time for o in operators if isinstance(o, LaneSource)}

    def vitals(self) -> Vitals:
        """What can be seen of this lane, and which source holds each operator of it back."""
        return with_blame(self._vertices.values()).after(self.before)

    def save(self) -> None:
        for vertex in self._vertices.values():
            vertex.save()
        if self._shared is not None:
            self._shared.save()

    def held(self) -> dict[str, Held]:
        return {name: v.held() for name, v in self._vertices.items()}

    def _output(self) -> LaneOutput:
        output = LaneOutput(
            {name: pl.concat(frames) for name, frames in self._frames.items() if frames},
            {name: self._sink(name).reached for name in self._frames},
            {name: pl.concat(frames) for name, frames in self._late.items()},
            {ref: export.page() for ref, export in self._exports.items()},
            self._wake_at(),
            self._unproven(),
            self._said(),
        )
        for frames in self._frames.values():
            frames.clear()
        self._late.clear()
        return output

    def _wake_at(self) -> int | None:
        shared = None if self._shared is None else self._shared.next_moment()
        moments = [m for m in (self._component.wake_at(), shared) if m is not None]
        if any(v.operator.held_back() for v in self._vertices.values()):
            moments.append(self._clock.now() + MILLISECOND)  # the next batch has time for it
        return min(moments, default=None)

    def _said(self) -> list[tuple[Ref, Feedback]]:
        """Feedback that has come to where streams enter the lane."""
        borders = (v.operator for v in self._vertices.values() if isinstance(v.operator, Border))
        return [(_entered(b.name), feedback) for b in borders for feedback in b.said()]

    def assumed(self) -> dict[str, list[Pattern]]:
        """What this lane does without, by source."""
        sources = (v.operator for v in self._vertices.values())
        found = {s.name: s.assumed() for s in sources if isinstance(s, LaneSource)}
        return {name: patterns for name, patterns in found.items() if patterns}

    def skipped(self) -> dict[str, dict[str, int]]:
        """Tuples that feedback spared each operator, by what it said."""
        found = {name: v.operator.skipped() for name, v in self._vertices.items()}
        return {name: counts for name, counts in found.items() if any(counts.values())}

    def _unproven(self) -> dict[str, int]:
        operators = (v.operator for v in self._vertices.values())
        sources = (o for o in operators if isinstance(o, LaneSource))
        return {s.name: s.unproven for s in sources if s.unproven is not None}

    def _sink(self, name: str) -> Sink:
        sink = self._vertices[name].operator
        assert isinstance(sink, Sink)
        return sink

    def _keep_late(self, node: str, page: Page) -> None:
        if node not in self._silent:
            self._late.setdefault(node, []).append(page.frame)

    # Building ---------------------------------------------------------------------------------

    def _wired(self, exports: Sequence[Ref]) -> dict[str, Vertex]:
        """The stage's operators, entries for streams from earlier stages, exports to later ones."""
        inside = [self._graph.nodes[n] for n in self._stage.nodes]
        names = set(self._stage.nodes)
        built = {node.name: self._operator(node) for node in inside}
        vertices = wired(inside, self._graph, built)
        by_name: dict[str, Vertex] = {}
        for ref in self._stage.keys:
            if ref.node not in names:
                source = self._graph.nodes[ref.node].outputs[ref.port]
                entry = Entry(_entry(ref), source, self._lanes, Scoped(self.state, _entry(ref)))
                by_name[entry.name] = Vertex(entry.name, entry)
        by_name |= {v.name: v for v in vertices}
        for node in inside:
            for port, ref in enumerate(node.inputs):
                if ref.node not in names:
                    by_name[_entry(ref)].connect(0, by_name[node.name], port)
        for ref in exports:
            name = f"{EXPORT}{ref.node}:{ref.port}"
            stream = self._graph.nodes[ref.node].outputs[ref.port]
            readers = self._readers.get(ref, 1)
            export = Export(name, stream, readers, Scoped(self.state, name))
            self._exports[ref] = export
            by_name[export.name] = Vertex(export.name, export)
            by_name[ref.node].connect(ref.port, by_name[export.name], 0)
        return by_name

    def _operator(self, node: Node) -> Operator:
        context = self._context(node)
        if isinstance(node, SourceNode):
            return LaneSource(node.name, node.raw, node.time, context.clock, context.state)
        return node.build(context)

    def _context(self, node: Node) -> Context:
        state = Scoped(self.state, node.name)
        if isinstance(node, SinkNode):
            frames = self._frames.setdefault(node.name, [])
            return Context(self._clock, state, frames.append)
        return Context(self._clock, state)


def through_prefix(
    graph: Graph, prefix: Prefix, frame: pl.DataFrame, made: Counter[str]
) -> pl.DataFrame:
    """Tuples of a source as they enter the lane: through the stateless chain, and in part
    aggregated where an aggregate follows. `made` is told what each node on the way puts out, except
    the one behind which tuples enter: there they are counted when they do."""
    maker = prefix.source
    for name in prefix.nodes:
        made[maker] += frame.height
        operator = graph.nodes[name].prototype
        emitted = operator.on_page(0, Page(operator.inputs[0].schema, frame)).pages
        frame = emitted[0][1].frame if emitted else operator.output.empty()
        maker = name
    if prefix.aggregate is None:
        return frame
    made[maker] += frame.height
    aggregate = graph.nodes[prefix.aggregate].prototype
    assert isinstance(aggregate, Aggregate)
    return aggregate.partial_rows(frame)


def exports_of(graph: Graph, stages: Sequence[Stage]) -> Mapping[int, list[Ref]]:
    """Per stage, the streams that enter another one."""
    home = {n: s.number for s in stages for n in s.nodes if not _is_prefix(graph, n)}
    found: dict[int, list[Ref]] = {s.number: [] for s in stages}
    for stage in stages:
        for ref in stage.keys:
            owner = home.get(ref.node)
            if owner is not None and owner != stage.number and ref not in found[owner]:
                found[owner].append(ref)
    return found


def _is_prefix(graph: Graph, name: str) -> bool:
    return isinstance(graph.nodes[name], SourceNode | TimerNode)


def _entry(ref: Ref) -> str:
    return f"{ENTRY}{ref.node}:{ref.port}"


def _entered(name: str) -> Ref:
    """What enters at a border: a stream of an earlier stage, or a source."""
    return _ref(name) if name.startswith(ENTRY) else Ref(name)


def _ref(entry: str) -> Ref:
    node, port = entry.removeprefix(ENTRY).rsplit(":", 1)
    return Ref(node, int(port))
