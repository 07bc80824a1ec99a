"""A flow of which one source is silent, and what its lanes would tell."""

from __future__ import annotations

import interpunct as ip
from interpunct.engine.run import Engine
from interpunct.engine.vitals import Vitals

SECOND = 1_000_000


def demo_flow(schema: str = "ts timestamp") -> ip.Flow:
    """A union of two sources."""
    flow = ip.Flow("waiting")
    time = ip.external("ts", ip.bounds(skew=2 * SECOND), ets="never")
    a, b = (flow.source(n, schema, time=time) for n in "ab")
    flow.sink("out", flow.union(a, b, name="both"))
    return flow


def waiting(schema: str = "ts timestamp") -> Vitals:
    """One of the two is silent; as the engine sees it."""
    engine = Engine(demo_flow(schema).graph, ip.ScriptedClock(at=100 * SECOND))
    for source, tick in (("b", 90), ("a", 99)):
        page = ip.Page.of_rows(ip.Schema.of("ts bigint"), [(tick * SECOND,)])
        raw = ip.Schema.of(schema)
        frame = page.frame.cast({"ts": raw["ts"].dtype})
        engine.feed(source, ip.Page(raw, frame))
    engine.settle()
    return engine.vitals()
