"""Run a graph in process: feeds in, frames out, on a real or a scripted clock."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import polars as pl

from interpunct.engine.arcs import wired
from interpunct.engine.blame import blame, table
from interpunct.engine.component import Component
from interpunct.engine.feeds import Peekable, as_feed, replayed
from interpunct.engine.metrics import Metrics
from interpunct.engine.shared_time import SharedTime
from interpunct.engine.trace import Trace
from interpunct.engine.vitals import Vitals, with_blame
from interpunct.flow.feedback import Desk
from interpunct.flow.graph import Graph
from interpunct.flow.nodes import Context, GateNode, SinkNode, SourceNode
from interpunct.model.errors import FeedError, FlowError
from interpunct.model.feedback import Feedback
from interpunct.model.late import LATE
from interpunct.model.page import Page
from interpunct.model.schema import END_OF_TIME, START_OF_TIME, Schema
from interpunct.operators.contract import Held, Operator
from interpunct.operators.sink import Sink
from interpunct.operators.source import Source
from interpunct.operators.state import DictState, Scoped, State
from interpunct.progress.clock import Clock, RealClock, ScriptedClock

Deliver = Callable[[pl.DataFrame], None]


@dataclass
class Result:
    """What came out: by sink, and what was late, by the node where it was; and, by operator, how
    many tuples it put out for each that it took. ``result["map"]`` is what came to a sink,
    ``result["late:cars"]`` what was late at a node, be it nothing."""

    sinks: dict[str, pl.DataFrame]
    late: dict[str, pl.DataFrame]
    metrics: Metrics
    trace: Trace | None = None
    selectivities: dict[str, float] = field(default_factory=dict)
    judged: dict[str, Schema] = field(default_factory=dict)  # late output of each node that has one

    def __getitem__(self, name: str) -> pl.DataFrame:
        if name in self.sinks:
            return self.sinks[name]
        node = name.removeprefix(LATE)
        if node == name or node not in self.judged:
            known = [f"one of the sinks {', '.join(self.sinks)}", *(LATE + n for n in self.judged)]
            raise FlowError("result", " or ".join(known), repr(name), "Check the name.")
        return self.late[node] if node in self.late else self.judged[node].empty()

    def keys(self) -> Iterable[str]:
        """The sinks; with `[]` this makes ``dict(result)`` of it."""
        return self.sinks.keys()

    def items(self) -> Iterable[tuple[str, pl.DataFrame]]:
        """By sink, what came to it."""
        return self.sinks.items()

    def __repr__(self) -> str:
        came = [f"{name}: {_rows(frame)}" for name, frame in self.sinks.items()]
        late = [f"late of {name}: {_rows(frame)}" for name, frame in self.late.items()]
        return f"Result({', '.join(came + late)})"


def _rows(frame: pl.DataFrame) -> str:
    return "1 row" if frame.height == 1 else f"{frame.height} rows"


@dataclass
class _Collector:
    """Frames kept as they come, put together once at the end."""

    empty: pl.DataFrame
    frames: list[pl.DataFrame] = field(default_factory=list)

    def __call__(self, frame: pl.DataFrame) -> None:
        self.frames.append(frame)

    def all(self) -> pl.DataFrame:
        return pl.concat([self.empty, *self.frames])


class Engine:
    """A graph with running operators: fed, stepped, woken; it never waits and never reads feeds."""

    def __init__(
        self,
        graph: Graph,
        clock: Clock,
        *,
        deliver: Mapping[str, Deliver] | None = None,
        state: State | None = None,
        trace: Trace | None = None,
    ) -> None:
        self.graph, self.clock, self.trace = graph, clock, trace
        self.state: State = DictState() if state is None else state
        self.metrics = Metrics()
        self.late: dict[str, list[pl.DataFrame]] = {}
        deliver = deliver or {}
        operators = {
            node.name: node.build(self._context(node.name, deliver.get(node.name)))
            for node in graph.checked()
        }
        self.operators: dict[str, Operator] = operators
        self.components = [
            Component(wired(c, graph, operators), clock, self.metrics, self._keep_late, trace)
            for c in graph.components()
        ]
        self._desk = Desk(graph)
        self._home = {v.name: (c, v) for c in self.components for v in c.vertices}
        self._shared = None if graph.skew is None else SharedTime(graph.skew, self.state)
        self._untold = False  # whether something was told of the sources' times since the last step

    def _context(self, name: str, deliver: Deliver | None) -> Context:
        scope = Scoped(self.state, name)
        return Context(self.clock, scope, deliver) if deliver else Context(self.clock, scope)

    def feed(self, source: str, page: Page) -> None:
        component, vertex = self._home[source]
        component.feed(vertex, page)
        if self._shared is not None and isinstance(vertex.operator, Source):
            self._share(self._shared, vertex.operator, page)

    def finish(self, source: str) -> None:
        component, vertex = self._home[source]
        component.finish(vertex)

    def feedback(
        self,
        sink: str,
        feedback: str | Feedback,
        *,
        lasting: str | timedelta | int | None = None,
        undelimited: bool = False,
    ) -> Feedback:
        """Send feedback into the flow from one of its sinks; it goes before any data.

        See `Desk.take` for what is refused. Returns what was accepted.
        """
        component, vertex = self._home.get(sink, (None, None))
        operator = None if vertex is None else vertex.operator
        reached = operator.reached if isinstance(operator, Sink) else START_OF_TIME
        accepted = self._desk.take(
            sink, feedback, reached=reached, lasting=lasting, undelimited=undelimited
        )
        assert component is not None
        assert vertex is not None
        component.send_feedback(vertex, accepted)
        return accepted

    def _share(self, shared: SharedTime, source: Source, page: Page) -> None:
        span = source.span(page.frame) if page.height and source.output.time else None
        if span is not None:
            shared.arrived(source.name, *span, self.clock.now())
            self._untold = True

    def _tell(self, shared: SharedTime) -> None:
        """Every page of this instant is in: what they say of the sources' times."""
        self._untold = False
        for name, heartbeat in shared.heartbeats(self.clock.now()).items():
            component, vertex = self._home[name]
            assert isinstance(vertex.operator, Source)
            component.enter(vertex, vertex.operator.told(heartbeat))

    def step(self) -> bool:
        """One turn of every component that has something to do."""
        if self._untold and self._shared is not None:
            self._tell(self._shared)
        moved = [component.step() for component in self.components]
        return any(moved)

    def settle(self) -> None:
        """Step until nothing moves."""
        while self.step():
            pass

    def wake_at(self) -> int | None:
        moments = [c.wake_at() for c in self.components]
        if self._shared is not None:
            moments.append(self._shared.next_moment())
        return min((m for m in moments if m is not None), default=None)

    def wake(self) -> None:
        self._untold = True
        for component in self.components:
            component.wake()

    def held(self) -> dict[str, Held]:
        return {v.name: v.held() for c in self.components for v in c.vertices}

    def skipped(self) -> dict[str, dict[str, int]]:
        """Tuples that feedback spared each operator, by what it said."""
        found = {name: operator.skipped() for name, operator in self.operators.items()}
        return {name: counts for name, counts in found.items() if any(counts.values())}

    def selectivities(self) -> dict[str, float]:
        """Tuples out per tuple in so far, of the operators of the plan (gates are none of it)."""
        return {
            v.name: v.selectivity
            for c in self.components
            for v in c.vertices
            if v.selectivity is not None and not isinstance(self.graph.nodes[v.name], GateNode)
        }

    def blame(self) -> pl.DataFrame:
        """Which source holds each operator and sink back, and what would release it."""
        return table(line for c in self.components for line in blame(c.vertices))

    def vitals(self) -> Vitals:
        """What can be seen of the flow from outside."""
        return with_blame(v for c in self.components for v in c.vertices)

    def save(self) -> State:
        """Write every operator's changes to the state."""
        for component in self.components:
            for vertex in component.vertices:
                vertex.save()
        if self._shared is not None:
            self._shared.save()
        return self.state

    def _keep_late(self, node: str, page: Page) -> None:
        self.late.setdefault(node, []).append(page.frame)


