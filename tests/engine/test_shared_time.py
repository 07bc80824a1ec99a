"""Sources whose clocks are related: one that is silent is outwaited (Heartbeats 3 and 4)."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import interpunct as ip
from interpunct.engine.run import Engine

SCHEMA = "id bigint, ts bigint"


def sensors(**options: object) -> ip.Flow:
    """North and south, whose clocks deviate by at most 2 and 3."""
    skew = ip.distributed_sensors({"north": 2, "south": 3})
    flow = ip.Flow("sensors", skew=skew, **options)  # type: ignore[arg-type]
    both = [
        flow.source(n, SCHEMA, time=ip.external("ts", ip.bounds(skew=d), ets="never"))
        for n, d in {"north": 2, "south": 3}.items()
    ]
    flow.sink("out", flow.union(*both, name="union"))
    return flow


class Run:
    def __init__(self, flow: ip.Flow) -> None:
        self.clock = ip.ScriptedClock()
        self.out: list[int] = []
        self.engine = Engine(flow.graph, self.clock, deliver={"out": self._take})
        self._sent = 0

    def _take(self, frame: pl.DataFrame) -> None:
        self.out += frame["ts"].to_list()

    def send(self, source: str, *ticks: int) -> None:
        raw = next(n.raw for n in self.engine.graph.sources if n.name == source)
        self.engine.feed(source, ip.Page.of_rows(raw, [(self._sent, t) for t in ticks]))
        self._sent += 1

    def settle(self) -> list[int]:
        self.engine.settle()
        return self.out


def test_a_silent_source_is_outwaited_by_the_other() -> None:
    run = Run(sensors())
    run.send("north", 10)
    assert run.settle() == []
    run.send("north", 20)  # south is beyond 20 − 5, north beyond 20 − 2
    assert run.settle() == [10]


def test_without_the_matrix_it_is_waited_for() -> None:
    flow = ip.Flow("unrelated")
    time = ip.external("ts", ip.bounds(skew=2), ets="never")
    flow.sink("out", flow.union(*(flow.source(n, SCHEMA, time=time) for n in ("north", "south"))))
    run = Run(flow)
    run.send("north", 10)
    run.send("north", 20)
    assert run.settle() == []


def test_tuples_of_one_instant_do_not_make_each_other_late() -> None:
    run = Run(sensors())
    run.send("north", 100)
    run.send("south", 1)
    run.settle()
    assert not run.engine.late
    run.send("south", 2)  # now north's tuple has told
    run.settle()
    assert run.engine.late["south"][0]["ts"].to_list() == [2]


def test_the_timeout_releases_what_all_wait_for() -> None:
    run = Run(sensors(timeout=1_000))
    run.send("north", 10)
    assert run.settle() == []
    moment = run.engine.wake_at()
    assert moment is not None
    run.clock.wait_until(moment)
    run.engine.wake()
    assert run.settle() == [10]


def test_what_is_shared_survives_a_restart() -> None:
    run = Run(sensors())
    run.send("north", 10)
    run.settle()
    again = Run(sensors())
    again.engine = Engine(
        sensors().graph, again.clock, deliver={"out": again._take}, state=run.engine.save()
    )
    again.send("north", 20)
    assert again.settle() == [10]


@given(st.lists(st.tuples(st.sampled_from(["north", "south"]), st.integers(0, 40)), max_size=40))
def test_output_is_in_order_and_nothing_is_lost(sent: list[tuple[str, int]]) -> None:
    run = Run(sensors())
    for source, tick in sent:
        run.send(source, tick)
        run.settle()
    for name in ("north", "south"):
        run.engine.finish(name)
    run.settle()
    late = [t for frames in run.engine.late.values() for f in frames for t in f["ts"]]
    assert run.out == sorted(run.out)
    assert sorted(run.out + late) == sorted(t for _, t in sent)


def test_bounds_between_unknown_sources_are_refused() -> None:
    flow = ip.Flow("wrong", skew=ip.distributed_sensors({"north": 2, "east": 3}))
    flow.sink("out", flow.source("north", SCHEMA, time=ip.external("ts", ordered=True)))
    with pytest.raises(ip.InterpunctError, match="east"):
        _ = flow.graph
