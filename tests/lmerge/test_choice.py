"""Which variant: the six examples of section IV-D; what is refused, by name."""

from __future__ import annotations

import pytest
from merging import KNOWN

from interpunct.model.errors import FlowError
from interpunct.model.expression import aggregate
from interpunct.model.properties import Properties
from interpunct.model.schema import Schema
from interpunct.operators.aggregate import Aggregate
from interpunct.operators.contract import Stream
from interpunct.operators.lmerge import VARIANTS, MergePolicy, lmerge
from interpunct.operators.lmerge_choice import choose
from interpunct.operators.sort import Sort
from interpunct.operators.windows import Windows
from interpunct.testing.revisable import SCHEMA

LEASES = Schema.of("user bigint, ts bigint", time="ts")


def counted(by: list[str], properties: Properties) -> Properties:
    """The output of a windowed count."""
    count = aggregate("count(*)", LEASES, "test")
    stream = Stream(LEASES, properties)
    return Aggregate("n", stream, Windows(10, 10), by, {"n": count}).outputs[0].properties


def test_example_1_published_properties_choose() -> None:
    for variant in ("R0", "R1", "R2", "R3", "R4"):
        assert choose([KNOWN[variant]] * 2) == variant
    assert choose([KNOWN["R0"], KNOWN["R2"]]) == "R2"  # the weakest input counts
    assert choose([KNOWN["R1"], KNOWN["R2"]]) == "R4"


def test_example_2_an_operator_that_enforces_order_counts() -> None:
    disordered = Stream(LEASES, Properties(keyed=True, deterministic=True))
    assert choose([disordered.properties] * 2) == "R3"
    cleansed = Sort("cleanse", disordered).outputs[0].properties
    assert cleansed.ordered
    assert choose([Properties(ordered=cleansed.ordered, keyed=True)] * 2) == "R2"


def test_example_3_a_windowed_aggregate_of_an_ordered_stream_is_r0() -> None:
    assert choose([counted([], Properties(ordered=True))] * 2) == "R0"


def test_example_4_a_top_k_of_an_ordered_stream_is_r1() -> None:
    top_k = Properties(ordered=True, deterministic=True)  # equal times, in the order of rank
    assert choose([top_k] * 2) == "R1"


def test_example_5_a_grouped_aggregate_of_an_ordered_stream_is_r2() -> None:
    grouped = counted(["user"], Properties(ordered=True))
    assert grouped.keyed
    assert choose([Properties(ordered=True, keyed=True)] * 2) == "R2"
    assert choose([grouped] * 2) == "R1"  # ours puts the groups of a window in order


def test_example_6_a_grouped_aggregate_of_a_disordered_stream_is_r3() -> None:
    speculative = Properties(insert_only=False, keyed=True)
    assert choose([speculative] * 2) == "R3"


@pytest.mark.parametrize(
    ("variant", "known", "lacking"),
    [
        ("R0", Properties(ordered=True), "strict"),
        ("R1", Properties(ordered=True), "deterministic"),
        ("R2", Properties(keyed=True), "ordered"),
        ("R2", Properties(ordered=True, keyed=True, insert_only=False), "insert-only"),
        ("R3", Properties(), "keyed"),
        ("R3-", Properties(), "keyed"),
    ],
)
def test_a_variant_that_needs_more_than_is_known_is_refused(variant, known, lacking) -> None:
    inputs = [Stream(SCHEMA, KNOWN["R0"]), Stream(SCHEMA, known)]
    expected = f"merge: expected inputs that are {lacking}, which {variant} needs, got input 1"
    with pytest.raises(FlowError, match=expected):
        lmerge("merge", inputs, variant)


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_more_general_variant_than_needed_may_be_asked_for(variant: str) -> None:
    assert lmerge("merge", [Stream(SCHEMA, KNOWN["R0"])] * 2, variant).variant == variant


def test_a_policy_that_needs_memory_takes_a_variant_that_has_one() -> None:
    inputs = [Stream(SCHEMA, KNOWN["R0"])] * 2
    policy = MergePolicy(inserts="half-frozen")
    assert lmerge("merge", inputs, policy=policy).variant == "R3"
    with pytest.raises(FlowError, match="first inserts from R0"):
        lmerge("merge", inputs, "R0", policy)
    with pytest.raises(FlowError, match="from R3-"):
        lmerge("merge", inputs, "R3-", policy)


@pytest.mark.parametrize(
    "choices",
    [
        {"adjusts": "sometimes"},
        {"inserts": "last"},
        {"inserts": 0.0},
        {"inserts": 1.5},
        {"stable_lag": -1},
        {"adjusts": "leader", "inserts": 0.5},
        {"adjusts": "every", "inserts": "leader"},
    ],
)
def test_policies_that_make_no_sense_are_refused(choices) -> None:
    with pytest.raises(FlowError, match="merge policy: expected"):
        MergePolicy(**choices)


def test_inputs_of_different_schemas_and_unknown_variants_are_refused() -> None:
    other = Stream(Schema.of("p string"))
    with pytest.raises(FlowError, match="inputs of one schema"):
        lmerge("merge", [Stream(SCHEMA), other])
    with pytest.raises(FlowError, match="a variant among R0"):
        lmerge("merge", [Stream(SCHEMA)], "R9")
