"""What of a stage can run before its shuffle: the stateless chain behind a source, and the partial
aggregation at its end.

    source ─ where ─ select ─┤ aggregate      →     each task sends partial rows, not tuples
"""

from __future__ import annotations

from dataclasses import dataclass

from interpunct.flow.graph import Graph
from interpunct.flow.nodes import AggregateNode, Node, ProjectNode, SelectNode
from interpunct.flow.planner import Stage


@dataclass(frozen=True)
class Prefix:
    """The chain from a source to where its tuples enter the lane."""

    source: str
    nodes: tuple[str, ...]  # select and project nodes, in order
    aggregate: str | None  # the aggregate whose partial rows are sent, if one follows

    @property
    def entry(self) -> str:
        """The node whose output the tuples become."""
        return self.nodes[-1] if self.nodes else self.source


def prefix_of(graph: Graph, stage: Stage, source: str) -> Prefix:
    """The longest chain of stateless operators, each the only reader of the one before."""
    chain: list[str] = []
    current = source
    while True:
        node = _only_reader(graph, stage, current)
        if isinstance(node, SelectNode | ProjectNode):
            chain.append(node.name)
            current = node.name
            continue
        combined = isinstance(node, AggregateNode) and _combinable(node)
        name = node.name if combined and node is not None else None
        return Prefix(source, tuple(chain), name)


def _only_reader(graph: Graph, stage: Stage, name: str) -> Node | None:
    """The one node of the stage that reads output 0, if there is just one."""
    readers = [n for port, n, _ in graph.consumers(name) if port == 0 and n in stage.nodes]
    return graph.nodes[readers[0]] if len(readers) == 1 else None


def _combinable(node: AggregateNode) -> bool:
    return all(a.parts is not None for a in node.aggregates.values())
