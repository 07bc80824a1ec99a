"""Silence in a lane: proven, blocked, or neither. All moments are scripted."""

from __future__ import annotations

import polars as pl
import pytest

import interpunct as ip
from interpunct.engine.lane import Lane, LaneBatch, LaneOutput
from interpunct.engine.lane_source import Facts
from interpunct.flow.planner import stages
from interpunct.operators.state import DictState, State

SECOND = 1_000_000
SKEW = 2


def union(*, strict: bool) -> ip.Flow:
    flow = ip.Flow("silence", strict=strict)
    time = ip.external("ts", ip.bounds(skew=f"{SKEW}s"))
    a, b = (flow.source(n, "ts timestamp", time=time) for n in "ab")
    flow.sink("out", flow.union(a, b, name="both"))
    return flow


class Driven:
    """The one lane of a flow, driven batch by batch, in seconds."""

    def __init__(self, *, strict: bool, state: State | None = None) -> None:
        graph = union(strict=strict).graph
        (stage,) = stages(graph)
        self.state = DictState() if state is None else state
        self.lane = Lane(graph, stage, 1, self.state)
        self.stamps: list[int] = []
        self.late: list[int] = []

    def batch(self, now: float, **told: object) -> LaneOutput:
        """`a=…` and `b=…` are the stamps that came, `idle` and `blocked` what is known."""
        batch = LaneBatch(now=int(now * SECOND))
        for name in "ab":
            stamps = [int(s * SECOND) for s in told.get(name, ())]  # type: ignore[attr-defined]
            if stamps:
                ticks = pl.Series("ts", stamps, pl.Int64).cast(pl.Datetime("us", "UTC"))
                batch.raw[name] = [ticks.to_frame()]
                batch.facts[name] = Facts(len(stamps), max(stamps), min(stamps))
        idle: dict[str, float] = told.get("idle", {})  # type: ignore[assignment]
        batch.idle = {name: int(at * SECOND) for name, at in idle.items()}
        blocked: dict[str, float] = told.get("blocked", {})  # type: ignore[assignment]
        batch.blocked = {name: int(at * SECOND) for name, at in blocked.items()}
        output = self.lane.run(batch)
        self.lane.save()
        self.stamps += _seconds(output.sinks)
        self.late += _seconds(output.late)
        return output

    def quiet(self) -> str | None:
        return next((x.quiet for x in self.lane.vitals().waiting if x.operator == "both"), None)


def _seconds(frames: dict[str, pl.DataFrame]) -> list[int]:
    return [int(t) // SECOND for f in frames.values() for t in f["ts"].cast(pl.Int64)]


def test_strictly_the_clock_proves_nothing() -> None:
    lane = Driven(strict=True)
    lane.batch(100, a=[99], b=[90])
    output = lane.batch(200, a=[199])
    assert lane.stamps == []
    assert lane.quiet() == "silent since last heard"
    # b would have to be caught up at 100 + 90 − 90 + δ for its tuple to leave; nobody polls.
    assert output.unproven == {"b": 102 * SECOND}
    assert output.wake_at is None


def test_proof_that_a_source_had_nothing_to_send_lets_its_time_go_on() -> None:
    lane = Driven(strict=True)
    lane.batch(100, a=[99], b=[90])
    lane.batch(103, idle={"b": 101})  # too early: 90 + 1 − δ is not 90 yet
    assert lane.stamps == []
    output = lane.batch(104, idle={"b": 103})
    assert lane.stamps == [90]
    assert output.unproven == {"b": 111 * SECOND}  # for the tuple stamped 99


def test_proof_counts_up_to_its_moment_and_no_further() -> None:
    lane = Driven(strict=True)
    lane.batch(100, a=[99], b=[90])
    lane.batch(1000, idle={"a": 103, "b": 103})  # told long after
    assert lane.stamps == [90]
    lane.batch(1001, b=[92], idle={})  # 92 is above 90 + 3 − δ: in time, however late it is told
    assert lane.late == []


def test_proof_from_before_the_last_tuple_says_nothing() -> None:
    lane = Driven(strict=True)
    lane.batch(100, a=[99], b=[90])
    lane.batch(110, b=[95], idle={"b": 109})
    assert lane.quiet() == "silent since last heard"
    assert 95 not in lane.stamps


def test_proof_survives_a_restart() -> None:
    one = Driven(strict=True)
    one.batch(100, a=[99], b=[90])
    one.batch(104, idle={"b": 103})
    two = Driven(strict=True, state=one.state)
    two.batch(105, a=[100])
    assert two.lane.source_times()["b"].idle
    assert two.quiet() == "idle"


@pytest.mark.parametrize("blocked", [True, False])
def test_a_source_known_to_have_something_unread_is_not_idle(blocked: bool) -> None:
    """By default time goes on with the clock; not where it is known to be no silence."""
    lane = Driven(strict=False)
    lane.batch(100, a=[99], b=[90])
    output = lane.batch(104, blocked={"b": 103} if blocked else {})
    assert (lane.stamps == []) == blocked
    assert (output.unproven == {"b": 102 * SECOND}) == blocked  # proof of the contrary is wanted
    lane.batch(110)  # nothing new is known: it still has
    assert (lane.stamps == []) == blocked
    if blocked:
        assert lane.quiet() == "has something unread"
        lane.batch(112, b=[91])  # and here it is, in time
    assert lane.late == []
    lane.batch(200)
    assert lane.stamps[:1] == [90]


def test_proof_of_idleness_ends_what_was_known_to_be_unread() -> None:
    lane = Driven(strict=False)
    lane.batch(100, a=[99], b=[90])
    lane.batch(104, blocked={"b": 103})
    assert lane.stamps == []
    lane.batch(106, blocked={"b": 103}, idle={"b": 105})
    assert lane.stamps == [90]


def test_what_was_unread_before_the_last_tuple_came_says_nothing() -> None:
    lane = Driven(strict=False)
    lane.batch(100, a=[99], b=[90])
    lane.batch(104, blocked={"b": 99})
    assert lane.stamps == [90]


def test_blocked_time_is_not_idle_time() -> None:
    """A batch takes five minutes; what a source sent meanwhile is in the next, and in time."""
    for strict in (False, True):
        lane = Driven(strict=strict)
        lane.batch(100, a=[99], b=[99])
        lane.batch(400, b=list(range(100, 400)))
        assert lane.late == []


def test_an_ordered_source_proves_its_time_with_every_tuple() -> None:
    flow = ip.Flow("ordered", strict=True)
    a, b = (flow.source(n, "ts bigint", time=ip.external("ts", ordered=True)) for n in "ab")
    flow.sink("out", flow.union(a, b.where("ts % 2 = 0")))
    result = flow.run({"a": [(1,), (3,)], "b": [(2,), (5,)]})
    assert result["out"]["ts"].to_list() == [1, 2, 3]
