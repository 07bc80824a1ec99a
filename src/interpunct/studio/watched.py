"""What the studio looks at: a query of this program, or one that only its checkpoint tells of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from interpunct.engine.vitals import Snapshot
from interpunct.flow.feedback import Length
from interpunct.model.feedback import Feedback
from interpunct.spark.channel import Channel
from interpunct.spark.query import FlowQuery
from interpunct.spark.reporter import seen


class Watched(Protocol):
    """Something that runs, can be seen and can be told what is wanted."""

    def snapshot(self) -> Snapshot:
        """All that can be seen of it now."""

    def send(self, sink: str, feedback: str, lasting: Length | None) -> Feedback:
        """Feedback from one of its sinks; returns what was accepted, or fails saying why."""

    def in_force(self) -> Mapping[str, Sequence[Feedback]]:
        """By sink, what is assumed, whoever has said so."""


@dataclass(frozen=True)
class Running:
    """A query that this program has started."""

    query: FlowQuery

    def snapshot(self) -> Snapshot:
        return self.query.snapshot()

    def send(self, sink: str, feedback: str, lasting: Length | None) -> Feedback:
        return self.query.feedback(sink, feedback, lasting=lasting)

    def in_force(self) -> Mapping[str, Sequence[Feedback]]:
        return Channel.of(self.query.checkpoint).in_force()


@dataclass(frozen=True)
class Attached:
    """A query of some other program, by its checkpoint."""

    checkpoint: str

    def snapshot(self) -> Snapshot:
        return seen(self.checkpoint)

    def send(self, sink: str, feedback: str, lasting: Length | None) -> Feedback:
        return Channel.of(self.checkpoint).hand_in(sink, feedback, lasting=lasting)

    def in_force(self) -> Mapping[str, Sequence[Feedback]]:
        return Channel.of(self.checkpoint).in_force()
