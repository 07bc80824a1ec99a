"""The databases that an archive can be in: SQLite and DuckDB, embedded, and PostgreSQL.

    open_archive("speeds.db", "select …")                     SQLite, a path
    open_archive("duckdb:///speeds.duckdb", "select …")       four slashes before an absolute path
    open_archive("postgresql://user@host/traffic", "select …")

Each says how it binds one key and how it is given many: SQLite by a temporary table and scalar
subqueries, the others by a lateral join, with the keys as an Arrow table or as arrays.
"""

from __future__ import annotations

import sqlite3
from importlib import import_module
from pathlib import Path
from typing import Any

import polars as pl

from interpunct.model.errors import ArchiveError
from interpunct.model.schema import ddl_type
from interpunct.operators.archive import ROW, SqlArchive, by_row, first_answers

KEYS = "_keys"
_POSTGRES_TYPES = {
    "string": "text", "double": "double precision", "float": "real", "int": "integer",
    "tinyint": "smallint", "timestamp": "timestamptz", "timestamp_ntz": "timestamp",
    "binary": "bytea",
}  # fmt: skip


def open_archive(address: str | Path, query: str) -> SqlArchive:
    """The archive at a URL, or in a file: DuckDB's by its suffix, else SQLite's."""
    text = str(address)
    scheme, divider, path = text.partition("://")
    if not divider:
        kind = DuckDb if Path(text).suffix in (".duckdb", ".ddb") else Sqlite
        return kind(text, query)
    if scheme in ("postgresql", "postgres"):
        return Postgres(text, query)
    if scheme not in ("sqlite", "duckdb"):
        raise ArchiveError(
            f"archive {scheme}://…", "sqlite:///path, duckdb:///path or postgresql://…",
            f"the scheme {scheme!r}", "Give one of these, a path, or an object with look_up.",
        )  # fmt: skip
    kind = DuckDb if scheme == "duckdb" else Sqlite
    return kind(path.removeprefix("/"), query)


class Sqlite(SqlArchive):
    """An SQLite file, read only. Timestamps and dates are text there, as its own functions write
    them: `2008-12-08 09:00:00.000000`, in UTC."""

    dialect = "sqlite"

    def _connected(self) -> sqlite3.Connection:
        path = _existing(self.address, self.where)
        uri = f"{path.resolve().as_uri()}?mode=ro"
        try:
            connection = sqlite3.connect(
                uri, uri=True, isolation_level=None, check_same_thread=False
            )
            connection.execute("select name from sqlite_master limit 1")
        except sqlite3.Error as error:
            raise _not_one(self.where, "an SQLite database", error) from error
        return connection

    def _failures(self) -> tuple[type[Exception], ...]:
        return (sqlite3.Error,)

    def _one(self, key: pl.DataFrame) -> pl.DataFrame:
        values = _plain(key).row(0, named=True)
        cursor = self._connection.execute(self.query.written(lambda n: f":{n}"), values)
        columns = [d[0] for d in cursor.description]
        return first_answers(columns, cursor.fetchmany(1))

    def _many(self, keys: pl.DataFrame) -> pl.DataFrame:
        connection: sqlite3.Connection = self._connection
        plain = _plain(keys)
        names = ", ".join(map(_quoted, plain.columns))
        marks = ", ".join("?" * plain.width)
        connection.execute(f"drop table if exists temp.{KEYS}")
        connection.execute(f"create temp table {KEYS} ({names})")
        connection.execute("begin")
        connection.executemany(f"insert into {KEYS} values ({marks})", plain.rows())
        connection.execute("commit")
        columns = self._columns()
        asked = self.query.written(_key_column)
        each = ", ".join(
            f"(select {_quoted(c)} from (\n{asked}\n)) as {_quoted(c)}" for c in columns
        )
        found = connection.execute(f"select {each} from {KEYS} order by {ROW}").fetchall()
        return pl.DataFrame(found, schema=columns, orient="row", infer_schema_length=None)

    def _columns(self) -> list[str]:
        """What the query answers with."""
        cursor = self._connection.execute(
            f"select * from (\n{self.query.written(lambda n: f':{n}')}\n) limit 0",
            dict.fromkeys(self.parameters),
        )
        return [d[0] for d in cursor.description]


