"""The operators that feedback was made for, and those who keep them at work."""

from __future__ import annotations

import polars as pl
from case_streams import CLOCKED, DISORDERED, ORDERED, TIMED

from interpunct.model.feedback import Feedback
from interpunct.model.page import Page
from interpunct.model.punctuation import Punctuation
from interpunct.operators.contract import Emission, Stream
from interpunct.operators.impute import Impute
from interpunct.operators.pace import Pace
from interpunct.operators.poll import Poll
from interpunct.testing import Case, arrivals


def pace(
    name: str,
    *inputs: Stream,
    tolerance: int = 5,
    on: tuple[int, ...] | None = None,
    feedback: bool = False,
) -> Case:
    """Without feedback of its own, which costs the late output what it speaks of."""
    return Case(
        name,
        lambda c: Pace("p", inputs, tolerance, c.state, on=on, feedback=feedback),
        arrivals(inputs, punctuated="k"),
    )


PACES = [
    pace("pace of mixed", ORDERED, DISORDERED),
    pace("pace of disordered", DISORDERED, DISORDERED, DISORDERED, tolerance=9),
    pace("pace of clocked", TIMED, Stream(CLOCKED), tolerance=3),
    pace("pace on one", DISORDERED, ORDERED, on=(0,)),
    pace("pace without tolerance", ORDERED, DISORDERED, tolerance=0, on=(1,)),
]


class Tenfold:
    """An archive that knows v for every k but 2."""

    parameters = ("k",)

    def look_up(self, keys: pl.DataFrame) -> pl.DataFrame:
        known = pl.when(pl.col("k") != 2).then(pl.col("k") * 10.0)
        return keys.select(known.alias("v"))


class AtOnce(Impute):
    """Does its work after every page."""

    def accept(self, port: int, page: Page) -> Emission:
        emission = super().accept(port, page)
        while self.backlog() and self.due():
            emission.extend(self.work())
        return emission

    def due(self) -> bool:
        return True


class InArrears(AtOnce):
    """Leaves tuples for later until time is some ticks beyond them."""

    def due(self) -> bool:
        waiting = [b.first for b in (self._hurried, self._rest) if b.first is not None]
        return min(waiting) <= self._record["sure"] - 3


def impute(name: str, stream: Stream, kind: type[Impute] = AtOnce, batch: int = 1) -> Case:
    return Case(
        name,
        lambda c: kind("i", stream, ["v"], Tenfold(), c.state, batch=batch),
        arrivals([stream], punctuated="kv"),
    )


class Asked(Poll):
    """Is asked for some tuples as they come, for some when time goes on, for the others never."""

    def on_page(self, port: int, page: Page) -> Emission:
        emission = super().on_page(port, page)
        emission.extend(self.on_wish(Feedback.parse("![k=1]", self.output), 0))
        return emission

    def on_punctuation(self, port: int, punctuation: Punctuation) -> Emission:
        emission = self.on_wish(Feedback.parse("![k=0]", self.output), 0)
        emission.extend(super().on_punctuation(port, punctuation))
        return emission


def poll(name: str, stream: Stream, kind: type[Poll], keep: int) -> Case:
    inputs = arrivals([stream], punctuated="k")
    return Case(name, lambda c: kind("p", stream, keep, c.state), inputs)


WORKERS = [
    impute("impute", ORDERED),
    impute("impute disordered, by threes", DISORDERED, batch=3),
    impute("impute clocked, in arrears", TIMED, InArrears),
    impute("impute disordered, in arrears", DISORDERED, InArrears, batch=2),
    poll("poll", ORDERED, Poll, 4),
    poll("poll disordered, asked", DISORDERED, Asked, 4),
    poll("poll that keeps nothing, asked", DISORDERED, Asked, 0),
]
