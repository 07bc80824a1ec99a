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
    Label,
    Legend,
    LinearColorMapper,
    Range1d,
    ResetTool,
    SingleIntervalTicker,
    WheelZoomTool,
)
from bokeh.palettes import RdYlBu11
from bokeh.plotting import figure

from interpunct.engine.blame import Blame
from interpunct.engine.vitals import Snapshot
from interpunct.model.schema import END_OF_TIME, LAST_YEAR, START_OF_TIME
from interpunct.studio.drawing import HEIGHT, WIDTH
from interpunct.studio.look import LEFT, MIDDLE, PANEL, RIGHT, Look
from interpunct.studio.map_view import MapView

SPEEDS = list(reversed(RdYlBu11))
Cell = str | tuple[str, str] | tuple[str, str, str]


def graph_figure(sources: dict[str, ColumnDataSource], look: Look) -> figure:
    """Boxes, wires, feedback and dots from the columns of `drawing`."""
    plot = figure(width=LEFT, height=430, title="the query: data down, feedback up", tools="",
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
    plot.text("xt", "yt", text="text", source=sources["wires"], x_offset="aside", y_offset="above",
              text_align="align", text_font_size="11px", **words)  # fmt: skip
    plot.add_tools(HoverTool(renderers=[box], tooltips=[("@name", "@kind"), ("does", "@does")]))
    return plot


def map_figure(view: MapView, cells: ColumnDataSource) -> figure:
    """Places over time. Dragging over some places zooms into them."""
    low, high = view.span
    scale = f"{view.value} by {view.place}, red {low:g} to blue {high:g}"
    plot = figure(width=MIDDLE, height=320, x_axis_type="datetime", tools="",
                  title=f"{scale}: drag to zoom",
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
    _wait(plot, "waiting for the first results …")
    return plot


def line_figure(title: str, height: int, width: int = RIGHT, *, legend: bool = False,
                waits: str = "waiting for the first batch …") -> figure:  # fmt: skip
    """Something over the last minutes; `waits` is said as long as there is nothing."""
    plot = figure(width=width, height=height, title=title, x_axis_type="datetime", tools="",
                  toolbar_location=None, x_range=Range1d(0, 1), y_range=Range1d(0, 1),
                  min_border_right=26, stylesheets=[PANEL])  # fmt: skip
    plot.xaxis.formatter = _clock()
    plot.xaxis.ticker.desired_num_ticks = max(3, width // 120)
    plot.yaxis.ticker.desired_num_ticks = max(3, height // 40)
    if legend:  # above, where no line runs through it
        plot.add_layout(Legend(orientation="horizontal", location="left", margin=0, spacing=12),
                        "above")  # fmt: skip
    _wait(plot, waits)
    return plot


def follow(plot: figure, start: float, end: float, points: Iterable[tuple[float, float]]) -> None:
    """Show this stretch of time, as high as what can be seen of it."""
    plot.x_range.start, plot.x_range.end = start, end
    seen = [value for at, value in points if at >= start]
    plot.y_range.end = 1.1 * max(seen, default=0) or 1
    waiting(plot).visible = not seen


def waiting(plot: figure) -> Label:
    """What is said in a figure that has nothing to show."""
    label = plot.select_one({"type": Label})
    assert isinstance(label, Label)
    return label


def _wait(plot: figure, text: str) -> None:
    plot.add_layout(Label(x=plot.width // 2 - 36, y=plot.height // 2 - 36, x_units="screen",
                          y_units="screen", text=text, text_align="center",
                          text_baseline="middle"))  # fmt: skip


def _clock() -> DatetimeTickFormatter:
    return DatetimeTickFormatter(
        seconds="%H:%M:%S", minsec="%H:%M:%S", minutes="%H:%M:%S", hourmin="%H:%M"
    )


def rows_of(head: Sequence[str], rows: Iterable[Sequence[Cell]], numbers: set[int]) -> str:
    """A table as HTML; a cell may come with its class, and with what is said of it to whoever
    points at it."""
    marks = ["n" if at in numbers else "" for at in range(len(head))]
    text = "".join(
        f'<th class="{m}">{html.escape(h)}</th>' for h, m in zip(head, marks, strict=True)
    )
    lines = [f"<tr>{text}</tr>"]
    for row in rows:
        cells = []
        for cell, mark in zip(row, marks, strict=True):
            said, kind, *more = cell if isinstance(cell, tuple) else (cell, "")
            shown, told = html.escape(said), html.escape("".join(more) or said)
            cells.append(f'<td class="{mark} {kind}" title="{told}">{shown}</td>')
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return f"<table>{''.join(lines)}</table>"


def operators_table(snapshot: Snapshot) -> str:
    """What each operator holds, its guards, what feedback spared it."""
    rows: list[Sequence[Cell]] = [
        (
            name, f"{seen.held:,}", (f"{seen.guards}", "up" if seen.guards else ""),
            (f"{seen.skipped:,}", "up" if seen.skipped else ""), f"{snapshot.put_out(name):,}",
        )
        for name, seen in snapshot.vitals.operators.items()
    ]  # fmt: skip
    head = ("operator", "holds", "guards", "skipped", "put out")
    return f"<h2>operators</h2>{rows_of(head, rows, {1, 2, 3, 4})}"


def sources_table(snapshot: Snapshot, about: str = "") -> str:
    """Heartbeat, lateness and quiet of each source; `about` is said below where some are late."""
    rows: list[Sequence[Cell]] = []
    for name, seen in snapshot.vitals.sources.items():
        behind = "–"
        if seen.reached is not None and seen.clocked:
            behind = f"{max(snapshot.at - seen.reached, 0) / 1e6:.1f} s"
        ago = "never" if seen.heard is None else f"{max(snapshot.at - seen.heard, 0) / 1e6:.1f} s"
        late = (f"{seen.late:,}", "bad" if seen.late else "")
        beat = "–" if seen.reached is None else moment(seen.reached, seen.clocked)
        rows.append((name, beat, behind, ago, late))
    head = ("source", "heartbeat", "behind", "heard ago", "late")
    some = any(seen.late for seen in snapshot.vitals.sources.values())
    below = f'<p class="faint" id="about">{html.escape(about)}</p>' if some and about else ""
    return f"<h2>sources</h2>{rows_of(head, rows, {1, 2, 3, 4})}{below}"


def blame_table(snapshot: Snapshot) -> str:
    """Who holds tuples back because of whom; who holds nothing has nothing to wait with."""
    rows = [_waits(line) for line in snapshot.vitals.waiting if line.holds]
    head = ("operator", "waits for", "to reach", "behind", "holds")
    calm = '<span class="good">Nobody is waited for.</span>'
    if not snapshot.begun:
        calm = '<span class="faint">Starting: no batch has come to its end yet.</span>'
    body = rows_of(head, rows, {2, 3, 4}) if rows else calm
    return f"<h2>who is to blame</h2>{body}"


def _waits(line: Blame) -> Sequence[Cell]:
    """One line of blame; what would release it is told to whoever points at it."""
    behind = "–" if line.behind is None else _length(line.behind, line.clocked)
    end = LAST_YEAR if line.clocked else END_OF_TIME
    until = "its end" if line.wanted >= end else "–"
    if START_OF_TIME < line.wanted < end:
        until = moment(line.wanted, line.clocked)
    told = f"released by {line.release}"
    return (line.operator, (line.source, "bad", told), (until, "", told), behind, f"{line.holds:,}")


def moment(ticks: int, clocked: bool) -> str:
    """A time of the clock, or of whatever time it is."""
    return f"{datetime.fromtimestamp(ticks / 1e6, UTC):%H:%M:%S}" if clocked else str(ticks)


def _length(ticks: int, clocked: bool) -> str:
    return f"{ticks / 1e6:.1f} s" if clocked else str(ticks)
