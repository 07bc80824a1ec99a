"""A table kept by the self-correcting sink is the stream's table, whatever was done to it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pytest
from pyspark.sql import DataFrame, SparkSession

from interpunct.model.elements import Row, adjust, element_schema, elements, insert, stable
from interpunct.model.errors import SchemaError
from interpunct.model.schema import Schema
from interpunct.model.tdb import tdb
from interpunct.spark.merge_sink import MergedTable, Table
from interpunct.spark.merge_tables import DatabaseTable, ParquetTable, read_table
from interpunct.testing.revisable import SCHEMA, Telling, retold, table

pytestmark = [
    pytest.mark.xdist_group("spark"),
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning"),
]


class Store:
    """A table of either kind, with what a test does to it behind the sink's back."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind, self.folder = kind, folder
        self.made: Table = ParquetTable(folder / "t") if kind == "parquet" else self._database()

    def _database(self) -> DatabaseTable:
        return DatabaseTable(lambda: sqlite3.connect(self.folder / "t.db"), "t")

    def rows(self) -> list[tuple[Any, ...]]:
        if self.kind == "parquet":
            return sorted(read_table(self.folder / "t").rows(), key=repr)
        return sorted(self._sql("SELECT * FROM t"), key=repr)

    def spoil(self) -> None:
        """One event twice, one gone, one that never was."""
        first, second, *_ = self.rows()
        wrong = (3, 4, "never")
        if self.kind == "parquet":
            frame = pl.DataFrame(
                [first, *self.rows(), wrong], schema=["vs", "ve", "p"], orient="row"
            )
            counted = frame.with_columns(pl.lit(1).alias("_count"))
            everything = read_table(self.folder / "t").with_columns(pl.lit(1).alias("_count"))
            kept = counted.filter(~(pl.col("ve") == second[1]) | (pl.col("p") != second[2]))
            self.made.write(everything, kept)
        else:
            self._sql("INSERT INTO t VALUES (?, ?, ?)", first)
            self._sql("INSERT INTO t VALUES (?, ?, ?)", wrong)
            self._sql("DELETE FROM t WHERE vs = ? AND ve = ? AND p = ?", second)

    def _sql(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        connection = sqlite3.connect(self.folder / "t.db")
        try:
            found = connection.execute(statement, values).fetchall()
            connection.commit()
        finally:
            connection.close()
        return found


@pytest.fixture(params=["parquet", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return Store(request.param, tmp_path)


@pytest.fixture(scope="module")
def batch_of(spark: SparkSession) -> Callable[[Sequence[Row]], DataFrame]:
    def made(rows: Sequence[Row]) -> DataFrame:
        return spark.createDataFrame(elements(SCHEMA, rows).to_arrow())

    return made


def expected(rows: Sequence[Row]) -> list[tuple[Any, ...]]:
    return sorted(tdb(SCHEMA, elements(SCHEMA, rows)).rows(), key=repr)


Batch = Callable[[Sequence[Row]], DataFrame]


def test_the_table_follows_the_stream_batch_by_batch(
    store: Store, tmp_path: Path, batch_of: Batch
) -> None:
    random = Random(3)
    rows = retold(table(random, 12, duplicates=True), random, Telling())
    sink = MergedTable(tmp_path / "ledger", store.made)
    for number, start in enumerate(range(0, len(rows), 8)):
        sink(batch_of(rows[start : start + 8]), number)
        assert store.rows() == expected(rows[: start + 8])
    assert (sink.repairs.added, sink.repairs.removed) == (0, 0)


def test_a_batch_may_be_written_again_and_by_another_process(
    store: Store, tmp_path: Path, batch_of: Batch
) -> None:
    first = [insert("A", 1, 5), insert("B", 2, 9)]
    second = [adjust("A", 1, 5, 7), adjust("B", 2, 9, 2), stable(5)]
    sink = MergedTable(tmp_path / "ledger", store.made)
    sink(batch_of(first), 0)
    sink(batch_of(second), 1)
    sink(batch_of(second), 1)
    sink(batch_of([]), 2)
    assert store.rows() == expected(first + second)
    MergedTable(tmp_path / "ledger", store.made)(batch_of(second), 1)
    assert store.rows() == expected(first + second)


def test_wrong_missing_and_duplicated_rows_are_repaired(
    store: Store, tmp_path: Path, batch_of: Batch
) -> None:
    rows = [insert("A", 1, 5), insert("B", 2, 9), insert("C", 3, 8), stable(4)]
    MergedTable(tmp_path / "ledger", store.made)(batch_of(rows), 0)
    store.spoil()
    assert store.rows() != expected(rows)
    sink = MergedTable(tmp_path / "ledger", store.made)
    sink(batch_of([stable(5)]), 1)
    assert store.rows() == expected(rows)
    assert (sink.repairs.added, sink.repairs.removed) == (1, 2)


def test_a_payload_that_no_database_column_takes_is_refused() -> None:
    schema = element_schema(Schema.of("p array<bigint>"))
    event = Schema(tuple(schema[n] for n in ("vs", "ve", "p")))
    with pytest.raises(SchemaError, match="merge table"):
        DatabaseTable(lambda: sqlite3.connect(":memory:"), "t").prepare(event)
