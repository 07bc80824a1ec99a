"""Errors point at the word that is wrong, and say what was expected there."""

from __future__ import annotations

import pickle

import pytest
from tests.sql.pairs import TWO_SQL

import interpunct as ip
from interpunct.sql.errors import SqlError

LINES = TWO_SQL.count("\n")

# A statement with ▸ before the word the error shall point at, and part of what it shall say.
MALFORMED = [
    ("▸SELCT * FROM cars", "CREATE STREAM, CREATE VIEW, INSERT INTO, SELECT or EXPLAIN"),
    ("▸DROP VIEW cars", "Begin with one of these"),
    ("SELECT * FROM ▸carz", "a stream or a view: cars, vans"),
    ("SELECT * FROM ▸WHERE speed > 3", "expected a stream or a view, got 'WHERE'"),
    ("SELECT *▸", "expected FROM, got the end"),
    ("SELECT ▸sped FROM cars", "one of the attributes segment, ts, speed"),
    ("SELECT ts, c.▸sped AS s FROM cars c", "one of the attributes segment, ts, speed"),
    ("SELECT ts, ▸x.speed AS s FROM cars c", "one of the streams c"),
    ("SELECT ts, ▸speed * 2 FROM cars", "a name for the expression"),
    ("SELECT ts, speed AS ts2, ▸speed AS ts2 FROM cars", "'ts2' again"),
    ("SELECT ▸speed FROM cars", "the time attribute 'ts' among its columns"),
    ("SELECT ▸DISTINCT ts FROM cars", "a clause that streams have"),
    ("SELECT * FROM cars ▸ORDER BY ts", "SORT(stream)"),
    ("SELECT * FROM cars ▸LIMIT 5", "A stream goes on"),
    ("SELECT * FROM cars WHERE speed ▸>", "another operand of GT after this"),
    ("SELECT * FROM cars WHERE speed > 3 ▸4", "an operator, or the end of the expression"),
    ("SELECT * FROM cars WHERE ▸speed", "a boolean in attribute 'speed'"),
    ("SELECT * FROM cars WHERE ▸tangent(speed) > 3", "SQL that this system evaluates itself"),
    ("SELECT * FROM cars WHERE x = ▸'abc", "a closing quote"),
    ("SELECT ▸count(*) AS n FROM cars", "GROUP BY with an aggregate"),
    ("SELECT ts, ▸count(*) FROM cars GROUP BY TUMBLE(ts, 1 MINUTE)", "a name for the aggregate"),
    ("SELECT segment, count(*) AS n FROM cars GROUP BY ▸segment", "a window among the groups"),
    (
        "SELECT ts, count(*) AS n FROM cars GROUP BY TUMBLE(▸speed, 1 MINUTE)",
        "the stream's time attribute ts",
    ),
    (
        "SELECT ts, ▸speed, count(*) AS n FROM cars GROUP BY TUMBLE(ts, 1 MINUTE)",
        "one of ts, or an aggregate",
    ),
    ("SELECT ts FROM cars GROUP BY TUMBLE(ts, ▸1 MONTH)", "months and years have no fixed length"),
    ("SELECT ts FROM cars GROUP BY TUMBLE(ts ▸1 MINUTE)", "expected ,"),
    (
        "SELECT ts, count(*) AS n FROM cars GROUP BY ▸HOP(ts, 2 MINUTES, 1 MINUTE)",
        "a slide no longer than the window",
    ),
    ("SELECT ts, count(*) AS n FROM cars GROUP BY ▸window(ts, '1 minute')", "TUMBLE, HOP or ROWS"),
    ("SELECT * FROM cars JOIN vans ON cars.segment = vans.segment▸", "expected WITHIN"),
    (
        "SELECT * FROM cars JOIN vans ON ▸cars.segment = vans.speed WITHIN 1 MINUTE",
        "one attribute of two streams",
    ),
    (
        "SELECT * FROM cars JOIN vans ON cars.segment = vans.segment AND ▸cars.speed > 3 "
        "WITHIN 1 MINUTE",
        "equal attributes",
    ),
    ("SELECT ▸speed FROM cars JOIN vans WITHIN 1 MINUTE", "Write cars.speed or vans.speed"),
    ("SELECT * FROM cars ▸RIGHT JOIN vans", "LEFT JOIN"),
    ("SELECT * FROM cars UNION vans WITH ▸SPEED", "expected PACE"),
    (
        "SELECT * FROM cars UNION vans WITH PACE ON MAX(cars.▸speed, vans.ts) 1 MINUTE",
        "the time attribute of cars, ts",
    ),
    (
        "SELECT * FROM cars UNION vans WITH PACE ON MAX(cars.ts, ▸van.ts) 1 MINUTE",
        "one of the united streams cars, vans",
    ),
    (
        "SELECT * FROM cars UNION vans WITH PACE ON MAX(cars.ts, vans.ts) ▸soon",
        "a length of time",
    ),
    ("SELECT * FROM cars ▸WITH PACE ON cars.ts 1 MINUTE", "streams to unite before WITH PACE"),
    ("PUNCTUATE cars ▸DELAY 3 SECONDS", "expected EVERY"),
    ("SELECT * FROM cars IMPUTE speed FROM ▸speeds USING 'select 1'", "in quotes"),
    ("SELECT * FROM ▸cars IMPUTE sped FROM 'x.db' USING 'select 1'", "sped"),
    ("SELECT * FROM ▸LMERGE(cars)", "two or more streams"),
    ("CREATE ▸TABLE t (a int)", "STREAM or VIEW"),
    ("CREATE VIEW ▸cars AS SELECT * FROM vans", "'cars' again"),
    ("CREATE STREAM s (ts timestamp, ▸x nonsense)", "x nonsense"),
    ("CREATE STREAM s (ts timestamp, ▸ts bigint)", "each attribute once"),
    ("CREATE STREAM s (ts timestamp) TIMESTAMP BY ▸at", "one of the attributes ts"),
    ("CREATE STREAM s (ts timestamp) TIMESTAMP ▸at ts", "expected BY"),
    ("CREATE STREAM s (ts timestamp) TIMESTAMP BY ts WITHIN ▸INTERVAL 3 MONTHS", "a duration"),
    (
        "CREATE STREAM s (ts timestamp) ▸TIMESTAMP BY ts ADAPTIVE COMPLETENESS 1.5",
        "a share between 0 and 1",
    ),
    ("SELECT * FROM cars; ▸x", "CREATE STREAM, CREATE VIEW, INSERT INTO, SELECT or EXPLAIN"),
    ("INSERT ▸map SELECT * FROM cars", "expected INTO"),
    ("SELECT * FROM cars; ▸SELECT * FROM vans", "one query without a name"),
    ("SELECT * FROM cars ▸) ", "';' or the end of the statement"),
    ("SELECT * FROM cars UNION ALL (SELECT * FROM ▸x)", "a stream or a view"),
]


