"""Expressions: Spark's results, true lineage, clear errors."""

from __future__ import annotations

import math
from typing import Any

import polars as pl
import polars.selectors as cs
import pytest
from tests.model.expression_cases import (
    ARITHMETIC,
    CASTS,
    FRAME,
    FUNCTIONS,
    LOGIC,
    SCHEMA,
    TIME,
)
from tests.model.function_cases import DAYS, FAR, NUMBERS, TEXTS

from interpunct.model.errors import ExpressionError, SchemaError
from interpunct.model.expression import predicate, scalar
from interpunct.model.schema import Schema


def evaluate(source: str | pl.Expr) -> list[Any]:
    built = scalar(source, SCHEMA, "test")
    values = FRAME.select(built.polars.alias("value")).to_series()
    assert values.dtype == built.dtype, "the type is the one foreseen"
    return values.to_list()


def same(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        return (math.isnan(left) and math.isnan(right)) or left == pytest.approx(right)
    return type(left) is type(right) and left == right


CASES = ARITHMETIC + LOGIC + CASTS + FUNCTIONS + TIME + NUMBERS + TEXTS + DAYS


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_sql_text_means_what_spark_means(text: str, expected: list[Any]) -> None:
    got = evaluate(text)
    assert len(got) == len(expected)
    assert all(map(same, got, expected)), f"{text}: {got}"


@pytest.mark.parametrize(
    ("text", "ddl"),
    [
        ("1", "int"), ("3000000000", "bigint"), ("1.5", "double"), ("t + 1", "int"),
        ("i / i", "double"), ("length(s)", "int"), ("floor(x)", "bigint"), ("year(ts)", "int"),
        ("sign(i)", "double"), ("null", "string"), ("if(p, 1, 2L)", "bigint"),
        ("locate('a', s, 2)", "int"), ("datediff(d, ts)", "int"), ("weekday(d)", "int"),
        ("dayofweek(d)", "int"), ("add_months(ts, 1)", "date"), ("to_date(s, 'yyyy')", "date"),
        ("from_unixtime(i)", "string"), ("i & t", "bigint"), ("t ^ t", "tinyint"),
        ("pmod(t, n)", "int"), ("unix_timestamp(s, 'yyyy')", "bigint"), ("cbrt(i)", "double"),
    ],
)  # fmt: skip
def test_types_are_those_of_spark(text: str, ddl: str) -> None:
    expected = Schema.of(f"value {ddl}")["value"].dtype
    assert scalar(text, SCHEMA, "test").dtype == expected


@pytest.mark.parametrize(
    ("text", "meant"), [("uper(s)", "upper"), ("regex_replace(s, 'a', 'b')", "regexp_replace")]
)
def test_of_a_misspelt_function_the_nearest_is_offered(text: str, meant: str) -> None:
    with pytest.raises(ExpressionError) as error:
        scalar(text, SCHEMA, "test")
    assert error.value.fix.startswith(f"Did you mean {meant}? docs/sql.md lists its functions;")


@pytest.mark.parametrize("text", FAR)
def test_a_day_too_far_away_is_null(text: str) -> None:
    assert evaluate(text) == [None, None, None]


def test_a_constant_has_one_value_per_tuple_even_of_no_tuples() -> None:
    one = scalar("1 + 1", SCHEMA, "test").polars.alias("one")
    assert FRAME.select(one).to_series().to_list() == [2, 2, 2]
    assert FRAME.clear().select(one).height == 0


# Lineage


@pytest.mark.parametrize(
    ("source", "inputs", "attribute"),
    [
        ("i", {"i"}, "i"),
        ("(i)", {"i"}, "i"),
        ("I", {"i"}, "i"),
        ("speed", {"Speed"}, "Speed"),
        ("`odd name`", {"odd name"}, "odd name"),
        ("i + 1", {"i"}, None),
        ("coalesce(i, n)", {"i", "n"}, None),
        ("case when p then i else n end", {"p", "i", "n"}, None),
        ("1", set(), None),
        ("date_trunc('day', ts)", {"ts"}, None),
        ("concat_ws(s, i, 'x')", {"s", "i"}, None),
        ("locate(s, 'abc', n)", {"s", "n"}, None),
        ("lpad('a', n, s)", {"n", "s"}, None),
        ("substring_index(s, '', n)", {"s", "n"}, None),
        ("translate(s, '', '')", {"s"}, "s"),
        ("nvl2(i, n, t)", {"i", "n", "t"}, None),
        ("add_months(d, n)", {"d", "n"}, None),
        ("datediff(d, ts)", {"d", "ts"}, None),
        ("make_date(n, t, 1)", {"n", "t"}, None),
        ("to_timestamp(s, 'yyyy')", {"s"}, None),
        ("pmod(i, n) & t", {"i", "n", "t"}, None),
        ("atan2(x, speed)", {"x", "Speed"}, None),
        (pl.col("i"), {"i"}, "i"),
        (pl.col("i").alias("renamed"), {"i"}, "i"),
        (pl.col("i") * pl.col("n"), {"i", "n"}, None),
        (pl.col("i").cast(pl.Float64), {"i"}, None),
        (pl.when("p").then("i").otherwise(pl.lit(0)), {"p", "i"}, None),
        (pl.lit(3), set(), None),
    ],
)
def test_an_expression_reveals_what_it_reads(
    source: str | pl.Expr, inputs: set[str], attribute: str | None
) -> None:
    built = scalar(source, SCHEMA, "test")
    assert (built.inputs, built.attribute) == (frozenset(inputs), attribute)


def test_polars_expressions_are_carried_in_types_spark_has() -> None:
    assert evaluate(pl.col("s").str.len_chars()) == [4, 0, None]
    assert scalar(pl.col("s").str.len_chars(), SCHEMA, "test").dtype == pl.Int64()
    fine = scalar(pl.col("ts").dt.cast_time_unit("ns"), SCHEMA, "test")
    assert fine.dtype == pl.Datetime("us", "UTC")


def test_a_python_function_inside_polars_is_taken_at_its_word() -> None:
    doubled = pl.col("n").map_batches(lambda values: values * 2, return_dtype=pl.Int32)
    assert evaluate(doubled) == [4, 0, None]
    with pytest.raises(ExpressionError, match="one tuple at a time"):
        scalar(pl.col("n").cum_sum().map_batches(abs, return_dtype=pl.Int32), SCHEMA, "test")


# Predicates


def test_an_unknown_predicate_does_not_hold() -> None:
    test = predicate("i > 0", SCHEMA, "where")
    assert FRAME.select(test.polars).to_series().to_list() == [True, False, False]
    assert predicate("null = 1", SCHEMA, "where").inputs == frozenset()
    assert FRAME.filter(predicate("true", SCHEMA, "where").polars).height == 3
    assert FRAME.filter(predicate(pl.col("p"), SCHEMA, "where").polars).height == 1


def test_a_predicate_must_be_boolean() -> None:
    with pytest.raises(SchemaError, match=r"where: expected a boolean in attribute 'i \+ 1'"):
        predicate("i + 1", SCHEMA, "where")


# Errors


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        ("missing + 1", SchemaError, "one of the attributes i, n, .*'missing'"),
        (pl.col("missing"), SchemaError, "'missing'"),
        ("stream.i", ExpressionError, "own name, got stream.i. Write 'i'"),
        ("foo(i)", ExpressionError, r"foo in 'FOO\(i\)'.*Polars expression"),
        ("soundex(s)", ExpressionError, "soundex in .*docs/sql.md.*Polars expression"),
        ("md5(s)", ExpressionError, r"md5 in 'MD5\(s\)'\. docs/sql"),
        ("hex(i)", ExpressionError, r"hex in 'HEX\(i\)'\. docs/sql"),
        ("to_char(i, '999')", ExpressionError, "to_char in"),
        ("round(m, -1)", ExpressionError, "a whole number to be rounded before the point"),
        ("pmod(i)", ExpressionError, "pmod in"),
        ("i | 1 & 2", ExpressionError, "parentheses where &, . and | are mixed"),
        ("x & 1", SchemaError, "whole numbers in attribute 'x & 1', got double"),
        ("~s", SchemaError, "a whole number in attribute 's', got string"),
        ("left(s, 1.5)", SchemaError, "a whole number in attribute '1.5', got double"),
        ("repeat(s, x)", SchemaError, "a whole number in attribute 'x', got double"),
        ("locate('a', s, '1')", SchemaError, "a whole number in attribute"),
        ("concat_ws(i, s)", SchemaError, "a string in attribute 'i', got bigint"),
        ("translate(s, s, 'a')", ExpressionError, "a literal"),
        ("substring_index(s, s, 1)", ExpressionError, "a literal"),
        ("get_json_object(s, s)", ExpressionError, r"such as '\$\.a\.b\[0\]'"),
        ("get_json_object(s, '$.a[*]')", ExpressionError, "a path of names and places"),
        ("get_json_object(s, '$..a')", ExpressionError, "a path of names and places"),
        ("date_add(d, x)", SchemaError, "a whole number in attribute 'x', got double"),
        ("dateadd(month, 1, d)", ExpressionError, "in 'DATE_ADD"),
        ("datediff(month, d, ts)", ExpressionError, "datediff with such arguments"),
        ("last_day(i)", SchemaError, "a date in attribute 'i', got bigint"),
        ("to_timestamp(s, s)", ExpressionError, "a literal"),
        ("to_timestamp(s, 'yyyy-MM-dd XXX')", ExpressionError, "the letters yyyy, .*to_datetime"),
        ("to_date(s, 'yy-MM-dd')", ExpressionError, "the letters yyyy"),
        ("to_timestamp(s, 'yyyy-MM-dd hh')", ExpressionError, "hh with a"),
        ("current_timestamp()", ExpressionError, "current_timestamp in"),
        ("i in (select 1)", ExpressionError, "SQL that this system evaluates"),
        ("sum(i) over (partition by n)", ExpressionError, r"got 'SUM\(i\) OVER"),
        ("sum(i)", ExpressionError, r"the aggregate SUM\(i\)"),
        ("i + max(i)", ExpressionError, r"the aggregate MAX\(i\)"),
        ("i +", ExpressionError, r"line 1, column 3: '\+'"),
        ("i\n  nonsense here", ExpressionError, "line 2, column 10: 'nonsense'"),
        ("", ExpressionError, "unreadable at the start"),
        ("s = 'open", ExpressionError, "Close the quote"),
        ("i; n", ExpressionError, "got 'i; n'"),
        ("s + 1", SchemaError, "in attribute 's . 1', got string and int"),
        ("p + 1", SchemaError, "got boolean and int"),
        ("ts + 1", SchemaError, "got timestamp and int"),
        ("ts > 1", SchemaError, "got timestamp and int"),
        ("s > 1", SchemaError, "got string and int"),
        ("i and p", SchemaError, "a boolean in attribute 'i', got bigint"),
        ("upper(i)", SchemaError, "a string in attribute 'i', got bigint"),
        ("abs(s)", SchemaError, "a number in attribute 's', got string"),
        ("hour(i)", SchemaError, "a timestamp in attribute 'i'"),
        ("if(p, 1, 'a')", SchemaError, "operands of one type"),
        ("cast(p as timestamp)", SchemaError, "casts to timestamp"),
        ("cast(i as date)", SchemaError, "casts to date"),
        ("ts > 'yesterday'", SchemaError, "timestamp in attribute .*yesterday"),
        ("timestamp'yesterday'", SchemaError, "yesterday"),
        ("ts - ts", SchemaError, "a type Spark has"),
        ("s like s", ExpressionError, "a literal"),
        ("s rlike '(?=x)'", ExpressionError, "look-around"),
        ("regexp_extract(s, 'a(b)', 2)", ExpressionError, "from 0, the whole match, to 1, got 2"),
        ("regexp_replace(s, '(?=x)', '')", ExpressionError, "look-around"),
        ("split(s, '')[0]", ExpressionError, "something must match"),
        ("split(s, ' ')", ExpressionError, "split in"),
        ("split(s, ' ')[0.5]", ExpressionError, "a whole number, got '0.5'"),
        ("split_part(s, ' ', 0)", ExpressionError, "counted from 1"),
        ("date_format(ts, 'YYYY')", ExpressionError, "the letters yyyy.*YYYY in"),
        ("regexp_replace(s, 'a', 'b', 2)", ExpressionError, "regexp_replace with such arguments"),
        ("date_format(ts, 'yyyy-QQ')", ExpressionError, "the letters yyyy"),
        ("date_trunc('era', ts)", ExpressionError, "one of the units YEAR"),
        ("ts + interval 1 month", ExpressionError, "no fixed length"),
        (pl.all(), ExpressionError, "names its columns"),
        (pl.sum_horizontal(cs.numeric()), ExpressionError, "names its columns"),
        (pl.col("i", "n"), ExpressionError, "names its columns"),
        (pl.col("i").sum(), ExpressionError, "one tuple at a time"),
        (pl.col("i") - pl.col("i").mean(), ExpressionError, "one tuple at a time"),
        (pl.col("i").sum().over("n"), ExpressionError, "one tuple at a time"),
        (pl.col("i").shift(1), ExpressionError, "one tuple at a time"),
        (pl.len(), ExpressionError, "one tuple at a time"),
        (pl.col("s") + 1, SchemaError, "operands that fit"),
        (pl.col("ts") - pl.col("ts"), SchemaError, "a type Spark has"),
    ],
)
def test_what_cannot_be_evaluated_is_refused_when_built(
    source: str | pl.Expr, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message) as caught:
        scalar(source, SCHEMA, "map 'v'")
    assert type(caught.value) is error
    assert str(caught.value).startswith("map 'v': ")


def test_names_that_differ_only_in_case_must_be_exact() -> None:
    schema = Schema.of("a int, A bigint")
    assert scalar("A", schema, "test").attribute == "A"
    with pytest.raises(SchemaError, match="'aa'"):
        scalar("aa", Schema.of("Aa int, aA int"), "test")
