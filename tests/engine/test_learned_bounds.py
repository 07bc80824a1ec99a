"""Sources whose bounds are learned: nothing is lost, nothing is promised too soon."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import interpunct as ip

POLICY = ip.adaptive(completeness=0.9, warm_up=1.0)


def flow() -> ip.Flow:
    flow = ip.Flow("learned")
    time = ip.external("ts", bounds=POLICY, ets="never")
    rows = flow.source("rows", "id bigint, ts bigint", time=time)
    flow.sink("sorted", rows.sort())
    return flow


def pages(ticks: list[list[int]]) -> list[pl.DataFrame]:
    ids = iter(range(10**6))
    return [pl.DataFrame({"id": [next(ids) for _ in page], "ts": page}) for page in ticks if page]


@given(st.lists(st.lists(st.integers(0, 500), max_size=30), max_size=25))
def test_what_is_in_time_and_what_is_late_make_up_the_input(ticks: list[list[int]]) -> None:
    made = pages(ticks)
    result = flow().run({"rows": made})
    ids = result["sorted"]["id"].to_list()
    if "rows" in result.late:
        ids += result.late["rows"]["id"].to_list()
    assert sorted(ids) == [i for page in made for i in page["id"]]
    assert result["sorted"]["ts"].is_sorted()


def test_no_tuple_is_late_while_the_bounds_are_learned() -> None:
    made = pages([[100], [1], [50, 2]])  # fewer than ten tuples after the first page
    assert not flow().run({"rows": made}).late


def test_a_tuple_later_than_any_before_is_late_and_says_what_it_missed() -> None:
    steady = [[10 * i, 10 * i - 3] for i in range(1, 200)]
    result = flow().run({"rows": pages([*steady, [5]])})
    late = result.late["rows"]
    assert late["ts"].to_list() == [5]
    assert late["_reason"].str.starts_with("late").all()
    assert late["_heartbeat"][0] >= 1900  # far beyond it


def test_learned_bounds_survive_a_restart() -> None:
    from interpunct.engine.run import Engine

    made = [ip.Page(flow().graph.sources[0].raw, p) for p in pages([[10 * i, 10 * i - 3]
            for i in range(1, 100)])]  # fmt: skip
    whole = Engine(flow().graph, ip.ScriptedClock())
    halves = Engine(flow().graph, ip.ScriptedClock())
    for number, page in enumerate(made):
        if number == 50:
            halves = Engine(flow().graph, ip.ScriptedClock(), state=halves.save())
        for engine in (whole, halves):
            engine.feed("rows", page)
            engine.settle()
    assert whole.operators["rows"].time.to_record() == halves.operators["rows"].time.to_record()  # type: ignore[attr-defined]


def test_a_tuple_dated_absurdly_in_the_future_flows_on_but_does_not_move_time() -> None:
    second = 1_000_000
    for bounds in (ip.bounds(skew="5s"), ip.adaptive(completeness=0.9, warm_up=1.0)):
        for future in (None, "1h"):
            flow = ip.Flow("future")
            time = ip.external("ts", bounds, ets="never", future=future)
            rows = flow.source("rows", "ts timestamp", time=time)
            flow.sink("all", rows)
            ticks = [(i, i) for i in range(1, 60)] + [(i, i - 1) for i in range(1, 60)]
            ticks.append((30, 31_000_000))  # in the thirtieth second, a year ahead
            stamp = pl.col("ts").cast(pl.Datetime("us", "UTC"))
            frame = pl.DataFrame(sorted(ticks), schema=["at", "ts"], orient="row") * second
            feed = ip.feed(frame.with_columns(stamp), arrival="at")
            result = flow.run({"rows": feed}, clock=ip.ScriptedClock())
            late = result.late["rows"].height if "rows" in result.late else 0
            assert result["all"].height + late == len(ticks)
            assert (late > 40) == (future is None), (str(bounds), future, late)


def test_numbers_have_no_future_to_compare_with_the_clock() -> None:
    time = ip.external("ts", ip.bounds(skew=3), future="1h")
    with pytest.raises(ip.InterpunctError, match="timestamp"):
        ip.Flow("numbers").source("rows", "ts bigint", time=time)


def test_a_stream_declared_ordered_cannot_have_an_absurd_future() -> None:
    with pytest.raises(ip.InterpunctError, match="bounds"):
        ip.external("ts", ordered=True, future="1h")


def test_bounds_of_which_nothing_is_said_are_learned() -> None:
    assert ip.external("ts").bounds == ip.adaptive(completeness=0.999)
    assert ip.external("ts", future="1h").bounds == ip.adaptive(completeness=0.999)
    assert ip.external("ts", ordered=True).ordered


def test_a_stream_is_ordered_or_has_bounds() -> None:
    with pytest.raises(ip.InterpunctError, match="both"):
        ip.external("ts", ip.bounds(skew=3), ordered=True)


def test_disorder_of_which_nothing_was_said_is_not_late_at_first() -> None:
    """A thousand tuples are the warm-up of 99.9 %."""
    flow = ip.Flow("unsaid")
    flow.sink("sorted", flow.source("rows", "ts bigint", time=ip.external("ts")).sort())
    ticks = [i - (i % 7) * 3 for i in range(900)]
    result = flow.run({"rows": ip.feed([(t,) for t in ticks], page_size=30)})
    assert not result.late
    assert result["sorted"]["ts"].to_list() == sorted(ticks)


def test_where_a_matrix_bounds_a_source_against_itself_nothing_is_learned() -> None:
    flow = ip.Flow("matrix", skew=ip.SkewBounds(["a", "b"], {("a", "a"): ip.bounds(skew=5)}))
    a, b = (flow.source(n, "ts bigint", time=ip.external("ts")) for n in "ab")
    flow.sink("out", flow.union(a, b))
    said = {n.name: n.time.bounds for n in flow.graph.sources}
    assert said == {"a": ip.bounds(skew=5), "b": ip.adaptive()}
