"""Examples 3 and 4 of *Feedback* section 2, as flows on a scripted clock.

          ┌─ clean ─────────────────┐
sensors ──┤ split                   ├─ PACE ─ map        PACE tells IMPUTE what is too late
          └─ dirty ─── IMPUTE ──────┘
                      (an archive)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import polars as pl
import pytest

from interpunct import Flow, external
from interpunct.engine.feeds import feed
from interpunct.engine.run import Driver, Engine
from interpunct.flow.stream import FlowStream
from interpunct.model.feedback import Feedback
from interpunct.progress.clock import ScriptedClock

SECOND = 1_000_000
EVERYTHING = "![*, ≥ '1970-01-01', *, *]"
SENSORS = "id bigint, ts timestamp, segment bigint, speed double"


@dataclass
class SlowArchive:
    """Knows every segment's usual speed, and takes its time to say so."""

    clock: ScriptedClock
    takes: int
    asked: list[int] = field(default_factory=list)
    parameters: tuple[str, ...] = ("segment",)

    def look_up(self, keys: pl.DataFrame) -> pl.DataFrame:
        self.clock.advance(self.takes)
        self.asked += keys["id"].to_list()
        return keys.select((pl.col("segment") * 10.0).alias("speed"))


def alternating(tuples: int) -> pl.DataFrame:
    """A tuple a second; every other sensor reports null."""
    ids = pl.int_range(tuples, eager=True)
    return pl.DataFrame(
        {
            "id": ids,
            "ts": (ids * SECOND).cast(pl.Datetime("us", "UTC")),
            "segment": ids % 5,
            "speed": [None if i % 2 else 60.0 for i in range(tuples)],
        }
    )


@dataclass
class Outcome:
    rows: list[dict[str, Any]]
    late: list[dict[str, Any]]
    engine: Engine
    archive: SlowArchive

    def imputed(self) -> list[int]:
        return [row["id"] for row in self.rows if row["id"] % 2]


def example_3(*, feedback: bool, takes: int = 3 * SECOND, tuples: int = 200) -> Outcome:
    """A dirty tuple comes every two seconds, a look-up takes three, a delay of ten is tolerated."""
    clock = ScriptedClock()
    archive = SlowArchive(clock, takes)
    flow = Flow("example 3")
    sensors = flow.source("sensors", SENSORS, time=external("ts", ordered=True))
    dirty, clean = sensors.split("speed is null", name="quality")
    imputed = dirty.impute("speed", archive=archive, name="impute")
    united = clean.pace(imputed, within="10s", feedback=feedback, name="pace")
    flow.sink("map", united)
    flow.sink("late", united.late)
    rows: list[dict[str, Any]] = []
    late: list[dict[str, Any]] = []
    deliver = {
        "map": lambda f: rows.extend(f.to_dicts()),
        "late": lambda f: late.extend(f.to_dicts()),
    }
    engine = Engine(flow.graph, clock, deliver=deliver)
    Driver(engine, {"sensors": feed(alternating(tuples), arrival="ts")}).run()
    return Outcome(rows, late, engine, archive)


def test_example_3_without_feedback_nearly_all_imputed_tuples_are_too_late() -> None:
    outcome = example_3(feedback=False, tuples=400)
    assert len(outcome.archive.asked) == 200, "every look-up was made"
    assert len(outcome.imputed()) < 20
    assert len(outcome.late) == 200 - len(outcome.imputed())


def test_example_3_pace_tells_impute_and_late_work_is_purged() -> None:
    outcome = example_3(feedback=True)
    in_time = outcome.imputed()
    assert len(in_time) >= 60, "of 100; two thirds can be looked up in the time there is"
    assert len(outcome.archive.asked) - len(in_time) <= 5, "hardly a look-up was for nothing"
    skipped = outcome.engine.skipped()["impute"]
    assert sum(skipped.values()) == 100 - len(outcome.archive.asked), "the others were purged"
    values = {row["id"]: row["speed"] for row in outcome.rows}
    assert all(values[i] == i % 5 * 10.0 for i in in_time)


