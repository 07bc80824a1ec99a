"""Where the planner cuts a flow, and what shares a stage."""

from __future__ import annotations

import interpunct as ip
from interpunct.flow.nodes import Ref
from interpunct.flow.planner import stages

DDL = "k bigint, j bigint, ts timestamp, v double"
ORDERED = ip.external("ts", ordered=True)


def keys(flow: ip.Flow) -> list[dict[str, tuple[str, ...]]]:
    return [
        {str(ref): tuple(map(str, keys)) for ref, keys in stage.keys.items()}
        for stage in stages(flow.graph)
    ]


def test_parts_that_never_meet_share_a_stage_each_by_keys_of_its_own() -> None:
    flow = ip.Flow("apart")
    a, b, c, d, e = (flow.source(name, DDL, time=ORDERED) for name in "abcde")
    flow.sink("by_k", a.aggregate(by="k", every="20s", v="avg(v)"))
    flow.sink("by_j", b.join(c, on="j", within="20s"))
    flow.sink("paced", d.pace(e, within="30s"))
    assert keys(flow) == [{"a": ("k",), "b": ("j",), "c": ("j",), "d": (), "e": ()}]


def test_a_source_that_is_needed_by_two_keys_enters_two_stages() -> None:
    flow = ip.Flow("two keys")
    a, b = (flow.source(name, DDL, time=ORDERED) for name in "ab")
    flow.sink("by_k", a.aggregate(by="k", every="20s", v="avg(v)"))
    flow.sink("by_j", a.aggregate(by="j", every="20s", v="avg(v)"))
    flow.sink("other", b.aggregate(by="j", every="20s", v="avg(v)"))
    assert keys(flow) == [{"a": ("k",), "b": ("j",)}, {"a": ("j",)}]


def test_what_reads_another_part_comes_after_it_and_its_like() -> None:
    """Two chains of two stages: the first halves share a stage, and so do the second."""
    flow = ip.Flow("chains")
    for name in "ab":
        inner = flow.source(name, DDL, time=ORDERED).aggregate(by="k", every="20s", v="avg(v)")
        flow.sink(f"{name}_all", inner.aggregate(every="40s", v="max(v)"))
    first, second = stages(flow.graph)
    assert set(first.keys) == {Ref("a"), Ref("b")}
    assert {"aggregate_1", "aggregate_3"} <= set(first.nodes)
    assert set(second.keys) == {Ref("aggregate_1"), Ref("aggregate_3")}
    assert {"a_all", "b_all"} <= set(second.nodes)


def test_lanes_go_by_what_is_computed_behind_a_source() -> None:
    flow = ip.Flow("computed")
    a, b = (flow.source(name, DDL, time=ORDERED) for name in "ab")
    made = a.where("v > 0").with_columns(half="k / 2").select("ts", m="half + j", w="v")
    flow.sink("by_m", made.aggregate(by="m", every="20s", v="avg(w)"))
    other = b.select("ts", "v", j="cast(j + 1 as bigint)")
    flow.sink("on_j", flow.source("c", DDL, time=ORDERED).join(other, on="j", within="20s"))
    assert keys(flow) == [{"a": ("m of select_2",), "b": ("j of select_3",), "c": ("j",)}]


def test_lanes_go_by_columns_as_they_are_where_there_is_one() -> None:
    flow = ip.Flow("both")
    a = flow.source("a", DDL, time=ORDERED).with_columns(h="j % 2")
    flow.sink("out", a.aggregate(by=["h", "k"], every="20s", v="avg(v)"))
    assert keys(flow) == [{"a": ("k",)}]


def test_lanes_do_not_go_by_the_moment_of_entering_which_ingest_does_not_know() -> None:
    flow = ip.Flow("internal")
    a = flow.source("a", "v double", time=ip.internal("at")).with_columns(h="minute(at)")
    flow.sink("out", a.aggregate(by="h", every="20s", v="avg(v)"))
    assert keys(flow) == [{"a": ()}]