@pytest.mark.parametrize(("marked", "said"), MALFORMED, ids=[m for m, _ in MALFORMED])
def test_an_error_points_at_the_word(marked: str, said: str) -> None:
    with pytest.raises(SqlError) as error:
        ip.sql(TWO_SQL + marked.replace("▸", ""))
    assert (error.value.line, error.value.column) == (LINES + 1, marked.index("▸") + 1)
    assert said in str(error.value)


def test_what_nobody_reads_is_pointed_at() -> None:
    with pytest.raises(SqlError, match="a query that reads this") as error:
        ip.sql(TWO_SQL + "SELECT * FROM cars")
    assert (error.value.line, error.value.column) == (2, 15)
    with pytest.raises(SqlError, match="a query that reads this") as error:
        ip.sql(TWO_SQL + "WITH x AS (SELECT * FROM cars WHERE speed > 3) SELECT * FROM vans")
    assert (error.value.line, error.value.column) == (3, 6)


def test_an_error_shows_the_line_with_carets_and_travels() -> None:
    with pytest.raises(SqlError) as error:
        ip.sql("CREATE STREAM cars (ts bigint) TIMESTAMP BY ts ORDERED;\nSELECT *\n\tFROM carz")
    assert str(error.value) == (
        "line 3, column 7: expected a stream or a view: cars, got 'carz'. Check the spelling, or "
        "declare it with CREATE STREAM.\n    \tFROM carz\n    \t     ^^^^"
    )
    copy = pickle.loads(pickle.dumps(error.value))
    assert (str(copy), copy.line, copy.column) == (str(error.value), 3, 7)


@pytest.mark.parametrize("text", ["", " ;; ", "-- nothing\n"])
def test_a_text_without_statements_says_what_to_write(text: str) -> None:
    with pytest.raises(SqlError, match="CREATE STREAM"):
        ip.sql(text)