class Driver:
    """Reads feeds as their moments come and keeps an engine going until they end.

    `cost` is what a step takes on a scripted clock, in microseconds; what arrives meanwhile enters
    when the step is over. `entering` is called as a page is handed to its source.
    """

    def __init__(
        self,
        engine: Engine,
        feeds: Mapping[str, Any],
        *,
        cost: int = 0,
        entering: Callable[[str, Page], None] | None = None,
    ) -> None:
        self.engine, self._entering = engine, entering
        sources = {n.name: n for n in engine.graph.sources}
        _check_names(sources, feeds)
        if cost and not isinstance(engine.clock, ScriptedClock):
            raise FlowError("run", "a scripted clock with cost=…", "a real clock", "Drop cost.")
        for component in engine.components:
            component.cost = cost
        self._clock = engine.clock
        arrivals = {
            name: as_feed(data).arrivals(sources[name].raw, f"feed of source {name!r}")
            for name, data in feeds.items()
        }
        if isinstance(self._clock, RealClock):
            speeds = {name: as_feed(data).speed for name, data in feeds.items()}
            arrivals = replayed(arrivals, self._clock.now(), speeds)
        self._feeds = Peekable(arrivals)
        first = self._feeds.first()
        if isinstance(self._clock, ScriptedClock) and first is not None:
            self._clock.wait_until(first)

    def run(self, until: int | None = None) -> None:
        """Until every feed has ended and nothing moves, or until a moment of the clock."""
        clock = self._clock
        while until is None or clock.now() <= until:
            self._take_due(clock.now())
            # Pages without a moment are taken only as fast as they are dealt with.
            if self._step(until) or self._take(self._feeds.untimed()):
                continue
            moment = self._next_moment()
            if moment is None or (until is not None and moment > until):
                break
            clock.wait_until(moment)
        if until is not None:
            clock.wait_until(until)
        self.engine.metrics.close(clock.now())

    def _step(self, until: int | None) -> bool:
        """Steps until nothing moves, or the next page or wake-up is due. That is looked up only
        when a source has named a moment: a step of one tuple costs hardly more than a look."""
        due = min(m for m in (self._due(), until, END_OF_TIME) if m is not None)
        engine, named = self.engine, self.engine.metrics.named
        moved = False
        while engine.step():
            moved = True
            if engine.metrics.named != named or self._clock.now() >= due:
                break
        return moved

    def _take_due(self, now: int) -> None:
        self._take(self._feeds.due(now))
        moment = self.engine.wake_at()
        if moment is not None and moment <= now:
            self.engine.wake()

    def _take(self, pages: Iterator[tuple[str, Page]]) -> bool:
        """Hand pages to their sources, and tell those whose feed has ended; False for nothing."""
        taken = False
        for name, page in pages:
            if self._entering is not None:
                self._entering(name, page)
            self.engine.feed(name, page)
            taken = True
        while self._feeds.ended:
            self.engine.finish(self._feeds.ended.pop())
            taken = True
        return taken

    def _next_moment(self) -> int | None:
        """The next arrival or wake-up; once all feeds have ended there is nothing to wait for."""
        return self._due() if self._feeds else None

    def _due(self) -> int | None:
        moments = [self._feeds.first(), self.engine.wake_at()]
        return min((m for m in moments if m is not None), default=None)


