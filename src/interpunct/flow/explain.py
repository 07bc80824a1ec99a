"""`explain`: a graph as text, from its sources to its sinks."""

from __future__ import annotations

from interpunct.flow.graph import Graph
from interpunct.flow.nodes import Node


def explain(graph: Graph) -> str:
    """One block per connected component, one line per node, in the order data takes."""
    lines = [f"flow {graph.name}"]
    components = graph.components()
    for number, component in enumerate(components, start=1):
        if len(components) > 1:
            lines.append(f"component {number}, scheduled by itself")
        lines += [line for node in component for line in _lines(node)]
    return "\n".join(lines)


def _lines(node: Node) -> list[str]:
    reads = f" ← {', '.join(map(str, node.inputs))}" if node.inputs else ""
    head = f"  {node.name}: {node.kind}{reads}"
    detail = node.describe()
    lines = [head if not detail else f"{head}  [{detail}]"]
    if node.outputs:
        out = node.outputs[0]
        notes = [f"({out.schema.ddl})", f"time {out.schema.time or 'none'}", str(out.properties)]
        if node.prototype.idle_waiting:
            notes.append("may idle-wait")
        lines.append(f"      → {'; '.join(notes)}")
    return lines
