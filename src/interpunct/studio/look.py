"""How the page looks, in the light and in the dark. Everything comes from this server."""

from __future__ import annotations

from dataclasses import dataclass

from bokeh.themes import Theme

FONT = "ui-sans-serif, system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"


@dataclass(frozen=True)
class Look:
    """Colours by what they are for."""

    name: str
    page: str
    panel: str
    line: str
    text: str
    faint: str
    data: str  # what flows down
    feedback: str  # what flows up
    good: str
    bad: str
    node: str

    @property
    def series(self) -> tuple[str, ...]:
        """For lines: told apart by people who see red and green alike, too."""
        return (self.data, "#d98a00", "#9a63d8", "#2a9d8f", self.bad)

    def colour(self, name: str | None) -> str | None:
        """Of what was drawn under this name; None for what has its colour from elsewhere."""
        known = {"data": self.data, "feedback": self.feedback, "text": self.text}
        lines = {f"series{number}": colour for number, colour in enumerate(self.series)}
        return None if name is None else (known | lines).get(name)

    def theme(self) -> Theme:
        """For what Bokeh draws."""
        label = {"axis_label_text_color": self.faint, "axis_label_text_font": FONT,
                 "axis_label_text_font_size": "11px", "axis_label_text_font_style": "normal",
                 "axis_label_standoff": 4}  # fmt: skip
        marks = {"major_label_text_color": self.faint, "major_label_text_font": FONT,
                 "major_label_text_font_size": "11px", "axis_line_color": self.line,
                 "major_tick_line_color": self.line, "minor_tick_line_color": None}  # fmt: skip
        legend = {"background_fill_alpha": 0, "border_line_alpha": 0, "padding": 2, "spacing": 0,
                  "label_text_color": self.text, "label_text_font": FONT,
                  "label_text_font_size": "11px", "glyph_width": 14}  # fmt: skip
        return Theme(json={"attrs": {
            "Plot": {"background_fill_color": self.panel, "border_fill_color": self.panel,
                     "outline_line_color": None},
            "Axis": {**label, **marks},
            "Grid": {"grid_line_color": self.line, "grid_line_alpha": 0.6},
            "Title": {"text_color": self.text, "text_font": FONT, "text_font_size": "13px"},
            "Legend": legend,
            "Label": {"text_color": self.faint, "text_font": FONT, "text_font_size": "12px",
                      "background_fill_color": self.panel},
            "Text": {"text_color": self.text},
        }})  # fmt: skip


LIGHT = Look("light", "#f2f4f7", "#ffffff", "#d9dee6", "#1c2430", "#5f6b7c", "#1f6feb", "#c2410c",
             "#1a7f4b", "#c4314b", "#eef3fb")  # fmt: skip
DARK = Look("dark", "#0f141b", "#171e28", "#2d3847", "#e6ebf2", "#93a1b5", "#5aa2ff", "#ff9447",
            "#4cc38a", "#ff6b81", "#1f2a38")  # fmt: skip
LOOKS = {look.name: look for look in (LIGHT, DARK)}


def _variables(look: Look) -> str:
    names = ("page", "panel", "line", "text", "faint", "data", "feedback", "good", "bad", "node")
    return "".join(f"--{name}:{getattr(look, name)};" for name in names)


# Pixels: what fits on a screen of 1,280.
LEFT, MIDDLE, RIGHT, GAP = 392, 462, 352, 8
WIDE = LEFT + MIDDLE + RIGHT + 2 * GAP

PAGE = """{% extends base %}
{% block title %}{{ title }}{% endblock %}
{% block postamble %}<style>
:root{LIGHT} :root[data-look=dark]{DARK}
html,body{margin:0;background:var(--page);color:var(--text);font-family:FONT}
body{padding:8px 12px}
</style>{% endblock %}
""".replace("{LIGHT}", f"{{{_variables(LIGHT)}}}").replace("{DARK}", f"{{{_variables(DARK)}}}")
PAGE = PAGE.replace("FONT", FONT)

PANEL = """
:host{background:var(--panel);border:1px solid var(--line);border-radius:8px;overflow:hidden}
"""
TEXT = f"""
:host{{color:var(--text);font-family:{FONT};font-size:12px}}
.bk-clearfix{{width:100%}}
h1{{font-size:17px;margin:0;display:inline-block}}
h2{{font-size:13px;margin:0 0 4px}}
.chips{{display:flex;gap:18px;align-items:baseline;white-space:nowrap}}
.chip b{{font-size:16px;font-variant-numeric:tabular-nums}}
.chip{{color:var(--faint)}} .chip b{{color:var(--text)}}
.chip.up b{{color:var(--feedback)}} .chip.bad b{{color:var(--bad)}}
table{{border-collapse:collapse;width:100%}}
th{{text-align:left;font-weight:500;color:var(--faint);padding:1px 6px 1px 0}}
td{{white-space:nowrap;padding:1px 6px 1px 0;border-top:1px solid var(--line);
 font-variant-numeric:tabular-nums}}
td.n,th.n{{text-align:right}} td.bad{{color:var(--bad)}} td.up{{color:var(--feedback)}}
p{{margin:4px 0 0}}
.faint{{color:var(--faint)}} .up{{color:var(--feedback)}} .bad{{color:var(--bad)}}
.good{{color:var(--good)}}
code{{font-family:ui-monospace,'DejaVu Sans Mono',monospace;font-size:11px}}
"""
SCROLLED = ":host{overflow:auto}"
BOXED = PANEL + TEXT + ":host{padding:8px 10px;box-sizing:border-box}"
CONTROL = f"""
:host{{font-family:{FONT}}}
.bk-btn,.bk-input{{background:var(--panel)!important;color:var(--text)!important;
 border:1px solid var(--line)!important;font-size:12px!important;font-family:{FONT}!important}}
.bk-input{{padding:0 6px!important}}
.bk-input-prefix{{background:var(--page)!important;color:var(--faint)!important;
 border-color:var(--line)!important;font-size:12px!important}}
.bk-btn:hover{{border-color:var(--data)!important}}
.bk-tab{{color:var(--faint);padding:3px 12px;font-size:13px}}
.bk-tab.bk-active{{color:var(--text);background:var(--panel);border-color:var(--line)!important}}
.bk-header{{border-color:var(--line)!important}}
"""
