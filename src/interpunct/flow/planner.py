"""The planner: cuts a graph into stages, each of which runs in lanes without a shuffle.

A lane is one hash partition of a stage; tuples that must meet must share it. Each operator says
by which attributes its state may be divided: an aggregate by its groups, a join by its keys, a
union by anything. A stage grows as long as some attribute serves all its operators; where none
does, the stream is shuffled into a new stage. Attributes are followed back to the streams that
enter the stage, through renamings and, behind a source, through what computes them, so that every
entering tuple can be sent to its lane; where attributes as they are would do, they do. Parts of a
flow that have nothing to do with each other share a stage, each with keys of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from interpunct.flow.feedback_nodes import PaceNode
from interpunct.flow.graph import Graph
from interpunct.flow.lane_key import LaneKey, computed_keys
from interpunct.flow.nodes import (
    AggregateNode,
    GateNode,
    JoinNode,
    Node,
    ProjectNode,
    Ref,
    SlackNode,
    SourceNode,
    TimerNode,
    TupleWindowNode,
)

STATELESS = {"select", "project", "split", "duplicate"}  # run wherever their input is

Lineage = dict[Ref, LaneKey]  # entering stream → its attribute, or what is computed of it
Options = dict[str, Lineage]  # attribute of a stream → where it comes from


@dataclass(frozen=True)
class Stage:
    """What runs in the lanes of one stage, and how tuples find their lane."""

    number: int
    nodes: tuple[str, ...]  # in the order data takes, sources and stateless prefix included
    keys: dict[Ref, tuple[LaneKey, ...]]  # entering stream → what is hashed to the lane

    @property
    def single(self) -> bool:
        """Whether the whole stage needs one lane, for want of a key."""
        return all(not attributes for attributes in self.keys.values())


@dataclass
class _Growing:
    """A stage under construction: the keys that still serve all of it."""

    nodes: list[str] = field(default_factory=list)
    alive: list[Lineage] | None = None  # None: anything serves so far


class Planner:
    """Places the nodes of one graph, in the order data takes."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._stages: list[_Growing] = []
        self._stage_of: dict[str, _Growing | None] = {}  # None: before any shuffle
        self._options: dict[Ref, Options] = {}

    def stages(self) -> list[Stage]:
        for node in self._graph.checked():
            self._place(node)
        live = self._coalesced([s for s in self._stages if s.nodes])
        return [self._finished(number, s) for number, s in enumerate(self._bundled(live))]

    def _place(self, node: Node) -> None:
        if isinstance(node, SourceNode):
            self._stage_of[node.name] = None
            self._publish(node, {n: {Ref(node.name): LaneKey(n)} for n in _hashable(node)})
            return
        if isinstance(node, TimerNode):
            self._stage_of[node.name] = None
            self._publish(node, {})
            return
        stage = self._stage_of[node.inputs[0].node]
        if node.kind in STATELESS or (node.kind == "sink" and stage is not None):
            self._join_stage(node, stage)
            self._publish(node, {**self._through(node, 0), **self._computed(node, stage)})
            return
        wanted = _divisible_by(node)
        options, stages = self._common(node, wanted), self._input_stages(node)
        single = wanted is not None and not wanted
        fits = all(s.alive == [] for s in stages) if single else bool(options)
        if self._paced_in_lanes(node):
            options, fits = {}, True  # one lane: gate and pacers meet without a common key
        if not fits:
            options, stages = self._common(node, wanted, shuffled=True), []
        stage = self._merged(stages)
        stage.alive = _distinct(options.values())
        self._join_stage(node, stage)
        self._publish(node, options)

    def _publish(self, node: Node, options: Options) -> None:
        for port in range(len(node.outputs)):
            self._options[Ref(node.name, port)] = options

    def _join_stage(self, node: Node, stage: _Growing | None) -> None:
        self._stage_of[node.name] = stage
        if stage is not None:
            stage.nodes.append(node.name)

    def _through(self, node: Node, port: int, *, shuffled: bool = False) -> Options:
        """The options of an input under the names they have in the output."""
        ref = node.inputs[port]
        before = self._fresh(ref) if shuffled else self._alive_options(ref)
        mapping = node.prototype.attributes
        if not node.outputs:
            return before
        return {
            out: before[name]
            for out in node.outputs[0].schema.names
            if (name := mapping.input_of(out, port)) in before
        }

    def _fresh(self, ref: Ref) -> Options:
        """The options of a stream that enters a new stage: all its plain attributes."""
        if self._stage_of[ref.node] is None:
            return self._options[ref]
        schema = self._graph.nodes[ref.node].outputs[ref.port].schema
        plain = [a.name for a in schema.attributes if not a.dtype.is_nested()]
        return {name: {ref: LaneKey(name)} for name in plain}

    def _computed(self, node: Node, stage: _Growing | None) -> Options:
        """What a projection between a source and the first shuffle adds to the options."""
        way, at = list[ProjectNode](), node
        while at.inputs:
            at = self._graph.nodes[at.inputs[0].node]
            if isinstance(at, ProjectNode):
                way.insert(0, at)
        if stage is not None or not isinstance(at, SourceNode):
            return {}
        keys = computed_keys(node, way, at.raw.names)
        return {key.name: {Ref(at.name): key} for key in keys}

    def _alive_options(self, ref: Ref) -> Options:
        """The options of a stream that its stage has not ruled out since."""
        options, stage = self._options[ref], self._stage_of[ref.node]
        if stage is None or stage.alive is None:
            return options
        alive = stage.alive
        return {n: line for n, line in options.items() if any(_agree(line, a) for a in alive)}

    def _common(self, node: Node, wanted: set[str] | None, *, shuffled: bool = False) -> Options:
        """Attributes of the output that are options on every input and serve this operator."""
        ports = [p for p in range(len(node.inputs)) if not self._is_timer(node.inputs[p])]
        if isinstance(node, GateNode):
            ports = ports[:1]  # progress is the same in all lanes, so pacers need no key
        each = [self._through(node, port, shuffled=shuffled) for port in ports]
        names = set.intersection(*(set(o) for o in each))
        if wanted is not None:
            names &= wanted
        return {n: {r: a for o in each for r, a in o[n].items()} for n in sorted(names)}

    def _paced_in_lanes(self, node: Node) -> bool:
        """Whether a gate has a pacer whose time is made in a lane (by a punctuate or a slack)."""
        pacers = node.inputs[1:] if isinstance(node, GateNode) else ()
        return any(self._stage_of[ref.node] is not None for ref in pacers)

    def _is_timer(self, ref: Ref) -> bool:
        return isinstance(self._graph.nodes[ref.node], TimerNode)

    def _input_stages(self, node: Node) -> list[_Growing]:
        stages: list[_Growing] = []
        for ref in node.inputs:
            stage = self._stage_of[ref.node]
            if stage is not None and all(stage is not s for s in stages):
                stages.append(stage)
        return stages

    def _merged(self, stages: list[_Growing]) -> _Growing:
        """One stage from several that turn out to share a key."""
        if not stages:
            stage = _Growing()
            self._stages.append(stage)
            return stage
        first, *others = stages
        for other in others:
            first.nodes += other.nodes
            for name in other.nodes:
                self._stage_of[name] = first
            other.nodes = []
        return first

    def _coalesced(self, stages: list[_Growing]) -> list[tuple[int, _Growing]]:
        """Stages of one depth become one where one key serves both: each source then enters once,
        however many operators read it. With their depths, in the order data takes."""
        groups: list[tuple[int, _Growing]] = []
        depths: dict[int, int] = {}
        for stage in stages:
            entries, _ = self._reach_back(stage)
            homes = [self._stage_of[r.node] for r in entries]
            depth = max((depths[id(h)] + 1 for h in homes if h is not None), default=0)
            host = self._absorbed(stage, [g for d, g in groups if d == depth])
            if host is stage:
                groups.append((depth, stage))
            depths[id(host)] = depth
        return sorted(groups, key=lambda g: g[0])

    def _bundled(self, groups: list[tuple[int, _Growing]]) -> list[_Growing]:
        """Stages of one depth that no stream enters both of share a shuffle too, each by keys of
        its own: what does not meet need not wait for each other in turn."""
        bundles: list[tuple[int, _Growing, set[Ref]]] = []
        for depth, stage in groups:
            entries = set(self._reach_back(stage)[0])
            hosts = (b for b in bundles if b[0] == depth and not b[2] & entries)
            _, host, entered = next(hosts, (depth, stage, entries))
            if host is stage:
                bundles.append((depth, stage, entries))
                continue
            alive = [*(host.alive or ()), *(stage.alive or ())]
            self._merged([host, stage]).alive = alive
            entered |= entries
        return [stage for _, stage, _ in bundles]

    def _absorbed(self, stage: _Growing, others: list[_Growing]) -> _Growing:
        """The first of the others that can take the stage in, or the stage itself."""
        for other in others:
            shared = _reconciled(other.alive, stage.alive)
            if shared is not None:
                self._merged([other, stage])
                other.alive = shared
                return other
        return stage

    def _finished(self, number: int, stage: _Growing) -> Stage:
        entries, members = self._reach_back(stage)
        order = [n.name for n in self._graph.checked() if n.name in members]
        alive = stage.alive or []
        keys = {ref: _keys_of(ref, alive) for ref in entries}
        return Stage(number, tuple(order), keys)

    def _reach_back(self, stage: _Growing) -> tuple[list[Ref], set[str]]:
        """The streams that enter a stage, and its nodes with the prefix before the shuffle."""
        entries: list[Ref] = []
        members = set(stage.nodes)
        todo = list(stage.nodes)
        while todo:
            name = todo.pop()
            node = self._graph.nodes[name]
            if isinstance(node, SourceNode):
                entries.append(Ref(name))
            for ref in node.inputs:
                home = self._stage_of[ref.node]
                if home is None and ref.node not in members:
                    members.add(ref.node)
                    todo.append(ref.node)
                elif home is not None and home is not stage and ref not in entries:
                    entries.append(ref)
        return sorted(entries, key=str), members


