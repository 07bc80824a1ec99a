"""Columns of a DataFrame as ours, and those that nothing here can carry."""

from __future__ import annotations

import pytest
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DoubleType,
    LongType,
    MapType,
    NullType,
    StringType,
    StructType,
    VariantType,
)

from interpunct.model.errors import SchemaError
from interpunct.model.schema import Schema
from interpunct.spark.rows import ddl_of

READINGS = StructType().add("key", LongType()).add("two words", StringType())


def test_columns_keep_their_names_and_types() -> None:
    assert Schema.of(ddl_of(READINGS, "synchronize")).names == ("key", "two words")


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (NullType(), "void in column 'x'"),
        (MapType(StringType(), DoubleType()), "map<string,double> in column 'x'"),
        (ArrayType(NullType()), "array<void> in column 'x'"),
        (VariantType(), "variant in column 'x'"),
    ],
)
def test_a_column_that_cannot_be_carried_is_named_with_its_type(kind: DataType, said: str) -> None:
    with pytest.raises(SchemaError) as error:
        ddl_of(StructType([*READINGS]).add("x", kind), "synchronize, DataFrame 1")
    assert error.value.where == "synchronize, DataFrame 1"
    assert error.value.got == said
    assert error.value.fix.startswith("Cast the column to one of them first")
