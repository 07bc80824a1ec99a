"""The Heartbeats paper, section 7: labels, gates, and what they change and do not change."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import interpunct as ip
from interpunct.flow.labels import MODES, voices
from interpunct.flow.nodes import GateNode
from interpunct.flow.stream import FlowStream
from interpunct.model.errors import FlowError
from interpunct.model.page import Page
from interpunct.model.properties import Properties
from interpunct.model.punctuation import Punctuation
from interpunct.model.schema import Schema
from interpunct.operators.contract import Demand, Stream
from interpunct.operators.gate import Gate

SECOND = 1_000_000
ORDERED = Stream(Schema.of("k bigint, ts bigint", time="ts"), Properties(ordered=True))
DDL = "k bigint, ts timestamp"


def source(flow: ip.Flow, name: str, **spec: Any) -> FlowStream:
    return flow.source(name, DDL, time=ip.external("ts", ordered="bounds" not in spec, **spec))


def shaped(stream: FlowStream) -> FlowStream:
    """A join's result with the attributes of its inputs, so that it can be joined again."""
    return stream.select("k", ts=str(stream.schema.time))


def joined(name: str, *streams: FlowStream) -> FlowStream:
    return shaped(streams[0].join(*streams[1:], on="k", within="2s", name=name))


def figure_5(heartbeats: str = "operator", **selectivity: float) -> ip.Flow:
    """O1 joins S1 and S2; O2 joins what comes of it with S3."""
    flow = ip.Flow("figure-5", heartbeats=heartbeats, selectivity=selectivity)
    one, two, three = (source(flow, name) for name in ("S1", "S2", "S3"))
    flow.sink("out", joined("O2", joined("O1", one, two), three))
    return flow


def labelled(flow: ip.Flow, *names: str) -> dict[str, str]:
    """Labels as the digits of their sources."""
    labels = flow.labels()
    return {n: "".join(sorted(s.removeprefix("S") for s in labels[n])) for n in names}


def gates(flow: ip.Flow) -> set[str]:
    """Each gate as ``what it holds back | its pacers``."""
    found = [n for n in flow.graph if isinstance(n, GateNode)]
    return {f"{n.inputs[0]} | {' '.join(map(str, n.inputs[1:]))}" for n in found}


# The gate ---------------------------------------------------------------------------------------


def page(*ticks: int, heartbeat: int | None = None) -> Page:
    marks = () if heartbeat is None else (Punctuation.heartbeat(ORDERED.schema, heartbeat),)
    rows = [(0, t) for t in ticks]
    return Page(ORDERED.schema, Page.of_rows(ORDERED.schema, rows).frame, marks)


def times(emission: Any) -> list[int]:
    return [t for _, p in emission.pages for t in p.frame["ts"].to_list()]


def beats(emission: Any) -> list[int]:
    return [m.heartbeat_ticks for _, p in emission.pages for m in p.punctuations]


def test_a_gate_lets_out_in_order_what_its_pacers_have_come_to() -> None:
    gate = Gate("g", Stream(ORDERED.schema), [ORDERED])
    assert times(gate.accept(0, page(6, 1, 4, heartbeat=6))) == []
    assert times(gate.accept(1, page(2))) == [1]
    assert times(gate.accept(1, page(4))) == [4]
    assert gate.held().tuples == gate.waiting() == 1
    assert gate.needs() == Demand(1, 6)


def test_tuples_of_a_pacer_go_no_further_and_are_not_held() -> None:
    gate = Gate("g", ORDERED, [ORDERED])
    emission = gate.accept(1, page(1, 2, 3))
    assert times(emission) == []
    assert gate.held().tuples == 0


def test_the_heartbeat_of_a_gate_is_the_least_of_all_its_inputs() -> None:
    gate = Gate("g", ORDERED, [ORDERED, Stream(ORDERED.schema)])
    assert beats(gate.accept(0, page(heartbeat=9))) == []
    assert beats(gate.accept(1, page(7))) == []
    assert beats(gate.accept(2, page(3))) == []  # disordered: only a heartbeat counts
    assert beats(gate.accept(2, page(heartbeat=5))) == [5]
    assert beats(gate.accept(2, page(heartbeat=8))) == [7]


def test_a_gate_refuses_a_pacer_that_counts_time_otherwise() -> None:
    clocked = Stream(Schema.of(DDL, time="ts"))
    with pytest.raises(FlowError, match="input 1: expected time like bigint"):
        Gate("g", ORDERED, [clocked])