class DuckDb(SqlArchive):
    """A DuckDB file, read only."""

    dialect = "duckdb"

    def _connected(self) -> Any:
        duckdb = _driver("duckdb", self.where, "duckdb")
        path = _existing(self.address, self.where)
        try:
            return duckdb.connect(str(path), read_only=True)
        except duckdb.Error as error:
            raise _not_one(self.where, "a DuckDB database", error) from error

    def _failures(self) -> tuple[type[Exception], ...]:
        error: type[Exception] = import_module("duckdb").Error
        return (error,)

    def _one(self, key: pl.DataFrame) -> pl.DataFrame:
        values = key.drop(ROW).row(0, named=True) if self.parameters else {}
        self._connection.execute(self.query.written(lambda n: f"${n}"), values)
        columns = [d[0] for d in self._connection.description]
        return first_answers(columns, self._connection.fetchall())

    def _many(self, keys: pl.DataFrame) -> pl.DataFrame:
        self._connection.register(KEYS, keys.to_arrow())
        asked = self.query.written(_key_column)
        answers = self._connection.sql(
            f"select {KEYS}.{ROW}, _a.* from {KEYS} left join lateral (\n{asked}\n) as _a on true"
        )
        found = pl.from_arrow(answers.to_arrow_table())
        self._connection.unregister(KEYS)
        assert isinstance(found, pl.DataFrame)
        return by_row(found)


class Postgres(SqlArchive):
    """A PostgreSQL server; needs psycopg, the extra `postgres`."""

    dialect = "postgres"

    def _connected(self) -> Any:
        psycopg = _driver("psycopg", self.where, "interpunct[postgres]")
        try:
            return psycopg.connect(self.address, autocommit=True)
        except psycopg.Error as error:
            raise _not_one(self.where, "a PostgreSQL server that answers", error) from error

    def _failures(self) -> tuple[type[Exception], ...]:
        error: type[Exception] = import_module("psycopg").Error
        return (error,)

    def _one(self, key: pl.DataFrame) -> pl.DataFrame:
        text = self.query.written(lambda n: f"%({n})s", _percent)
        cursor = self._connection.execute(text, key.row(0, named=True))
        return first_answers([d.name for d in cursor.description], cursor.fetchmany(1))

    def _many(self, keys: pl.DataFrame) -> pl.DataFrame:
        columns = keys.columns
        arrays = ", ".join(f"%s::{_postgres_type(keys.schema[c])}[]" for c in columns)
        names = ", ".join(map(_quoted, columns))
        cursor = self._connection.execute(
            f"select {KEYS}.{ROW}, _a.* from unnest({arrays}) as {KEYS}({names}) "
            f"left join lateral (\n{self.query.written(_key_column, _percent)}\n) as _a on true",
            [keys.get_column(c).to_list() for c in columns],
        )
        answered = [d.name for d in cursor.description]
        rows = cursor.fetchall()
        return by_row(pl.DataFrame(rows, schema=answered, orient="row", infer_schema_length=None))


def _existing(address: str, where: str) -> Path:
    path = Path(address)
    if not path.is_file():
        raise ArchiveError(
            where, "a database file that is there", f"no file {path.absolute()}",
            "Correct the path; an absolute one has four slashes in a URL.",
        )  # fmt: skip
    return path


def _driver(module: str, where: str, package: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise ArchiveError(
            where, f"the driver {module} to be installed", "no such package",
            f"Install it with: pip install '{package}'",
        ) from error  # fmt: skip


def _not_one(where: str, expected: str, error: Exception) -> ArchiveError:
    lines = str(error).splitlines() or [type(error).__name__]
    return ArchiveError(where, expected, lines[0], "Check the address and that it can be read.")


def _plain(keys: pl.DataFrame) -> pl.DataFrame:
    """Keys as SQLite has them: moments as text."""
    times = [
        pl.col(n).dt.to_string("%Y-%m-%d %H:%M:%S%.6f")
        for n, t in keys.schema.items()
        if isinstance(t, pl.Datetime)
    ]
    dates = [pl.col(n).dt.to_string() for n, t in keys.schema.items() if isinstance(t, pl.Date)]
    return keys.with_columns(*times, *dates) if times or dates else keys


def _key_column(name: str) -> str:
    return f"{KEYS}.{_quoted(name)}"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _percent(text: str) -> str:
    return text.replace("%", "%%")


def _postgres_type(dtype: pl.DataType) -> str:
    text = ddl_type(dtype)
    return _POSTGRES_TYPES.get(text, text)
