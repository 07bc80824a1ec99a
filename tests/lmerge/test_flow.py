"""Logical merge in a flow: chosen from what is known, explained, refused by name, run."""

from __future__ import annotations

import pytest

import interpunct as ip
from interpunct.flow.stream import FlowStream
from interpunct.model.elements import adjust, describe, element_schema, elements, insert, stable
from interpunct.model.errors import FlowError
from interpunct.model.tdb import tdb
from interpunct.operators.lmerge import MergePolicy

LEASES = element_schema(ip.Schema.of("user string, machine bigint"))


def leases(flow: ip.Flow, name: str, **known: bool) -> FlowStream:
    stream = flow.source(name, LEASES)
    return stream.declare(**known) if known else stream


def speeds(flow: ip.Flow, name: str, *, ordered: bool = True) -> FlowStream:
    time = ip.external("ts", ordered=True) if ordered else ip.external("ts")
    return flow.source(name, "ts bigint, car string, mph double", time=time)


def line(flow: ip.Flow, node: str) -> str:
    return next(text for text in flow.explain().splitlines() if text.startswith(f"  {node}:"))


def test_two_replicas_become_one_stream() -> None:
    flow = ip.Flow("leases")
    inputs = [leases(flow, n, keyed=True, insert_only=False) for n in ("a", "b")]
    flow.sink("out", flow.lmerge(*inputs, name="merge"))
    live = flow.live()
    live.feed("a", elements(LEASES, [insert(("A", 1), 6, 7)]))
    live.feed("b", elements(LEASES, [insert(("A", 1), 6, 12), stable(11)]))
    live.feed("a", elements(LEASES, [adjust(("A", 1), 6, 7, 12), stable("∞")]))
    out = live.take("out")
    assert describe(LEASES, out) == (
        "insert(A, 1, 6, 7), adjust(A, 1, 6, 7, 12), stable(11), stable(∞)"
    )


def test_an_ungrouped_aggregate_of_ordered_streams_is_merged_by_r0() -> None:
    flow = ip.Flow("example 3")
    inputs = [speeds(flow, n).aggregate(every=10, mph="avg(mph)") for n in ("a", "b")]
    flow.sink("out", flow.lmerge(*inputs, name="merge"))
    assert "[R0: inputs are insert-only, ordered, strict;" in line(flow, "merge")


def test_an_aggregate_makes_order_where_there_was_none() -> None:
    """Examples 2, 5 and 6: what enforces order, groups and keys is an operator of the flow."""
    flow = ip.Flow("examples")
    raw = [speeds(flow, n, ordered=False) for n in ("a", "b")]
    flow.sink("out", flow.lmerge(*(s.aggregate(by="car", every=10, n="count(*)") for s in raw),
                                 name="grouped"))  # fmt: skip
    flow.sink("rest", flow.lmerge(*raw, name="raw"))
    assert (
        "[R1: inputs are insert-only, ordered, deterministic; R0 needs strict, which input 0"
        in (line(flow, "grouped"))
    )
    assert "[R4: nothing is known that would help; R3 needs keyed, which input 0 is not" in (
        line(flow, "raw")
    )


def test_a_speculative_aggregate_is_keyed_and_merged_by_r3() -> None:
    flow = ip.Flow("early")
    inputs = [
        speeds(flow, n, ordered=False).aggregate(by="car", every=10, n="count(*)", speculative=True)
        for n in ("a", "b")
    ]
    flow.sink("out", flow.lmerge(*inputs, name="merge"))
    assert "[R3: inputs are keyed; R2 needs insert-only, which input 0 is not;" in (
        line(flow, "merge")
    )
    assert "early and revised" in flow.explain()


def test_cleansed_inputs_are_merged_by_counting() -> None:
    """Example 2: an operator that enforces order."""
    flow = ip.Flow("example 2")
    inputs = [leases(flow, n, keyed=True, insert_only=False).cleanse() for n in ("a", "b")]
    flow.sink("out", flow.lmerge(*inputs, name="merge"))
    assert "[R1: inputs are insert-only, ordered, deterministic;" in line(flow, "merge")


