"""Tables that a self-correcting sink can keep: a folder of Parquet files, or one in a database.

The folder is read through its manifest, which is replaced in one step; the database's table is
changed in one transaction. Either way a reader sees the table before a batch or after it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from interpunct.model.elements import VS, ticks_expr
from interpunct.model.errors import SchemaError
from interpunct.model.schema import Schema
from interpunct.model.tdb import COUNT

MANIFEST = "manifest.json"
MOST_FILES = 128  # of a folder, before small ones are put together


@dataclass
class ParquetTable:
    """Parquet files and a manifest that says which of them are the table, and its version."""

    folder: str | Path
    _event: Schema | None = None

    def prepare(self, event: Schema) -> None:
        self._event = event
        Path(self.folder).mkdir(parents=True, exist_ok=True)

    def stored(self, starts: tuple[int, int] | None) -> pl.DataFrame:
        wanted = [] if starts is None else [ticks_expr(VS).is_between(*starts)]
        return self._read(self._manifest()["files"], wanted)

    def write(self, remove: pl.DataFrame, add: pl.DataFrame) -> None:
        """Files that lose rows are written anew; the new rows are a file of their own."""
        before = self._manifest()
        version = before["version"] + 1
        files: list[str] = []
        left = remove
        for name in before["files"]:
            rows = self._read([name]) if left.height else None
            if rows is None or not rows.height:
                files.append(name)
                continue
            kept, left = without(rows, left)
            if kept.height == rows.height:
                files.append(name)
            elif kept.height:
                files.append(self._save(kept, version, len(files)))
        if add.height:
            files.append(self._save(repeated(add), version, len(files)))
        files = self._gathered(files, version)
        self._commit({"version": version, "files": files})
        for path in Path(self.folder).glob("*.parquet"):  # those of a write that crashed, too
            if path.name not in files:
                path.unlink(missing_ok=True)

    def _manifest(self) -> dict[str, Any]:
        path = Path(self.folder) / MANIFEST
        if not path.exists():
            return {"version": 0, "files": []}
        found: dict[str, Any] = json.loads(path.read_text())
        return found

    def _commit(self, manifest: dict[str, Any]) -> None:
        temporary = Path(self.folder) / f"{MANIFEST}.part"
        with temporary.open("w") as file:
            json.dump(manifest, file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(Path(self.folder) / MANIFEST)

    def _gathered(self, files: list[str], version: int) -> list[str]:
        """Where there are too many files, those that are small beside the largest become one."""
        if len(files) <= MOST_FILES:
            return files
        sizes = {name: (Path(self.folder) / name).stat().st_size for name in files}
        large = [name for name in files if 2 * sizes[name] > max(sizes.values())]
        large = large if len(large) <= MOST_FILES // 2 else []
        rest = self._read([name for name in files if name not in large])
        return [*large, self._save(rest, version, len(files))]

    def _read(self, names: list[str], wanted: Sequence[pl.Expr] = ()) -> pl.DataFrame:
        assert self._event is not None
        frames = [pl.scan_parquet(Path(self.folder) / name).filter(*wanted) for name in names]
        return pl.concat([self._event.empty().lazy(), *frames]).collect()

    def _save(self, rows: pl.DataFrame, version: int, number: int) -> str:
        name = f"{version:08d}-{number}.parquet"
        rows.write_parquet(Path(self.folder) / name)
        return name


def read_table(folder: str | Path) -> pl.DataFrame:
    """The rows of a table that a ParquetTable keeps."""
    manifest = json.loads((Path(folder) / MANIFEST).read_text())
    files = [pl.read_parquet(Path(folder) / name) for name in manifest["files"]]
    return pl.concat(files) if files else pl.DataFrame()


def without(rows: pl.DataFrame, remove: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The rows less as many of each event as is said, and what of that was not among them."""
    event = rows.columns
    nth = pl.int_range(pl.len()).over(event).alias("_nth")
    marked = rows.with_columns(nth).join(
        remove.select(*event, COUNT), on=event, how="left", nulls_equal=True, maintain_order="left"
    )
    goes = (pl.col("_nth") < pl.col(COUNT)).fill_null(value=False)
    gone = marked.filter(goes).group_by(event).agg(pl.len().cast(pl.Int64).alias("_gone"))
    rest = remove.join(gone, on=event, how="left", nulls_equal=True).with_columns(
        pl.col(COUNT) - pl.col("_gone").fill_null(0)
    )
    return marked.filter(~goes).select(event), rest.select(*event, COUNT).filter(pl.col(COUNT) > 0)


