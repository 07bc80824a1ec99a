"""Rewriting patterns through an operator: never wider than what was said."""

from __future__ import annotations

import pytest

from interpunct.model.attribute_map import AttributeMap, Origin
from interpunct.model.comparisons import at_least, at_most, between
from interpunct.model.errors import SchemaError
from interpunct.model.pattern import Pattern
from interpunct.model.schema import Schema

LEFT = Schema.of("k bigint, a bigint, gone string")
RIGHT = Schema.of("key bigint, b bigint")
OUT = Schema.of("k bigint, a2 bigint, again bigint, b bigint, total bigint, made string")
JOIN = AttributeMap(
    {
        "k": [Origin(0, "k"), Origin(1, "key")],
        "a2": [Origin(0, "a")],
        "again": [Origin(0, "a")],
        "b": [Origin(1, "b")],
    },
    derived={"total": [Origin(0, "a"), Origin(1, "b")]},
)


def test_forward_renames_what_is_carried_and_takes_the_first_output() -> None:
    p = Pattern.of(LEFT, k=3, a=at_most(9))
    assert JOIN.forward(p, 0, OUT) == Pattern.of(OUT, k=3, a2=at_most(9))
    assert JOIN.forward(Pattern.of(RIGHT, key=3), 1, OUT) == Pattern.of(OUT, k=3)


def test_forward_refuses_to_leave_a_condition_out() -> None:
    assert JOIN.forward(Pattern.of(LEFT, k=3, gone="x"), 0, OUT) is None
    assert JOIN.forward(Pattern.wild(LEFT), 0, OUT) == Pattern.wild(OUT)


def test_backward_goes_to_every_port_that_carries_all_conditions() -> None:
    on_key = Pattern.of(OUT, k=at_least(3))
    assert JOIN.backward(on_key, 0, LEFT) == Pattern.of(LEFT, k=at_least(3))
    assert JOIN.backward(on_key, 1, RIGHT) == Pattern.of(RIGHT, key=at_least(3))
    both = Pattern.of(OUT, k=3, b=4)
    assert JOIN.backward(both, 0, LEFT) is None
    assert JOIN.backward(both, 1, RIGHT) == Pattern.of(RIGHT, key=3, b=4)


def test_backward_stops_at_derived_and_new_attributes() -> None:
    assert JOIN.backward(Pattern.of(OUT, total=3), 0, LEFT) is None
    assert JOIN.backward(Pattern.of(OUT, made="x"), 1, RIGHT) is None


def test_two_outputs_of_one_input_meet_on_the_way_back() -> None:
    p = Pattern.of(OUT, a2=at_most(9), again=at_least(3))
    assert JOIN.backward(p, 0, LEFT) == Pattern.of(LEFT, a=between(3, 9))


@pytest.mark.parametrize(
    ("output", "port", "kind"),
    [
        ("k", 0, "identity"),
        ("k", 1, "renamed"),
        ("a2", 0, "renamed"),
        ("a2", 1, "lost"),
        ("total", 0, "derived"),
        ("total", 1, "derived"),
        ("total", 2, "lost"),
        ("made", 0, "lost"),
    ],
)
def test_kinds(output: str, port: int, kind: str) -> None:
    assert JOIN.kind(output, port) == kind


def test_the_identity_of_several_ports_carries_everything_both_ways() -> None:
    union = AttributeMap.identity(RIGHT, ports=2)
    p = Pattern.of(RIGHT, key=3, b=4)
    for port in (0, 1):
        assert union.forward(p, port, RIGHT) == p
        assert union.backward(p, port, RIGHT) == p
    assert union.forward(p, 2, RIGHT) is None
    assert hash(union) == hash(AttributeMap.identity(RIGHT, ports=2))


def test_an_output_cannot_be_both_carried_and_derived() -> None:
    with pytest.raises(SchemaError, match="'k' as both"):
        AttributeMap({"k": [Origin(0, "k")]}, derived={"k": [Origin(0, "k")]})
