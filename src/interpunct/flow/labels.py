"""Labels: whose heartbeats each operator of a plan waits for (Heartbeats section 7).

    S1 ─┐                                         operator   query        memory-aware
        O1 ─┐                              O1     {S1, S2}   {S1, S2, S3}  as σ(O1) says
    S2 ─┘   O2 ─ sink                      O2     {S1, S2, S3} in every case
    S3 ─────┘

With operator-level heartbeats an operator waits for the sources below it, Uᵢ; with a query-level
heartbeat it waits for all; memory-aware it waits for more than Uᵢ only where its results would
otherwise pile up further along, because from it to there tuples become more and not fewer
(Figure 6). Only time and memory differ: the results are those of the operator-level plan.

The choice becomes a rewrite of the graph. Every operator that waits does so for its own inputs;
what its label has beyond them, a gate on each input waits for. Operators that take tuples in any
order are given none (section 7.5): gates come behind them, just before the first operator that
needs order. None come before a punctuate or a slack, which judge a tuple by when it comes.

Where the paper has a tree this takes any graph. An operator with several readers waits for what
any of them waits for: labels only grow, and a higher label is always sound.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from interpunct.flow.graph import Graph
from interpunct.flow.nodes import AggregateNode, GateNode, JoinNode, Node, Ref, SinkNode, SourceNode
from interpunct.model.errors import FlowError
from interpunct.operators.gate import comparable

MODES = ("operator", "query", "memory")
ANY_ORDER = {"select", "project", "split", "duplicate", "impute", "poll", "sink"}  # section 7.5
JUDGES = {"punctuate", "slack", "pace"}  # what they do depends on when a tuple comes

Label = frozenset[str]  # names of sources


@dataclass(frozen=True)
class Heartbeats:
    """Which heartbeats a plan uses, and what is known of its selectivities."""

    mode: str = "operator"
    selectivity: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise FlowError("heartbeats", f"one of {', '.join(MODES)}", repr(self.mode), "Choose.")
        for name, value in self.selectivity.items():
            if not 0 <= value < math.inf:
                raise FlowError(
                    f"selectivity of {name!r}", "tuples out per tuple in, 0 or more", str(value),
                    "Take what a result's `selectivities` measured.",
                )  # fmt: skip

    def labels(self, graph: Graph) -> dict[str, Label]:
        """Rᵢ of every node."""
        below = streams_below(graph)
        if self.mode == "operator":
            return below
        reached = (
            _all_of_the_query(graph, below)
            if self.mode == "query"
            else _memory_aware(graph, below, self.selectivities(graph))
        )
        judged = _before_judges(graph)
        return {name: below[name] if name in judged else reached[name] for name in below}

    def selectivities(self, graph: Graph) -> dict[str, float]:
        """What is given, else the most the kind of operator can make of a tuple."""
        unknown = sorted(self.selectivity.keys() - graph.nodes.keys())
        if unknown:
            raise FlowError(
                f"flow {graph.name!r}", f"selectivities of its nodes, {', '.join(graph.nodes)}",
                ", ".join(unknown), "Check the spelling.",
            )  # fmt: skip
        return {n.name: self.selectivity.get(n.name, most_selectivity(n)) for n in graph}

    def planned(self, graph: Graph) -> Graph:
        """The graph with the gates that its labels ask for."""
        if self.mode == "operator":
            return graph
        return _Rewrite(graph, self.labels(graph)).run()


def most_selectivity(node: Node) -> float:
    """The most tuples that can leave an output for each that enters.

    The output node counts as 0, since what it takes is gone. Nothing is known of a join before it
    is measured, so it is taken to be proliferative: whoever asks for memory-aware heartbeats would
    rather wait than run out.
    """
    if isinstance(node, SinkNode):
        return 0.0
    if isinstance(node, JoinNode):
        return math.inf
    if isinstance(node, AggregateNode):
        return float(math.ceil(node.windows.size / node.windows.slide))
    return 1.0


# Labels -----------------------------------------------------------------------------------------


def streams_below(graph: Graph) -> dict[str, Label]:
    """Uᵢ: the sources in the subplan of each node, as far as they have a time to wait for."""
    below: dict[str, Label] = {}
    for node in graph.checked():
        if isinstance(node, SourceNode):
            below[node.name] = Label([node.name] if _timed(graph, Ref(node.name)) else [])
        else:
            below[node.name] = _union(below[r.node] for r in node.inputs if _timed(graph, r))
    return below


def _all_of_the_query(graph: Graph, below: Mapping[str, Label]) -> dict[str, Label]:
    """One heartbeat for a query, which is a connected component of the graph (section 7.1)."""
    labels: dict[str, Label] = {}
    for component in graph.components():
        everything = _union(below[n.name] for n in component)
        for node in component:
            own = below[node.name]
            labels[node.name] = own | _alike(graph, own, everything)
    return labels


def _alike(graph: Graph, own: Label, others: Label) -> Label:
    """Those whose time can be compared with one's own: numbers and clocks cannot."""
    mine = next((graph.nodes[s].outputs[0].schema for s in own), None)
    if mine is None:
        return Label()
    return Label(s for s in others if comparable(mine, graph.nodes[s].outputs[0].schema))


