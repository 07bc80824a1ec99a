"""A flow that is fed by hand, in process: to try things out, in tests and in notebooks.

>>> from interpunct.flow.builder import FlowBuilder
>>> from interpunct.progress.timestamps import external
>>> flow = FlowBuilder("speeds")
>>> cars = flow.source("cars", "segment bigint, ts bigint", time=external("ts", ordered=True))
>>> flow.sink("map", cars)
>>> live = Live(flow.graph)
>>> live.feed("cars", [(3, 1), (4, 1)])
>>> live.feedback("map", "¬[segment=4, ts ≤ 9]")
>>> live.feed("cars", [(3, 2), (4, 2)])
>>> live.take("map").rows()
[(3, 1), (4, 1), (3, 2)]
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import polars as pl

from interpunct.engine.feeds import as_feed
from interpunct.engine.run import Engine
from interpunct.flow.graph import Graph
from interpunct.model.errors import FeedError
from interpunct.model.feedback import Feedback
from interpunct.operators.contract import Held
from interpunct.progress.clock import Clock, ScriptedClock


class Live:
    """Feeds come when they are given; everything that can move has moved when a call returns."""

    def __init__(self, graph: Graph, clock: Clock | None = None) -> None:
        self._out: dict[str, list[pl.DataFrame]] = {n.name: [] for n in graph.sinks}
        deliver = {name: frames.append for name, frames in self._out.items()}
        self.engine = Engine(graph, clock or ScriptedClock(), deliver=deliver)
        self._raw = {n.name: n.raw for n in graph.sources}
        self._schemas = {n.name: n.streams[0].schema for n in graph.sinks}

    def feed(self, source: str, data: Any) -> None:
        """Rows, a frame or pages for one source, at once."""
        if source not in self._raw:
            known = ", ".join(self._raw)
            raise FeedError("feed", f"one of the sources {known}", repr(source), "Name one.")
        for arrival in as_feed(data).arrivals(self._raw[source], f"feed of source {source!r}"):
            self.engine.feed(source, arrival.page)
            self.engine.settle()

    def feedback(
        self,
        sink: str,
        feedback: str | Feedback,
        *,
        lasting: str | timedelta | int | None = None,
        undelimited: bool = False,
    ) -> None:
        """Send feedback from a sink; what it asks for now is there when the call returns."""
        self.engine.feedback(sink, feedback, lasting=lasting, undelimited=undelimited)
        self.engine.settle()

    def take(self, sink: str) -> pl.DataFrame:
        """What a sink was given since it was last asked."""
        taken = pl.concat([self._schemas[sink].empty(), *self._out[sink]])
        self._out[sink].clear()
        return taken

    def finish(self, *sources: str) -> None:
        """Nothing more will come of these sources, or of any."""
        for name in sources or self._raw:
            self.engine.finish(name)
        self.engine.settle()

    def skipped(self) -> dict[str, dict[str, int]]:
        """Tuples that feedback spared each operator, by what it said."""
        return self.engine.skipped()

    def held(self) -> dict[str, Held]:
        return self.engine.held()

    def blame(self) -> pl.DataFrame:
        """Which source holds each operator back."""
        return self.engine.blame()