# Figure 6 ---------------------------------------------------------------------------------------


def test_figure_5_with_a_proliferative_o1_becomes_the_query_level_plan() -> None:
    memory = figure_5("memory", O1=3.0, O2=0.1)
    assert labelled(memory, "O1", "O2") == {"O1": "123", "O2": "123"}
    assert gates(memory) == gates(figure_5("query")) == {"S1 | S3", "S2 | S3"}


def test_figure_5_with_a_selective_o1_stays_the_operator_level_plan() -> None:
    memory = figure_5("memory", O1=1.0, O2=5.0)
    assert labelled(memory, "O1", "O2") == {"O1": "12", "O2": "123"}
    assert gates(memory) == gates(figure_5()) == set()


def test_a_join_nobody_has_measured_is_taken_to_be_proliferative() -> None:
    assert labelled(figure_5("memory"), "O1") == {"O1": "123"}
    assert labelled(figure_5("memory", O2=0.5), "O1") == {"O1": "123"}


def ladder(**selectivity: float) -> ip.Flow:
    """D(C(B(A(S1, S2), S3), S4), S5)."""
    flow = ip.Flow("ladder", heartbeats="memory", selectivity=selectivity)
    first, *others = (source(flow, f"S{i}") for i in range(1, 6))
    for name, other in zip("ABCD", others, strict=True):
        first = joined(name, first, other)
    flow.sink("out", first)
    return flow


def test_a_deeper_tree_by_hand() -> None:
    """A·B = 0.8 links A to B; C·D = 0.6 links C to D; nothing links B or D to anything above."""
    flow = ladder(A=2, B=0.4, C=3, D=0.2)
    assert labelled(flow, *"ABCD") == {"A": "123", "B": "123", "C": "12345", "D": "12345"}
    behind_b = "select_2"  # what B puts out, in the shape C takes
    assert gates(flow) == {"S1 | S3", "S2 | S3", f"{behind_b} | S5", "S4 | S5"}


def test_a_memory_link_makes_all_labels_on_its_way_equal() -> None:
    """A·B = 1.6 and A·B·C = 4.8 are still above 1: the link of A goes to D."""
    flow = ladder(A=4, B=0.4, C=3, D=0.2)
    assert labelled(flow, *"ABCD") == dict.fromkeys("ABCD", "12345")
    assert gates(flow) == {f"{s} | S3 S4 S5" for s in ("S1", "S2")}


def test_a_link_stops_at_the_lowest_ancestor_whatever_comes_above() -> None:
    flow = ladder(A=2, B=0.5, C=9, D=9)
    assert labelled(flow, *"ABCD") == {"A": "123", "B": "123", "C": "12345", "D": "12345"}


def test_a_bushy_tree_delays_only_the_side_that_proliferates() -> None:
    flow = ip.Flow("bushy", heartbeats="memory", selectivity={"L": 2, "R": 0.5, "T": 0.1})
    s = [source(flow, f"S{i}") for i in range(1, 5)]
    flow.sink("out", joined("T", joined("L", s[0], s[1]), joined("R", s[2], s[3])))
    assert labelled(flow, *"LRT") == {"L": "1234", "R": "34", "T": "1234"}
    assert gates(flow) == {"S1 | S3 S4", "S2 | S3 S4"}


def test_with_several_readers_a_label_is_what_any_of_them_waits_for() -> None:
    """Not a tree: labels only grow, and readers that wait alike share a gate."""
    flow = ip.Flow("two", heartbeats="memory", selectivity={"O": 2, "X": 0.1, "Y": 0.1})
    s = [source(flow, f"S{i}") for i in range(1, 5)]
    shared = joined("O", s[0], s[1])
    flow.sink("x", joined("X", shared, s[2]))
    flow.sink("y", joined("Y", shared, s[3]))
    assert labelled(flow, *"OXY") == {"O": "1234", "X": "123", "Y": "124"}
    assert gates(flow) == {"S1 | S3 S4", "S2 | S3 S4"}