def _check_names(sources: Mapping[str, SourceNode], feeds: Mapping[str, Any]) -> None:
    missing, unknown = sources.keys() - feeds.keys(), feeds.keys() - sources.keys()
    if missing or unknown:
        said = (("no feed for", missing), ("feeds for", unknown))
        got = " and ".join(f"{what} {sorted(names)}" for what, names in said if names)
        raise FeedError(
            "run", f"one feed for each of {sorted(sources)}", got, "feeds={'source': data, …}"
        )


def run(
    graph: Graph,
    feeds: Mapping[str, Any],
    *,
    clock: Clock | None = None,
    sinks: Mapping[str, Deliver] | None = None,
    trace: Trace | None = None,
    cost: int = 0,
) -> Result:
    """Run a graph over feeds; sinks without a function of their own are collected."""
    collectors = {
        n.name: _Collector(n.streams[0].schema.empty()) for n in graph if isinstance(n, SinkNode)
    }
    deliver: dict[str, Deliver] = {**collectors, **(sinks or {})}
    engine = Engine(graph, clock or RealClock(), deliver=deliver, trace=trace)
    Driver(engine, feeds, cost=cost).run()
    late = {name: pl.concat(frames) for name, frames in engine.late.items()}
    collected = {
        name: collectors[name].all() for name in collectors if deliver[name] is collectors[name]
    }
    judged = graph.late_outputs
    return Result(collected, late, engine.metrics, trace, engine.selectivities(), judged)
