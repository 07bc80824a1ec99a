"""`explain`: a graph as text, from its sources to its sinks."""

from __future__ import annotations

from collections.abc import Mapping

from interpunct.flow.graph import Graph
from interpunct.flow.labels import Label, takes_any_order
from interpunct.flow.merge_nodes import in_process_only
from interpunct.flow.nodes import Node
from interpunct.flow.one_lane import reasons
from interpunct.flow.planner import Stage, stages
from interpunct.flow.pushdown import prefix_of


def explain(graph: Graph, labels: Mapping[str, Label] | None = None) -> str:
    """One block per connected component, one line per node, in the order data takes; `labels`
    are shown at the operators that wait for heartbeats."""
    labels = labels or {}
    lines = [f"flow {graph.name}"]
    components = graph.components()
    for number, component in enumerate(components, start=1):
        if len(components) > 1:
            lines.append(f"component {number}, scheduled by itself")
        lines += [line for node in component for line in _lines(node, labels.get(node.name))]
    alone = in_process_only(graph)
    if alone:
        return "\n".join([*lines, f"in process only: {', '.join(alone)}"])
    lines += [line for stage in stages(graph) for line in _stage_lines(graph, stage)]
    return "\n".join(lines)


def _stage_lines(graph: Graph, stage: Stage) -> list[str]:
    """What runs where on Spark: in the tasks that read a source, and in the lanes behind them."""
    lanes = "one lane" if stage.single else "lanes"
    whole = "all of {}" if stage.single else "all of {} in one"
    named = {ref: ", ".join(map(str, keys)) for ref, keys in stage.keys.items()}
    keys = [f"{ref} by {names}" if names else whole.format(ref) for ref, names in named.items()]
    lines = [f"on Spark, stage {stage.number}: {lanes} ({'; '.join(keys)})"]
    lines += [f"  in one lane because {reason}" for reason in reasons(graph, stage)]
    prefixes = [prefix_of(graph, stage, n.name) for n in graph.sources if n.name in stage.nodes]
    early = [name for prefix in prefixes for name in prefix.nodes]
    partial = [f"part of {p.aggregate}" for p in prefixes if p.aggregate is not None]
    if early or partial:
        lines.append(f"  before the shuffle: {', '.join(early + partial)}")
    sources = {n.name for n in graph.sources}
    inside = [n for n in stage.nodes if n not in early and n not in sources]
    lines.append(f"  in the lanes: {', '.join(inside)}")
    return lines


def _lines(node: Node, label: Label | None) -> list[str]:
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
    if label is not None and not takes_any_order(node):
        lines.append(f"      label {{{', '.join(sorted(label))}}}")
    return lines
