"""The running graph: operators at the nodes, a buffer of pages on every arc."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from interpunct.flow.graph import Graph
from interpunct.flow.nodes import Node as Description
from interpunct.model.feedback import Feedback
from interpunct.model.page import Page
from interpunct.operators.agreement import Agreement
from interpunct.operators.contract import Held, Operator
from interpunct.operators.sink import Sink
from interpunct.operators.source import SourceOperator


@dataclass
class Arc:
    """A buffer between two operators: the producer adds at the tail, the consumer takes at the
    front. Each page carries the number of its entry, so the oldest of several can be told."""

    producer: Vertex
    port: int
    consumer: Vertex
    input: int
    pages: deque[tuple[int, Page]] = field(default_factory=deque)


@dataclass(eq=False)
class Vertex:
    """An operator in the running graph, its arcs, and the feedback waiting for it."""

    name: str
    operator: Operator
    inputs: list[Arc] = field(default_factory=list)
    outputs: list[Arc] = field(default_factory=list)
    control: deque[tuple[int, Feedback]] = field(default_factory=deque)  # by output
    readers: dict[int, list[Arc]] = field(default_factory=dict)  # the output arcs by port
    taken: int = 0  # tuples consumed so far
    made: dict[int, int] = field(default_factory=dict)  # tuples put out so far, by port
    agreements: dict[int, Agreement] = field(default_factory=dict)  # outputs with several readers
    source: SourceOperator | None = field(init=False)  # the operator, if it is one
    is_sink: bool = field(init=False)

    def __post_init__(self) -> None:
        self.source = self.operator if isinstance(self.operator, SourceOperator) else None
        self.is_sink = isinstance(self.operator, Sink)

    def connect(self, port: int, consumer: Vertex, entry: int) -> None:
        """An arc from this output to that input."""
        arc = Arc(self, port, consumer, entry)
        self.outputs.append(arc)
        self.readers.setdefault(port, []).append(arc)
        consumer.inputs.append(arc)
        consumer.inputs.sort(key=lambda a: a.input)

    def heard(self, arc: Arc, feedback: Feedback) -> list[Feedback]:
        """Feedback from one reader of an output, as what all its readers have in common."""
        readers = self.readers[arc.port]
        if len(readers) == 1:
            return [feedback]
        return self._agreement(arc.port).hear(readers.index(arc), feedback)

    def promised(self, port: int, page: Page) -> None:
        """What the output promises need not be remembered of its readers."""
        if port in self.agreements:
            for punctuation in page.punctuations:
                self.agreements[port].expire(punctuation)

    def restore(self) -> None:
        """Take up what the readers had said when the state was saved."""
        for port, readers in self.readers.items():
            if len(readers) > 1 and self.operator.state.get(f"heard{port}") is not None:
                self._agreement(port)

    def held(self) -> Held:
        said = sum(len(a) for a in self.agreements.values())
        return self.operator.held() + Held(guards=said)

    def save(self) -> None:
        self.operator.save()
        for agreement in self.agreements.values():
            agreement.save()

    def _agreement(self, port: int) -> Agreement:
        if port not in self.agreements:
            schema, readers = self.operator.outputs[port].schema, len(self.readers[port])
            state = self.operator.state
            self.agreements[port] = Agreement(state, schema, readers, f"heard{port}")
        return self.agreements[port]

    def oldest_input(self) -> Arc | None:
        """The input arc whose first page has waited longest."""
        oldest: Arc | None = None
        for arc in self.inputs:
            if arc.pages and (oldest is None or arc.pages[0][0] < oldest.pages[0][0]):
                oldest = arc
        return oldest

    def filled_output(self) -> Arc | None:
        """An output arc with pages, not counting those to sinks, which empty themselves."""
        for arc in self.outputs:
            if arc.pages:
                return arc
        return None

    @property
    def selectivity(self) -> float | None:
        """Tuples out per tuple in, at the fullest output; what Heartbeats section 7.4 asks to be
        gathered at runtime."""
        return max(self.made.values(), default=0) / self.taken if self.taken else None


def wired(component: list[Description], graph: Graph, built: dict[str, Operator]) -> list[Vertex]:
    """The vertices of some nodes, connected among themselves, in the order data takes."""
    vertices = {d.name: Vertex(d.name, built[d.name]) for d in component}
    for description in component:
        for port, consumer, entry in graph.consumers(description.name):
            if consumer in vertices:
                vertices[description.name].connect(port, vertices[consumer], entry)
    return list(vertices.values())
