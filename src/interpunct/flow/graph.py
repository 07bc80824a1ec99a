"""The query graph: nodes by name, checked as a whole before it runs."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator

from interpunct.flow.nodes import Node, SinkNode, SourceNode, TimerNode
from interpunct.model.errors import FlowError, levels_to_the_user
from interpunct.model.late import is_late
from interpunct.model.schema import Schema
from interpunct.progress.skew import Skew


class Graph:
    """A directed acyclic graph with sources, operators and sinks."""

    def __init__(self, name: str, nodes: Iterable[Node] = ()) -> None:
        self.name = name
        self.skew: Skew | None = None  # how the times of its sources are related
        self.nodes: dict[str, Node] = {}
        for node in nodes:
            self.add(node)

    def add(self, node: Node) -> Node:
        if node.name in self.nodes:
            raise FlowError(
                f"flow {self.name!r}", "each node's name once", f"{node.name!r} again",
                "Call one of them otherwise: sinks by what comes first, others with name='…'.",
            )  # fmt: skip
        self.nodes[node.name] = node
        return node

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes.values())

    @property
    def sources(self) -> list[SourceNode]:
        return [n for n in self if isinstance(n, SourceNode)]

    @property
    def sinks(self) -> list[SinkNode]:
        return [n for n in self if isinstance(n, SinkNode)]

    def consumers(self, name: str) -> list[tuple[int, str, int]]:
        """Who reads this node: (its output port, the reader, the reader's input port)."""
        return [
            (ref.port, node.name, port)
            for node in self
            for port, ref in enumerate(node.inputs)
            if ref.node == name
        ]

    def checked(self) -> list[Node]:
        """The nodes with every node after those it reads, or an error naming what is wrong."""
        self._check_references()
        ordered = self._topological()
        self._check_reach(ordered)
        return ordered

    @property
    def late_outputs(self) -> dict[str, Schema]:
        """The late outputs that nobody reads, by node."""
        found: dict[str, Schema] = {}
        for node in self:
            read = {port for port, _, _ in self.consumers(node.name)}
            for port, stream in enumerate(node.outputs):
                if port not in read and is_late(stream.schema):
                    found[node.name] = stream.schema
        return found

    def leading_to_sinks(self) -> Graph:
        """Without the operators that lead to no sink, which a warning names: in a notebook they are
        what one has tried before. A source that leads nowhere stays, and is refused."""
        useful = self._useful()
        idle = [n.name for n in self if n.inputs and n.name not in useful]
        if not idle or not self.sinks:
            return self
        names = ", ".join(map(repr, idle))
        warnings.warn(
            f"flow {self.name!r}: {names} not run, since nothing reads what would come out; "
            "flow.sink('…', stream) would.", stacklevel=levels_to_the_user(),
        )  # fmt: skip
        return Graph(self.name, [n for n in self if n.name not in idle])

    def _useful(self) -> set[str]:
        """The names of all nodes that lead to a sink."""
        useful, waiting = set[str](), [n.name for n in self.sinks]
        while waiting:
            name = waiting.pop()
            if name not in useful and name in self.nodes:
                useful.add(name)
                waiting += [r.node for r in self.nodes[name].inputs]
        return useful

    def components(self) -> list[list[Node]]:
        """The connected components: each is a scheduling unit of its own (ETS section 3)."""
        group: dict[str, int] = {}
        members: dict[int, list[Node]] = {}
        for number, node in enumerate(self.checked()):
            joined = {group[ref.node] for ref in node.inputs}
            target = min(joined, default=number)
            members.setdefault(target, [])
            for other in sorted(joined - {target}):
                for moved in members.pop(other):
                    group[moved.name] = target
                    members[target].append(moved)
            group[node.name] = target
            members[target].append(node)
        rank = {n.name: i for i, n in enumerate(self.checked())}
        return [sorted(c, key=lambda n: rank[n.name]) for c in members.values()]

    def _check_references(self) -> None:
        for node in self:
            for ref in node.inputs:
                known = self.nodes.get(ref.node)
                if known is None or ref.port >= len(known.outputs):
                    raise FlowError(
                        f"flow {self.name!r}, node {node.name!r}", "an output of another node",
                        str(ref), "Add that node, or read from one that exists.",
                    )  # fmt: skip

    def _topological(self) -> list[Node]:
        ordered: list[Node] = []
        done: set[str] = set()
        waiting = dict(self.nodes)
        while waiting:
            ready = [n for n in waiting.values() if all(r.node in done for r in n.inputs)]
            if not ready:
                raise FlowError(
                    f"flow {self.name!r}", "a graph without cycles",
                    f"a cycle through {_cycle(waiting)}",
                    "Data flows one way; send what must flow back as feedback.",
                )  # fmt: skip
            for node in ready:
                ordered.append(node)
                done.add(node.name)
                del waiting[node.name]
        return ordered

    def _check_reach(self, ordered: list[Node]) -> None:
        """Every source leads to a sink, and there is at least one of each."""
        if not any(isinstance(n, SourceNode | TimerNode) for n in ordered) or not self.sinks:
            kinds = f"{len(self.sources)} sources and {len(self.sinks)} sinks"
            raise FlowError(
                f"flow {self.name!r}", "at least one source and one sink", kinds,
                "Begin with flow.source(…), end with flow.sink(…).",
            )  # fmt: skip
        useful = self._useful()
        idle = [n.name for n in ordered if n.name not in useful]
        if idle:
            raise FlowError(
                f"flow {self.name!r}", "every node to lead to a sink",
                f"{', '.join(map(repr, idle))} unconnected",
                "Add flow.sink('…', stream) for it, or remove it.",
            )  # fmt: skip


def _cycle(waiting: dict[str, Node]) -> str:
    """Follow one waiting input after another until a name comes back."""
    path: list[str] = []
    name = next(iter(waiting))
    while name not in path:
        path.append(name)
        name = next(r.node for r in waiting[name].inputs if r.node in waiting)
    return " → ".join([*path[path.index(name) :], name])
