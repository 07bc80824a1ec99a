"""Conditions against a brute-force reference: what each kind matches, and the algebra of them."""

from __future__ import annotations

import math
import pickle
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpunct.model.comparisons import (
    above,
    at_least,
    at_most,
    below,
    between,
    comparison,
    constant,
    none_of,
    one_of,
)
from interpunct.model.condition import (
    ANY,
    EMPTY,
    NOT_NULL,
    Condition,
    NoneOf,
    OneOf,
    Range,
    Wildcard,
)
from interpunct.model.errors import PatternError
from interpunct.model.masks import satisfying

nan, inf = math.nan, math.inf
START = datetime(2008, 12, 8, 9, tzinfo=UTC)
MICRO = timedelta(microseconds=1)

# Small domains with neighbours, so that the discrete cases and the touching ones come up often.
# Constants come from the inside, so that a domain shows the difference between unbounded and not.
DOMAINS: dict[str, tuple[list[Any], pl.DataType]] = {
    "int": (list(range(-1, 8)), pl.Int64()),
    "float": ([-inf, -2.5, -0.0, 0.0, 1.0, 50.0, inf, nan], pl.Float64()),
    "string": (["", "a", "ab", "b", "ö", "€", "𝄞"], pl.String()),
    "timestamp": ([START + i * MICRO for i in range(-1, 6)], pl.Datetime("us", "UTC")),
    "date": ([date(2024, 2, 27) + timedelta(days=i) for i in range(5)], pl.Date()),
    "boolean": ([False, True], pl.Boolean()),
    "decimal": ([Decimal("-1.50"), Decimal(0), Decimal("2.25")], pl.Decimal(10, 2)),
    "binary": ([b"", b"\x00", b"a", b"\xff"], pl.Binary()),
}
# Every value between two neighbours of a dense domain is alike, so one stand-in for each gap
# makes the check of implication complete.
BETWEEN: dict[str, list[Any]] = {
    "float": [-3.0, -1.0, 0.5, 2.0, 60.0],
    "string": ["\x00", "aa", "abc", "c", "ü", "₭", "\U0001d11f"],
    "decimal": [Decimal(-2), Decimal(-1), Decimal(1), Decimal(3)],
    "binary": [b"\x00\x00", b"b", b"\xff\xff"],
}


def probe(kind: str) -> pl.DataFrame:
    values, dtype = DOMAINS[kind]
    return pl.DataFrame({"v": [None, *values, *BETWEEN.get(kind, [])]}, schema={"v": dtype})


def constants(kind: str) -> list[Any]:
    values = DOMAINS[kind][0]
    return values[1:-1] if kind in ("int", "timestamp", "date") else values


def conditions(kind: str) -> st.SearchStrategy[Condition]:
    value = st.sampled_from(constants(kind))
    ranges = st.builds(Range, st.none() | value, st.booleans(), st.none() | value, st.booleans())
    some = st.frozensets(st.none() | value, max_size=4)
    return st.one_of(
        st.just(ANY), ranges, st.builds(OneOf, some), st.builds(NoneOf, some, ranges),
        st.builds(NoneOf, some),
    )  # fmt: skip


def reference(condition: Condition, value: Any) -> bool:
    """What a condition means, one value at a time and in the plainest words."""

    def rank(v: Any) -> Any:
        if isinstance(v, float):
            return (1, 0.0) if math.isnan(v) else (0, v)
        return v.encode() if isinstance(v, str) else v

    match condition:
        case Wildcard():
            return True
        case OneOf():
            return any(
                value is None if v is None else value is not None and rank(v) == rank(value)
                for v in condition.values
            )
        case NoneOf():
            return reference(condition.within, value) and not reference(
                OneOf(condition.values), value
            )
    assert isinstance(condition, Range)
    if value is None:
        return False
    v = rank(value)
    low, high = rank(condition.low), rank(condition.high)
    above_low = condition.low is None or v > low or (condition.low_closed and v == low)
    below_high = condition.high is None or v < high or (condition.high_closed and v == high)
    return above_low and below_high


