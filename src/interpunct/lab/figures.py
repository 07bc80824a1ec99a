"""What all figures share: the backend, the names and colours of the cases, saving."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")  # before pyplot is loaded: figures go to files, never to a screen

from matplotlib import pyplot as plt
from matplotlib.figure import Figure

NAMES = {"A": "A no ETS", "B": "B periodic", "C": "C on demand", "D": "D latent"}
_COLOURS = {"A": "tab:red", "B": "tab:blue", "C": "tab:green", "D": "tab:gray"}


def colour(letter: str) -> str:
    return _COLOURS[letter]


def figure(panels: int, title: str) -> tuple[Figure, Any]:
    """A row of panels; one alone is not in a list."""
    drawing, axes = plt.subplots(1, panels, figsize=(5.2 * panels, 4.6), layout="constrained")
    drawing.suptitle(title)
    return drawing, axes


def saved(drawing: Figure, path: Path) -> None:
    """Write the figure and forget it."""
    drawing.savefig(path, dpi=110)
    plt.close(drawing)
