"""What chooses the lane of a tuple: an attribute of the stream that enters a stage, or one that is
computed of it on the way.

    cars ─ where ─ project: hour(ts) as h ─ aggregate by h     →     lanes (cars by h of project)

Whoever has a tuple before the projection computes the attribute once more, and so sends it to the
lane where all others with that value are. An expression gives the same for the same tuple.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import polars as pl

from interpunct.flow.graph import Graph
from interpunct.flow.nodes import Node, ProjectNode


@dataclass(frozen=True)
class LaneKey:
    """`name` is that of an attribute or, behind the projections on the `through` way, of what the
    last of them computes."""

    name: str
    through: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.name} of {self.through[-1]}" if self.through else self.name


def computed_keys(node: Node, before: Sequence[ProjectNode], raw: Iterable[str]) -> list[LaneKey]:
    """What a projection adds to the keys of a source's tuples: what it computes of `raw` attributes
    alone, with those `before` it on the way; what has parts is no key."""
    if not isinstance(node, ProjectNode):
        return []
    way, known = [*before, node], set(raw)
    found = [
        name
        for name, column in node.columns.items()
        if column.attribute is None and not column.dtype.is_nested() and column.inputs
    ]
    names = tuple(n.name for n in way)
    return [LaneKey(name, names) for name in found if _steps(way, name)[0] <= known]


def keyed(
    graph: Graph, keys: Sequence[LaneKey], frame: pl.DataFrame
) -> tuple[pl.DataFrame, list[str]]:
    """A frame with the columns that choose its tuples' lanes, and the names of those."""
    names, columns = [], []
    for number, key in enumerate(keys):
        if not key.through:
            names.append(key.name)
            continue
        way = [graph.nodes[name] for name in key.through]
        at = frame
        for step in _steps([n for n in way if isinstance(n, ProjectNode)], key.name)[1]:
            at = at.select(step)
        names.append(f"\0{number}")
        columns.append(at.to_series().alias(names[-1]))
    return frame.with_columns(columns) if columns else frame, names


def _steps(way: Sequence[ProjectNode], name: str) -> tuple[set[str], list[list[pl.Expr]]]:
    """The attributes that a computed one is made of in the end, and how, projection by
    projection."""
    wanted, steps = {name}, list[list[pl.Expr]]()
    for node in reversed(way):
        steps.insert(0, [node.columns[n].polars.alias(n) for n in sorted(wanted)])
        wanted = {i for n in wanted for i in node.columns[n].inputs}
    return wanted, steps
