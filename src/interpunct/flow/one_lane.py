"""Why a stage is not divided into lanes, and what would divide it."""

from __future__ import annotations

from interpunct.flow.feedback_nodes import PaceNode
from interpunct.flow.graph import Graph
from interpunct.flow.nodes import (
    AggregateNode,
    GateNode,
    JoinNode,
    Node,
    SlackNode,
    TupleWindowNode,
)
from interpunct.flow.planner import STATELESS, Stage


def reasons(graph: Graph, stage: Stage) -> list[str]:
    """One for each operator that wants all tuples in one lane; none where streams have keys."""
    nodes = [graph.nodes[name] for name in _undivided(graph, stage)]
    found = [reason for node in nodes if (reason := _reason(node)) is not None]
    if nodes and not found:  # an operator to which any key would do, and none is there
        stateful = [n for n in nodes if n.kind not in STATELESS | {"source", "timer", "sink"}]
        found = [f"no plain column reaches {(stateful or nodes[-1:])[0].name} unchanged"]
    return found


def _undivided(graph: Graph, stage: Stage) -> list[str]:
    """The operators behind streams that enter without a key, in the order data takes."""
    keyless = {ref for ref, attributes in stage.keys.items() if not attributes}
    behind = {ref.node for ref in keyless if ref.node in stage.nodes}
    for name in stage.nodes:
        inputs = graph.nodes[name].inputs
        if any(ref in keyless or ref.node in behind for ref in inputs):
            behind.add(name)
    return [name for name in stage.nodes if name in behind]


def _reason(node: Node) -> str | None:
    if isinstance(node, AggregateNode | TupleWindowNode) and not node.by:
        return f"{node.name} is over all tuples (with by=… it runs in lanes)"
    if isinstance(node, AggregateNode | TupleWindowNode):
        return _made(node, node.by)
    if isinstance(node, JoinNode):
        return _made(node, node.spec.keys)
    if isinstance(node, SlackNode):
        return f"{node.name} counts all tuples"
    if isinstance(node, PaceNode):
        return f"{node.name} compares the times of whole streams"
    if isinstance(node, GateNode):
        return f"{node.name} waits for a time that is made in a lane"
    return None


def _made(node: Node, keys: tuple[str, ...]) -> str:
    return (
        f"{node.name} goes by {', '.join(keys)}, in which no plain column of a source is, and none "
        "computed of such (one gives lanes)"
    )
