"""Nodes of a query graph: frozen descriptions of operators, which refuse to be built wrong.

A node knows the streams that enter it and can build its operator; what the operator would reject,
the node rejects when it is made. `describe()` is the line `explain` prints.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import polars as pl

from interpunct.model.durations import format_duration
from interpunct.model.errors import FlowError
from interpunct.model.expression import Aggregate as AggregateExpression
from interpunct.model.expression import Expression
from interpunct.model.schema import Schema
from interpunct.operators.aggregate import Aggregate
from interpunct.operators.contract import Operator, Stream
from interpunct.operators.duplicate import Duplicate
from interpunct.operators.eager_join import EagerJoin
from interpunct.operators.gate import Gate
from interpunct.operators.impatient_join import ImpatientJoin
from interpunct.operators.join import JoinSpec, WindowJoin
from interpunct.operators.merge import Merge
from interpunct.operators.project import Project
from interpunct.operators.punctuate import Punctuate
from interpunct.operators.select import Select
from interpunct.operators.sink import Sink
from interpunct.operators.slack import Slack
from interpunct.operators.sort import Sort
from interpunct.operators.source import Source
from interpunct.operators.split import Split
from interpunct.operators.state import DictState, State
from interpunct.operators.thrifty_join import ThriftyJoin
from interpunct.operators.timer import Timer
from interpunct.operators.tuple_window import TupleWindow
from interpunct.operators.union import union
from interpunct.operators.windows import Windows
from interpunct.progress.clock import Clock, ScriptedClock
from interpunct.progress.timestamps import TimeSpec


def _discard(frame: pl.DataFrame) -> None:
    del frame


@dataclass(frozen=True)
class Context:
    """What a running graph lends its operators."""

    clock: Clock = field(default_factory=ScriptedClock)
    state: State = field(default_factory=DictState)
    deliver: Callable[[pl.DataFrame], None] = _discard


@dataclass(frozen=True)
class Ref:
    """One output of a node."""

    node: str
    port: int = 0

    def __str__(self) -> str:
        return self.node if self.port == 0 else f"{self.node}.{self.port}"


@dataclass(frozen=True)
class Node:
    """`inputs` are the outputs it reads, `streams` what is known of them."""

    name: str
    inputs: tuple[Ref, ...]
    streams: tuple[Stream, ...]

    def __post_init__(self) -> None:
        if not self.name or "/" in self.name:
            raise FlowError("node", "a name without '/'", repr(self.name), "Choose another.")
        self.prototype  # noqa: B018  building it once is the validation

    @cached_property
    def prototype(self) -> Operator:
        """The operator, on throw-away state: for its schemas, properties and attribute map."""
        return self.build(Context())

    @property
    def outputs(self) -> tuple[Stream, ...]:
        return self.prototype.outputs

    @property
    def kind(self) -> str:
        return type(self).__name__.removesuffix("Node").lower()

    @abstractmethod
    def build(self, context: Context) -> Operator:
        """A running operator."""

    def describe(self) -> str:
        """What the node does, in a few words."""
        return ""

    def essence(self) -> str:
        """What of it a checkpoint depends on: all of it, unless a node knows better."""
        return self.describe()


@dataclass(frozen=True)
class SourceNode(Node):
    raw: Schema
    time: TimeSpec

    def build(self, context: Context) -> Source:
        return Source(self.name, self.raw, self.time, context.clock, context.state)

    def describe(self) -> str:
        return f"({self.raw.ddl}) {self.time}"

    def essence(self) -> str:
        """Bounds and enabling timestamps may be others from one start to the next."""
        time = self.time
        order = ", ordered" if time.ordered else ""
        return f"({self.raw.ddl}) {time.kind.value} {time.attribute}{order}"


@dataclass(frozen=True)
class SelectNode(Node):
    condition: Expression

    def build(self, context: Context) -> Select:
        return Select(self.name, self.streams[0], self.condition, context.state)

    def describe(self) -> str:
        return self.condition.text


@dataclass(frozen=True)
class ProjectNode(Node):
    columns: Mapping[str, Expression]

    def build(self, context: Context) -> Project:
        return Project(self.name, self.streams[0], self.columns, context.state)

    def describe(self) -> str:
        shown = (n if e.attribute == n else f"{n} = {e.text}" for n, e in self.columns.items())
        return ", ".join(shown)


@dataclass(frozen=True)
class UnionNode(Node):
    in_order: bool = True

    def build(self, context: Context) -> Operator:
        return union(self.name, self.streams, in_order=self.in_order, state=context.state)

    def describe(self) -> str:
        return "in time order" if self.prototype.idle_waiting else "in arrival order"


@dataclass(frozen=True)
class MergeNode(Node):
    def build(self, context: Context) -> Merge:
        return Merge(self.name, self.streams, context.state)


@dataclass(frozen=True)
class SortNode(Node):
    def build(self, context: Context) -> Sort:
        return Sort(self.name, self.streams[0], context.state)

    def describe(self) -> str:
        return f"by {self.streams[0].schema.ordered_by}"


@dataclass(frozen=True)
class GateNode(Node):
    """Input 0 is the stream, the others pace it; put in by a rewrite, never by the builder."""

    def build(self, context: Context) -> Gate:
        return Gate(self.name, self.streams[0], self.streams[1:], context.state)

    def describe(self) -> str:
        return f"paced by {', '.join(map(str, self.inputs[1:]))}"


@dataclass(frozen=True)
class DuplicateNode(Node):
    copies: int = 2

    def build(self, context: Context) -> Duplicate:
        return Duplicate(self.name, self.streams[0], self.copies, context.state)

    def describe(self) -> str:
        return f"{self.copies} copies"


@dataclass(frozen=True)
class SplitNode(Node):
    conditions: tuple[Expression, ...]

    def build(self, context: Context) -> Split:
        return Split(self.name, self.streams[0], self.conditions, context.state)

    def describe(self) -> str:
        return " | ".join([*(c.text for c in self.conditions), "rest"])


@dataclass(frozen=True)
class AggregateNode(Node):
    windows: Windows
    by: tuple[str, ...]
    aggregates: Mapping[str, AggregateExpression]

    def build(self, context: Context) -> Aggregate:
        return Aggregate(
            self.name, self.streams[0], self.windows, self.by, self.aggregates, context.state
        )

    def describe(self) -> str:
        size, slide = (self._length(t) for t in (self.windows.size, self.windows.slide))
        window = f"every {slide}" if self.windows.tumbling else f"{size} every {slide}"
        return f"{window}{_grouped(self.by)}: {_computed(self.aggregates)}"

    def _length(self, ticks: int) -> str:
        timed = self.streams[0].schema.time_type in ("timestamp", "timestamp_ntz")
        return format_duration(ticks) if timed else str(ticks)


@dataclass(frozen=True)
class TupleWindowNode(Node):
    rows: int
    slide: int
    by: tuple[str, ...]
    aggregates: Mapping[str, AggregateExpression]

    def build(self, context: Context) -> TupleWindow:
        return TupleWindow(
            self.name, self.streams[0], self.rows, self.slide, self.by, self.aggregates,
            context.state,
        )  # fmt: skip

    def describe(self) -> str:
        window = f"last {self.rows} tuples every {self.slide}"
        return f"{window}{_grouped(self.by)}: {_computed(self.aggregates)}"


@dataclass(frozen=True)
class JoinNode(Node):
    spec: JoinSpec
    thrifty: bool = False
    impatient: bool = False

    def build(self, context: Context) -> WindowJoin:
        kinds = {
            (False, False): WindowJoin, (True, False): ThriftyJoin,
            (False, True): ImpatientJoin, (True, True): EagerJoin,
        }  # fmt: skip
        kind = kinds[self.thrifty, self.impatient]
        return kind(self.name, self.streams, self.spec, context.state)

    def describe(self) -> str:
        windows = " and ".join(format_duration(w) for w in dict.fromkeys(self.spec.windows))
        keys = ", ".join(self.spec.keys) or "time alone"
        manner = ", thrifty" * self.thrifty + ", impatient" * self.impatient
        return f"{self.spec.how} on {keys} within {windows}{manner}"


@dataclass(frozen=True)
class TimerNode(Node):
    every: int
    offset: int

    def build(self, context: Context) -> Timer:
        return Timer(self.name, self.every, self.offset, context.clock, context.state)

    def describe(self) -> str:
        return f"every {format_duration(self.every)}, minus {format_duration(self.offset)}"


@dataclass(frozen=True)
class PunctuateNode(Node):
    def build(self, context: Context) -> Punctuate:
        return Punctuate(self.name, self.streams[0], self.streams[1], context.state)


@dataclass(frozen=True)
class SlackNode(Node):
    window: int
    slack: int

    def build(self, context: Context) -> Slack:
        return Slack(self.name, self.streams[0], self.window, self.slack, context.state)

    def describe(self) -> str:
        return f"{self.slack} tuples after a window of {format_duration(self.window)}"


@dataclass(frozen=True)
class SinkNode(Node):
    def build(self, context: Context) -> Sink:
        return Sink(self.name, self.streams[0], context.deliver, context.state)


def _grouped(by: tuple[str, ...]) -> str:
    return f" by {', '.join(by)}" if by else ""


def _computed(aggregates: Mapping[str, AggregateExpression]) -> str:
    return ", ".join(f"{n} = {a.text}" for n, a in aggregates.items())
