"""Time windows, cut into panes.

A window of `size` starts at every multiple of `slide`. Both are cut into panes of their greatest
common divisor, so that a tuple is counted once, in its pane, and windows are put together from
panes. Windows are half open: [start, start + size).

>>> Windows(size=60, slide=20).pane
20
>>> Windows(size=60, slide=20).closed_by(99)
40
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

import polars as pl

from interpunct.model.errors import FlowError
from interpunct.model.frames import Frame
from interpunct.model.schema import END_OF_TIME


@dataclass(frozen=True)
class Windows:
    """All arguments and results are ticks."""

    size: int
    slide: int

    def __post_init__(self) -> None:
        if self.size <= 0 or self.slide <= 0:
            raise FlowError(
                "window", "a size and a slide above zero", f"{self.size} and {self.slide}",
                "Write every='20s', or every='20s' with size='1m'.",
            )  # fmt: skip
        if self.slide > self.size:
            raise FlowError(
                "window", "a slide no longer than the window", f"{self.slide} > {self.size}",
                "Tuples between windows would vanish: select them away instead.",
            )  # fmt: skip

    @property
    def pane(self) -> int:
        return gcd(self.size, self.slide)

    @property
    def tumbling(self) -> bool:
        return self.size == self.slide

    def closed_by(self, heartbeat: int) -> int:
        """The start of the last window that ends at or before what the heartbeat covers."""
        if heartbeat >= END_OF_TIME:
            return END_OF_TIME
        return (heartbeat + 1 - self.size) // self.slide * self.slide

    def output_heartbeat(self, heartbeat: int) -> int:
        """Windows with greater starts only are still to come, and starts are multiples."""
        closed = self.closed_by(heartbeat)
        return END_OF_TIME if closed >= END_OF_TIME else closed + self.slide - 1

    def closes(self, start: int) -> int:
        """The heartbeat that closes the window that starts here."""
        return start + self.size - 1

    def heartbeat_for(self, output: int) -> int:
        """The least input heartbeat whose output heartbeat reaches `output`."""
        start = -((self.slide - 1 - output) // self.slide) * self.slide
        return self.closes(start)

    def first_window(self, pane: int) -> int:
        """The start of the earliest window that covers a pane."""
        return -((self.size - self.pane - pane) // self.slide) * self.slide

    def last_window(self, pane: int) -> int:
        """The start of the latest window that covers a pane."""
        return pane // self.slide * self.slide

    def within(self, low: int | None, high: int | None) -> tuple[int | None, int | None]:
        """The ticks of the tuples all of whose windows start from `low` to `high`."""
        first = None if low is None else -(-low // self.slide) * self.slide - self.slide + self.size
        last = None if high is None else high // self.slide * self.slide + self.slide - 1
        return first, last

    def spread(self, panes: Frame, column: str, after: int, upto: int) -> Frame:
        """Panes repeated for each window over them that starts in (after, upto]."""
        if self.tumbling:
            return panes.filter(pl.col(column).is_between(after, upto, closed="right"))
        copies = []
        for step in range(-(-self.size // self.slide)):
            start = (pl.col(column) // self.slide - step) * self.slide
            covers = start + self.size >= pl.col(column) + self.pane
            wanted = start.is_between(after, upto, closed="right")
            copies.append(panes.filter(covers & wanted).with_columns(start.alias(column)))
        return pl.concat(copies)
