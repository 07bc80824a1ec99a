"""The page of one person: drawn from the room twice a second, and what is done on it."""

from __future__ import annotations

import html
import re
from typing import Any

import polars as pl
from bokeh.core.templates import get_env
from bokeh.document import Document
from bokeh.events import DocumentReady, RangesUpdate, Reset
from bokeh.layouts import column, row
from bokeh.models import (
    Button,
    ColumnDataSource,
    CustomJS,
    Div,
    GlyphRenderer,
    InlineStyleSheet,
    TabPanel,
    Tabs,
    TextInput,
)

from interpunct.studio import drawing, panels
from interpunct.studio.history import at_sources
from interpunct.studio.look import (
    BOXED,
    CONTROL,
    GAP,
    LEFT,
    LIGHT,
    LOOKS,
    MIDDLE,
    PAGE,
    RIGHT,
    SCROLLED,
    TEXT,
    WIDE,
    Look,
)
from interpunct.studio.map_view import MapView
from interpunct.studio.merge_panel import MergePanel
from interpunct.studio.room import EVERY, Room

SPAN = 120_000  # milliseconds that lines show
RESULTS = "results"
OF_RESULTS, OF_SOURCES = 2, (0, 1, 3, 4)  # their colours, of the look's series
DAY = re.compile(r"'\d{4}-\d\d-\d\d (\d\d:\d\d:\d\d)[^']*'")  # of which only the time is shown


