"""The merge: how far each input and the output have come, who leads, and what a stop changes."""

from __future__ import annotations

import html
from collections.abc import Sequence

from bokeh.layouts import column, row
from bokeh.models import Button, ColumnDataSource, Div, InlineStyleSheet

from interpunct.engine.merge_vitals import InputVitals, MergeVitals
from interpunct.operators.lmerge_base import JOINED, QUARANTINED
from interpunct.studio.look import BOXED, CONTROL, GAP, WIDE, Look
from interpunct.studio.merging import OUT, Merging
from interpunct.studio.panels import Cell, follow, line_figure, moment, rows_of, waiting
from interpunct.studio.replicas import Bench

SPAN = 90_000  # milliseconds shown
MOST_LINES = 9  # inputs that are drawn; all are in the table
STATE = 450  # pixels of what is told beside the plot
TITLE = "seconds behind the clock: inputs, and what comes out"


class MergePanel:
    """`bench` is there where the page may stop and start the inputs, if its reader may at all."""

    def __init__(self, merging: Merging, bench: Bench | None, allowed: bool, look: Look) -> None:
        self.merging, self.bench, self.allowed, self.look = merging, bench, allowed, look
        self.lines: dict[str, ColumnDataSource] = {}
        self.plot = line_figure(TITLE, 560, WIDE - STATE - GAP, legend=True)
        waiting(self.plot).text_font_size = "15px"
        self._add_line(OUT)
        self.state = Div(text="", width=STATE, name="merge-state",
                         stylesheets=[InlineStyleSheet(css=BOXED)])  # fmt: skip
        self.toggles, self.lies = self._buttons()
        buttons = [*self.toggles.values(), *self.lies.values()]
        self.root = row(self.plot, column(row(*buttons), self.state))
        self.update()

    def _buttons(self) -> tuple[dict[str, Button], dict[str, Button]]:
        """For each replica one that stops or starts it, and one that makes it lie."""
        sheets = [InlineStyleSheet(css=CONTROL)]
        toggles, lies = {}, {}
        for name in [] if self.bench is None else self.bench.names:
            toggles[name] = Button(label=f"stop {name}", width=116, stylesheets=sheets)
            toggles[name].on_click(lambda n=name: self._toggle(n))
            lies[name] = Button(label=f"let {name} lie", width=92, stylesheets=sheets)
            lies[name].on_click(lambda n=name: self._lie(n))
        return toggles, lies

    # What is done on it -------------------------------------------------------------------------

    def opened(self) -> None:
        """Someone looks: the replicas of a demonstration run from then on."""
        if self.bench is not None and self.allowed:
            self.bench.begin()

    def _toggle(self, name: str) -> None:
        if self.bench is not None and self._may:
            self.bench.toggle(name)

    def _lie(self, name: str) -> None:
        if self.bench is not None and self._may and self.bench.believed(name):
            self.bench.lie(name)

    @property
    def _may(self) -> bool:
        """Whether whoever looks may act, and nothing else is being done."""
        bench = self.bench
        return bench is not None and self.allowed and bench.begun and not bench.doing

    # What is drawn ------------------------------------------------------------------------------

    def update(self) -> None:
        """As the merge is now."""
        for name, button in self.toggles.items():
            button.label, button.disabled = self._label(name), not self._may
        for name, button in self.lies.items():
            believed = self.bench is not None and self.bench.believed(name)
            button.disabled = not (self._may and believed)
        waiting(self.plot).text = self._waits()
        if self.merging.now is not None and self.merging.now.inputs:
            self._draw(self.merging.now)
        else:
            at = (self.merging.at if self.bench is None else self.bench.clock.now()) / 1000
            follow(self.plot, at - SPAN, at, [])
        self.state.text = self._text()

    def _label(self, name: str) -> str:
        assert self.bench is not None
        if self.bench.quarantined(name):
            return f"start {name} anew"
        return f"{'stop' if name in self.bench.running else 'start'} {name}"

    def _waits(self) -> str:
        """What is said as long as there is nothing to draw."""
        if self.bench is None or not self.bench.begun:
            return "waiting for the first batch of the merge …"
        return f"Starting two replicas and their merge: about a minute.\n\n{self.bench.step}"

    def _draw(self, merge: MergeVitals) -> None:
        if not merge.clocked:
            self.plot.title.text = "ticks behind the furthest: inputs, and what comes out"
        drawn: list[tuple[float, float]] = []
        for name in [*list(merge.inputs)[:MOST_LINES], OUT]:
            if name not in self.lines:
                self._add_line(name)
            points = [(m["at"], m[name]) for m in self.merging.moments if name in m]
            self.lines[name].data = {"at": [p[0] for p in points], "s": [p[1] for p in points]}
            drawn += points
        at = self.merging.at / 1000
        follow(self.plot, at - SPAN, at, drawn)

    def _add_line(self, name: str) -> None:
        """What comes out first, broad and under the others; then each input."""
        out = name == OUT
        painted = "text" if out else f"series{(len(self.lines) - 1) % 5}"
        self.lines[name] = ColumnDataSource({"at": [], "s": []})
        self.plot.line("at", "s", source=self.lines[name], legend_label=name, name=painted,
                       line_width=6 if out else 2, line_alpha=0.4 if out else 1,
                       line_color=self.look.colour(painted),
                       level="underlay" if out else "glyph")  # fmt: skip

    def _text(self) -> str:
        merge, bench = self.merging.now, self.bench
        parts = []
        if merge is None:
            parts.append("<h2>logical merge on Spark</h2>")
        else:
            head = ("input", "", "status", "stable", "behind")
            rows = [self._row(merge, name, seen) for name, seen in merge.inputs.items()]
            leader = html.escape(merge.leader or "nobody")
            parts += [f"<h2>logical merge {merge.variant} of {len(rows)} inputs</h2>",
                      rows_of(head, rows, {3, 4}),
                      f'<p>Leader: <b class="up" id="leader">{leader}</b></p>']  # fmt: skip
            parts += [f'<p class="bad">{html.escape(n)}: {html.escape(s.why)}</p>'
                      for n, s in merge.inputs.items() if s.why]  # fmt: skip
        if bench is not None:
            parts += self._of(bench)
        events = "<br>".join(html.escape(e) for e in reversed(self.merging.events))
        return f'{"".join(parts)}<p class="faint">{events}</p>'

    def _row(self, merge: MergeVitals, name: str, seen: InputVitals) -> Sequence[Cell]:
        kind = {QUARANTINED: "bad", JOINED: ""}.get(seen.status, "up")
        behind = self.merging.behind(seen.stable)
        shown = "–" if behind is None else f"{behind:.1f} s" if merge.clocked else f"{behind:g}"
        stopped = self.bench is not None and name not in self.bench.running
        leads = ("leads", "up") if name == merge.leader else ""
        status = f"{seen.status}, its query is stopped" if stopped else seen.status
        return (name, leads, (status, kind), self._moment(merge, seen.stable), shown)

    def _moment(self, merge: MergeVitals, stable: int) -> str:
        if self.merging.behind(stable) is None:
            return "∞" if self.merging.ended(stable) else "–"
        return moment(stable, merge.clocked)

    def _of(self, bench: Bench) -> list[str]:
        """What a demonstration's table has, and what is being done."""
        checked, said = bench.checked, []
        if not bench.begun:
            said.append("<p>Not running: it is started by whoever may act and opens this tab.</p>")
        elif self.merging.now is not None:
            wrong = "bad" if checked.missing or checked.doubled else "good"
            said.append(
                f'<p>Final rows in the merged table: <b id="out">{checked.rows:,}</b>, '
                f'<span class="{wrong}">missing <b id="missing">{checked.missing:,}</b>, '
                f'doubled <b id="doubled">{checked.doubled:,}</b></span>.</p>'
            )
        if bench.doing:
            said.append(f'<p class="up" id="doing">{html.escape(bench.doing)} …</p>')
        if bench.trouble:
            said.append(f'<p class="bad">{html.escape(bench.trouble)}</p>')
        return said
