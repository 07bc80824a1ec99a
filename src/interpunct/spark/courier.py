"""The courier: takes feedback that left the lanes of a batch to where it is heard next.

    lane of stage 1 ─ feedback row ─ foreachBatch ─ own channel ─ stage 0, next batch
    lane of a source ─ feedback row ─ foreachBatch ─ channel of the query that feeds the source

What concerns an earlier stage goes with the lane that said it, because that stage acts only on
what all the lanes of its readers say. What concerns a source that another query writes is agreed
upon here, and then said to that query's sink.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from interpunct.flow.graph import Graph
from interpunct.model.errors import FeedbackError
from interpunct.model.feedback import Feedback
from interpunct.model.pattern import Pattern
from interpunct.model.schema import Schema
from interpunct.operators.agreement import Agreement
from interpunct.operators.state import DictState
from interpunct.spark.channel import Channel, Message
from interpunct.spark.wire import FEEDBACK, Note


@dataclass(frozen=True)
class Upstream:
    """A sink of another query, whose output a source of this one reads."""

    checkpoint: str
    sink: str


@dataclass
class Courier:
    """Between the batches of one query."""

    graph: Graph
    lanes: int
    channel: Channel
    upstream: Mapping[str, Upstream] = field(default_factory=dict)
    _agreements: dict[str, Agreement] = field(default_factory=dict)

    def deliver(self, notes: Iterable[Note]) -> None:
        """Feedback that left a batch, as far as somebody will hear it: the sender is a lane of its
        stage, `rows` its place among the readers of a stream between stages, below zero for a
        source."""
        for note in notes:
            assert note.words is not None
            target = note.stream.removeprefix(FEEDBACK)
            source = target.rsplit(":", 1)[0]
            if note.rows >= 0:
                self.channel.send(Message(target, note.words, note.rows))
            elif source in self.upstream:
                self._send_on(source, note.sender, note.words)

    def _send_on(self, source: str, lane: int, words: str) -> None:
        """To the query that feeds a source, once all lanes of this one say it."""
        schema = self.graph.nodes[source].outputs[0].schema
        feedback = Feedback.parse(words, schema)
        to = self.upstream[source]
        for agreed in self._agreement(source, schema).hear(lane, feedback):
            Channel.of(to.checkpoint).send(Message.of(to.sink, agreed))

    def _agreement(self, source: str, schema: Schema) -> Agreement:
        if source not in self._agreements:
            self._agreements[source] = Agreement(DictState(), schema, self.lanes, source)
        return self._agreements[source]


def check_upstream(graph: Graph, upstream: Mapping[str, Upstream]) -> None:
    """An error unless every sink named has the attributes of the source that reads it."""
    for name, to in upstream.items():
        sources = {n.name: n for n in graph.sources}
        if name not in sources:
            known = ", ".join(sources)
            raise FeedbackError("upstream", f"one of the sources {known}", repr(name), "Name one.")
        schema = sources[name].outputs[0].schema
        probe = Pattern.wild(schema)
        heard = Channel.of(to.checkpoint).parse(to.sink, f"?{probe.by_name()}").schema
        missing = [n for n in schema.names if n not in heard]
        if missing:
            raise FeedbackError(
                f"upstream of source {name!r}", f"a sink with the attributes {schema.names}",
                f"{to.sink!r}, which lacks {missing}", "Read the sink's own attributes.",
            )  # fmt: skip
