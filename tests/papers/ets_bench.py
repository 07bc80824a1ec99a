"""What the tests of the ETS paper share: its graphs, on an engine whose every step is seen."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import polars as pl

import interpunct as ip
from interpunct.engine.run import Engine
from interpunct.flow.stream import FlowStream
from interpunct.model.properties import Properties
from interpunct.model.punctuation import Punctuation
from interpunct.model.schema import EPOCH, Schema
from interpunct.operators.contract import Stream

SECOND = 1_000_000
SEQ = Stream(Schema.of("n bigint, ts bigint", time="ts"), Properties(ordered=True))


def page(schema: Schema, *rows: tuple[Any, ...]) -> ip.Page:
    return ip.Page.of_rows(schema, rows)


def seq(*ticks: int) -> ip.Page:
    """Tuples stamped with these sequence numbers."""
    return ip.Page(SEQ.schema, pl.DataFrame({"n": ticks, "ts": ticks}, schema=SEQ.schema.polars))


def beat(ticks: int) -> ip.Page:
    schema = SEQ.schema
    return ip.Page(schema, schema.empty(), (Punctuation.heartbeat(schema, ticks),))


class Bench:
    """An engine on a scripted clock, with its trace and what reached the sinks."""

    def __init__(self, flow: ip.Flow, at: int = 0) -> None:
        self.clock, self.trace = ip.ScriptedClock(at), ip.Trace()
        self.frames: dict[str, list[pl.DataFrame]] = {n.name: [] for n in flow.graph.sinks}
        deliver = {name: frames.append for name, frames in self.frames.items()}
        self.engine = Engine(flow.graph, self.clock, deliver=deliver, trace=self.trace)

    def feed(self, source: str, *rows: tuple[Any, ...]) -> None:
        node = next(n for n in self.engine.graph.sources if n.name == source)
        self.engine.feed(source, page(node.raw, *rows))

    def steps(self) -> list[str]:
        """What the engine does until nothing moves."""
        self.trace.steps.clear()
        self.engine.settle()
        return self.trace.rules()

    def out(self, sink: str = "out") -> list[tuple[Any, ...]]:
        return [row for frame in self.frames[sink] for row in frame.rows()]


def union_flow(
    time: Any, schema: str = "n bigint", *, selections: bool = True
) -> tuple[ip.Flow, FlowStream, FlowStream]:
    """The graph of Figure 4: two sources, a selection on each, their union, a sink."""
    flow = ip.Flow("figure-4")
    one = flow.source("S1", schema, time=time)
    two = flow.source("S2", schema, time=time)
    if selections:
        one, two = one.where("n > 0", name="σ1"), two.where("n > 0", name="σ2")
    flow.sink("out", flow.union(one, two, name="∪"))
    return flow, one, two


def at(seconds: float) -> Any:
    return EPOCH + timedelta(seconds=seconds)