def mask(condition: Condition, kind: str) -> list[bool | None]:
    frame = probe(kind)
    return frame.with_columns(condition.expr("v").alias("m")).get_column("m").to_list()


KINDS = st.sampled_from(sorted(DOMAINS))
ONE = KINDS.flatmap(lambda k: st.tuples(st.just(k), conditions(k)))
TWO = KINDS.flatmap(lambda k: st.tuples(st.just(k), conditions(k), conditions(k)))


@given(ONE)
def test_expression_mask_and_admits_agree_with_the_reference_and_are_never_null(
    drawn: tuple[str, Condition],
) -> None:
    kind, condition = drawn
    values = probe(kind).get_column("v").to_list()
    wanted = [reference(condition, v) for v in values]
    assert mask(condition, kind) == wanted
    assert satisfying(condition, probe(kind).get_column("v")).to_list() == wanted
    assert [condition.admits(v) for v in values] == wanted
    assert mask(condition.tidy(), kind) == wanted
    assert condition.tidy().tidy() == condition.tidy()


@given(TWO)
def test_intersection_is_and(drawn: tuple[str, Condition, Condition]) -> None:
    kind, a, b = drawn
    both = [x and y for x, y in zip(mask(a, kind), mask(b, kind), strict=True)]
    assert mask(a.intersect(b), kind) == both
    assert a.intersect(b).is_empty == (not any(both))


@given(TWO)
def test_implication_is_containment_exactly(drawn: tuple[str, Condition, Condition]) -> None:
    kind, a, b = drawn
    contained = all(y or not x for x, y in zip(mask(a, kind), mask(b, kind), strict=True))
    assert a.implies(b) == contained


@given(TWO)
def test_union_is_or_wherever_there_is_one(drawn: tuple[str, Condition, Condition]) -> None:
    kind, a, b = drawn
    union = a.union(b)
    if union is not None:
        either = [x or y for x, y in zip(mask(a, kind), mask(b, kind), strict=True)]
        assert mask(union, kind) == either
        assert a.implies(union)
        assert b.implies(union)


@given(ONE)
def test_a_condition_survives_pickling_with_its_hash(drawn: tuple[str, Condition]) -> None:
    copy = pickle.loads(pickle.dumps(drawn[1]))
    assert copy == drawn[1]
    assert hash(copy) == hash(drawn[1])


def test_integers_are_discrete() -> None:
    assert between(3, 4, "()") == EMPTY
    assert below(5).implies(at_most(4))
    assert between(1, 3).implies(one_of(1, 2, 3))
    assert not between(1, 3).implies(one_of(1, 3))
    assert between(1, 3).intersect(none_of(2)).implies(one_of(1, 3))


def test_timestamps_are_discrete_to_the_microsecond() -> None:
    assert below(START + MICRO).implies(at_most(START))
    assert not below(START + 2 * MICRO).implies(at_most(START))


def test_everything_but_null_is_not_the_wildcard() -> None:
    assert at_most(4).union(at_least(5)) == NOT_NULL
    assert NOT_NULL != ANY
    assert not ANY.implies(NOT_NULL)
    assert NOT_NULL.union(constant(None)) == ANY


@pytest.mark.parametrize(
    ("a", "b", "union"),
    [
        (at_most(5), between(5, 9), at_most(9)),
        (between(1, 3), between(4, 6), between(1, 6)),
        (between(1.0, 3.0, "[)"), constant(3.0), between(1.0, 3.0)),
        (between(1.0, 3.0), between(4.0, 6.0), None),
        (below(3.0), above(3.0), none_of(3.0)),
        (one_of(1, 9), one_of(4, None), one_of(1, 9, 4, None)),
        (none_of(3, 4), none_of(4, 5), none_of(4)),
        (none_of(3), constant(3), NOT_NULL),
        (at_most(5), constant(None), None),
        (at_most(inf), constant(nan), NOT_NULL),
        (EMPTY, at_most(5), at_most(5)),
    ],
)
def test_union_of(a: Condition, b: Condition, union: Condition | None) -> None:
    assert a.union(b) == union
    assert b.union(a) == union


