"""The panels of the page: figures that Bokeh draws, and tables as text. They hold no truth."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from bokeh.models import (
    BoxZoomTool,
    ColumnDataSource,
    DatetimeTickFormatter,
    HoverTool,
    LinearColorMapper,
    Range1d,
    ResetTool,
    SingleIntervalTicker,
    WheelZoomTool,
)
from bokeh.palettes import RdYlBu11
from bokeh.plotting import figure

from interpunct.engine.vitals import Snapshot
from interpunct.studio.drawing import HEIGHT, WIDTH
from interpunct.studio.look import PANEL, Look
from interpunct.studio.map_view import MapView

SPEEDS = list(reversed(RdYlBu11))


def graph_figure(sources: dict[str, ColumnDataSource], look: Look) -> figure:
    """Boxes, wires, feedback and dots from the columns of `drawing`."""
    plot = figure(width=424, height=430, title="the query: data down, feedback up", tools="",
                  toolbar_location=None, x_range=Range1d(0, 2), y_range=Range1d(0, 5),
                  stylesheets=[PANEL])  # fmt: skip
    plot.axis.visible = False
    plot.grid.visible = False
    line = plot.segment("x0", "y0", "x1", "y1", source=sources["wires"], line_width=2,
                        line_color=look.data, line_alpha=0.35)  # fmt: skip
    back = plot.quadratic("x0", "y0", "x1", "y1", "cx", "cy", source=sources["returns"],
                          line_width=2, line_dash="dashed", line_color=look.feedback)  # fmt: skip
    down = plot.scatter("x", "y", source=sources["dots"], size=6, color=look.data)
    up = plot.scatter("x", "y", source=sources["backs"], size=8, marker="triangle",
                      color=look.feedback)  # fmt: skip
    for renderer, name in ((line, "data"), (down, "data"), (back, "feedback"), (up, "feedback")):
        renderer.name = name
    box = plot.rect("x", "y", WIDTH, HEIGHT, source=sources["boxes"], fill_color="fill",
                    line_color="edge", line_width="thick", border_radius=6)  # fmt: skip
    words = {"text_color": look.text, "name": "text", "text_baseline": "middle"}
    centred = {"text_align": "center", "source": sources["boxes"], **words}
    plot.text("x", "y", text="name", y_offset=-11, text_font_size="13px",
              text_font_style="bold", **centred)  # fmt: skip
    plot.text("x", "y", text="kind", y_offset=3, text_font_size="10px", text_alpha=0.65, **centred)
    plot.text("x", "y", text="state", y_offset=16, text_font_size="11px", **centred)
    plot.text("xt", "yt", text="text", source=sources["wires"], x_offset=9, text_font_size="11px",
              **words)  # fmt: skip
    plot.add_tools(HoverTool(renderers=[box], tooltips=[("@name", "@kind"), ("does", "@does")]))
    return plot


def map_figure(view: MapView, cells: ColumnDataSource) -> figure:
    """Places over time. Dragging over some places zooms into them."""
    low, high = view.span
    scale = f"{view.value} by {view.place}, red {low:g} to blue {high:g}"
    plot = figure(width=500, height=320, x_axis_type="datetime", tools="",
                  title=f"{scale}: drag up or down to zoom in",
                  x_range=Range1d(0, 1), y_range=Range1d(-0.5, 8.5), toolbar_location="right",
                  stylesheets=[PANEL], name=f"map-{view.sink}")  # fmt: skip
    zoom, wheel = BoxZoomTool(dimensions="height"), WheelZoomTool(dimensions="height")
    plot.add_tools(zoom, wheel, ResetTool())
    plot.toolbar.active_drag = zoom
    plot.toolbar.logo = None
    mapper = LinearColorMapper(palette=SPEEDS, low=low, high=high)
    cell = plot.rect("x", "y", width=view.width / 1000, height=0.94, source=cells, line_color=None,
                     fill_color={"field": "value", "transform": mapper})  # fmt: skip
    tips = [(view.place, "@y"), (view.value, "@value{0.0}"), (view.time, "@x{%H:%M:%S}")]
    plot.add_tools(HoverTool(renderers=[cell], tooltips=tips, formatters={"@x": "datetime"},
                             visible=False))  # fmt: skip
    plot.xaxis.formatter = _clock()
    plot.yaxis.axis_label = view.place
    plot.yaxis.ticker = SingleIntervalTicker(interval=1, num_minor_ticks=0)
    plot.grid.visible = False
    return plot


def line_figure(title: str, height: int, width: int = 386) -> figure:
    """Something over the last minutes."""
    plot = figure(width=width, height=height, title=title, x_axis_type="datetime", tools="",
                  toolbar_location=None, stylesheets=[PANEL])  # fmt: skip
    plot.xaxis.formatter = _clock()
    plot.xaxis.ticker.desired_num_ticks = 5
    plot.y_range.start = 0
    plot.y_range.range_padding = 0.3  # room for the legend above the lines
    return plot


def _clock() -> DatetimeTickFormatter:
    return DatetimeTickFormatter(
        seconds="%H:%M:%S", minsec="%H:%M:%S", minutes="%H:%M:%S", hourmin="%H:%M"
    )


def rows_of(
    head: Sequence[str], rows: Iterable[Sequence[str | tuple[str, str]]], numbers: set[int]
) -> str:
    """A table as HTML; a cell may come with its class."""
    marks = ["n" if at in numbers else "" for at in range(len(head))]
    text = "".join(
        f'<th class="{m}">{html.escape(h)}</th>' for h, m in zip(head, marks, strict=True)
    )
    lines = [f"<tr>{text}</tr>"]
    for row in rows:
        cells = []
        for cell, mark in zip(row, marks, strict=True):
            said, kind = cell if isinstance(cell, tuple) else (cell, "")
            shown = html.escape(said)
            cells.append(f'<td class="{mark} {kind}" title="{shown}">{shown}</td>')
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return f"<table>{''.join(lines)}</table>"


def operators_table(snapshot: Snapshot) -> str:
    """What each operator holds, its guards, what feedback spared it."""
    rows: list[Sequence[str | tuple[str, str]]] = [
        (
            name, f"{seen.held:,}", (f"{seen.guards}", "up" if seen.guards else ""),
            (f"{seen.skipped:,}", "up" if seen.skipped else ""), f"{snapshot.put_out(name):,}",
        )
        for name, seen in snapshot.vitals.operators.items()
    ]  # fmt: skip
    head = ("operator", "holds", "guards", "skipped", "put out")
    return f"<h2>operators</h2>{rows_of(head, rows, {1, 2, 3, 4})}"


def sources_table(snapshot: Snapshot) -> str:
    """Heartbeat, lateness and quiet of each source."""
    rows: list[Sequence[str | tuple[str, str]]] = []
    for name, seen in snapshot.vitals.sources.items():
        behind = "–"
        if seen.reached is not None and seen.clocked:
            behind = f"{max(snapshot.at - seen.reached, 0) / 1e6:.1f} s"
        ago = "never" if seen.heard is None else f"{max(snapshot.at - seen.heard, 0) / 1e6:.1f} s"
        late = (f"{seen.late:,}", "bad" if seen.late else "")
        beat = "–" if seen.reached is None else moment(seen.reached, seen.clocked)
        rows.append((name, beat, behind, ago, late))
    head = ("source", "heartbeat", "behind", "heard ago", "late")
    return f"<h2>sources</h2>{rows_of(head, rows, {1, 2, 3, 4})}"


def blame_table(snapshot: Snapshot) -> str:
    """Who waits for whom, and what would help."""
    rows: list[Sequence[str | tuple[str, str]]] = []
    for line in snapshot.vitals.waiting:
        behind = "–" if line.behind is None else _length(line.behind, line.clocked)
        rows.append((line.operator, (line.source, "bad" if line.holds else ""), f"{line.holds:,}",
                     behind, (line.release, "wide")))  # fmt: skip
    head = ("operator", "waits for", "holds", "behind", "released by")
    calm = '<span class="good">Nothing waits.</span>'
    if not snapshot.begun:
        calm = '<span class="faint">Starting: no batch has come to its end yet.</span>'
    body = rows_of(head, rows, {2, 3}) if rows else calm
    return f"<h2>who is to blame</h2>{body}"


def moment(ticks: int, clocked: bool) -> str:
    """A time of the clock, or of whatever time it is."""
    return f"{datetime.fromtimestamp(ticks / 1e6, UTC):%H:%M:%S}" if clocked else str(ticks)


def _length(ticks: int, clocked: bool) -> str:
    return f"{ticks / 1e6:.1f} s" if clocked else str(ticks)
