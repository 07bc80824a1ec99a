"""A flow in process, on a scripted clock, as the studio watches it."""

from __future__ import annotations

import polars as pl

import interpunct as ip
from interpunct.engine.merge_vitals import InputVitals, MergeVitals
from interpunct.engine.run import Engine
from interpunct.engine.vitals import QueryVitals, Snapshot
from interpunct.flow.feedback import Length
from interpunct.flow.outline import Outline
from interpunct.operators.sink import Sink
from interpunct.studio import demo

SECOND = 1_000_000


class InProcess:
    """The demonstration's flow; each `turn` is a second of its traffic."""

    def __init__(self) -> None:
        self.graph, self.view = demo.flow().graph, demo.speed_map()
        self.clock = ip.ScriptedClock(1_000 * SECOND)
        self.engine = Engine(self.graph, self.clock, deliver={"map": self.view.show})
        self.turns = 0
        self.others: list[ip.Feedback] = []  # said by other programs

    def turn(self, *, vehicles: bool = True) -> None:
        """Ten tuples of each segment from each source."""
        self.turns += 1
        for name in ("sensors", "vehicles") if vehicles else ("sensors",):
            raw = self.graph.nodes[name].raw
            frame = pl.DataFrame({
                "segment": list(range(9)) * 10,
                "ts": [self.clock.now() + n * 1000 for n in range(90)],
                "speed": [50.0] * 90,
            })  # fmt: skip
            page = ip.Page(raw, frame.cast({"ts": raw["ts"].dtype}).select(raw.names))
            self.engine.feed(name, page)
        self.engine.settle()
        self.clock.advance(SECOND)
        self.engine.wake()
        self.engine.settle()

    def snapshot(self) -> Snapshot:
        sink = self.engine.operators["map"]
        assert isinstance(sink, Sink)
        batches = QueryVitals(self.turns, self.clock.now(), 0.1, True)
        return Snapshot(self.clock.now(), Outline.of(self.graph), self.engine.vitals(), batches,
                        {"map": sink.reached})  # fmt: skip

    def send(self, sink: str, feedback: str, lasting: Length | None) -> ip.Feedback:
        return self.engine.feedback(sink, feedback, lasting=lasting)

    def in_force(self) -> dict[str, list[ip.Feedback]]:
        return {"map": self.others}


def merge(a: int, b: int, leader: str, status: str = "joined", why: str = "") -> MergeVitals:
    """Two inputs, and what comes out: as far as the leader."""
    inputs = {"a": InputVitals("joined", a * SECOND), "b": InputVitals(status, b * SECOND, why)}
    return MergeVitals("R3", inputs[leader].stable, leader, inputs)
