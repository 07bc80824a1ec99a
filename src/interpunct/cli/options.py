"""Options that several commands have, each worded once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Pure JSON on stdout.")]
Plot = Annotated[Path | None, typer.Option("--plot", help="Where to write the figure (PNG).")]
NoPlot = Annotated[bool, typer.Option("--no-plot", help="Write no figure.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Of the random arrivals and values.")]
Workers = Annotated[
    int, typer.Option("--workers", min=0, help="Processes that simulate; 0 for none but this one.")
]
Spark = Annotated[bool, typer.Option("--spark", help="On Spark as well.")]
Elements = Annotated[int, typer.Option("--elements", min=1000, help="Of all inputs together.")]
Repeat = Annotated[
    int, typer.Option("--repeat", min=1, help="Timed runs of each, of which the best counts.")
]