def test_the_weakest_input_decides_and_is_named() -> None:
    flow = ip.Flow("mixed")
    strong, weak = leases(flow, "a", strict=True), leases(flow, "b", keyed=True)
    flow.sink("out", flow.lmerge(strong, weak, name="merge"))
    assert "R2 needs ordered, which input 1 is not" in line(flow, "merge")


def test_a_variant_that_the_inputs_do_not_allow_is_refused_by_the_missing_property() -> None:
    flow = ip.Flow("forced")
    inputs = [leases(flow, n) for n in ("a", "b")]
    with pytest.raises(FlowError, match="inputs that are keyed, which R3 needs"):
        flow.lmerge(*inputs, variant="R3")
    flow.sink("out", flow.lmerge(*inputs, variant="R4", name="merge"))
    assert "[R4: as asked;" in line(flow, "merge")


def test_a_policy_that_needs_memory_is_explained() -> None:
    flow = ip.Flow("policy")
    inputs = [leases(flow, n, strict=True) for n in ("a", "b")]
    flow.sink("out", flow.lmerge(*inputs, policy=0.5, name="merge"))
    flow.sink("two", flow.lmerge(*inputs, policy=MergePolicy(stable_lag=3), name="late"))
    assert "[R3: inputs are keyed; the policy needs memory; inserts 50% quorum" in (
        line(flow, "merge")
    )
    assert "adjusts stable, 3 behind]" in line(flow, "late")


def test_streams_of_different_payloads_are_refused() -> None:
    flow = ip.Flow("unlike")
    with pytest.raises(FlowError, match="Give them one shape first"):
        flow.lmerge(leases(flow, "a"), flow.source("b", element_schema(ip.Schema.of("p string"))))


def test_a_condition_on_events_lets_stables_pass() -> None:
    flow = ip.Flow("filtered")
    flow.sink("out", leases(flow, "a").where("machine = 1"))
    rows = [insert(("A", 1), 6, 9), insert(("B", 2), 6, 9), stable(10)]
    out = flow.run({"a": elements(LEASES, rows)})["out"]
    assert describe(LEASES, out) == "insert(A, 1, 6, 9), stable(10)"


def test_a_condition_on_an_end_that_may_be_revised_is_refused() -> None:
    flow = ip.Flow("torn")
    with pytest.raises(FlowError, match="a condition on the payload or the start of events"):
        leases(flow, "a").where("ve < 20")


def test_tuples_become_events_and_heartbeats_stables() -> None:
    flow = ip.Flow("events")
    stream = speeds(flow, "a").events(lasting=5)
    flow.sink("out", stream)
    out = flow.run({"a": [(7, "x", 1.0), (9, "y", 2.0)]})["out"]
    assert describe(stream.schema, out) == (
        "insert(x, 1.0, 7, 12), insert(y, 2.0, 9, 14), stable(9), stable(∞)"
    )


def test_two_disordered_replicas_of_a_windowed_count_give_the_count() -> None:
    flow = ip.Flow("counts")
    inputs = [
        speeds(flow, n, ordered=False).aggregate(by="car", every=10, n="count(*)", speculative=True)
        for n in ("a", "b")
    ]
    merged = flow.lmerge(*inputs)
    flow.sink("out", merged)
    rows = [(t, "xy"[t % 2], 1.0) for t in range(40)]
    out = flow.run({"a": rows, "b": rows[::-1]}, clock=ip.ScriptedClock())["out"]
    table = tdb(merged.schema, out)
    assert sorted(table.rows()) == [(w, w + 10, c, 5) for w in (0, 10, 20, 30) for c in "xy"]


def test_unknown_properties_and_rows_are_refused() -> None:
    flow = ip.Flow("wrong")
    with pytest.raises(FlowError, match="properties among ordered, strict"):
        leases(flow, "a", sorted=True)
    with pytest.raises(FlowError, match="time windows with speculative=True"):
        speeds(flow, "b").aggregate(rows=3, n="count(*)", speculative=True)


def test_on_spark_such_a_flow_is_refused_before_anything_starts() -> None:
    flow = ip.Flow("spark")
    flow.sink("out", flow.lmerge(*(leases(flow, n) for n in ("a", "b")), name="merge"))
    with pytest.raises(FlowError, match="lmerge 'merge', which need a revisable stream as a whole"):
        flow.to_df({})
    assert "in process only: lmerge 'merge'" in flow.explain()
