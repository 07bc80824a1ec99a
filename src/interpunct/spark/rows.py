"""Rows and pages: Arrow batches of Spark to frames, and frames back to what Spark expects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import ArrayType, DataType, StructField, StructType, _parse_datatype_string

from interpunct.model.errors import SchemaError
from interpunct.model.schema import CARRIED, Schema
from interpunct.model.values import quoted
from interpunct.spark.wire import row_column

if TYPE_CHECKING:
    import pandas as pd

AT_ONCE = 100_000  # rows handed to Spark in one piece, on which it works while the next is made


def column(name: str) -> Column:
    """A column of a DataFrame, whatever it is called."""
    return F.col(quoted(name))


def to_frame(batches: Iterable[pa.RecordBatch], schema: Schema) -> pl.DataFrame:
    """Spark's batches as a frame of the schema (columns matched by name)."""
    table = pa.Table.from_batches(list(batches))
    frame = pl.from_arrow(table.select(list(schema.names)))
    assert isinstance(frame, pl.DataFrame)
    return frame if dict(frame.schema) == schema.polars else frame.cast(schema.polars)  # type: ignore[arg-type]


def to_batches(frame: pl.DataFrame, target: pa.Schema) -> list[pa.RecordBatch]:
    """A frame as batches with the Arrow types Spark declared for the rows."""
    table = frame.to_arrow().cast(target)
    batches: list[pa.RecordBatch] = table.to_batches(max_chunksize=AT_ONCE)
    return batches


def as_rows(frame: pl.DataFrame, schema: Schema) -> pa.Table:
    """Tuples that leave the last stage as rows, in the columns for that."""
    return frame.rename({name: row_column(name) for name in schema.names}).rechunk().to_arrow()


def to_spark(*tables: pa.Table, columns: Sequence[str]) -> pd.DataFrame:
    """Tables, one below the other, as a stateful operator gives them to Spark; what a table has no
    column for is null. Arrow columns all the way: no value becomes a Python object."""
    import pandas as pd

    whole = pa.concat_tables(tables, promote_options="default").combine_chunks()
    for name in columns:
        if name not in whole.column_names:
            whole = whole.append_column(name, pa.nulls(whole.num_rows))
    rows: pd.DataFrame = whole.to_pandas(types_mapper=pd.ArrowDtype)  # PySpark takes one chunk each
    return rows


def spark_schema(schema: Schema) -> StructType:
    """A schema as Spark's own."""
    parsed = _parse_datatype_string(schema.ddl)
    assert isinstance(parsed, StructType)
    return parsed


def ddl_of(columns: StructType, where: str) -> str:
    """The columns of a DataFrame as DDL; an error that names the first whose type nothing here can
    carry, such as `void` or `map<…>`."""
    found = [(field.name, f"{quoted(field.name)} {_ddl(field.dataType)}") for field in columns]
    for (name, text), field in zip(found, columns, strict=True):
        try:
            Schema.of(text)
        except SchemaError:
            raise SchemaError(
                where, CARRIED, f"{field.dataType.simpleString()} in column {name!r}",
                f"Cast the column to one of them first, or leave it out: df.drop({name!r}).",
            ) from None  # fmt: skip
    return ", ".join(text for _, text in found)


def nullable(kind: DataType) -> DataType:
    """A type without what it says of nulls inside it, and of whatever else its fields are."""
    if isinstance(kind, StructType):
        return StructType([StructField(field.name, nullable(field.dataType)) for field in kind])
    return ArrayType(nullable(kind.elementType)) if isinstance(kind, ArrayType) else kind


def _ddl(kind: DataType) -> str:
    """A type as DDL; Spark's own text of a struct does not quote the names in it."""
    if isinstance(kind, StructType):
        fields = ",".join(f"{quoted(field.name)}:{_ddl(field.dataType)}" for field in kind)
        return f"struct<{fields}>"
    return (
        f"array<{_ddl(kind.elementType)}>" if isinstance(kind, ArrayType) else kind.simpleString()
    )


def arrow_schema(schema: StructType) -> pa.Schema:
    """The Arrow types in which Spark exchanges such rows with Python."""
    return to_arrow_schema(schema, timezone="UTC")