def test_a_query_is_a_connected_component_with_one_kind_of_time() -> None:
    flow = ip.Flow("three", heartbeats="query")
    one, two, other = (source(flow, name) for name in ("S1", "S2", "S3"))
    numbered = flow.source("N", "k bigint, i bigint", time=ip.external("i", ordered=True))
    flow.sink("a", joined("A", one, two))
    flow.sink("b", other.aggregate(every="1s", n="count(*)", name="B"))
    flow.sink("c", numbered.aggregate(every=5, n="count(*)", name="C"))
    flow.sink("late", flow.union(one.late.select("k"), numbered.late.select("k")))
    assert len(flow.graph.components()) == 2
    assert labelled(flow, "A", "B", "C") == {"A": "12", "B": "3", "C": "N"}
    assert gates(flow) == set()


# Section 7.5: order-insensitivity ---------------------------------------------------------------


def test_gates_come_behind_operators_that_take_any_order() -> None:
    flow = ip.Flow("prefix", heartbeats="query")
    one, two, three = (source(flow, name) for name in ("S1", "S2", "S3"))
    kept = one.where("k > 0", name="σ").select("k", "ts", name="π")
    flow.sink("out", joined("O2", joined("O1", kept, two), three))
    assert gates(flow) == {"π | S3", "S2 | S3"}


def test_a_path_that_takes_any_order_throughout_is_never_gated() -> None:
    flow = ip.Flow("free", heartbeats="query")
    one, two, three = (source(flow, name) for name in ("S1", "S2", "S3"))
    flow.sink("raw", flow.union(one, two, in_order=False).where("k > 0"))
    flow.sink("out", joined("O", one, three))
    assert gates(flow) == {"S1 | S2", "S3 | S2"}


def test_nothing_is_held_back_before_a_punctuate_which_judges_by_arrival() -> None:
    flow = ip.Flow("judged", heartbeats="query")
    one, two, three = (source(flow, name) for name in ("S1", "S2", "S3"))
    judged = joined("O1", one, two).punctuate(every="1s", delay="1s", name="P")
    flow.sink("out", joined("O2", judged, three))
    flow.sink("late", judged.late)
    assert labelled(flow, "O1", "O2") == {"O1": "12", "O2": "123"}
    assert gates(flow) == set()


def test_a_source_whose_time_a_punctuate_makes_paces_from_there() -> None:
    flow = ip.Flow("made", heartbeats="query")
    one, two = source(flow, "S1"), source(flow, "S2")
    three = flow.source("S3", DDL, time=ip.external("ts", ordered=True)).where("k > 0", name="σ")
    made = three.punctuate(every="1s", delay="1s", name="P")
    flow.sink("out", joined("O2", joined("O1", one, two), made))
    assert [str(v) for v in voices(flow.graph, "S3")] == ["P"]
    assert gates(flow) == {"S1 | P", "S2 | P"}
    assert "one lane (all of S1; all of S2; all of S3)" in flow.explain()


# What differs and what does not -----------------------------------------------------------------


def plan(shape: str, heartbeats: str, selectivity: dict[str, float]) -> ip.Flow:
    flow = ip.Flow(shape, heartbeats=heartbeats, selectivity=selectivity)
    one, two = source(flow, "S1"), source(flow, "S2")
    three = source(flow, "S3", bounds=ip.bounds(skew="20s"), ets="never")
    if shape == "inner":
        flow.sink("out", joined("O2", joined("O1", one, two), three))
    elif shape == "left":
        first = shaped(one.join(two, on="k", within="3s", how="left", name="O1"))
        flow.sink("out", shaped(first.join(three, on="k", within="1s", how="left", name="O2")))
    elif shape == "sliding":
        counted = one.aggregate(by="k", every="1s", size="3s", n="count(*)", name="O1")
        both = flow.union(counted.select("k", "ts"), two, name="O2")
        flow.sink("out", flow.union(both, three, name="O3").aggregate(every="2s", n="count(*)"))
    else:
        shared = joined("O1", one, two)
        flow.sink("out", joined("O2", shared, three))
        flow.sink("early", shared)
    return flow


@st.composite
def feeds(draw: st.DrawFn) -> dict[str, ip.Feed]:
    """Ordered by time on S1 and S2, disordered within 15 s on S3; each lags as it likes."""
    made = {}
    for name in ("S1", "S2", "S3"):
        ticks = draw(st.lists(st.integers(0, 12), max_size=8))
        ticks = ticks if name == "S3" else sorted(ticks)
        keys = draw(st.lists(st.integers(0, 1), min_size=len(ticks), max_size=len(ticks)))
        gaps = draw(st.lists(st.integers(0, 20), min_size=len(ticks), max_size=len(ticks)))
        lag = draw(st.integers(0, 40))
        arrivals = [lag + sum(gaps[: i + 1]) for i in range(len(gaps))]
        frame = pl.DataFrame(
            {"k": keys, "ts": ticks, "arrival": arrivals},
            schema=dict.fromkeys(["k", "ts", "arrival"], pl.Int64),
        )
        seconds = (pl.col("ts", "arrival") * SECOND).cast(pl.Datetime("us", "UTC"))
        made[name] = ip.feed(frame.with_columns(seconds), arrival="arrival")
    return made


