"""The ETS paper's section 5 and 6: what enabling timestamps say, and what they are worth."""

from __future__ import annotations

from typing import Any

import polars as pl
from ets_bench import SECOND, Bench, at, page, union_flow

import interpunct as ip
from interpunct.engine.run import Driver, Engine
from interpunct.model.schema import Schema
from interpunct.operators.contract import Stream
from interpunct.operators.union import ArrivalUnion


def ets_of(bench: Bench) -> list[str]:
    return [s.detail for s in bench.trace.steps if s.rule == "ets"]


def test_an_internal_ets_is_the_clock() -> None:
    bench = Bench(union_flow(ip.internal("at"))[0], at=10 * SECOND)
    bench.feed("S1", (1,))
    bench.steps()
    assert ets_of(bench) == ["0 tuples [*, ≤ '1970-01-01 00:00:10']"]


def test_an_external_ets_is_t_plus_tau_minus_delta() -> None:
    time = ip.external("ts", bounds=ip.bounds(skew="3s"))
    flow, *_ = union_flow(time, "n bigint, ts timestamp")
    bench = Bench(flow, at=100 * SECOND)
    bench.feed("S2", (1, at(50)))  # t = 50
    bench.steps()
    bench.clock.advance(20 * SECOND)  # τ = 20
    bench.feed("S1", (2, at(60)))
    bench.steps()
    assert "0 tuples [*, ≤ '1970-01-01 00:01:07']" in ets_of(bench)  # 50 + 20 − 3
    assert bench.out() == [(1, at(50))]
    bench.clock.wait_until(bench.engine.wake_at())  # S1 may still bring 57 < t ≤ 60, for 3 s
    assert bench.clock.now() == 123 * SECOND
    bench.engine.wake()
    bench.steps()
    assert bench.out() == [(1, at(50)), (2, at(60))]


class CountingClock(ip.ScriptedClock):
    """Counts how often somebody waited."""

    waits = 0

    def wait_until(self, moment: int | None) -> None:
        self.waits += 1
        super().wait_until(moment)


def test_not_before_becomes_a_wake_up_and_nothing_polls_meanwhile() -> None:
    time = ip.external("ts", bounds=ip.bounds(skew="30m"))
    flow, *_ = union_flow(time, "n bigint, ts timestamp")
    rows = {"n": [1], "ts": [at(0)], "arrival": [at(0)]}
    late = {"n": [2], "ts": [at(0)], "arrival": [at(3600)]}
    feeds = {
        "S1": ip.feed(pl.DataFrame(rows), arrival="arrival"),
        "S2": ip.feed(pl.DataFrame([pl.Series(k, v + late[k]) for k, v in rows.items()]),
                      arrival="arrival"),
    }  # fmt: skip
    clock, delivered = CountingClock(), []
    trace = ip.Trace()
    deliver = {"out": lambda frame: delivered.append((clock.now(), frame["n"].to_list()))}
    engine = Engine(flow.graph, clock, deliver=deliver, trace=trace)
    Driver(engine, feeds).run()
    # Both tuples stamped 0 leave at 30 minutes, when t + τ − δ has reached 0, in one wake-up.
    assert delivered[0][0] == 1800 * SECOND
    assert clock.waits <= 4
    assert [s.at for s in trace.steps if s.rule == "execute" and 0 < s.at < 1800 * SECOND] == []
    # Counted from the first arrival on, no step of the engine falls between the wake-ups.
    assert {s.at for s in trace.steps} <= {0, 1800 * SECOND, 3600 * SECOND}


def waits(time_of: Any) -> list[int]:
    """How long each tuple of the fast stream takes to come out of the union, in microseconds."""
    flow = ip.Flow("modes")
    fast, slow = (flow.source(n, "n bigint", time=time_of()) for n in ("fast", "slow"))
    flow.sink("out", flow.union(fast, slow))
    clock, delays = ip.ScriptedClock(), []

    def deliver(frame: pl.DataFrame) -> None:
        delays.extend(clock.now() - n * SECOND for n in frame["n"] if n < 100)

    moments = [at(n) for n in range(1, 8)]
    feeds = {
        "fast": ip.feed(pl.DataFrame({"n": range(1, 8), "arrival": moments}), arrival="arrival"),
        "slow": ip.feed(pl.DataFrame({"n": [100], "arrival": [at(10)]}), arrival="arrival"),
    }
    flow.run(feeds, clock=clock, sinks={"out": deliver})
    return delays


def test_case_A_without_ets_tuples_wait_for_the_slow_stream() -> None:
    assert waits(lambda: ip.internal("at", ets="never")) == [(10 - n) * SECOND for n in range(1, 8)]


def test_case_B_with_periodic_ets_they_wait_for_the_end_of_the_period() -> None:
    delays = waits(lambda: ip.internal("at", ets=ip.periodic("300ms")))
    assert len(delays) == 7
    assert max(delays) < 300_000
    assert sum(delays) > 0


def test_case_C_with_ets_on_demand_they_do_not_wait() -> None:
    assert waits(lambda: ip.internal("at")) == [0] * 7


def test_case_D_with_latent_timestamps_there_is_nothing_to_wait_for() -> None:
    assert waits(ip.latent) == [0] * 7
    latent = Stream(Schema.of("n bigint"))
    union = ArrivalUnion("u", [latent, latent])
    assert not union.idle_waiting
    assert union.accept(0, page(latent.schema, (1,))).pages[0][1].height == 1
