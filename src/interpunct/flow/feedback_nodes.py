"""Nodes of the operators that feedback was made for: pace, impute and poll."""

from __future__ import annotations

from dataclasses import dataclass

from interpunct.flow.nodes import Context, Node
from interpunct.model.durations import format_duration
from interpunct.operators.archive import Archive
from interpunct.operators.contract import Stream
from interpunct.operators.impute import Impute
from interpunct.operators.pace import Pace
from interpunct.operators.poll import Poll


@dataclass(frozen=True)
class PaceNode(Node):
    """`on` are the inputs that set the pace, None for all."""

    tolerance: int
    on: tuple[int, ...] | None = None
    feedback: bool = True

    def build(self, context: Context) -> Pace:
        return Pace(
            self.name, self.streams, self.tolerance, context.state,
            on=self.on, feedback=self.feedback,
        )  # fmt: skip

    def describe(self) -> str:
        paced = "all" if self.on is None else ", ".join(str(self.inputs[p]) for p in self.on)
        told = "" if self.feedback else ", without feedback"
        return f"within {_length(self.streams[0], self.tolerance)} of the latest of {paced}{told}"


@dataclass(frozen=True)
class ImputeNode(Node):
    fills: tuple[str, ...]
    archive: Archive
    batch: int = 1
    budget: int | None = None
    overwrite: bool = False

    def build(self, context: Context) -> Impute:
        """Its own clock measures the budget: a batch's time stands still while it is worked on."""
        return Impute(
            self.name, self.streams[0], self.fills, self.archive, context.state,
            batch=self.batch, budget=self.budget, overwrite=self.overwrite,
        )  # fmt: skip

    def describe(self) -> str:
        at_once = "one by one" if self.batch == 1 else f"{self.batch} at a time"
        rationed = "" if self.budget is None else f", {format_duration(self.budget)} a batch"
        by = ", ".join(self.archive.parameters) or "nothing"
        return f"{', '.join(self.fills)} by {by}, {at_once}{rationed}"


@dataclass(frozen=True)
class PollNode(Node):
    keep: int

    def build(self, context: Context) -> Poll:
        return Poll(self.name, self.streams[0], self.keep, context.state)

    def describe(self) -> str:
        return f"on demand, for {_length(self.streams[0], self.keep)}"


def _length(stream: Stream, ticks: int) -> str:
    timed = stream.schema.time_type in ("timestamp", "timestamp_ntz")
    return format_duration(ticks) if timed else str(ticks)
