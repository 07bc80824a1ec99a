"""A flow as a notebook shows it: the graph as a drawing, the operators as a table.

    ┌────────┐   ┌─────────┐
    │ cars   ├──▶│ where_1 ├──▶ …      name and kind; a dashed box may wait for another input
    └────────┘   └─────────┘

Nothing but HTML and inline SVG in the colours of the page around it: no script, no style sheet, no
file from elsewhere, so it looks the same in a notebook, in its export and without a network.

>>> from interpunct.flow.builder import FlowBuilder
>>> flow = FlowBuilder("speeds")
>>> flow.sink("map", flow.source("cars", "segment bigint").where("segment < 9"))
>>> drawn(flow.graph).count("<rect")
3
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from interpunct.flow.graph import Graph
from interpunct.flow.nodes import Node
from interpunct.flow.outline import Outline
from interpunct.model.errors import FlowError

BOX, HIGH = 150, 40  # of a node, in pixels
GAP, APART = 50, 20  # between columns, and between the nodes of one
LETTERS = 20  # of a name that fit into a box

Place = tuple[float, float]


def shown(graph: Graph) -> str:
    """The drawing and the table; of a flow that is not finished, what is missing and the table."""
    try:
        picture = drawn(graph)
    except FlowError as error:
        picture = f"<p>{escape(str(error))}</p>"
    rows = [(n.name, n.kind, _reads(n), n.describe(), _gives(n)) for n in graph]
    listed = table(("name", "operator", "reads", "what it does", "output"), rows)
    return f"<div><p><b>flow {escape(graph.name)}</b></p>{picture}{listed}</div>"


def drawn(graph: Graph) -> str:
    """The graph as SVG, data from left to right."""
    outline = Outline.of(graph)
    columns = outline.layers()
    tallest = max(map(len, columns))
    places = {
        name: (x * (BOX + GAP) + 1, (y + (tallest - len(column)) / 2) * (HIGH + APART) + 1)
        for x, column in enumerate(columns)
        for y, name in enumerate(column)
    }
    lines = [_arrow(places[maker], places[reader]) for maker, _, reader in outline.edges]
    boxes = [_box(graph.nodes[name], place) for name, place in places.items()]
    wide, high = len(columns) * (BOX + GAP) - GAP + 2, tallest * (HIGH + APART) - APART + 2
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" '
        f'style="max-width: 100%" role="img" aria-label="flow {escape(graph.name)}">'
        f"{''.join([*lines, *boxes])}</svg>"
    )


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """An HTML table of texts."""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in row)}</tr>" for row in rows
    )
    rows_of = f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
    return f"<table style='text-align: left'>{rows_of}</table>"


def _box(node: Node, place: Place) -> str:
    x, y = place
    short = node.name if len(node.name) <= LETTERS else f"{node.name[: LETTERS - 1]}…"
    dashed = ' stroke-dasharray="4 3"' if node.prototype.idle_waiting else ""
    text = 'text-anchor="middle" font-family="sans-serif" fill="currentColor"'
    return (
        f"<g><title>{escape(f'{node.name}: {node.kind} {node.describe()}')}</title>"
        f'<rect x="{x}" y="{y}" width="{BOX}" height="{HIGH}" rx="4" fill="none" '
        f'stroke="currentColor"{dashed}/>'
        f'<text x="{x + BOX / 2}" y="{y + 17}" font-size="13" {text}>{escape(short)}</text>'
        f'<text x="{x + BOX / 2}" y="{y + 32}" font-size="10" opacity="0.7" {text}>'
        f"{escape(node.kind)}</text></g>"
    )


def _arrow(start: Place, end: Place) -> str:
    """From the right edge of one box to the left edge of another, with a head."""
    (x1, y1), (x2, y2) = (start[0] + BOX, start[1] + HIGH / 2), (end[0], end[1] + HIGH / 2)
    bend = (x2 - x1) / 2
    curve = f"M {x1} {y1} C {x1 + bend} {y1}, {x2 - bend} {y2}, {x2 - 6} {y2}"
    head = f"M {x2 - 7} {y2 - 4} L {x2} {y2} L {x2 - 7} {y2 + 4} z"
    return (
        f'<path d="{curve}" fill="none" stroke="currentColor" opacity="0.6"/>'
        f'<path d="{head}" fill="currentColor" opacity="0.6"/>'
    )


def _reads(node: Node) -> str:
    return ", ".join(map(str, node.inputs))


def _gives(node: Node) -> str:
    if not node.outputs:
        return ""
    out = node.outputs[0]
    time = f"; time {out.schema.time}" if out.schema.time else ""
    return f"{out.schema.ddl}{time}; {out.properties}"
