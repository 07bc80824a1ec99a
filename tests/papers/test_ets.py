"""The ETS paper's execution rules and figures, case by case."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from ets_bench import SEQ, Bench, beat, page, seq, union_flow
from hypothesis import given
from hypothesis import strategies as st

import interpunct as ip
from interpunct.flow.stream import FlowStream
from interpunct.model.properties import Properties
from interpunct.model.schema import END_OF_TIME, Schema
from interpunct.operators.contract import Stream
from interpunct.operators.join import JoinSpec, WindowJoin
from interpunct.operators.union import Union

ORDERED = ip.external("ts", ordered=True)

# Figure 1: basic execution ----------------------------------------------------------------------


def test_figure_1_union_moves_the_tuple_with_the_least_timestamp_when_all_inputs_have_one() -> None:
    union = Union("u", [SEQ, SEQ])
    assert not union.accept(0, seq(1, 4))
    out = union.accept(1, seq(2))
    assert out.pages[0][1].frame["ts"].to_list() == [1, 2]
    assert union.waiting() == 1


def test_figure_1_join_takes_its_timestamp_from_the_later_tuple_and_drops_expired_ones() -> None:
    other = Stream(Schema.of("n bigint, at bigint", time="at"), Properties(ordered=True))
    join = WindowJoin("j", [SEQ, other], JoinSpec((), (3, 3)))
    join.accept(0, seq(1))
    join.accept(1, page(other.schema, (7, 4)))
    out = join.accept(0, seq(9))  # releases the tuple stamped 4, which meets the one stamped 1
    assert out.pages[0][1].frame.rows() == [(1, 1, 7, 4, 4)]
    out = join.accept(1, page(other.schema, (8, 9)))  # and this one meets 9, but no longer 1
    assert out.pages[0][1].frame.rows() == [(9, 9, 8, 9, 9)]
    join.accept(0, beat(20))
    join.accept(1, page(other.schema, (0, 20)))
    assert join.held().tuples == 1  # only what a later tuple could still meet


# Figure 2: a simple path ------------------------------------------------------------------------


def simple_path() -> Bench:
    flow = ip.Flow("path")
    stream = flow.source("source", "n bigint, ts bigint", time=ORDERED)
    flow.sink("out", stream.where("n > 0", name="Q1").where("n > 0", name="Q2"))
    return Bench(flow)


def test_figure_2_forward_to_the_sink_then_backtrack_encore_and_back_to_the_source() -> None:
    bench = simple_path()
    bench.feed("source", (1, 1))
    bench.feed("source", (2, 2))
    assert bench.steps() == [
        "execute Q1",
        "forward Q2",  # Q1 yields
        "execute Q2",  # last before the sink: Forward is ignored, and there is no more
        "backtrack Q1",
        "encore Q1",  # Q1 has more
        "execute Q1",
        "forward Q2",
        "execute Q2",
        "backtrack Q1",
        "backtrack source",  # nothing left to do on this path
    ]
    assert bench.out() == [(1, 1), (2, 2)]


def test_figure_2_an_operator_that_yields_nothing_goes_on_with_its_own_input() -> None:
    bench = simple_path()
    bench.feed("source", (0, 1))
    bench.feed("source", (2, 2))
    assert bench.steps()[:4] == ["execute Q1", "encore Q1", "execute Q1", "forward Q2"]


def test_figure_2_the_last_operator_before_the_sink_consumes_all_its_input() -> None:
    flow = ip.Flow("last")
    flow.sink("out", flow.source("source", "n bigint, ts bigint", time=ORDERED).where(
        "n > 0", name="Q2"))  # fmt: skip
    bench = Bench(flow)
    for n in (1, 2, 3):
        bench.feed("source", (n, n))
    assert bench.steps() == [
        "execute Q2", "encore Q2", "execute Q2", "encore Q2", "execute Q2", "backtrack source",
    ]  # fmt: skip


# Figure 3: the cycle ----------------------------------------------------------------------------


@given(st.lists(st.tuples(st.sampled_from(["S1", "S2"]), st.integers(0, 2)), max_size=8))
def test_figure_3_every_execution_step_is_followed_by_one_continuation_step(
    fed: list[tuple[str, int]],
) -> None:
    bench = Bench(union_flow(ip.internal("at"))[0])
    rules: list[str] = []
    for source, n in fed:
        bench.feed(source, (n,))
        if n == 2:
            rules += bench.steps()
    rules += bench.steps()
    kinds = {"execute": "x", "forward": "f", "encore": "c", "backtrack": "b", "ets": "t",
             "wake-up": "w"}  # fmt: skip
    text = "".join(kinds[rule.split()[0]] for rule in rules)
    # Forward, or Encore, or Backtrack until one of them applies or a source is reached; then a
    # source may answer. A continuation step without execution is one who waits asking again.
    assert re.fullmatch(r"((x(f|c))|(x?b+(f|c|t|w)?))*", text), text


# Figure 4: a simple union -----------------------------------------------------------------------


def test_figure_4_backtracks_to_the_predecessor_of_the_empty_input_and_asks_its_source() -> None:
    bench = Bench(union_flow(ip.internal("at"))[0], at=10)
    bench.feed("S1", (1,))
    assert bench.steps() == [
        "execute σ1",
        "forward ∪",
        "execute ∪",  # the tuple waits: input 2 is empty
        "backtrack σ2",  # the predecessor that feeds the empty input
        "backtrack S2",  # all the way back to the source,
        "ets S2",  # which makes an enabling timestamp on demand;
        "execute σ2",  # it goes down the path on which backtracking occurred
        "forward ∪",
        "execute ∪",  # and reactivates the union
        "backtrack σ1",
        "backtrack S1",
    ]
    assert [n for n, _ in bench.out()] == [1]


def test_figure_4_without_ets_the_tuple_waits_for_a_tuple_of_the_other_input() -> None:
    bench = Bench(union_flow(ip.internal("at", ets="never"))[0], at=10)
    bench.feed("S1", (1,))
    assert bench.steps() == [
        "execute σ1", "forward ∪", "execute ∪", "backtrack σ2", "backtrack S2",
    ]  # fmt: skip
    bench.clock.advance(5)
    bench.feed("S2", (2,))
    bench.steps()
    assert [n for n, _ in bench.out()] == [1]


def test_a_tuple_that_a_selection_drops_still_tells_the_union_how_far_its_source_has_come() -> None:
    flow, *_ = union_flow(ORDERED, "n bigint, ts bigint")
    bench = Bench(flow)
    bench.feed("S2", (1, 5))
    bench.steps()
    bench.feed("S1", (0, 9))
    assert "ets S1" in bench.steps()
    assert bench.out() == [(1, 5)]


def test_demands_reach_every_source_that_lags_behind_a_join_without_results() -> None:
    flow = ip.Flow("behind-a-join")
    a = flow.source("A", "k bigint", time=ip.internal("at"))
    b = flow.source("B", "k bigint", time=ip.internal("at"))
    c = flow.source("C", "k bigint, at timestamp, at_right timestamp", ip.internal("joined_at"))
    flow.sink("out", flow.union(a.join(b, on="k", within=timedelta(microseconds=9)), c))
    bench = Bench(flow, at=5)
    bench.feed("A", (1,))
    bench.feed("B", (2,))
    bench.feed("C", (3, None, None))
    rules = bench.steps()
    assert "ets A" in rules
    assert "ets B" in rules
    assert [row[0] for row in bench.out()] == [3]


# Figures 5 and 6: simultaneous tuples -----------------------------------------------------------


def test_figure_5_a_simultaneous_tuple_passes_though_the_other_input_is_empty() -> None:
    union = Union("u", [SEQ, SEQ])
    union.accept(0, seq(5))
    assert union.accept(1, seq(5)).pages[0][1].height == 2
    assert union.accept(0, seq(5)).pages[0][1].height == 1  # register 1 still says 5
    assert union.waiting() == 0


@given(
    inputs=st.integers(2, 3),
    data=st.data(),
    operator=st.sampled_from(["union", "join"]),
)
def test_simultaneous_tuples_never_wait_in_any_interleaving(
    inputs: int, data: st.DataObject, operator: str
) -> None:
    streams = [SEQ] * inputs
    built = (
        Union("u", streams)
        if operator == "union"
        else WindowJoin("j", streams, JoinSpec(("n",), (2,) * inputs))
    )
    order = data.draw(st.lists(st.integers(0, inputs - 1), max_size=12))
    seen: set[int] = set()
    for port in order:
        built.accept(port, seq(7))
        seen.add(port)
        if len(seen) == inputs:
            assert built.waiting() == 0


def test_figure_6_registers_remember_the_last_timestamp_of_each_input() -> None:
    union = Union("u", [SEQ, SEQ])
    union.accept(0, seq(1, 3))
    union.accept(1, seq(2))
    assert union.waiting() == 1  # 3 waits: register 2 says 2
    assert union.accept(1, beat(3)).pages[0][1].frame["ts"].to_list() == [3]


def test_figure_6_a_join_without_a_result_passes_a_punctuation_on() -> None:
    other = Stream(Schema.of("n bigint, at bigint", time="at"), Properties(ordered=True))
    join = WindowJoin("j", [SEQ, other], JoinSpec(("n",), (3, 3)))
    join.accept(0, seq(4))
    (_, out), *rest = join.accept(1, page(other.schema, (99, 8))).pages
    assert not rest
    assert out.height == 0
    # The tuple stamped 4 met nobody; more tuples stamped 4 may come, earlier ones cannot.
    assert [p.heartbeat_ticks for p in out.punctuations] == [3]


@pytest.mark.parametrize(
    "through",
    [
        lambda s: s.where("n > 0"),
        lambda s: s.select(m="n", t="ts"),
        lambda s: s.sort(),
        lambda s: s.duplicate()[1],
        lambda s: s.split("n > 0")[1],
        lambda s: s.aggregate(every=5, n="count(*)"),
        lambda s: s.aggregate(rows=3, n="count(*)"),
        lambda s: s.slack(3, window=5),
        lambda s: s.punctuate(every="1s", delay="1s"),
        lambda s: s.flow.union(s, s.flow.source("other", "n bigint, ts bigint", ORDERED)),
        lambda s: s.join(s.flow.source("other", "n bigint, ts bigint", ORDERED), within=3),
    ],
    ids=["where", "select", "sort", "duplicate", "split", "aggregate", "tuple window", "slack",
         "punctuate", "union", "join"],
)  # fmt: skip
def test_punctuation_passes_every_operator_and_ends_at_the_sink(through: Any) -> None:
    flow = ip.Flow("pass")
    stream = flow.source("source", "n bigint, ts bigint", time=ORDERED)
    result = through(stream)
    for name, node in list(flow.nodes.items()):
        for port in range(len(node.outputs)):
            used = any(r.node == name and r.port == port for n in flow.nodes.values()
                       for r in n.inputs)  # fmt: skip
            if not used and not node.outputs[port].schema.names[-1].startswith("_"):
                flow.sink(f"out-{name}-{port}", FlowStream(flow, type(result.ref)(name, port)))
    bench = Bench(flow)
    for source in flow.graph.sources:
        bench.engine.finish(source.name)
    bench.steps()
    sink = bench.engine.operators[f"out-{result.ref.node}-{result.ref.port}"]
    assert sink.reached == END_OF_TIME  # type: ignore[attr-defined]


# Section 3: components --------------------------------------------------------------------------


def test_connected_components_are_scheduled_by_themselves() -> None:
    flow = ip.Flow("two")
    for one, two, sink in (("A", "B", "left"), ("C", "D", "right")):
        streams = [flow.source(n, "n bigint, ts bigint", time=ORDERED) for n in (one, two)]
        flow.sink(sink, flow.union(*streams, name=f"∪ {sink}"))
    bench = Bench(flow)
    assert len(bench.engine.components) == 2
    bench.feed("A", (1, 1))  # waits for B, which concerns nobody but its own component
    bench.feed("C", (3, 3))
    bench.feed("D", (4, 4))
    bench.steps()
    assert bench.out("left") == []
    assert bench.out("right") == [(3, 3)]
    assert "component 2, scheduled by itself" in flow.explain()
