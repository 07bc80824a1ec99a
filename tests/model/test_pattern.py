"""Patterns over whole tuples, and the punctuations and feedback made of them."""

from __future__ import annotations

import math
import pickle
from datetime import UTC, datetime

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpunct.model.comparisons import at_most, between, none_of
from interpunct.model.condition import ANY, EMPTY, NOT_NULL, Condition, NoneOf, OneOf, Range
from interpunct.model.errors import PatternError, SchemaError
from interpunct.model.feedback import Feedback, Intent
from interpunct.model.pattern import Pattern
from interpunct.model.punctuation import Punctuation
from interpunct.model.schema import END_OF_TIME, START_OF_TIME, Schema, to_ticks

SCHEMA = Schema.of("segment bigint, speed double, road string, ts timestamp", time="ts")
VALUES = {
    "segment": [1, 2, 3, 4],
    "speed": [-0.0, 50.0, math.inf, math.nan],
    "road": ["", "it's", "é"],
    "ts": [datetime(2008, 12, 8, 9, 0, 0, n, tzinfo=UTC) for n in (0, 1, 2)],
}


def conditions(name: str) -> st.SearchStrategy[Condition]:
    value = st.sampled_from(VALUES[name])
    ranges = st.builds(Range, st.none() | value, st.booleans(), st.none() | value, st.booleans())
    some = st.frozensets(st.none() | value, max_size=3)
    return st.just(ANY) | ranges | st.builds(OneOf, some) | st.builds(NoneOf, some, ranges)


PATTERNS = st.fixed_dictionaries({}, optional={n: conditions(n) for n in SCHEMA.names}).map(
    lambda c: Pattern(SCHEMA, c)
)
FRAMES = st.lists(
    st.tuples(*(st.none() | st.sampled_from(VALUES[n]) for n in SCHEMA.names)), max_size=12
).map(lambda rows: pl.DataFrame(rows, schema=SCHEMA.polars, orient="row"))


@given(PATTERNS, FRAMES)
def test_a_mask_is_the_conjunction_of_its_conditions(p: Pattern, frame: pl.DataFrame) -> None:
    wanted = [
        all(c.admits(row[name]) for name, c in p.conditions) for row in frame.iter_rows(named=True)
    ]
    assert p.mask(frame).to_list() == wanted
    assert p.matches_any(frame) == any(wanted)
    assert frame.filter(p.expr()).height == sum(wanted)


@given(PATTERNS, PATTERNS, FRAMES)
def test_the_algebra_is_that_of_masks(p: Pattern, q: Pattern, frame: pl.DataFrame) -> None:
    a, b = p.mask(frame), q.mask(frame)
    assert p.intersect(q).mask(frame).to_list() == (a & b).to_list()
    if p.implies(q):
        assert (a & ~b).any() is False
    union = p.union(q)
    if union is not None:
        assert union.mask(frame).to_list() == (a | b).to_list()
    if p.is_empty:
        assert not a.any()
        assert p.implies(q)


@given(PATTERNS, PATTERNS)
def test_an_intersection_implies_both_and_is_the_greatest_that_does(p: Pattern, q: Pattern) -> None:
    both = p.intersect(q)
    assert both.implies(p)
    assert both.implies(q)
    assert p.implies(q) == p.implies(both)


@given(PATTERNS)
def test_both_notations_read_back_as_the_same_pattern(p: Pattern) -> None:
    assert Pattern.parse(str(p), SCHEMA) == p
    assert Pattern.parse(p.by_name(), SCHEMA) == p
    assert hash(Pattern.parse(str(p), SCHEMA)) == hash(p)


@given(PATTERNS)
def test_a_pattern_survives_pickling(p: Pattern) -> None:
    assert pickle.loads(pickle.dumps(p)) == p


def test_the_builder_takes_values_sets_comparisons_and_conditions() -> None:
    p = Pattern.of(SCHEMA, {"segment": {3, 4}}, speed=("<", 50), road=none_of("A1"), ts=ANY)
    assert p.conditions == (
        ("segment", OneOf({3, 4})),
        ("speed", Range(high=50.0, high_closed=False)),
        ("road", NoneOf({"A1"})),
    )
    assert p.names == ("segment", "speed", "road")
    assert p.condition("ts") == ANY
    assert p.restricted_to(["road", "ts"]) == Pattern.of(SCHEMA, road=none_of("A1"))


def test_the_wild_pattern_matches_all_and_the_empty_one_nothing() -> None:
    frame = pl.DataFrame([(1, 2.0, None, None)], schema=SCHEMA.polars, orient="row")
    wild, empty = Pattern.wild(SCHEMA), Pattern.of(SCHEMA, segment=EMPTY)
    assert wild.is_wild
    assert wild.mask(frame).to_list() == [True]
    assert wild.mask(frame.clear()).to_list() == []
    assert wild.sql() == "TRUE"
    assert empty.is_empty
    assert empty.mask(frame).to_list() == [False]
    assert empty.implies(Pattern.of(SCHEMA, road="nowhere"))


def test_a_union_needs_all_but_one_attribute_alike() -> None:
    p, q = (Pattern.of(SCHEMA, segment=3, speed=c) for c in (between(0, 50), between(50, 90)))
    assert p.union(q) == Pattern.of(SCHEMA, segment=3, speed=between(0, 90))
    assert p.union(Pattern.of(SCHEMA, segment=4, speed=between(50, 90))) is None
    low, high = Pattern.of(SCHEMA, segment=("<", 5)), Pattern.of(SCHEMA, segment=("≤", 4))
    assert low.union(high) in (low, high)