def test_example_3_no_tuple_in_the_result_is_later_than_tolerated() -> None:
    for feedback in (True, False):
        outcome = example_3(feedback=feedback)
        high = outcome.rows[0]["ts"]
        for row in outcome.rows:
            high = max(high, row["ts"])
            assert (high - row["ts"]).total_seconds() <= 10


def test_example_3_clean_tuples_are_all_there_and_nothing_is_left_behind() -> None:
    for feedback in (True, False):
        outcome = example_3(feedback=feedback)
        assert [row["id"] for row in outcome.rows if not row["id"] % 2] == [*range(0, 200, 2)]
        held = outcome.engine.held()
        assert {
            name: (h.tuples, h.guards) for name, h in held.items() if h.tuples or h.guards
        } == {}


def test_example_3_when_look_ups_keep_up_feedback_changes_nothing() -> None:
    results = [example_3(feedback=f, takes=SECOND).rows for f in (True, False)]
    assert results[0] == results[1]
    assert len(results[0]) == 200


# Example 4 --------------------------------------------------------------------------------------


def polled(make: Any, frame: pl.DataFrame, demands: dict[int, str]) -> list[tuple[int, list[Any]]]:
    """A flow behind a poll; what each demand brings, by the second at which it is made."""
    clock = ScriptedClock()
    flow = Flow("example 4")
    sensors = flow.source("sensors", SENSORS, time=external("ts", ordered=True))
    stream: FlowStream = make(sensors)
    flow.sink("screen", stream)
    shown: list[Any] = []
    engine = Engine(
        flow.graph, clock, deliver={"screen": lambda f: shown.extend(f["id"].to_list())}
    )
    driver = Driver(engine, {"sensors": feed(frame, arrival="ts")})
    brought = []
    for second, text in demands.items():
        driver.run(until=second * SECOND)
        assert shown == []
        engine.feedback("screen", Feedback.parse(text, stream.schema))
        engine.settle()
        brought.append((second, list(shown)))
        shown.clear()
    driver.run()
    assert shown == [], "what nobody asked for does not come"
    return brought


def test_example_4_results_are_produced_when_requested_and_only_then() -> None:
    demands = {5: EVERYTHING, 7: "![*, *, 1, *]", 9: EVERYTHING}
    brought = polled(lambda s: s.poll(keep="1h"), alternating(20), demands)
    assert brought == [(5, [0, 1, 2, 3, 4, 5]), (7, [6]), (9, [7, 8, 9])]


def test_example_4_the_request_goes_through_the_query_tree() -> None:
    """Asked of the sink, it reaches the poll behind a selection and a projection."""

    def behind(sensors: FlowStream) -> FlowStream:
        kept = sensors.poll(keep="1h").where("segment <> 2")
        return kept.select("id", "ts", "segment", kmh="speed * 1.609")

    assert polled(behind, alternating(20), {6: "![segment in {1, 2}]"}) == [(6, [1, 6])]


def test_example_4_what_is_too_old_is_not_waited_for() -> None:
    brought = polled(lambda s: s.poll(keep="3s"), alternating(20), {12: EVERYTHING})
    assert brought == [(12, [9, 10, 11, 12])]


@pytest.mark.parametrize("keep", ["0s", "2s"])
def test_example_4_holds_no_more_than_it_keeps(keep: str) -> None:
    clock = ScriptedClock()
    flow = Flow("example 4")
    sensors = flow.source("sensors", SENSORS, time=external("ts", ordered=True))
    flow.sink("screen", sensors.poll(keep=keep, name="poll"))
    engine = Engine(flow.graph, clock)
    driver = Driver(engine, {"sensors": feed(alternating(50), arrival="ts")})
    for second in range(50):
        driver.run(until=second * SECOND)
        assert engine.held()["poll"].tuples <= 4
    driver.run()
    assert engine.held()["poll"].tuples == 0