@pytest.mark.parametrize("shape", ["inner", "left", "sliding", "shared"])
@settings(max_examples=25)
@given(feeds=feeds(), sigma=st.sampled_from([0.5, 1.0, 2.0]))
def test_results_are_the_same_whatever_the_heartbeats(
    shape: str, feeds: dict[str, ip.Feed], sigma: float
) -> None:
    rows = {}
    for mode in MODES:
        result = plan(shape, mode, {"O1": sigma}).run(feeds, clock=ip.ScriptedClock())
        rows[mode] = {n: sorted(f.rows(), key=repr) for n, f in result.sinks.items()}
        assert not result.late
    assert rows["operator"] == rows["query"] == rows["memory"]


def arriving(*rows: tuple[int, int, int]) -> ip.Feed:
    """(key, stamp, arrival), in seconds."""
    frame = pl.DataFrame(rows, schema={"k": pl.Int64, "ts": pl.Int64, "a": pl.Int64}, orient="row")
    seconds = (pl.col("ts", "a") * SECOND).cast(pl.Datetime("us", "UTC"))
    return ip.feed(frame.with_columns(seconds), arrival="a")


def first_result(heartbeats: str, **selectivity: float) -> float:
    """When O1 has its first result, in a plan whose other stream lags by half a minute."""
    flow = plan("shared", heartbeats, selectivity)
    clock = ip.ScriptedClock()
    moments: list[float] = []
    flow.run(
        {
            "S1": arriving((1, 1, 1), (1, 5, 5), (1, 40, 40)),
            "S2": arriving((1, 1, 1), (1, 5, 5), (1, 40, 40)),
            "S3": arriving((1, 1, 31), (1, 40, 70)),
        },
        clock=clock,
        sinks={
            "early": lambda frame: moments.append(clock.now() / SECOND),
            "out": lambda frame: None,
        },
    )
    return moments[0]


def test_o1_runs_before_the_lagging_stream_catches_up_unless_its_label_has_it() -> None:
    assert first_result("operator") == 1
    assert first_result("memory", O1=0.5) == 1
    assert first_result("query") > 30
    assert first_result("memory", O1=2.0) == first_result("query")


def test_measured_selectivities_are_what_a_memory_aware_plan_needs() -> None:
    feed = arriving(*[(1, t, t) for t in range(1, 30)])
    sent = {"S1": feed, "S2": feed, "S3": arriving((2, 1, 1))}
    for mode in MODES:
        measured = figure_5(mode).run(sent, clock=ip.ScriptedClock()).selectivities
        assert set(measured) == {"O1", "O2", "select_1"}  # and select_2 took nothing
        assert measured["select_1"] == 1
        assert measured["O1"] == pytest.approx(5 / 2, rel=0.1)  # 5 meetings, a tuple on each side
        assert labelled(figure_5("memory", **measured), "O1") == {"O1": "123"}


def test_explain_shows_labels_when_asked() -> None:
    flow = figure_5("memory", O1=2.0)
    assert "label" not in flow.explain()
    shown = flow.explain(labels=True)
    assert shown.count("      label {S1, S2, S3}") == 2
    assert "gate_S1: gate ← S1, S3  [paced by S3]" in shown
    assert "      label {S1, S2}\n" in figure_5().explain(labels=True)


@pytest.mark.parametrize(
    ("heartbeats", "selectivity", "told"),
    [
        ("global", {}, "heartbeats: expected one of operator, query, memory, got 'global'"),
        ("memory", {"O1": -1.0}, "selectivity of 'O1': expected tuples out per tuple in"),
        ("memory", {"O9": 1.0}, "got O9"),
    ],
)
def test_nonsense_is_refused(heartbeats: str, selectivity: dict[str, float], told: str) -> None:
    with pytest.raises(FlowError) as refused:
        figure_5(heartbeats, **selectivity).graph
    assert told in str(refused.value)