def _memory_aware(
    graph: Graph, below: Mapping[str, Label], selectivity: Mapping[str, float]
) -> dict[str, Label]:
    """AssignLabels (Figure 6), from the roots down: a node takes its readers' labels if a memory
    link goes from it, or from below it, to somewhere above it."""
    passed = links_pass(graph, selectivity)
    labels: dict[str, Label] = {}
    for node in reversed(graph.checked()):
        above = [labels[reader] for _, reader, _ in graph.consumers(node.name)]
        labels[node.name] = below[node.name].union(*above if passed[node.name] else ())
    return labels


def links_pass(graph: Graph, selectivity: Mapping[str, float]) -> dict[str, bool]:
    """Whether a memory link goes on past each node.

    The link of O ends at its lowest ancestor A such that the chain O…A is nonproliferative, that
    is, where the product of selectivities from O on first is 1 or less (section 7.4). Of all
    chains that reach a node and have not ended, the one with the greatest product ends last.
    """
    product: dict[str, float] = {}
    for node in graph.checked():
        own = 1.0 if isinstance(node, SourceNode) else selectivity[node.name]
        reaching = max((product[r.node] for r in node.inputs), default=1.0)
        product[node.name] = own * max(reaching, 1.0) if own else 0.0
    return {name: value > 1 for name, value in product.items()}


def _before_judges(graph: Graph) -> set[str]:
    """The nodes that lead to a punctuate or a slack, and these themselves."""
    found: set[str] = set()
    for node in reversed(graph.checked()):
        readers = (reader for _, reader, _ in graph.consumers(node.name))
        if node.kind in JUDGES or any(r in found for r in readers):
            found.add(node.name)
    return found


# Gates ------------------------------------------------------------------------------------------


class _Rewrite:
    """One graph with gates put in; every node is made anew on the streams it now reads."""

    def __init__(self, graph: Graph, labels: Mapping[str, Label]) -> None:
        self._graph, self._labels = graph, labels
        self._out = Graph(graph.name)
        self._waits: dict[str, Label] = {}  # what the output of each node has waited for
        self._gates: dict[tuple[Ref, Label], Ref] = {}

    def run(self) -> Graph:
        for node in self._graph.checked():
            self._place(node)
        return self._out

    def _place(self, node: Node) -> None:
        if isinstance(node, SourceNode):
            own = Label([node.name])
        else:
            own = _union(self._waits[r.node] for r in node.inputs if _timed(self._graph, r))
        missing = Label() if takes_any_order(node) else self._labels[node.name] - own
        self._waits[node.name] = own | missing
        refs = tuple(self._gated(ref, missing) for ref in node.inputs)
        streams = tuple(self._out.nodes[r.node].outputs[r.port] for r in refs)
        self._out.add(replace(node, inputs=refs, streams=streams))

    def _gated(self, ref: Ref, missing: Label) -> Ref:
        """The stream behind a gate; readers that wait for the same share one."""
        if not missing:
            return ref
        if (ref, missing) not in self._gates:
            pacers = [v for source in sorted(missing) for v in voices(self._graph, source)]
            data = self._out.nodes[ref.node].outputs[ref.port]
            paced = tuple(self._graph.nodes[v.node].outputs[v.port] for v in pacers)
            gate = GateNode(self._name(ref), (ref, *pacers), (data, *paced))
            self._out.add(gate)
            self._gates[ref, missing] = Ref(gate.name)
        return self._gates[ref, missing]

    def _name(self, ref: Ref) -> str:
        name, number = f"gate_{ref}", 1
        while name in self._graph.nodes or name in self._out.nodes:
            number += 1
            name = f"gate_{ref}_{number}"
        return name


def takes_any_order(node: Node) -> bool:
    """Whether a node passes each tuple on as it comes, so that holding it back gains nothing."""
    arrival = node.kind == "union" and not node.prototype.idle_waiting
    return arrival or not node.inputs or node.kind in ANY_ORDER | JUDGES


def voices(graph: Graph, source: str) -> list[Ref]:
    """The streams that tell how far a source has come: its own, or what a punctuate or a slack
    behind it makes of it, where the source itself may promise nothing."""
    found: list[Ref] = []
    todo = [source]
    while todo:
        name = todo.pop()
        for port, reader, entry in graph.consumers(name):
            node = graph.nodes[reader]
            if not _timed(graph, Ref(name, port)) or not takes_any_order(node):
                continue
            if node.kind in JUDGES and entry == 0 and Ref(reader) not in found:
                found.append(Ref(reader))
            todo.append(reader)
    return found or [Ref(source)]


def _timed(graph: Graph, ref: Ref) -> bool:
    return graph.nodes[ref.node].outputs[ref.port].schema.time is not None


def _union(labels: Iterable[Label]) -> Label:
    return Label().union(*labels)