def test_a_range_without_some_values_stays_exact() -> None:
    assert at_most(9).intersect(none_of(3, 12)) == NoneOf({3}, at_most(9))
    assert between(3, 5).intersect(none_of(5)) == between(3, 5, "[)")
    assert none_of(3, None) == none_of(3)
    assert none_of(None) == NOT_NULL


def test_nan_equals_nan_and_is_greatest() -> None:
    other = float("nan")
    assert one_of(nan, 1.0) == one_of(1.0, other)
    assert hash(constant(nan)) == hash(constant(other))
    assert at_most(nan) == at_most(other)
    assert constant(nan).implies(at_least(50.0))
    assert constant(other).intersect(at_most(50.0)) == EMPTY
    assert above(inf).implies(constant(nan))


def test_polars_orders_nan_and_zero_as_we_say() -> None:
    frame = pl.DataFrame({"v": [nan, -0.0, None]})
    seen = frame.select(
        top=pl.col("v") >= 50, low=pl.col("v") <= 50, nan=pl.col("v") == nan,
        zero=pl.col("v").is_in([0.0, 7.0]), nans=pl.col("v").is_in([nan, 7.0]),
    )  # fmt: skip
    assert seen.rows() == [
        (True, False, True, False, True),
        (False, True, False, True, False),
        (None, None, None, None, None),
    ]


@pytest.mark.parametrize(
    ("condition", "sql"),
    [
        (ANY, "TRUE"),
        (EMPTY, "FALSE"),
        (NOT_NULL, "(`v` IS NOT NULL)"),
        (constant(None), "(`v` IS NULL)"),
        (between(1, 9, "[)"), "(`v` IS NOT NULL AND `v` >= 1 AND `v` < 9)"),
        (one_of(None, 2, 1), "(`v` IS NULL OR `v` IN (1, 2))"),
        (constant(1.5), "(`v` IS NOT NULL AND (`v` <=> 1.5D))"),
        (
            one_of(nan, -inf),
            "(`v` IS NOT NULL AND (`v` <=> double('-Infinity') OR `v` <=> double('NaN')))",
        ),
        (none_of(3, 4), "((`v` IS NOT NULL) AND NOT (`v` IN (3, 4)))"),
        (at_most("it's \\"), "(`v` IS NOT NULL AND `v` <= 'it\\'s \\\\')"),
        (
            at_most(START),
            "(`v` IS NOT NULL AND `v` <= TIMESTAMP'2008-12-08 09:00:00.000000+00:00')",
        ),
        (
            at_most(datetime(2008, 12, 8)),
            "(`v` IS NOT NULL AND `v` <= TIMESTAMP_NTZ'2008-12-08 00:00:00.000000')",
        ),
        (above(date(2008, 12, 8)), "(`v` IS NOT NULL AND `v` > DATE'2008-12-08')"),
        (above(Decimal("1.50")), "(`v` IS NOT NULL AND `v` > 1.50BD)"),
        (one_of(b"\x00", b"a"), "(`v` IS NOT NULL AND `v` IN (X'00', X'61'))"),
        (constant(True), "(`v` IS NOT NULL AND (`v` <=> TRUE))"),
    ],
)
def test_spark_sql(condition: Condition, sql: str) -> None:
    assert condition.sql("v") == sql


def test_spark_sql_quotes_names() -> None:
    assert constant(None).sql("a`b c") == "(`a``b c` IS NULL)"


def test_an_unknown_operator_and_an_order_on_null_are_refused() -> None:
    with pytest.raises(PatternError, match="one of the operators"):
        comparison("~", 3)
    with pytest.raises(PatternError, match="above or below null"):
        comparison("≤", None)
