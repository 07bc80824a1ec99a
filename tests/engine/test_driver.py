"""The driver: when pages enter, what a step costs, when it stops, what is measured."""

from __future__ import annotations

import interpunct as ip
from interpunct.engine.feeds import Arrival, replayed
from interpunct.engine.run import Driver, Engine
from interpunct.model.page import Page

SCHEMA = "id bigint, at bigint"


def two_streams(time: ip.TimeSpec) -> ip.Flow:
    flow = ip.Flow("two")
    streams = [flow.source(name, SCHEMA, time=time) for name in ("a", "b")]
    flow.sink("out", flow.union(*streams, name="union"))
    return flow


def arriving(*moments: int) -> ip.Feed:
    return ip.feed([(n, at) for n, at in enumerate(moments)], arrival="at")


def test_a_step_has_its_cost_before_it_has_its_effect() -> None:
    clock, seen = ip.ScriptedClock(), []
    flow = two_streams(ip.latent())
    deliver = {"out": lambda frame: seen.append(clock.now())}
    engine = Engine(flow.graph, clock, deliver=deliver)
    Driver(engine, {"a": arriving(1000), "b": arriving(5000)}, cost=70).run()
    assert seen == [1070, 5070]


def test_what_arrives_during_a_step_enters_all_at_once_afterwards() -> None:
    clock, entered = ip.ScriptedClock(), []
    engine = Engine(two_streams(ip.latent()).graph, clock)
    feeds = {"a": arriving(0, 10, 30, 90), "b": arriving(20)}
    Driver(engine, feeds, cost=50, entering=lambda n, _: entered.append((n, clock.now()))).run()
    assert entered == [("a", 0), ("a", 50), ("b", 50), ("a", 50), ("a", 100)]
    assert engine.metrics.peak_queue == 3


def test_a_run_with_an_end_stops_there_even_when_busy() -> None:
    clock = ip.ScriptedClock()
    engine = Engine(two_streams(ip.latent()).graph, clock)
    feeds = {"a": arriving(*range(0, 1000, 10)), "b": arriving(0)}
    Driver(engine, feeds, cost=100).run(until=450)
    assert clock.now() == 500
    assert engine.metrics.queued > 10


def test_pages_without_a_moment_are_taken_as_fast_as_they_are_dealt_with() -> None:
    engine = Engine(two_streams(ip.latent()).graph, ip.ScriptedClock())
    rows = ip.feed([(n, 0) for n in range(50)], page_size=1)
    Driver(engine, {"a": rows, "b": rows}).run()
    assert engine.metrics.peak_queue == 2


def test_idle_waiting_counts_only_the_time_in_which_nothing_can_run() -> None:
    flow = two_streams(ip.internal("t", ets="never"))
    engine = Engine(flow.graph, ip.ScriptedClock())
    Driver(engine, {"a": arriving(0, 4000), "b": arriving(3000, 9000)}, cost=100).run(until=6000)
    # a waits for b from 100 to 3000, then b for a from 3100 to 4000, then a for b again; from
    # 4000 on two steps are paid for, the tuple of a and the end of its feed.
    assert engine.metrics.idle_waiting["union"] == 2900 + 900 + 1800
    assert engine.metrics.held_back["union"] == 6000 - 100


def test_replay_keeps_the_distance_between_feeds() -> None:
    schema = ip.Schema.of(SCHEMA)
    page = Page(schema, schema.empty())
    feeds = {"a": iter([Arrival(500, page), Arrival(900, page)]), "b": iter([Arrival(700, page)])}
    moved = replayed(feeds, start=10_000, speeds={"a": 1.0, "b": 2.0})
    assert [a.at for a in moved["a"]] == [10_000, 10_400]
    assert [a.at for a in moved["b"]] == [10_100]
