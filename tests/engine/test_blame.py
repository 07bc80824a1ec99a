"""Blame names the source that holds an operator back, and what would release it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import interpunct as ip
from interpunct.engine.run import Engine


def two_sources(time: ip.TimeSpec) -> Engine:
    flow = ip.Flow("blame")
    a, b = (flow.source(n, "ts bigint, v bigint", time=time) for n in "ab")
    flow.sink("out", flow.union(a.where("v > 0"), b, name="union"))
    return Engine(flow.graph, ip.ScriptedClock())


def feed(engine: Engine, source: str, *rows: tuple[int, int]) -> None:
    (node,) = [n for n in engine.graph.sources if n.name == source]
    engine.feed(source, ip.Page.of_rows(node.raw, rows))
    engine.settle()


def line(engine: Engine, operator: str) -> dict[str, object]:
    (found,) = [r for r in engine.blame().iter_rows(named=True) if r["operator"] == operator]
    return found


def test_a_source_that_never_spoke_is_to_blame() -> None:
    engine = two_sources(ip.external("ts", ordered=True))
    feed(engine, "a", (5, 1), (9, 1))
    blamed = line(engine, "union")
    assert (blamed["source"], blamed["quiet"], blamed["holds"]) == ("b", "never seen", 2)
    assert (blamed["wanted"], blamed["reached"]) == (5, None)
    assert line(engine, "out")["source"] == "b"


def test_blame_moves_to_the_source_that_lags() -> None:
    engine = two_sources(ip.external("ts", ordered=True))
    feed(engine, "a", (5, 1))
    feed(engine, "b", (20, 1))
    blamed = line(engine, "union")
    assert (blamed["source"], blamed["quiet"]) == ("a", "silent since last heard")
    assert blamed["release"] == "a tuple stamped 21 or later"


def test_a_filtered_tuple_is_no_reason_to_blame() -> None:
    engine = two_sources(ip.external("ts", ordered=True))
    feed(engine, "b", (20, 1))
    feed(engine, "a", (30, 0))  # does not pass, but tells the time
    assert "union" not in engine.blame()["operator"].to_list()


def test_bounds_say_by_how_much_a_source_is_behind() -> None:
    engine = two_sources(ip.external("ts", bounds=ip.bounds(skew=10)))
    feed(engine, "a", (50, 1))
    feed(engine, "b", (45, 1))
    blamed = line(engine, "union")
    assert (blamed["source"], blamed["wanted"], blamed["reached"]) == ("b", 45, 35)
    assert blamed["behind"] == 10
    assert str(blamed["release"]).startswith("a tuple stamped 55 or later")


def test_when_all_have_finished_nobody_is_to_blame() -> None:
    engine = two_sources(ip.external("ts", ordered=True))
    feed(engine, "a", (5, 1))
    for name in "ab":
        engine.finish(name)
    engine.settle()
    assert "union" not in engine.blame()["operator"].to_list()


def test_a_source_that_has_finished_is_never_waited_for() -> None:
    engine = two_sources(ip.external("ts", ordered=True))
    feed(engine, "a", (5, 1))
    engine.finish("b")
    engine.settle()
    assert set(engine.blame()["source"]) <= {"a"}
    engine.finish("a")
    engine.settle()
    assert engine.blame().height == 0


def test_times_are_moments_and_lengths_where_the_streams_have_them() -> None:
    flow = ip.Flow("clocked")
    time = ip.external("ts", bounds=ip.bounds(skew="10s"), ets="never")
    a, b = (flow.source(n, "ts timestamp", time=time) for n in "ab")
    flow.sink("out", flow.union(a, b, name="union"))
    start = datetime(2026, 1, 1, 9, tzinfo=UTC)
    engine = Engine(flow.graph, ip.ScriptedClock(at=1_767_258_000_000_000))  # the same
    for source, second in (("a", 50), ("b", 45)):
        page = ip.Page.of_rows(ip.Schema.of("ts timestamp"), [(start.replace(second=second),)])
        engine.feed(source, page)
    engine.settle()
    blamed = line(engine, "union")
    assert blamed["reached"] == start.replace(second=35)
    assert blamed["behind"] == timedelta(seconds=10)
    assert blamed["since"] == start


def test_a_time_that_no_calendar_has_is_null() -> None:
    flow = ip.Flow("nothing")
    flow.sink("out", flow.source("a", "ts timestamp", time=ip.external("ts", ordered=True)))
    (blamed,) = Engine(flow.graph, ip.ScriptedClock()).blame().iter_rows(named=True)
    assert (blamed["wanted"], blamed["reached"], blamed["behind"]) == (None, None, None)


@pytest.mark.parametrize("time", ["timestamp", "bigint"])
@pytest.mark.parametrize("known", [{"ordered": True}, {"bounds": ip.bounds(skew="5us")}], ids=str)
def test_a_sink_that_has_heard_nothing_waits_for_any_tuple(time: str, known: Any) -> None:
    flow = ip.Flow("nothing")
    flow.sink("out", flow.source("a", f"ts {time}", time=ip.external("ts", **known)))
    flow.sink("untimed", flow.source("b", "v bigint"))
    engine = Engine(flow.graph, ip.ScriptedClock())
    (blamed,) = engine.blame().iter_rows(named=True)
    assert (blamed["operator"], blamed["source"]) == ("out", "a")
    assert blamed["release"] == "any tuple"


@pytest.mark.parametrize(
    ("stamp", "said"),
    [
        (45_000_000, "1970-01-01 00:00:45"),
        (44_999_999, "1970-01-01 00:00:45"),  # enough, and readable
        (44_123_456, "1970-01-01 00:00:44.124"),
    ],
)
def test_a_release_is_told_in_times_for_people(stamp: int, said: str) -> None:
    flow = ip.Flow("clocked")
    time = ip.external("ts", ordered=True)
    a, b = (flow.source(n, "ts timestamp", time=time) for n in "ab")
    flow.sink("out", flow.union(a, b, name="union"))
    engine = Engine(flow.graph, ip.ScriptedClock())
    for source, ticks in (("a", stamp - 1), ("b", stamp - 2)):
        moment = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=ticks)
        engine.feed(source, ip.Page.of_rows(ip.Schema.of("ts timestamp"), [(moment,)]))
    engine.settle()
    blamed = line(engine, "union")
    assert (blamed["source"], blamed["release"]) == ("b", f"a tuple stamped {said} or later")