def _divisible_by(node: Node) -> set[str] | None:
    """The attributes by which an operator's state may be divided; None means any."""
    if isinstance(node, AggregateNode | TupleWindowNode):
        return set(node.by)
    if isinstance(node, JoinNode):
        return set(node.spec.keys)
    if isinstance(node, SlackNode):
        return set()  # it counts the tuples of the whole stream
    if isinstance(node, PaceNode):
        return set()  # its high-watermark is that of whole streams
    return None


def _hashable(node: SourceNode) -> list[str]:
    return [a.name for a in node.raw.attributes if not a.dtype.is_nested()]


def _keys_of(ref: Ref, lines: Iterable[Lineage]) -> tuple[LaneKey, ...]:
    """How the tuples of an entering stream find their lane: by attributes as they are, where all
    that must meet have some, and only else by computed ones."""
    mine = [line for line in lines if ref in line]
    plain = [line for line in mine if not any(key.through for key in line.values())]
    return tuple(line[ref] for line in plain or mine)


def _agree(line: Lineage, other: Lineage) -> bool:
    return all(other.get(ref, key) == key for ref, key in line.items())


def _reconciled(one: list[Lineage] | None, other: list[Lineage] | None) -> list[Lineage] | None:
    """The keys that serve two stages; None when there are none."""
    one, other = one or [], other or []
    if not one or not other:
        return [] if not one and not other else None
    shared = {ref for line in one for ref in line} & {ref for line in other for ref in line}
    if not shared:
        return None
    lines = [{**a, **b} for a in one for b in other if a.keys() & b.keys() and _agree(a, b)]
    return _distinct(lines) or None


def _distinct(lines: Iterable[Lineage]) -> list[Lineage]:
    kept: list[Lineage] = []
    for line in lines:
        if line not in kept:
            kept.append(line)
    return kept


def stages(graph: Graph) -> list[Stage]:
    """The stages of a graph, each after those it reads."""
    return Planner(graph).stages()
