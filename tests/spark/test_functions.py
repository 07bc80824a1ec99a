"""Functions of SQL on odd values: what Spark computes, row by row."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import polars as pl
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from interpunct.model.expression import scalar
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
