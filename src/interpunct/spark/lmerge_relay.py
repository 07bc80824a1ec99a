"""Fast-forward between queries: a merge tells the slower queries that feed it what is past.

    merge: stable(10:05) ─ ¬[ts ≤ 10:04:59] ─ channel of replica b ─ its aggregate, its source

The merge's lanes have agreed on a stable; inputs whose own stable is less do for nothing what they
do for elements before it (LMerge section V-D). The task that puts the stable out sends it as
feedback to the queries these inputs come from, in terms of the sink they write: elements where that
is another merge, rows that become events where it is a flow. Another merge passes it on to its own
inputs, whatever its variant (`operators/lmerge_fast_forward.relayed`). A message is a hint and sent
before the batch is committed; that is safe, since a batch that is run again reads the same input
and comes to the same stable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from interpunct.model.elements import HEAD
from interpunct.model.errors import FeedbackError
from interpunct.model.feedback import Feedback, Intent
from interpunct.model.pattern import Pattern
from interpunct.model.schema import Schema
from interpunct.model.ticks import within
from interpunct.operators.lmerge_fast_forward import last_of, last_start, passed
from interpunct.spark.channel import Channel, Message
from interpunct.spark.courier import Upstream
from interpunct.spark.lmerge_notes import MergeNotes

MOST_WAITING = 16  # messages to a query that takes none; it is told more when it has taken them


@dataclass(frozen=True)
class Feeder(Upstream):
    """The query that writes an input of a merge: `lifetime` is how long each row of its sink lasts
    as an event, in ticks; None where the sink's rows are elements themselves."""

    lifetime: int | None = None

    @classmethod
    def of(cls, upstream: Upstream) -> Feeder:
        return upstream if isinstance(upstream, cls) else cls(upstream.checkpoint, upstream.sink)

    def sink_schema(self) -> Schema | None:
        """What the sink writes, or None as long as the query has never been started; an error if
        its rows say nothing of how long they last."""
        channel = Channel.of(self.checkpoint)
        if not channel.sinks():
            return None
        schema = channel.parse(self.sink, "?[]").schema
        if schema.names[: len(HEAD)] != HEAD and self.lifetime is None:
            raise FeedbackError(
                f"upstream {self.checkpoint}", "a sink of elements, or how long its rows last",
                f"{self.sink!r} with {schema.ddl}", "ip.upstream(…, sink=…, lifetime=ticks)",
            )  # fmt: skip
        return schema

    def tell(self, patterns: Sequence[Pattern]) -> None:
        """That nobody needs these elements, unless the query does not listen."""
        schema, channel = self.sink_schema(), Channel.of(self.checkpoint)
        if schema is None or channel.waiting() >= MOST_WAITING:
            return
        for pattern in self._in_terms_of(schema, patterns):
            channel.send(Message.of(self.sink, Feedback(Intent.ASSUMED, pattern)))

    def _in_terms_of(self, schema: Schema, patterns: Sequence[Pattern]) -> list[Pattern]:
        if self.lifetime is None:
            return [Pattern.parse(p.by_name(), schema) for p in patterns]
        starts = [last_start(p, self.lifetime, revised=False) for p in patterns]
        last = max((s for s in starts if s is not None), default=None)
        if last is None:  # of adjusts alone, which rows do not become
            return []
        return [Pattern(schema, {schema.ordered_by: within(schema, None, last)})]


class Feeders(Protocol):
    """The queries behind the inputs of a merge, by the inputs' names."""

    def get(self, name: str, /) -> Feeder | None: ...


@dataclass(frozen=True)
class Relay:
    """Where the lanes' reports of a batch come together."""

    schema: Schema
    variant: str
    notes: MergeNotes | None
    feeders: Feeders

    def hurry(self, stable: int | None, inputs: Mapping[str, int]) -> None:
        """Tell slower inputs what is past, now that the output has come to a stable (None: it has
        not moved), or what those who read it say is past; `inputs` are their own stables.

        What the readers say is remembered before it is passed on, so that the lanes know of it when
        an input acts on it.
        """
        past = [] if self.notes is None else self.notes.hear(self.schema, self.variant)
        moved = [] if stable is None else passed(self.schema, stable, self.variant)
        for name, own in inputs.items():
            said = [p for p in past if own <= last_of(p)]
            if stable is not None and own < stable:
                said += moved
            feeder = self.feeders.get(name) if said else None
            if feeder is not None:
                feeder.tell(said)
