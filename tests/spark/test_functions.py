"""Functions of SQL on odd values: what Spark computes, row by row."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from interpunct.model.expression import scalar
from interpunct.model.schema import Schema
from tests.model.expression_cases import (
    ARITHMETIC,
    CASTS,
    FRAME,
    FUNCTIONS,
    LOGIC,
    SCHEMA,
    TIME,
)
from tests.model.function_cases import DAYS, MORE, NUMBERS, ODD, TEXTS

ANSI, ZONE = "spark.sql.ansi.enabled", "spark.sql.session.timeZone"
CASES = ARITHMETIC + LOGIC + CASTS + FUNCTIONS + TIME + NUMBERS + TEXTS + DAYS
# Of NaN and of what is infinite there is no whole number; times that Python cannot hold.
ELSEWHERE = {"floor(x)", "ceil(x)", "cast(i as timestamp)", "timestamp_seconds(i)"}
TEXT = [text for text, _ in CASES if text not in ELSEWHERE] + MORE
ROWS = pl.concat([FRAME, ODD])


@pytest.fixture
def rows(spark: SparkSession) -> Iterator[DataFrame]:
    before = {key: spark.conf.get(key) for key in (ANSI, ZONE)}
    spark.conf.set(ANSI, "false")
    spark.conf.set(ZONE, "UTC")
    yield (
        spark.createDataFrame(ROWS.with_columns(row=pl.int_range(pl.len())).to_arrow())
        .coalesce(1)
        .cache()
    )
    for key, value in before.items():
        spark.conf.set(key, value)


def same(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, float | Decimal) and isinstance(theirs, float | Decimal):
        left, right = float(ours), float(theirs)  # a fractional literal is a double here
        close = math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-12)
        return close or (math.isnan(left) and math.isnan(right))
    if isinstance(ours, datetime) and isinstance(theirs, datetime):
        return ours == (theirs if ours.tzinfo is None else theirs.astimezone(UTC))
    return type(ours) is type(theirs) and ours == theirs


def refused(rows: DataFrame, text: str, row: int) -> bool:
    """Whether Spark's ANSI mode refuses to compute this."""
    rows.sparkSession.conf.set(ANSI, "true")
    try:
        rows.where(f"row = {row}").selectExpr(text).collect()
    except PySparkException:
        return True
    finally:
        rows.sparkSession.conf.set(ANSI, "false")
    return False


def test_functions_give_what_spark_gives(rows: DataFrame) -> None:
    found = rows.selectExpr(*(f"{text} as v{k}" for k, text in enumerate(TEXT))).collect()
    wrong = []
    for k, text in enumerate(TEXT):
        ours = ROWS.select(scalar(text, SCHEMA, "test").polars.alias("v")).to_series()
        for row, value in enumerate(ours):
            theirs = found[row][k]
            if not same(value, theirs) and not (value is None and refused(rows, text, row)):
                wrong.append((text, row, value, theirs))
    assert not wrong


def test_doubles_are_what_they_are_in_spark_to_the_last_digit(spark: SparkSession) -> None:
    """Polars divides by the inverse of a number, rounds what is stored, and writes 1e+20."""
    random = np.random.default_rng(7)
    print("seed", 7)
    values = [float(n) for n in range(-500, 500)] + [n / 1000 for n in range(0, 5000, 5)]
    values += [round(v, 6) for v in random.normal(0, 1e4, 500)]
    values += [round(v, 3) for v in random.normal(0, 1e10, 500)]
    values += [0.0, -0.0, 1e7, 9999999.5, 0.001, 0.00099, 1e-5, 1e20, -1e300, 1e22, 12345678.0]
    values += [math.nan, math.inf, -math.inf]
    texts = [
        "v / 49", "v / 10", "k / 7", "100 / v", "v % 49", "v % 0.1e0", "v % v", "7 % v",
        "-7.5e0 % v", "pmod(v, 49)", "pmod(v, -0.1e0)", "try_divide(v, 7)", "floor(v / 49)",
        "cast(k / 49 as int)",
        "round(v, 1)", "round(v, 2)", "round(v, 3)", "bround(v, 2)", "round(v)", "round(v, -1)",
        "round(k, -1)", "round(k, -2)", "cast(v as string)", "concat('v=', v)", "v || ''",
        "cast(cast(k as float) / 8 as string)",
    ]  # fmt: skip
    frame = pl.DataFrame({"v": values, "k": range(-1000, len(values) - 1000)})
    rows = spark.createDataFrame(frame.to_arrow()).coalesce(1).where("true")
    before = spark.conf.get(ANSI)
    spark.conf.set(ANSI, "false")
    try:
        found = rows.selectExpr(*(f"{text} as v{n}" for n, text in enumerate(texts))).collect()
    finally:
        spark.conf.set(ANSI, before)
    schema = Schema.of("v double, k bigint")
    for n, text in enumerate(texts):
        ours = frame.select(scalar(text, schema, "test").polars.alias("v")).to_series()
        pairs = zip(values, ours, (row[n] for row in found), strict=True)
        bigint = 2.0**63 if "floor" in text else math.inf  # beyond it there is null
        wrong = [p for p in pairs if repr(p[1]) != repr(p[2]) and not abs(p[0]) >= bigint]
        wrong = [p for p in wrong if not (bigint < math.inf and math.isnan(p[0]))]
        assert not wrong, (text, len(wrong), wrong[:5])
