"""The query graph as a drawing: data flows down, feedback flows up.

      ┌─────────┐  ┌──────────┐
      │ sensors │  │ vehicles │          boxes: what is held, guards, what was skipped
      └────┬────┘  └────┬─────┘          lines: tuples a second, with dots that move
           └──────┬─────┘  ╎ ▲
            ┌─────┴────┐   ╎ ╎           dashes: feedback, where both ends have a guard
            │   map    │╌╌╌╌╌┘
            └──────────┘

Coordinates are units of one row and one box; y grows upwards, so sources have the greatest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from interpunct.engine.vitals import OperatorVitals, Vitals
from interpunct.flow.outline import Outline
from interpunct.studio.look import Look

WIDTH, HEIGHT = 0.9, 0.62  # of a box, in units
ASIDE, ABOVE = 10, 7  # pixels from the middle of a line to its words
Columns = dict[str, list[Any]]


@dataclass(frozen=True)
class Layout:
    """Where each node is; the drawing is `columns` wide and `rows` high."""

    at: Mapping[str, tuple[float, float]]
    columns: int
    rows: int

    @classmethod
    def of(cls, outline: Outline) -> Layout:
        """Each node below the middle of what it reads, as far as there is room."""
        layers = outline.layers()
        columns = max((len(row) for row in layers), default=1)
        inputs = {p.name: [maker for maker, _ in p.inputs] for p in outline.parts}
        at: dict[str, tuple[float, float]] = {}
        for depth, row in enumerate(layers):
            y, taken = len(layers) - depth - 0.5, 0.0
            for place, name in enumerate(row):
                above = [at[maker][0] for maker in inputs[name]]
                wished = sum(above) / len(above) if above else (place + 0.5) * columns / len(row)
                room = columns - (len(row) - place) + 0.5  # what those to the right of it leave
                at[name] = (min(max(wished, taken + 0.5), room), y)
                taken = at[name][0] + 0.5
        return cls(at, columns, len(layers))


def boxes(outline: Outline, layout: Layout, vitals: Vitals, look: Look) -> Columns:
    """A box for each node, with two lines of text."""
    found: Columns = {name: [] for name in ("x", "y", "name", "kind", "state", "does", "fill",
                                            "edge", "thick")}  # fmt: skip
    for part in outline.parts:
        x, y = layout.at[part.name]
        seen = vitals.operators.get(part.name, OperatorVitals())
        row = (x, y, part.name, part.kind, state(seen), part.does, look.node,
               look.feedback if seen.guards else look.line, 2 if seen.guards else 1)  # fmt: skip
        for column, value in zip(found.values(), row, strict=True):
            column.append(value)
    return found


def state(seen: OperatorVitals) -> str:
    """What an operator has, in few words."""
    guards = f"{seen.guards} guard{'s' if seen.guards > 1 else ''}"
    words = [
        f"holds {seen.held:,}" if seen.held else "",
        guards if seen.guards else "",
        f"skipped {seen.skipped:,}" if seen.skipped else "",
    ]
    return " · ".join(w for w in words if w) or "–"


def wires(outline: Outline, layout: Layout, rates: Mapping[tuple[str, int], float]) -> Columns:
    """A line for each stream, from the box that makes it down to the one that reads it."""
    found: Columns = {name: [] for name in ("x0", "y0", "x1", "y1", "xt", "yt", "rate", "text",
                                            "align", "aside", "above")}  # fmt: skip
    for maker, port, reader in outline.edges:
        (x0, y0), (x1, y1) = layout.at[maker], layout.at[reader]
        rate = rates.get((maker, port), 0.0)
        start, end = (x0, y0 - HEIGHT / 2), (x1, y1 + HEIGHT / 2)
        middle = ((start[0] + end[0]) / 2, (start[1] + end[1]) / 2)
        words = f"{rate:,.0f}/s" if rate >= 0.5 else ""
        beside = ("right", -ASIDE) if x1 < x0 else ("left", ASIDE)  # above a line that is slanted
        row = (*start, *end, *middle, rate, words, *beside, 0 if x1 == x0 else -ABOVE)
        for column, value in zip(found.values(), row, strict=True):
            column.append(value)
    return found


def returns(outline: Outline, layout: Layout, vitals: Vitals) -> Columns:
    """A curve upwards beside each stream whose both ends feedback has reached."""
    found: Columns = {name: [] for name in ("x0", "y0", "x1", "y1", "cx", "cy")}
    for maker, _, reader in outline.edges:
        ends = (vitals.operators.get(name, OperatorVitals()) for name in (maker, reader))
        if not all(seen.guards for seen in ends):
            continue
        (x1, y1), (x0, y0) = layout.at[maker], layout.at[reader]
        side = -1 if x1 < x0 else 1
        start, end = (x0 + side * 0.3, y0 + HEIGHT / 2), (x1 + side * 0.3, y1 - HEIGHT / 2)
        bend = ((start[0] + end[0]) / 2 + side * 0.12, (start[1] + end[1]) / 2)
        for column, value in zip(found.values(), (*start, *end, *bend), strict=True):
            column.append(value)
    return found


# Runs in the browser, so that dots move without a message for each step: some for each line that
# carries tuples, one for each curve. What the server knows is read, and never written.
MOVING = """
if (window.interpunctMoving) return;
window.interpunctMoving = true;
let phase = 0;
setInterval(() => {
  if (document.hidden) return;
  phase = (phase + 0.04) % 1;
  const down = {x: [], y: []}, up = {x: [], y: []};
  const w = wires.data, r = returns.data;
  for (let i = 0; i < w.x0.length; i++) {
    if (!(w.rate[i] > 0.5)) continue;
    const n = Math.min(5, 1 + Math.log10(1 + w.rate[i]));
    for (let k = 0; k < n; k++) {
      const t = (phase + k / n) % 1;
      down.x.push(w.x0[i] + t * (w.x1[i] - w.x0[i]));
      down.y.push(w.y0[i] + t * (w.y1[i] - w.y0[i]));
    }
  }
  for (let i = 0; i < r.x0.length; i++) {
    for (let k = 0; k < 2; k++) {
      const t = (phase + k / 2) % 1, u = 1 - t;
      up.x.push(u * u * r.x0[i] + 2 * u * t * r.cx[i] + t * t * r.x1[i]);
      up.y.push(u * u * r.y0[i] + 2 * u * t * r.cy[i] + t * t * r.y1[i]);
    }
  }
  for (const [source, now] of [[dots, down], [backs, up]]) {
    source.data.x = now.x;
    source.data.y = now.y;
    source.change.emit();
  }
}, 120);
"""