def repeated(counted: pl.DataFrame) -> pl.DataFrame:
    """Each event as often as it is there."""
    return counted.select(pl.exclude(COUNT).repeat_by(COUNT).explode())


# Databases --------------------------------------------------------------------------------------


@dataclass
class DatabaseTable:
    """A table in a database with Python's DB-API; `connect` makes a connection.

    Times are whole numbers: ticks where they are timestamps (microseconds since 1970). `mark` is
    how the driver writes a parameter: ``?`` for sqlite3, ``%s`` for psycopg.
    """

    connect: Callable[[], Any]
    table: str
    mark: str = "?"
    _event: Schema | None = None
    _names: list[str] = field(default_factory=list)

    def prepare(self, event: Schema) -> None:
        self._event, self._names = event, [_quoted(n) for n in event.names]
        columns = ", ".join(f"{_quoted(a.name)} {_kind(a.name, a.dtype)}" for a in event.attributes)
        with self._cursor() as cursor:
            cursor.execute(f"CREATE TABLE IF NOT EXISTS {_quoted(self.table)} ({columns})")

    def stored(self, starts: tuple[int, int] | None) -> pl.DataFrame:
        assert self._event is not None
        query = f"SELECT {', '.join(self._names)} FROM {_quoted(self.table)}"
        within = (
            "" if starts is None else f" WHERE {_quoted(VS)} BETWEEN {self.mark} AND {self.mark}"
        )
        with self._cursor() as cursor:
            cursor.execute(query + within, starts or ())
            rows = cursor.fetchall()
        plain = {a.name: _carried(a.dtype) for a in self._event.attributes}
        frame = pl.DataFrame([tuple(r) for r in rows], schema=plain, orient="row")
        return frame.cast(self._event.polars)  # type: ignore[arg-type]

    def write(self, remove: pl.DataFrame, add: pl.DataFrame) -> None:
        """An event that is there too often is deleted and put back as often as it should be."""
        assert self._event is not None
        table = _quoted(self.table)
        marks = ", ".join([self.mark] * len(self._names))
        same = " AND ".join(f"{n} IS NOT DISTINCT FROM {self.mark}" for n in self._names)
        kept = self._kept(remove)
        with self._cursor() as cursor:
            _many(cursor, f"DELETE FROM {table} WHERE {same}", self._plain(remove).rows())
            rows = self._plain(repeated(pl.concat([kept, add])))
            _many(cursor, f"INSERT INTO {table} VALUES ({marks})", rows.rows())

    def _kept(self, remove: pl.DataFrame) -> pl.DataFrame:
        """How often each event stays of which some rows go."""
        if not remove.height:
            return remove
        starts = remove.get_column(VS).cast(pl.Int64)
        there = self.stored((int(starts.min()), int(starts.max())))  # type: ignore[arg-type]
        left, _ = without(there, remove)
        touched = left.join(remove, on=left.columns, how="semi", nulls_equal=True)
        counted = touched.group_by(touched.columns).agg(pl.len().alias(COUNT))
        return counted.cast(remove.schema)

    def _plain(self, events: pl.DataFrame) -> pl.DataFrame:
        """In the types of the database."""
        assert self._event is not None
        return events.select(pl.col(a.name).cast(_carried(a.dtype)) for a in self._event.attributes)

    def _cursor(self) -> _Transaction:
        return _Transaction(self.connect)


@dataclass
class _Transaction:
    """A cursor whose changes are committed together, or not at all."""

    connect: Callable[[], Any]

    def __enter__(self) -> Any:
        self._connection = self.connect()
        return self._connection.cursor()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self._connection.commit()
            else:
                self._connection.rollback()
        finally:
            self._connection.close()


def _many(cursor: Any, statement: str, rows: list[tuple[Any, ...]]) -> None:
    if rows:
        cursor.executemany(statement, rows)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _carried(dtype: pl.DataType) -> pl.DataType:
    """The type in which a value is in the database."""
    if dtype.is_float():
        return pl.Float64()
    if isinstance(dtype, pl.String):
        return pl.String()
    return pl.Int64()


def _kind(name: str, dtype: pl.DataType) -> str:
    if dtype.is_integer() or isinstance(dtype, pl.Datetime | pl.Boolean | pl.Date):
        return "BIGINT"
    if dtype.is_float():
        return "DOUBLE PRECISION"
    if isinstance(dtype, pl.String):
        return "TEXT"
    raise SchemaError.wrong_type(
        "merge table", name, "a number, a text, a boolean or a time", str(dtype)
    )
