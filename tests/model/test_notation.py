"""The notation: the papers' own examples, ASCII spellings, and what malformed text is told."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpunct.model.comparisons import (
    at_least,
    at_most,
    below,
    between,
    constant,
    none_of,
    one_of,
)
from interpunct.model.condition import ANY, EMPTY, NOT_NULL, Condition, NoneOf
from interpunct.model.errors import PatternError
from interpunct.model.pattern import Pattern
from interpunct.model.schema import Schema

NINE = datetime(2008, 12, 8, 9, tzinfo=UTC)
TRAFFIC = Schema.of("segment bigint, ts timestamp, speed double", time="ts")
INTS = Schema.of("v bigint")


@pytest.mark.parametrize(
    "text",
    [
        "[*, ≤ '2008-12-08 09:00', *]",
        "[*, ≤ ’2008-12-08 9:00 AM’, *]",
        "[*, ≤ ‘2008-12-08 9:00:00 am’, *]",
        "[*, <= '2008-12-08T09:00:00Z', *]",
        "[*, ≤ '2008-12-08 10:00+01:00', *]",
        "[*, [,'2008-12-08 09:00'], *]",
        "[ts≤'2008-12-08 09:00']",
        "[ `ts` <= '2008-12-08 9:00' , speed = * ]",
    ],
)
def test_a_heartbeat_in_every_spelling(text: str) -> None:
    assert Pattern.parse(text, TRAFFIC) == Pattern.of(TRAFFIC, ts=at_most(NINE))


@pytest.mark.parametrize(
    ("clock", "hours"), [("12:30 AM", 0.5), ("12:30 PM", 12.5), ("1:30 PM", 13.5), ("7:30", 7.5)]
)
def test_time_of_day(clock: str, hours: float) -> None:
    p = Pattern.parse(f"[ts='2008-12-08 {clock}']", TRAFFIC)
    assert p.condition("ts") == constant(datetime(2008, 12, 8, tzinfo=UTC) + timedelta(hours=hours))


@pytest.mark.parametrize(
    ("entry", "condition", "shown"),
    [
        ("*", ANY, "*"),
        ("3", constant(3), "3"),
        ("= -3", constant(-3), "-3"),
        ("null", constant(None), "null"),
        ("≠ null", NOT_NULL, "≠ null"),
        ("!= 3", none_of(3), "≠ 3"),
        ("<> 3", none_of(3), "≠ 3"),
        ("< 3", below(3), "< 3"),
        (">= 3", at_least(3), "≥ 3"),
        ("[,5567]", at_most(5567), "≤ 5567"),
        ("(,5567]", at_most(5567), "≤ 5567"),
        ("[5,)", at_least(5), "≥ 5"),
        ("[,]", NOT_NULL, "≠ null"),
        ("[5, 10)", between(5, 10, "[)"), "[5, 10)"),
        ("∈ (5, 10]", between(5, 10, "(]"), "(5, 10]"),
        ("[5, 5]", constant(5), "5"),
        ("{2, 1, null}", one_of(1, 2, None), "{null, 1, 2}"),
        ("∈ {1}", constant(1), "1"),
        ("IN {1, 2}", one_of(1, 2), "{1, 2}"),
        ("{}", EMPTY, "{}"),
        ("not in {4, 3}", none_of(3, 4), "∉ {3, 4}"),
        ("∉ {3}", none_of(3), "≠ 3"),
        ("> 3 and ≤ 9", between(3, 9, "(]"), "(3, 9]"),
        ("≥ 3 & ∉ {5, 6}", NoneOf({5, 6}, at_least(3)), "≥ 3 ∧ ∉ {5, 6}"),
        ("[3, 9] ∧ ≠ 5", NoneOf({5}, between(3, 9)), "[3, 9] ∧ ≠ 5"),
    ],
)
def test_entries(entry: str, condition: Condition, shown: str) -> None:
    p = Pattern.parse(f"[{entry}]", INTS)
    assert p.condition("v") == condition
    assert str(p) == f"[{shown}]"
    assert Pattern.parse(str(p), INTS) == p
    assert Pattern.parse(p.by_name(), INTS) == p


def test_by_name_prints_compactly_and_intersects_repeats() -> None:
    p = Pattern.parse("[segment > 3, speed in {1, nan}, segment <= 9, segment != 5]", TRAFFIC)
    assert p.by_name() == "[segment∈(3, 9], segment≠5, speed∈{1.0, nan}]"
    assert Pattern.wild(TRAFFIC).by_name() == "[]"
    assert Pattern.parse("[]", TRAFFIC).is_wild


def test_names_that_are_not_words_are_quoted() -> None:
    schema = Schema.of("`null` bigint, `a b` bigint, `c``d` bigint")
    p = Pattern.of(schema, dict.fromkeys(schema.names, 1))
    assert p.by_name() == f"[`null`=1, `a b`=1, `{schema.names[2].replace('`', '``')}`=1]"
    assert Pattern.parse(p.by_name(), schema) == p


MIXED = Schema.of(
    "i int, f double, g float, s string, b boolean, y binary, d date, t timestamp, "
    "n timestamp_ntz, e decimal(20,4)"
)
VALUES = {
    "i": st.integers(-(2**31), 2**31 - 1),
    "f": st.floats(),
    "g": st.floats(width=32),
    "s": st.text(st.characters(codec="utf-8"), max_size=8) | st.sampled_from(["'", "’", "``", "]"]),
    "b": st.booleans(),
    "y": st.binary(max_size=6),
    "d": st.dates(),
    "t": st.datetimes(timezones=st.just(UTC)),
    "n": st.datetimes(),
    "e": st.decimals(-(10**6), 10**6, places=4),
}


@given(st.fixed_dictionaries({}, optional=VALUES), st.sampled_from(["=", "≤", ">", "≠"]))
def test_every_type_of_value_reads_back(values: dict[str, object], op: str) -> None:
    p = Pattern.of(MIXED, {name: (op, value) for name, value in values.items()})
    assert Pattern.parse(str(p), MIXED) == p
    assert Pattern.parse(p.by_name(), MIXED) == p


def test_values_take_the_type_of_their_attribute() -> None:
    p = Pattern.parse("[f=3, g=-inf, e=1.50, s='3', b=true, y=x'0aFF', d='2020-02-29']", MIXED)
    assert p.condition("f") == constant(3.0)
    assert p.condition("g") == constant(-math.inf)
    assert p.condition("e") == constant(Decimal("1.5"))
    assert p.condition("y") == constant(b"\x0a\xff")
    assert p.by_name() == ("[f=3.0, g=-inf, s='3', b=true, y=x'0aff', d='2020-02-29', e=1.50]")


@pytest.mark.parametrize(
    ("text", "column", "expected", "got"),
    [
        ("segment=3", 1, "'['", "'segment'"),
        ("[3]", 3, "',' and 3 entries", "']'"),
        ("[3, *, *, *]", 9, "']' after 3 entries", "','"),
        ("[*, *, *", 9, "']' after 3 entries", "the end of the text"),
        ("[segment=3", 11, "',' or ']'", "the end of the text"),
        ("[segment=3] x", 13, "nothing after the pattern", "'x'"),
        ("[segment 3]", 10, "an operator after 'segment'", "'3'"),
        ("[segment=3, 4]", 13, "an attribute name", "'4'"),
        ("[sgmnt=3]", 2, "one of the attributes segment, ts, speed", "'sgmnt'"),
        ("[segment=]", 10, "a value for attribute 'segment'", "']'"),
        ("[segment='three']", 10, "bigint for attribute 'segment'", "'three'"),
        ("[segment=3.5]", 10, "bigint for attribute 'segment'", "3.5"),
        ("[ts≤'9:01']", 5, "timestamp for attribute 'ts'", "'9:01'"),
        ("[ts≤'2008-12-08 13:00 PM']", 5, "timestamp", "13:00 PM"),
        ("[ts≤'2008-12-08]", 5, "a closing quote", "'2008-12-08]"),
        ("[segment<null]", 10, "a value after <", "null"),
        ("[[null, 3], *, *]", 3, "a bound", "'null'"),
        ("[segment in 3]", 13, "a set {…} or a range", "'3'"),
        ("[segment not 3]", 14, "'in'", "'3'"),
        ("[segment∈{1 2}]", 13, "',' or '}'", "'2'"),
        ("[segment∈[1 2]]", 13, "','", "'2'"),
        ("[segment§3]", 9, "a pattern", "'§3]'"),
    ],
)
def test_malformed_text_is_told_where_and_why(
    text: str, column: int, expected: str, got: str
) -> None:
    with pytest.raises(PatternError) as caught:
        Pattern.parse(text, TRAFFIC)
    message = str(caught.value)
    assert message.startswith(f"pattern text, column {column}: ")
    assert expected in caught.value.expected
    assert got in caught.value.got
    assert message.endswith(f"\n    {text}\n    {' ' * (column - 1)}^")
