"""Expressions: Spark's results, true lineage, clear errors."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import polars as pl
import polars.selectors as cs
import pytest

from interpunct.model.errors import ExpressionError, SchemaError
from interpunct.model.expression import predicate, scalar
from interpunct.model.schema import Schema

SCHEMA = Schema.of(
    "i bigint, n int, t tinyint, x double, s string, p boolean, q boolean, d date, "
    "ts timestamp, local timestamp_ntz, m decimal(10,2), Speed double, `odd name` int"
)
NAN = math.nan
T0 = datetime(2024, 5, 17, 10, 20, 30, 250_000, tzinfo=UTC)
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
        "d": [date(2024, 5, 17), date(1969, 12, 31), None],
        "ts": [T0, datetime(1969, 12, 31, 23, 59, 59, 500_000, tzinfo=UTC), None],
        "local": [datetime(2024, 5, 17, 10, 20, 30), datetime(1970, 1, 1), None],
        "m": [Decimal("1.50"), Decimal("-0.05"), None],
        "Speed": [1.0, 2.0, 3.0],
        "odd name": [1, 2, 3],
    },
    schema=SCHEMA.polars,
)


def evaluate(source: str | pl.Expr) -> list[Any]:
    built = scalar(source, SCHEMA, "test")
    values = FRAME.select(built.polars.alias("value")).to_series()
    assert values.dtype == built.dtype, "the type is the one foreseen"
    return values.to_list()


def same(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        return (math.isnan(left) and math.isnan(right)) or left == pytest.approx(right)
    return type(left) is type(right) and left == right


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc, arg-type]


ARITHMETIC: list[tuple[str, list[Any]]] = [
    ("i + 1", [8, -6, None]),
    ("i - n", [5, -7, None]),
    ("i * n", [14, 0, None]),
    ("i / n", [3.5, None, None]),
    ("i / 2", [3.5, -3.5, None]),
    ("x / 0", [None, None, None]),
    ("x / 0.5", [5.0, NAN, None]),
    ("i % 3", [1, -1, None]),
    ("i % n", [1, None, None]),
    ("mod(i, -3)", [1, -1, None]),
    ("x % 2", [0.5, NAN, None]),
    ("-i", [-7, 7, None]),
    ("-x", [-2.5, NAN, None]),
    ("+i", [7, -7, None]),
    ("t + t", [None, None, None]),  # beyond a tinyint
    ("t + 1", [101, -127, None]),
    ("n * 2000000000", [None, 0, None]),
    ("(i + 1) * 2", [16, -12, None]),
    ("1 + null", [None, None, None]),
    ("m + 0.25", [Decimal("1.75"), Decimal("0.20"), None]),
    ("m * 1.5", [Decimal("2.250"), Decimal("-0.075"), None]),
    ("m * m * m", [Decimal("3.375000"), Decimal("-0.000125"), None]),
    ("cast(m as decimal(38,30)) * cast(m as decimal(38,30)) = 2.25", [True, False, None]),
    ("m * -1.5", [Decimal("-2.250"), Decimal("0.075"), None]),
    ("m / 3", [Decimal("0.500000"), Decimal("-0.016667"), None]),
    ("m / 0", [None, None, None]),
    ("m % 0.4", [Decimal("0.30"), Decimal("-0.05"), None]),
    ("m * x", [3.75, NAN, None]),
    ("9223372036854775807", [2**63 - 1] * 3),
    ("1e3", [1000.0] * 3),
    ("2L", [2] * 3),
]

LOGIC: list[tuple[str, list[Any]]] = [
    ("p and q", [False, False, None]),
    ("p or q", [True, True, True]),
    ("p and null", [None, False, None]),
    ("p or null", [True, None, None]),
    ("not p", [False, True, None]),
    ("i = 7", [True, False, None]),
    ("i == 7", [True, False, None]),
    ("i <> 7", [False, True, None]),
    ("i != 7", [False, True, None]),
    ("i <=> null", [False, False, True]),
    ("i is distinct from 7", [False, True, True]),
    ("i < 7.5", [True, True, None]),
    ("i <= 7", [True, True, None]),
    ("i > n", [True, False, None]),
    ("i >= 7", [True, False, None]),
    ("x = cast('NaN' as double)", [False, True, None]),
    ("x > 1e300", [False, True, None]),
    ("x < 1e300", [True, False, None]),
    ("x <= x", [True, True, None]),
    ("m > 1.49", [True, False, None]),
    ("i between -7 and 0", [False, True, None]),
    ("i not between -7 and 0", [True, False, None]),
    ("i in (7, 8)", [True, False, None]),
    ("i in (7, null)", [True, None, None]),
    ("i not in (7, 8)", [False, True, None]),
    ("s in ('', 'z')", [False, True, None]),
    ("i is null", [False, False, True]),
    ("i is not null", [True, True, False]),
    ("isnull(i)", [False, False, True]),
    ("isnotnull(i)", [True, True, False]),
    ("p is true", [True, False, False]),
    ("p is not false", [True, False, True]),
    ("isnan(x)", [False, True, False]),
    ("case when i > 0 then 'up' when i < 0 then 'down' else '?' end", ["up", "down", "?"]),
    ("case when i > 0 then 1 end", [1, None, None]),
    ("case n when 2 then 1.5 when 0 then 1 end", [1.5, 1.0, None]),
    ("if(p, i, x)", [7.0, NAN, None]),
    ("coalesce(i, n, 0)", [7, -7, 0]),
    ("nvl(s, 'none')", ["Ab c", "", "none"]),
    ("nullif(i, 7)", [None, -7, None]),
    ("nullif(7, i)", [None, 7, 7]),
    ("greatest(x, 1.0)", [2.5, NAN, 1.0]),
    ("greatest(i, n)", [7, 0, None]),
    ("least(x, 3.0)", [2.5, 3.0, 3.0]),
    ("least(i, 0)", [0, -7, 0]),
]

CASTS: list[tuple[str, list[Any]]] = [
    ("cast(i as double)", [7.0, -7.0, None]),
    ("i::string", ["7", "-7", None]),
    ("cast(x as int)", [2, None, None]),
    ("try_cast(i * 1000 as smallint)", [7000, -7000, None]),
    ("cast(i * 10000 as smallint)", [None, None, None]),
    ("cast(s as int)", [None, None, None]),
    ("cast(' 12 ' as int)", [12] * 3),
    ("cast('abc' as double)", [None] * 3),
    ("cast('Yes' as boolean)", [True] * 3),
    ("cast('maybe' as boolean)", [None] * 3),
    ("cast(i as boolean)", [True, True, None]),
    ("cast(n as boolean)", [True, False, None]),
    ("cast(p as int)", [1, 0, None]),
    ("cast(p as decimal(3,1))", [Decimal("1.0"), Decimal("0.0"), None]),
    ("cast(p as string)", ["true", "false", None]),
    ("cast('1.005' as decimal(10,2))", [Decimal("1.01")] * 3),
    ("cast(cast('9.995' as decimal(5,3)) as decimal(5,2))", [Decimal("10.00")] * 3),
    ("cast(cast('9.995' as decimal(5,3)) as decimal(3,2))", [None] * 3),
    ("cast(x as decimal(4,1))", [Decimal("2.5"), None, None]),
    ("cast(i as decimal(3,2))", [Decimal("7.00"), Decimal("-7.00"), None]),
    ("cast(ts as bigint)", [1715941230, -1, None]),
    ("cast(ts as double)", [1715941230.25, -0.5, None]),
    ("cast(i as timestamp)", [utc(1970, 1, 1, 0, 0, 7), utc(1969, 12, 31, 23, 59, 53), None]),
    ("cast(ts as date)", [date(2024, 5, 17), date(1969, 12, 31), None]),
    ("cast(d as timestamp)", [utc(2024, 5, 17), utc(1969, 12, 31), None]),
    (
        "cast(ts as timestamp_ntz)",
        [T0.replace(tzinfo=None), datetime(1969, 12, 31, 23, 59, 59, 500_000), None],
    ),
    ("cast(local as timestamp)", [utc(2024, 5, 17, 10, 20, 30), utc(1970, 1, 1), None]),
    ("cast(ts as string)", ["2024-05-17 10:20:30.25", "1969-12-31 23:59:59.5", None]),
    ("cast(local as string)", ["2024-05-17 10:20:30", "1970-01-01 00:00:00", None]),
    ("cast(d as string)", ["2024-05-17", "1969-12-31", None]),
    ("cast('2024-05-17T10:20:30Z' as timestamp)", [utc(2024, 5, 17, 10, 20, 30)] * 3),
    (
        "cast(concat('2024-05-17 10:20:30', '+02:00') as timestamp)",
        [utc(2024, 5, 17, 8, 20, 30)] * 3,
    ),
    (
        "cast(concat('2024-05-17 10:20:30', '.5') as timestamp)",
        [utc(2024, 5, 17, 10, 20, 30, 500_000)] * 3,
    ),
    ("cast(concat('2024-05-17', ' 10:20') as timestamp)", [utc(2024, 5, 17, 10, 20)] * 3),
    ("cast(concat('2024-05', '-17') as timestamp)", [utc(2024, 5, 17)] * 3),
    ("cast(concat('2024-05', '-17') as date)", [date(2024, 5, 17)] * 3),
    ("cast(s as timestamp)", [None, None, None]),
    ("cast(null as int)", [None, None, None]),
]

FUNCTIONS: list[tuple[str, list[Any]]] = [
    ("abs(i)", [7, 7, None]),
    ("round(x)", [3.0, NAN, None]),
    ("round(-2.5)", [-3.0] * 3),
    ("round(x * 1.11, 1)", [2.8, NAN, None]),
    ("round(i)", [7, -7, None]),
    ("floor(x)", [2, None, None]),
    ("ceil(x)", [3, None, None]),
    ("floor(m)", [Decimal("1"), Decimal("-1"), None]),
    ("sqrt(i)", [math.sqrt(7), NAN, None]),
    ("power(n, 3)", [8.0, 0.0, None]),
    ("exp(n)", [math.e**2, 1.0, None]),
    ("ln(n)", [math.log(2), None, None]),
    ("log10(n * 50)", [2.0, None, None]),
    ("log(n, 8)", [3.0, None, None]),
    ("sign(i)", [1.0, -1.0, None]),
    ("upper(s)", ["AB C", "", None]),
    ("lower(s)", ["ab c", "", None]),
    ("length(s)", [4, 0, None]),
    ("trim('  a ')", ["a"] * 3),
    ("ltrim('  a ')", ["a "] * 3),
    ("rtrim('  a ')", ["  a"] * 3),
    ("trim(both 'x' from 'xax')", ["a"] * 3),
    ("concat(s, '-', i)", ["Ab c-7", "--7", None]),
    ("s || '!'", ["Ab c!", "!", None]),
    ("substring(s, 2, 2)", ["b ", "", None]),
    ("substring(s, -1)", ["c", "", None]),
    ("substring('abc', -5, 3)", ["a"] * 3),
    ("substring('abc', 0, 2)", ["ab"] * 3),
    ("substring('abc', n)", ["bc", "abc", None]),
    ("startswith(s, 'A')", [True, False, None]),
    ("endswith(s, 'c')", [True, False, None]),
    ("contains(s, 'b ')", [True, False, None]),
    ("s like 'A%c'", [True, False, None]),
    ("s like 'A_ c'", [True, False, None]),
    ("s like 'b'", [False, False, None]),
    ("s not like '%'", [False, False, None]),
    ("s not ilike 'a%'", [False, True, None]),
    ("s not rlike 'A'", [False, True, None]),
    ("'5%' not like '5!%' escape '!'", [False] * 3),
    ("s ilike 'a%'", [True, False, None]),
    ("'5%' like '5!%' escape '!'", [True] * 3),
    ("'55' like '5!%' escape '!'", [False] * 3),
    ("s rlike '^A.*'", [True, False, None]),
]

TIME: list[tuple[str, list[Any]]] = [
    (
        "ts + interval 20 seconds",
        [T0 + timedelta(seconds=20), utc(1970, 1, 1, 0, 0, 19, 500_000), None],
    ),
    (
        "ts - interval '1 day 2 hours'",
        [T0 - timedelta(hours=26), utc(1969, 12, 30, 21, 59, 59, 500_000), None],
    ),
    ("ts + interval 1 minute 30 seconds > ts + interval '89' second", [True, True, None]),
    ("ts - ts = interval 0 seconds", [True, True, None]),
    ("ts + -interval 1 second < ts", [True, True, None]),
    ("d + interval 1 day", [date(2024, 5, 18), date(1970, 1, 1), None]),
    ("d + interval 1 hour", [utc(2024, 5, 17, 1), utc(1969, 12, 31, 1), None]),
    ("date_trunc('minute', ts)", [utc(2024, 5, 17, 10, 20), utc(1969, 12, 31, 23, 59), None]),
    ("date_trunc('WEEK', ts)", [utc(2024, 5, 13), utc(1969, 12, 29), None]),
    ("date_trunc('mon', d)", [utc(2024, 5, 1), utc(1969, 12, 1), None]),
    ("unix_timestamp(ts)", [1715941230, 0, None]),
    ("unix_seconds(ts)", [1715941230, -1, None]),
    ("unix_micros(ts)", [1715941230250000, -500000, None]),
    ("unix_millis(ts)", [1715941230250, -500, None]),
    ("timestamp_micros(unix_micros(ts)) = ts", [True, True, None]),
    ("timestamp_seconds(i)", [utc(1970, 1, 1, 0, 0, 7), utc(1969, 12, 31, 23, 59, 53), None]),
    ("timestamp_seconds(1.5)", [utc(1970, 1, 1, 0, 0, 1, 500_000)] * 3),
    ("year(ts)", [2024, 1969, None]),
    ("month(ts) * 100 + day(d)", [517, 1231, None]),
    ("hour(ts)", [10, 23, None]),
    ("minute(ts)", [20, 59, None]),
    ("second(ts)", [30, 59, None]),
    ("hour(d)", [0, 0, None]),
    ("timestamp'2024-05-17 10:20:30.25' = ts", [True, False, None]),
    ("date'2024-05-17' = d", [True, False, None]),
    ("ts > '2024-05-17'", [True, False, None]),
    ("'2024-05-17' = d", [True, False, None]),
    ("ts between '2024-05-17 10:00' and '2024-05-17 11:00'", [True, False, None]),
    ("ts > d", [True, True, None]),
    ("ts > local", [True, False, None]),
    ("to_date(ts)", [date(2024, 5, 17), date(1969, 12, 31), None]),
]


@pytest.mark.parametrize(("text", "expected"), ARITHMETIC + LOGIC + CASTS + FUNCTIONS + TIME)
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
    ],
)  # fmt: skip
def test_types_are_those_of_spark(text: str, ddl: str) -> None:
    expected = Schema.of(f"value {ddl}")["value"].dtype
    assert scalar(text, SCHEMA, "test").dtype == expected


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
        ("sin(i)", ExpressionError, "SIN in .*Polars expression"),
        ("current_timestamp()", ExpressionError, "CURRENTTIMESTAMP"),
        ("i in (select 1)", ExpressionError, "SQL that this system evaluates"),
        ("sum(i) over (partition by n)", ExpressionError, "WINDOW"),
        ("sum(i)", ExpressionError, r"the aggregate SUM\(i\)"),
        ("i + max(i)", ExpressionError, r"the aggregate MAX\(i\)"),
        ("i +", ExpressionError, r"line 1, column 3: '\+'"),
        ("i\n  nonsense here", ExpressionError, "line 2, column 10: 'nonsense'"),
        ("", ExpressionError, "unreadable at the start"),
        ("s = 'open", ExpressionError, "Close the quote"),
        ("i; n", ExpressionError, "BLOCK"),
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
