"""The merge: how far each replica and the output have come, who leads, and what a stop changes."""

from __future__ import annotations

import html
from collections.abc import Sequence

from bokeh.layouts import column, row
from bokeh.models import Button, ColumnDataSource, Div, InlineStyleSheet, Range1d

from interpunct.studio.look import BOXED, CONTROL, Look
from interpunct.studio.merging import Merging, Replica
from interpunct.studio.panels import line_figure, rows_of

SPAN = 90_000  # milliseconds shown


class MergePanel:
    def __init__(self, merging: Merging, allowed: bool, look: Look) -> None:
        self.merging, self.allowed = merging, allowed
        self.data = ColumnDataSource(self._columns(), name="merge")
        self.plot = line_figure("seconds behind the clock: inputs, and what comes out", 560, 820)
        self.plot.x_range = Range1d(0, 1)
        names = [r.name for r in merging.replicas]
        for number, name in enumerate([*names, "out"]):
            last = name == "out"
            self.plot.line("at", name, source=self.data, legend_label=name,
                           line_width=4 if last else 2, line_alpha=0.5 if last else 1,
                           line_color=look.feedback if last else look.series[number])  # fmt: skip
        self.plot.legend.location = "top_left"
        sheets = [InlineStyleSheet(css=CONTROL)]
        self.buttons = []
        for replica in merging.replicas:
            button = Button(label="", width=120, stylesheets=sheets, name=f"toggle-{replica.name}")
            button.on_click(lambda r=replica: self._toggle(r))
            self.buttons.append(button)
        self.state = Div(text="", width=500, name="merge-state",
                         stylesheets=[InlineStyleSheet(css=BOXED)])  # fmt: skip
        self.root = row(self.plot, column(row(*self.buttons), self.state))
        self.update()

    def update(self) -> None:
        """As the merge is now."""
        for button, replica in zip(self.buttons, self.merging.replicas, strict=True):
            button.label = f"{'stop' if replica.running else 'start'} {replica.name}"
        self.data.data = self._columns()
        at = self.merging.now / 1000
        self.plot.x_range.start, self.plot.x_range.end = at - SPAN, at
        self.state.text = self._text()

    def _toggle(self, replica: Replica) -> None:
        if self.allowed:
            self.merging.toggle(replica)

    def _columns(self) -> dict[str, Sequence[float]]:
        names = ["at", *(r.name for r in self.merging.replicas), "out"]
        return {n: [moment[n] for moment in self.merging.moments] for n in names}

    def _text(self) -> str:
        merging = self.merging
        rows = [
            (r.name, ("leads", "up") if r.name == merging.leader else "",
             merging.status(r), f"{r.delay:g} s", f"{r.elements:,}")
            for r in merging.replicas
        ]  # fmt: skip
        head = ("input", "", "status", "late by", "events told")
        events = "<br>".join(html.escape(e) for e in reversed(merging.events))
        leader = html.escape(merging.leader or "nobody")
        return (
            f"<h2>logical merge {merging.variant} of {len(rows)} replicas</h2>"
            f"{rows_of(head, rows, {3, 4})}"
            f'<p>Leader: <b class="up" id="leader">{leader}</b>. Events that came out, each once: '
            f'<b id="out">{merging.out:,}</b>; told again and left out: {merging.waste:,}.</p>'
            f'<p class="faint">{events or "Stop a replica: the other goes on."}</p>'
        )
