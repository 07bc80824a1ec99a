"""A driver who zooms into one segment after another, and how far a plan follows (Experiment 2).

    9:00  ¬[segment ≠ 3, ts ∈ [9:00, 9:02)]         the map shows segment 3 and nothing else
    9:02  ¬[segment ≠ 7, ts ∈ [9:02, 9:04)]

The schemes of Feedback section 6 differ in what AVERAGE makes of that: nothing (F0), a guard on its
output (F1), no averages of groups that nobody wants (F2), or that and telling those upstream (F3).
F3 is the operator as it is; the others are held back here, for comparison.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta

import polars as pl

from interpunct.api import Flow
from interpunct.flow.nodes import AggregateNode, Context
from interpunct.model.pattern import Pattern
from interpunct.operators.aggregate import Aggregate
from interpunct.operators.responses import Response, at_output

MINUTE = 60_000_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

F0, F1, F2, F3 = SCHEMES = ("F0", "F1", "F2", "F3")
MEANING = {
    F0: "no feedback",
    F1: "AVERAGE guards its output",
    F2: "AVERAGE guards its input, and purges",
    F3: "and tells the quality filter and the source",
}


@dataclass(frozen=True)
class View:
    """A segment, and the time for which it is looked at."""

    segment: int
    start: int
    end: int  # excluded

    def __str__(self) -> str:
        """As feedback."""
        since, until = (EPOCH + timedelta(microseconds=t) for t in (self.start, self.end))
        form = "%Y-%m-%d %H:%M:%S"
        return f"¬[segment ≠ {self.segment}, ts ∈ ['{since:{form}}', '{until:{form}}')]"


@dataclass(frozen=True)
class Drive:
    """Which segment is looked at, when: another one every `minutes`."""

    segments: Sequence[int]
    minutes: int
    first: int
    last: int

    def views(self) -> Iterator[View]:
        length = self.minutes * MINUTE
        for number, start in enumerate(range(self.first, self.last + 1, length)):
            yield View(self._shown(number), start, start + length)

    def _shown(self, number: int) -> int:
        """A step of four passes through all of nine, and never stays."""
        return self.segments[4 * number % len(self.segments)]

    def seen(self, results: pl.DataFrame) -> pl.DataFrame:
        """The results that are looked at."""
        shown = pl.DataFrame([(v.segment, v.start) for v in self.views()],
                             {"segment": pl.Int64, "_view": pl.Int64}, orient="row")  # fmt: skip
        length = self.minutes * MINUTE
        begun = (pl.col("ts").to_physical() - self.first) // length * length + self.first
        placed = results.with_columns(begun.alias("_view"))
        return placed.join(shown, on=["segment", "_view"], how="semi").drop("_view")


class OutputGuarded(Aggregate):
    """F1: everything is averaged, and what nobody wants does not leave."""

    def characterise(self, pattern: Pattern, port: int) -> Response:
        return at_output("F1", pattern, port)


class Untold(Aggregate):
    """F2: groups that nobody wants are not averaged, and nobody upstream hears of it."""

    def characterise(self, pattern: Pattern, port: int) -> Response:
        return replace(super().characterise(pattern, port), propagate={})


@dataclass(frozen=True)
class RestrainedNode(AggregateNode):
    """An aggregate that does less about feedback than it could."""

    operator: type[Aggregate] = Aggregate

    def build(self, context: Context) -> Aggregate:
        return self.operator(
            self.name, self.streams[0], self.windows, self.by, self.aggregates, context.state
        )


def restrained(flow: Flow, scheme: str) -> Flow:
    """The flow with an AVERAGE that goes as far as the scheme says."""
    found = {F1: OutputGuarded, F2: Untold}.get(scheme)
    node = flow.nodes["average"]
    if found is not None and isinstance(node, AggregateNode):
        given = {f.name: getattr(node, f.name) for f in fields(AggregateNode)}
        flow.nodes["average"] = RestrainedNode(**given, operator=found)
    return flow