class Page:
    """`who` is the session; `allowed` whether it may act on the query."""

    def __init__(self, room: Room, document: Document, who: str, allowed: bool, look: str) -> None:
        self.room, self.document, self.who, self.allowed = room, document, who, allowed
        self.look = LOOKS.get(look, LIGHT)
        names = ("boxes", "wires", "returns", "dots", "backs", "work", "batches")
        self.data = {name: ColumnDataSource(name=name) for name in names}
        self.data["dots"].data = {"x": [], "y": []}
        self.data["backs"].data = {"x": [], "y": []}
        self.data["work"].data = {"at": [], "came": [], "skipped": []}
        self.data["batches"].data = {"at": [], "ms": []}
        self.lines: dict[str, ColumnDataSource] = {}
        self.head, self.note = self._div("head", TEXT, WIDE - 90), self._div("note", BOXED, MIDDLE)
        self.operators = self._div("operators", BOXED, LEFT)
        self.sources = self._div("sources", BOXED, RIGHT)
        self.blame = self._div("blame", BOXED + SCROLLED, RIGHT, 118)
        self._figures()
        self._controls()
        self._compose()

    # What there is ------------------------------------------------------------------------------

    def _div(self, name: str, sheet: str, width: int, height: int | None = None) -> Div:
        return Div(text="", name=name, width=width, height=height, margin=0,
                   stylesheets=[InlineStyleSheet(css=sheet)])  # fmt: skip

    def _figures(self) -> None:
        self._draw_graph()
        self.graph = panels.graph_figure(self.data, self.look)
        self.cells = ColumnDataSource({"x": [], "y": [], "value": []}, name="cells")
        self.maps = [(v, panels.map_figure(v, self.cells)) for v in self.room.views[:1]]
        for view, plot in self.maps:
            view.zoom.look(self.who, None)  # whoever comes wants to see everything at first
            plot.on_event(RangesUpdate, lambda event, v=view: self._zoomed(v, event.y0, event.y1))
            plot.on_event(Reset, lambda _, v=view: self._zoomed(v, None, None))
        self.behind = panels.line_figure("seconds behind the clock", 200, legend=True)
        self._add_line(RESULTS)
        self.taken = panels.line_figure("tuples a second", 178, MIDDLE, legend=True)
        self.taken.varea("at", 0, "came", source=self.data["work"], fill_color=self.look.data,
                         fill_alpha=0.35, legend_label="came", name="data")  # fmt: skip
        self.taken.varea("at", 0, "skipped", source=self.data["work"], fill_alpha=0.55,
                         fill_color=self.look.feedback, legend_label="skipped at the sources",
                         name="feedback")  # fmt: skip
        self.latency = panels.line_figure("milliseconds a batch", 132,
                                          waits="waiting for the second batch …")  # fmt: skip
        self.latency.step("at", "ms", source=self.data["batches"], mode="before",
                          line_color=self.look.data, line_width=1.5, name="data")  # fmt: skip

    def _controls(self) -> None:
        sheet = [InlineStyleSheet(css=CONTROL)]
        self.toggle = Button(label="dark" if self.look is LIGHT else "light", width=64,
                             name="look", stylesheets=sheet)  # fmt: skip
        self.toggle.on_click(self._switch)
        self.all = Button(label="show all", width=70, name="all", stylesheets=sheet)
        self.all.on_click(self._show_all)
        sinks = self._sinks()
        example = "~[segment ≠ 3]"
        self.words = TextInput(placeholder=f"feedback: {example}", width=170, name="words",
                               stylesheets=sheet)  # fmt: skip
        self.sink = TextInput(value=sinks[0] if sinks else "", prefix="sink", width=92,
                              name="sink", stylesheets=sheet)  # fmt: skip
        self.send = Button(label="send for 30 s", width=92, name="send", stylesheets=sheet)
        self.send.on_click(self._said)

    def _sinks(self) -> list[str]:
        now = self.room.history.now
        return [] if now is None or now.outline is None else now.outline.sinks

    def _compose(self) -> None:
        middle: list[Any] = [plot for _, plot in self.maps]
        said = [*([self.all] if self.maps else []), self.sink, self.words, self.send]
        middle += [self.note, row(*said), self.taken]
        query = row(
            column(self.graph, self.operators, spacing=GAP),
            column(*middle, spacing=GAP),
            column(self.behind, self.blame, self.sources, self.latency, spacing=GAP),
            spacing=GAP, margin=(6, 0, 0, 0),
        )  # fmt: skip
        tabs = self._tabs(query)
        document = self.document
        document.add_root(column(row(self.head, self.toggle), tabs))
        document.title = "interpunct studio"
        document.template = get_env().from_string(PAGE)
        document.theme = self.look.theme()
        self._browser()
        self.update()
        document.add_periodic_callback(self.update, EVERY)

    def _tabs(self, query: Any) -> Tabs:
        """The query, the merge, or both: a query that is nothing but a merge has no graph."""
        now, room = self.room.history.now, self.room
        alone = room.bench is None and now is not None and now.merge is not None
        shown = [] if alone else [TabPanel(child=query, title="query")]
        self.merge = None
        if room.merging is not None:
            self.merge = MergePanel(room.merging, room.bench, self.allowed, self.look)
            shown.append(TabPanel(child=self.merge.root, title="merge"))
        tabs = Tabs(tabs=shown, stylesheets=[InlineStyleSheet(css=CONTROL)], name="tabs")
        tabs.on_change("active", self._turned)
        return tabs

    def _browser(self) -> None:
        """What happens in the browser alone: dots that move, and the colours of the page."""
        sources = {n: self.data[n] for n in ("wires", "returns", "dots", "backs")}
        self.document.js_on_event(DocumentReady, CustomJS(args=sources, code=drawing.MOVING))
        paint = "document.documentElement.dataset.look = "
        first = CustomJS(code=f"{paint}{self.look.name!r}")
        self.document.js_on_event(DocumentReady, first)
        self.toggle.js_on_click(CustomJS(args={"button": self.toggle}, code=f"{paint}button.label"))

    # What is done on it -------------------------------------------------------------------------

    def _switch(self) -> None:
        """From light to dark, or back."""
        self.look = LOOKS[self.toggle.label]
        self.toggle.label = "dark" if self.look is LIGHT else "light"
        self.document.theme = self.look.theme()
        drawn = [self.graph, self.behind, self.taken, self.latency]
        for plot in drawn if self.merge is None else [*drawn, self.merge.plot]:
            for renderer in plot.renderers:
                _paint(renderer, self.look)
        self.update()

    def _turned(self, name: str, before: int, tab: int) -> None:
        """Someone has turned to another tab; the merge is the second."""
        del name, before
        if tab == 1 and self.merge is not None:
            self.merge.opened()

    def _zoomed(self, view: MapView, low: float | None, high: float | None) -> None:
        wanted = None if low is None or high is None else view.visible(low, high)
        if wanted is not None and not self.allowed:
            self.room.trouble = REFUSED
            return
        self.room.trouble = ""
        view.zoom.look(self.who, wanted)

    def _show_all(self) -> None:
        for view, plot in self.maps:
            low, high = view.places or (0, 8)
            plot.y_range.start, plot.y_range.end = low - 0.5, high + 0.5
            self._zoomed(view, None, None)

    def _said(self) -> None:
        """Someone has written feedback."""
        if not self.allowed:
            self.room.trouble = REFUSED
        elif self.words.value.strip():
            self.room.send(self.sink.value.strip(), self.words.value.strip(), "30s")

    def gone(self) -> None:
        self.room.leave(self.who)

    # What is drawn ------------------------------------------------------------------------------

    def update(self) -> None:
        """Everything as it is in the room now."""
        now = self.room.history.now
        self.head.text = self._headline()
        self.note.text = self._notes()
        if self.merge is not None:
            self.merge.update()
        at = (self.room.clock.now() if now is None else now.at) / 1000
        self._draw_lines(at)
        for view, plot in self.maps:
            self._draw_map(view, plot, at)
        if now is None:
            return
        self._draw_graph()
        self.operators.text = panels.operators_table(now)
        self.sources.text = panels.sources_table(now, self.room.about)
        self.blame.text = panels.blame_table(now)

    def _draw_graph(self) -> None:
        now = self.room.history.now
        outline = None if now is None else now.outline
        if now is None or outline is None:
            return
        layout = drawing.Layout.of(outline)
        self.data["boxes"].data = drawing.boxes(outline, layout, now.vitals, self.look)
        self.data["wires"].data = drawing.wires(outline, layout, self.room.history.rates())
        self.data["returns"].data = drawing.returns(outline, layout, now.vitals)
        if hasattr(self, "graph"):
            self.graph.x_range.end, self.graph.y_range.end = layout.columns, layout.rows

    def _draw_map(self, view: MapView, plot: Any, now: float) -> None:
        shown = view.shown()
        if not shown.height or view.places is None:
            plot.x_range.start, plot.x_range.end = now - view.keep / 1000, now
            return
        panels.waiting(plot).visible = False
        middle = (pl.col("at") + view.width // 2) / 1000
        cells = shown.select(middle.alias("x"), pl.col("place").alias("y"), "value")
        self.cells.data = {name: cells[name].to_numpy() for name in cells.columns}
        last = float(shown["at"].max()) / 1000 + view.width / 1000  # type: ignore[arg-type]
        first = last - view.keep / 1000
        for name, value in (("start", first), ("end", last)):
            setattr(plot.x_range, name, value)
            setattr(plot.x_range, f"reset_{name}", value)
        low, high = view.places[0] - 0.5, view.places[1] + 0.5
        whole = view.zoom.looks.get(self.who) is None
        if (plot.y_range.reset_start, plot.y_range.reset_end) != (low, high):
            plot.y_range.reset_start, plot.y_range.reset_end = low, high
            if whole:
                plot.y_range.start, plot.y_range.end = low, high

    def _draw_lines(self, now: float) -> None:
        behind, batches = self.room.history.behind(), self.room.history.batches()
        for name, points in behind.items():
            if name not in self.lines:
                self._add_line(name)
            self.lines[name].data = {"at": [p[0] for p in points], "s": [p[1] for p in points]}
        work = self.room.history.work()
        self.data["work"].data = work
        self.data["batches"].data = {"at": [b[0] for b in batches], "ms": [b[1] for b in batches]}
        panels.follow(self.behind, now - SPAN, now, (p for ps in behind.values() for p in ps))
        tall = [max(two) for two in zip(work["came"], work["skipped"], strict=True)]
        come = zip(work["at"], tall, strict=True) if any(tall) else ()
        panels.follow(self.taken, now - SPAN, now, come)
        panels.follow(self.latency, now - SPAN, now, batches)

    def _add_line(self, name: str) -> None:
        """To the seconds behind: the results first and dashed, then each source."""
        first = name == RESULTS
        number = OF_RESULTS if first else OF_SOURCES[(len(self.lines) - 1) % len(OF_SOURCES)]
        self.lines[name] = ColumnDataSource({"at": [], "s": []})
        self.behind.line("at", "s", source=self.lines[name], legend_label=name, line_width=2,
                         line_color=self.look.series[number], name=f"series{number}",
                         line_dash="dashed" if first else "solid")  # fmt: skip

    def _headline(self) -> str:
        now = self.room.history.now
        if now is None:
            return '<div class="chips"><h1>interpunct studio</h1>waiting for the query …</div>'
        merges = now.outline is None and now.merge is not None
        name = "logical merge" if merges else "?" if now.outline is None else now.outline.flow
        chips = [f"<h1>interpunct · {html.escape(name)}</h1>"]
        if now.query is not None:
            chips += [_chip("batch", f"{now.query.batches:,}", "batches"),
                      _chip("took", f"{now.query.seconds * 1000:.0f} ms", "took")]  # fmt: skip
            if not now.query.running:
                ended = "not heard of: killed?" if now.query.silent else "has ended"
                chips.append(f'<span class="bad" id="ended">{ended}</span>')
        lag = "–" if now.lag is None else f"{now.lag / 1e6:.1f} s"
        if merges:  # what it makes is told by its panel
            return f'<div class="chips">{"".join([*chips, _chip("out behind", lag, "lag")])}</div>'
        chips += [_chip("rows", f"{now.rows:,}", "rows"), _chip("results behind", lag, "lag")]
        late = sum(s.late for s in now.vitals.sources.values())
        chips += [_chip("late", f"{late:,}", "late", "bad" if late else ""),
                  _chip("skipped", f"{at_sources(now):,}", "skipped", "up")]  # fmt: skip
        return f'<div class="chips">{"".join(chips)}</div>'

    def _notes(self) -> str:
        """What was said upstream, and what went wrong."""
        lines = []
        for view, _ in self.maps:
            wanted = view.zoom.wanted
            seen = f"{view.place}s {_list(wanted)}" if wanted is not None else "everything"
            lines.append(f'<div id="wanted">Wanted on the map: <b>{html.escape(seen)}</b></div>')
        force, holds = self.room.in_force(), "nothing is in force any more"
        if self.room.said or force:
            if force:
                told = (html.escape(DAY.sub(r"\1", str(said))) for said in force)
                holds = "in force: " + ", ".join(f'<code class="up">{t}</code>' for t in told)
            times = "time" if self.room.sent == 1 else "times"
            sent = f'<b class="up" id="sent">{self.room.sent}</b> {times}'
            lines.append(f"<div>Said upstream from here {sent}; {holds}</div>")
        if not self.allowed:
            lines.append(f'<div class="faint" id="looking">{REFUSED}</div>')
        for wrong in (self.room.trouble, self.room.unseen):
            if wrong and wrong != REFUSED:
                lines.append(f'<div class="bad" id="trouble">{html.escape(wrong)}</div>')
        return "".join(lines) or '<span class="faint">Nothing has been said upstream.</span>'


REFUSED = "You may look. To act on the query, open the page with ?token=…"


def _paint(renderer: GlyphRenderer, look: Look) -> None:
    """What does not follow the theme: the colours of data, feedback and words."""
    colour = look.colour(renderer.name)
    for name in ("line_color", "fill_color", "text_color"):
        if colour is not None and hasattr(renderer.glyph, name):
            setattr(renderer.glyph, name, colour)


def _chip(label: str, value: str, name: str, kind: str = "") -> str:
    return f'<span class="chip {kind}">{label} <b id="{name}">{value}</b></span>'


def _list(values: frozenset[int]) -> str:
    return ", ".join(map(str, sorted(values))) or "none"