def test_sql_joins_the_conditions() -> None:
    p = Pattern.of(SCHEMA, segment=("≤", 3), road=None)
    assert p.sql() == "(`segment` IS NOT NULL AND `segment` <= 3) AND (`road` IS NULL)"


def test_a_constant_of_a_float_column_is_rounded_as_the_column_is() -> None:
    schema = Schema.of("f float")
    frame = pl.DataFrame({"f": [0.1]}, schema=schema.polars)
    p = Pattern.of(schema, f=0.1)
    assert p.mask(frame).to_list() == [True]
    assert p.sql() == "(`f` IS NOT NULL AND (`f` <=> 0.10000000149011612D))"


def test_unknown_attributes_and_wrong_types_are_refused_by_name() -> None:
    with pytest.raises(SchemaError, match="'sped'"):
        Pattern.of(SCHEMA, sped=3)
    with pytest.raises(SchemaError, match="bigint in attribute 'segment'"):
        Pattern.of(SCHEMA, segment="three")
    with pytest.raises(SchemaError, match="'sped'"):
        Pattern.wild(SCHEMA).condition("sped")
    with pytest.raises(SchemaError, match="'sped'"):
        Pattern.wild(SCHEMA).restricted_to(["sped"])
    with pytest.raises(SchemaError, match="decimal"):
        Pattern.of(Schema.of("d decimal(10,2)"), d=math.nan)


def test_patterns_over_different_attributes_do_not_mix() -> None:
    with pytest.raises(PatternError, match="AttributeMap"):
        Pattern.wild(SCHEMA).implies(Pattern.wild(Schema.of("a bigint")))


def test_a_nested_attribute_can_only_be_null_or_not() -> None:
    schema = Schema.of("tags array<string>")
    frame = pl.DataFrame({"tags": [["a"], None]}, schema=schema.polars)
    assert Pattern.parse("[null]", schema).mask(frame).to_list() == [False, True]
    assert Pattern.parse("[≠ null]", schema).mask(frame).to_list() == [True, False]
    with pytest.raises(SchemaError, match="tags"):
        Pattern.of(schema, tags="a")


SEQUENCE = Schema.of("seq bigint, v string", time="seq")


@given(st.sampled_from([SCHEMA, SEQUENCE]), st.integers(-(10**15), 10**15))
def test_a_heartbeat_knows_its_tick(schema: Schema, ticks: int) -> None:
    beat = Punctuation.heartbeat(schema, ticks)
    assert beat.heartbeat_ticks == ticks
    assert beat == Punctuation(Pattern(schema, dict(beat.pattern.conditions)))
    assert Punctuation.parse(str(beat), schema) == beat


@pytest.mark.parametrize("schema", [SCHEMA, SEQUENCE])
def test_the_heartbeat_at_the_end_of_time_covers_every_stamped_tuple(schema: Schema) -> None:
    beat = Punctuation.heartbeat(schema, END_OF_TIME)
    assert beat.pattern.condition(schema.ordered_by) == NOT_NULL
    assert beat.heartbeat_ticks == END_OF_TIME
    assert Punctuation.parse(str(beat), schema) == beat
    assert Punctuation.heartbeat(schema, 7).implies(beat)


def test_a_heartbeat_no_datetime_reaches_promises_no_more_than_asked() -> None:
    late = Punctuation.heartbeat(SCHEMA, END_OF_TIME - 1)
    assert late.heartbeat_ticks == to_ticks(datetime.max)
    assert Punctuation.heartbeat(SCHEMA, START_OF_TIME).pattern.is_empty
    assert Punctuation.heartbeat(SEQUENCE, START_OF_TIME).heartbeat_ticks == START_OF_TIME


def test_only_an_upper_bound_on_time_alone_is_a_heartbeat() -> None:
    def ticks(text: str) -> int | None:
        return Punctuation.parse(text, SEQUENCE).heartbeat_ticks

    assert ticks("[< 5, *]") == 4
    for text in ("[≤ 5, 'a']", "[5, *]", "[[1, 5], *]", "[*, ≤ 'a']", "[*, *]", "[≤ 5 ∧ ≠ 3, *]"):
        assert ticks(text) is None, text
    untimed = Schema.of("seq bigint")
    assert Punctuation.parse("[≤ 5]", untimed).heartbeat_ticks is None


@pytest.mark.parametrize(
    ("text", "intent"),
    [
        ("¬[*, ≥ 50.0, *, *]", Intent.ASSUMED),
        ("?[*, ≥ 50.0, *, *]", Intent.DESIRED),
        ("![*, ≥ 50.0, *, *]", Intent.DEMANDED),
    ],
)
def test_feedback_reads_back(text: str, intent: Intent) -> None:
    feedback = Feedback.parse(text, SCHEMA)
    assert feedback.intent is intent
    assert feedback.pattern == Pattern.of(SCHEMA, speed=(">=", 50))
    assert str(feedback) == text


def test_feedback_in_ascii_and_without_an_intent() -> None:
    wanted = Feedback(Intent.ASSUMED, Pattern.of(SCHEMA, segment=at_most(3)))
    assert Feedback.parse("~[segment<=3]", SCHEMA) == wanted
    assert Feedback.parse("not [segment<=3]", SCHEMA) == wanted
    with pytest.raises(PatternError, match="an intent"):
        Feedback.parse("[segment<=3]", SCHEMA)
    with pytest.raises(PatternError, match="column 4"):
        Feedback.parse(" ¬ segment<=3", SCHEMA)
