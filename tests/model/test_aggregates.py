"""Aggregates: Spark's results, and parts that add up to the whole."""

from __future__ import annotations

import itertools
import math
import pickle
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from interpunct.model.errors import ExpressionError, SchemaError
from interpunct.model.expression import Aggregate, aggregate
from interpunct.model.schema import Schema

SCHEMA = Schema.of(
    "i bigint, n int, t tinyint, x double, s string, p boolean, q boolean, ts timestamp, "
    "m decimal(10,2)"
)
NAN = math.nan
T0 = datetime(2024, 5, 17, 10, 20, 30, tzinfo=UTC)
# Three tuples: an ordinary one, one of extremes, one of nulls.
FRAME = pl.DataFrame(
    {
        "i": [7, -7, None],
        "n": [2, 0, None],
        "t": [100, -128, None],
        "x": [2.5, NAN, None],
        "s": ["Ab c", "", None],
        "p": [True, False, None],
        "q": [False, True, True],
        "ts": [T0, datetime(1969, 12, 31, tzinfo=UTC), None],
        "m": [Decimal("1.50"), Decimal("-0.05"), None],
    },
    schema=SCHEMA.polars,
)


def same(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        return (math.isnan(left) and math.isnan(right)) or left == pytest.approx(right)
    return type(left) is type(right) and left == right


def over(source: str | pl.Expr, frame: pl.DataFrame) -> Any:
    built = aggregate(source, SCHEMA, "aggregate")
    grouped = frame.group_by(pl.lit(1).alias("g")).agg(built.polars.alias("value"))
    assert grouped.schema["value"] == built.dtype
    return grouped["value"].to_list()[0]


NULLS = FRAME.tail(1)


@pytest.mark.parametrize(
    ("text", "some", "none"),
    [
        ("count(*)", 3, 1),
        ("count(1)", 3, 1),
        ("count(i)", 2, 0),
        ("count(i, s)", 2, 0),
        ("sum(i)", 0, None),
        ("sum(t)", -28, None),
        ("sum(2)", 6, 2),
        ("sum(m)", Decimal("1.45"), None),
        ("sum(x)", NAN, None),
        ("avg(n)", 1.0, None),
        ("mean(n * 2)", 2.0, None),
        ("avg(m)", 0.725, None),
        ("min(x)", 2.5, None),
        ("max(x)", NAN, None),
        ("max(i)", 7, None),
        ("min(s)", "", None),
        ("max(ts)", T0, None),
        ("first(i)", 7, None),
        ("first_value(s)", "Ab c", None),
        ("last(i)", None, None),
        ("last(i) ignore nulls", -7, None),
        ("last_value(q)", True, True),
        ("count_if(i > 0)", 1, 0),
        ("bool_and(q)", False, True),
        ("bool_or(p)", True, None),
        ("every(p)", False, None),
        ("any(p)", True, None),
        ("some(p)", True, None),
        ("stddev(n)", math.sqrt(2), None),
        ("stddev_pop(n)", 1.0, None),
        ("variance(n)", 2.0, None),
        ("var_pop(n)", 1.0, None),
        ("median(i)", 0.0, None),
        ("percentile(n, 0.25)", 0.5, None),
        ("percentile_approx(n, 0.5)", 0, None),
        ("collect_list(i)", [7, -7], []),
        ("collect_set(q)", [False, True], [True]),
        ("count(distinct q)", 2, 1),
        ("count(distinct i, q)", 2, 0),
        ("approx_count_distinct(i)", 2, 0),
    ],
)
def test_aggregates_mean_what_spark_means(text: str, some: Any, none: Any) -> None:
    assert same(over(text, FRAME), some), over(text, FRAME)
    assert same(over(text, NULLS), none), over(text, NULLS)


@pytest.mark.parametrize(
    ("text", "ddl"),
    [("count(*)", "bigint"), ("sum(t)", "bigint"), ("sum(x)", "double"), ("avg(i)", "double"),
     ("sum(m)", "decimal(20,2)"), ("min(t)", "tinyint"), ("collect_list(s)", "array<string>")],
)  # fmt: skip
def test_aggregate_types_are_those_of_spark(text: str, ddl: str) -> None:
    expected = Schema.of(f"value {ddl}")["value"].dtype
    assert aggregate(text, SCHEMA, "aggregate").dtype == expected


def test_aggregates_reveal_what_they_read() -> None:
    assert aggregate("avg(x * n)", SCHEMA, "a").inputs == {"x", "n"}
    assert aggregate("count(*)", SCHEMA, "a").inputs == frozenset()
    assert aggregate(pl.col("i").max() - pl.col("n").min(), SCHEMA, "a").inputs == {"i", "n"}


def test_a_polars_aggregation_is_used_whole() -> None:
    spread = aggregate(pl.col("i").max() - pl.col("i").min(), SCHEMA, "a")
    assert spread.parts is None
    assert over(pl.col("i").max() - pl.col("i").min(), FRAME) == 14
    assert over(pl.len(), FRAME) == 3


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        ("i", ExpressionError, "one call of an aggregate"),
        ("sum(i) / count(*)", ExpressionError, r"Compute SUM\(i\) here"),
        (
            "sum(i) filter (where x > 1)",
            ExpressionError,
            r"Write SUM\(CASE WHEN x > 1 THEN i END\), or",
        ),
        ("max_by(i, x)", ExpressionError, "Write one of those that docs/sql.md lists, or"),
        ("foo(i)", ExpressionError, "foo in"),
        ("sum(distinct i)", ExpressionError, "DISTINCT"),
        ("sum(sum(i))", ExpressionError, "the aggregate SUM"),
        ("sum(i) filter (where p)", ExpressionError, "one call"),
        ("sum(s)", SchemaError, "a number in attribute 's', got string"),
        ("avg(ts)", SchemaError, "got timestamp"),
        ("count_if(i)", SchemaError, "a boolean in attribute 'i'"),
        ("sum(missing)", SchemaError, "'missing'"),
        ("percentile(i, 2)", ExpressionError, "a share from 0 to 1"),
        (pl.col("i"), ExpressionError, "one value per group"),
        (pl.col("i") + 1, ExpressionError, "one value per group"),
        (pl.all().sum(), ExpressionError, "names its columns"),
    ],
)
def test_what_is_no_aggregate_is_refused_when_built(
    source: str | pl.Expr, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        aggregate(source, SCHEMA, "aggregate 'v'")


# Parts

NUMBERS = Schema.of("g int, x double, n int, m decimal(12,2), p boolean, s string")
DECOMPOSABLE = [
    "count(*)", "count(x)", "count(1)", "sum(n)", "sum(x)", "sum(m)", "min(x)", "max(x)", "min(s)",
    "max(n)", "avg(x)", "avg(n * 2)", "first(s)", "last(n)", "first(n) ignore nulls",
    "last(s) ignore nulls", "count_if(x > 0)", "bool_and(p)", "any(p)", "stddev(x)",
    "stddev_pop(n)", "variance(x)", "var_pop(x)",
]  # fmt: skip
NOT_DECOMPOSABLE = ["median(x)", "percentile(x, 0.5)", "percentile_approx(n, 0.9)",
                    "collect_list(s)", "collect_set(s)", "count(distinct s)",
                    "approx_count_distinct(n)"]  # fmt: skip
ROWS = st.tuples(
    st.integers(0, 2),
    st.none() | st.floats(-1e6, 1e6, width=32) | st.just(NAN),
    st.none() | st.integers(-(2**31), 2**31 - 1),
    st.none() | st.decimals(-1000, 1000, places=2),
    st.none() | st.booleans(),
    st.none() | st.sampled_from(["", "a", "b"]),
)


def by_parts(built: Aggregate, pages: list[pl.DataFrame], rounds: int) -> pl.DataFrame:
    """Partial rows per page, merged pairwise some rounds and then altogether, then finished."""
    assert built.parts is not None
    assert built.finish is not None
    names = [f"value.{part.suffix}" for part in built.parts]
    partials = [part.partial.alias(n) for part, n in zip(built.parts, names, strict=True)]
    merges = [part.combine(n).alias(n) for part, n in zip(built.parts, names, strict=True)]

    def merged(rows: pl.DataFrame) -> pl.DataFrame:
        again = rows.group_by("g", maintain_order=True).agg(merges)
        assert again.schema == rows.schema, "combining keeps types, so it can be repeated"
        return again

    rows = [page.group_by("g", maintain_order=True).agg(partials) for page in pages]
    for _ in range(rounds):
        rows = [merged(pl.concat(rows[i : i + 2])) for i in range(0, len(rows), 2)]
    return merged(pl.concat(rows)).select("g", built.finish(names).cast(built.dtype).alias("value"))


@settings(max_examples=40, deadline=None)
@given(st.lists(ROWS, min_size=1, max_size=25), st.lists(st.integers(0, 25), max_size=4),
       st.integers(0, 2))  # fmt: skip
def test_parts_in_any_split_add_up_to_the_whole(
    rows: list[tuple[Any, ...]], cuts: list[int], rounds: int
) -> None:
    frame = pl.DataFrame(rows, schema=NUMBERS.polars, orient="row")
    edges = [0, *sorted(min(c, len(rows)) for c in cuts), len(rows)]
    pages = [frame[a:b] for a, b in itertools.pairwise(edges)]
    for text in DECOMPOSABLE:
        built = aggregate(text, NUMBERS, "test")
        whole = frame.group_by("g").agg(built.polars.alias("value"))
        assert_frame_equal(
            by_parts(built, pages, rounds), whole, check_row_order=False, abs_tol=1e-2, rel_tol=1e-6
        )


def test_the_variance_of_large_close_numbers_survives_its_parts() -> None:
    frame = pl.DataFrame({"g": [1] * 4, "x": [1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16]})
    pages = [frame[:1], frame[1:3], frame[3:]]
    assert by_parts(aggregate("variance(x)", NUMBERS, "t"), pages, 1)["value"].to_list() == [30.0]


@pytest.mark.parametrize("text", NOT_DECOMPOSABLE)
def test_an_aggregate_that_needs_all_its_tuples_has_no_parts(text: str) -> None:
    assert aggregate(text, NUMBERS, "test").parts is None


@pytest.mark.parametrize("text", DECOMPOSABLE)
def test_a_decomposable_aggregate_travels(text: str) -> None:
    built = pickle.loads(pickle.dumps(aggregate(text, NUMBERS, "test")))
    frame = pl.DataFrame({"g": [1, 1], "x": [1.0, 2.0], "n": [1, 2], "m": [1, 2], "p": [True, None],
                          "s": ["a", "b"]}, schema=NUMBERS.polars)  # fmt: skip
    whole = frame.group_by("g").agg(built.polars.alias("value"))
    assert_frame_equal(by_parts(built, [frame[:1], frame[1:]], 0), whole)
