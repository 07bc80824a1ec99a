"""The outline of a flow: what of it can be drawn, and read by those who only see its metrics.

>>> from interpunct.flow.builder import FlowBuilder
>>> flow = FlowBuilder("speeds")
>>> flow.sink("map", flow.source("cars", "segment bigint").where("segment < 9", name="near"))
>>> outline = Outline.of(flow.graph)
>>> [(part.name, part.kind, part.inputs) for part in outline.parts][1:]
[('near', 'select', (('cars', 0),)), ('map', 'sink', (('near', 0),))]
>>> outline.layers()
[['cars'], ['near'], ['map']]
>>> Outline.of_json(outline.to_json()) == outline
True
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from interpunct.flow.graph import Graph


@dataclass(frozen=True)
class Part:
    """One node: its name, its kind, what it does in words, and the outputs it reads."""

    name: str
    kind: str
    does: str
    inputs: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Outline:
    """The nodes of a flow, each after those that it reads."""

    flow: str
    parts: tuple[Part, ...]

    @classmethod
    def of(cls, graph: Graph) -> Outline:
        return cls(
            graph.name,
            tuple(
                Part(n.name, n.kind, n.describe(), tuple((r.node, r.port) for r in n.inputs))
                for n in graph.checked()
            ),
        )

    @property
    def edges(self) -> list[tuple[str, int, str]]:
        """Who makes it, at which output, who reads it."""
        return [(maker, port, p.name) for p in self.parts for maker, port in p.inputs]

    @property
    def sinks(self) -> list[str]:
        return [p.name for p in self.parts if p.kind == "sink"]

    def layers(self) -> list[list[str]]:
        """Names from the top down: each is below all that it reads, and beside those with which it
        has most in common."""
        depth: dict[str, int] = {}
        for part in self.parts:
            depth[part.name] = 1 + max((depth[maker] for maker, _ in part.inputs), default=-1)
        rows: list[list[str]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
        for part in self.parts:
            rows[depth[part.name]].append(part.name)
        return _untangled(rows, {p.name: [maker for maker, _ in p.inputs] for p in self.parts})

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of_json(cls, said: Mapping[str, Any]) -> Outline:
        parts = (
            Part(p["name"], p["kind"], p["does"], tuple((n, port) for n, port in p["inputs"]))
            for p in said["parts"]
        )
        return cls(said["flow"], tuple(parts))


def _untangled(rows: list[list[str]], inputs: Mapping[str, list[str]]) -> list[list[str]]:
    """Each row in the order of the middle of what its nodes read, so that few edges cross."""
    place: dict[str, float] = {}
    for row in rows:
        for at, name in enumerate(row):
            place[name] = (at + 1) / (len(row) + 1)
        row.sort(key=lambda name: _middle([place[m] for m in inputs[name]], place[name]))
        for at, name in enumerate(row):
            place[name] = (at + 1) / (len(row) + 1)
    return rows


def _middle(places: list[float], own: float) -> float:
    return sum(places) / len(places) if places else own
