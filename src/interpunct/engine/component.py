"""The two-step cycle: run the current operator, then choose the next (ETS Figure 3).

Next Operator Selection, depth first (ETS section 3.1):

    Forward    if yield then next := succ
    Encore     else if more then next := self
    Backtrack  else next := pred_j and repeat this step on pred_j

`yield`: an output buffer holds a page. An operator that is the last before a sink skips Forward,
because sinks empty their buffers themselves. `more`: an input buffer holds a page. pred_j feeds
the empty input that the operator, or whoever downstream it backtracked from, waits for. When
backtracking reaches a source, the source is asked for an enabling timestamp on behalf of the
operator that waits; it gives one, or names the moment before which asking again is no use. That
moment becomes a wake-up, so nothing polls.
"""

from __future__ import annotations

from collections.abc import Callable

from interpunct.engine.arcs import Vertex
from interpunct.engine.metrics import Metrics
from interpunct.engine.trace import Trace
from interpunct.model.feedback import Feedback
from interpunct.model.late import is_late
from interpunct.model.page import Page
from interpunct.operators.contract import Demand, Emission, Operator
from interpunct.progress.clock import Clock, ScriptedClock
from interpunct.progress.source_time import NotBefore


class Component:
    """One connected component of the graph: a scheduling unit of its own."""

    def __init__(
        self,
        vertices: list[Vertex],
        clock: Clock,
        metrics: Metrics,
        unclaimed: Callable[[str, Page], None],
        trace: Trace | None = None,
    ) -> None:
        self.vertices = vertices
        self._unclaimed = unclaimed  # late outputs that nobody reads
        self._clock, self._metrics, self._trace = clock, metrics, trace
        self._sources = [(v, v.source) for v in vertices if v.source is not None]
        self._askers = [v for v in vertices if type(v.operator).needs is not Operator.needs]
        self._workers = [v for v in vertices if type(v.operator).work is not Operator.work]
        self._idle_prone = [v for v in vertices if v.operator.idle_waiting]
        self._current: Vertex | None = None
        self._controlled: list[Vertex] = []  # those with feedback waiting
        self._resting: list[str] = []  # operators that hold tuples while nothing can run
        self._entries = 0
        self.cost = 0  # what a step takes on a scripted clock, in microseconds
        self._asked: dict[Vertex, Demand] = {}
        for vertex in vertices:
            vertex.restore()
        self._wakeups: dict[Vertex, int] = {}

    # What reaches the component from outside ------------------------------------------------

    def feed(self, source: Vertex, page: Page) -> None:
        """A page from a feed enters at a source, which may now have answers it had not before."""
        self._asked.clear()
        if self._controlled:
            self.control()
        self._dispatch(source, source.operator.accept(0, page))

    def enter(self, source: Vertex, emission: Emission) -> None:
        """What a source makes of a batch enters."""
        self._asked.clear()
        if self._controlled:
            self.control()
        self._dispatch(source, source.operator.let_out(emission))

    def finish(self, source: Vertex) -> None:
        """A feed has ended."""
        assert source.source is not None
        self._note("finish", source)
        self._dispatch(source, source.operator.let_out(source.source.finish()))

    def send_feedback(self, vertex: Vertex, feedback: Feedback, port: int = 0) -> None:
        """Control goes out of band and before data; it speaks of an output of the vertex."""
        vertex.control.append((port, feedback))
        self._controlled.append(vertex)

    def wake_at(self) -> int | None:
        """The earliest moment at which something here can move without new data."""
        moments = list(self._wakeups.values())
        for _, source in self._sources:
            moment = source.wake_at()
            if moment is not None:
                moments.append(moment)
        return min(moments, default=None)

    def wake(self) -> None:
        """Let the sources whose moment has come speak, and those who waited ask again."""
        now = self._clock.now()
        for vertex, source in self._sources:
            moment = source.wake_at()
            if moment is not None and moment <= now:
                self._note("wake", vertex)
                self._dispatch(vertex, source.let_out(source.on_wake()))
        for vertex in [v for v, moment in self._wakeups.items() if moment <= now]:
            del self._wakeups[vertex]
            self._asked.pop(vertex, None)

    # The cycle ------------------------------------------------------------------------------

    def step(self) -> bool:
        """One turn of the cycle; False when there is nothing to do until something arrives."""
        if self._controlled:
            self.control()
        vertex = self._current or self._runnable()
        if vertex is not None:
            self._execute(vertex)
            self._current = self._next_operator(vertex)
            return True
        waiting = self._unasked()
        if waiting is None:
            if self._workers and self._work():
                return True
            self._rest()
            return False
        self._current = self._next_operator(waiting)
        return True

    def _execute(self, vertex: Vertex) -> None:
        """Execution step: consume one page, the one that has waited longest."""
        arc = vertex.oldest_input()
        if arc is None:
            return
        if self._resting:
            self._resume()
        if self.cost:
            assert isinstance(self._clock, ScriptedClock)
            self._clock.advance(self.cost)
        _, page = arc.pages.popleft()
        self._metrics.queued -= len(page)
        vertex.taken += page.height
        self._note("execute", vertex, page)
        self._asked.pop(vertex, None)
        self._dispatch(vertex, vertex.operator.accept(arc.input, page))
        self._metrics.steps += 1
        if vertex.operator.idle_waiting:
            self._metrics.observe(vertex, self._clock.now())

    def _work(self) -> bool:
        """With nothing else to do, one piece of somebody's backlog."""
        for vertex in self._workers:
            if vertex.operator.backlog():
                self._note("work", vertex)
                self._dispatch(vertex, vertex.operator.work())
                self._current = self._next_operator(vertex)
                return True
        return False

    def _next_operator(self, vertex: Vertex) -> Vertex | None:
        """Continuation step: Forward, Encore, or Backtrack and repeat."""
        demand: Demand | None = None
        waiting: Vertex | None = None
        while True:
            filled = vertex.filled_output()
            if filled is not None:
                self._note("forward", filled.consumer)
                return filled.consumer
            if vertex.oldest_input() is not None:
                self._note("encore", vertex)
                return vertex
            own = vertex.operator.needs()
            if own is not None:
                self._asked[vertex] = own
                demand, waiting = own, vertex
            elif demand is not None:
                demand = vertex.operator.demand(demand.wanted)
            arc = vertex.inputs[demand.port if demand is not None else 0]
            if arc.producer.source is not None:
                return self._at_source(arc.producer, demand, waiting)
            vertex = arc.producer
            self._note("backtrack", vertex)

    def _at_source(
        self, source: Vertex, demand: Demand | None, waiting: Vertex | None
    ) -> Vertex | None:
        """Backtracking has come all the way: ask for an enabling timestamp if someone waits."""
        self._note("backtrack", source)
        if demand is None or waiting is None:
            return None
        assert source.source is not None
        answer = source.source.on_demand(demand.wanted)
        if isinstance(answer, NotBefore):
            self._wakeups[waiting] = answer.moment
            self._metrics.named += 1
            self._note("wake-up", waiting, detail=f"at {answer.moment}")
            return None
        if not answer:
            return None
        self._metrics.ets += 1
        self._asked.pop(waiting, None)  # if this one was not enough, it may ask others too
        self._note("ets", source, answer.pages[0][1])
        self._dispatch(source, source.operator.let_out(answer))
        filled = source.filled_output()
        return None if filled is None else filled.consumer

    def _runnable(self) -> Vertex | None:
        """Where to begin: the first operator, in the order data takes, that has input."""
        return next((v for v in self.vertices if v.oldest_input() is not None), None)

    def _unasked(self) -> Vertex | None:
        """An operator that waits and whose demand has not been put to a source yet."""
        for vertex in self._askers:
            need = vertex.operator.needs()
            if need is not None and self._asked.get(vertex) != need:
                return vertex
        return None

    def _rest(self) -> None:
        """Nothing can run: operators that hold tuples back are idle-waiting from now on."""
        for vertex in self._idle_prone:
            if vertex.name not in self._resting and vertex.operator.waiting():
                self._resting.append(vertex.name)
                self._metrics.rest(vertex.name, self._clock.now())

    def _resume(self) -> None:
        """Something runs: whoever waited is being served."""
        while self._resting:
            self._metrics.resume(self._resting.pop(), self._clock.now())

    def control(self) -> None:
        """Feedback first: each message to its operator, what it relays to those upstream."""
        while self._controlled:
            vertex = self._controlled.pop()
            while vertex.control:
                port, feedback = vertex.control.popleft()
                self._note("feedback", vertex, detail=str(feedback))
                self._dispatch(vertex, vertex.operator.on_feedback(feedback, port))

    def _dispatch(self, vertex: Vertex, emission: Emission) -> None:
        """Pages into the buffers of their arcs (sinks take them at once), feedback upstream."""
        for port, page in emission.pages:
            readers = vertex.readers.get(port, ())
            vertex.made[port] = vertex.made.get(port, 0) + page.height
            if not readers and page.height and is_late(page.schema):
                self._unclaimed(vertex.name, page)
            for arc in readers:
                if arc.consumer.is_sink:
                    arc.consumer.taken += page.height
                    arc.consumer.operator.accept(arc.input, page)
                    continue
                self._entries += 1
                arc.pages.append((self._entries, page))
                self._metrics.buffered(len(page))
            if vertex.agreements and page.punctuations:
                vertex.promised(port, page)
        for port, feedback in emission.relays:
            arc = vertex.inputs[port]
            for heard in arc.producer.heard(arc, feedback):
                self.send_feedback(arc.producer, heard, arc.port)

    def _note(self, rule: str, vertex: Vertex, page: Page | None = None, detail: str = "") -> None:
        if self._trace is None:
            return
        if page is not None:
            marks = " ".join(str(p) for p in page.punctuations)
            detail = f"{page.height} tuples {marks}".strip()
        self._trace.add(self._clock.now(), rule, vertex.name, detail)
