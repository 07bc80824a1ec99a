"""Errors point at the word that is wrong, and say what was expected there."""

from __future__ import annotations

import pickle
import re

import pytest
from tests.sql.pairs import TWO_SQL

import interpunct as ip
from interpunct.sql.errors import SqlError
from interpunct.sql.groups import AGGREGATE_NAMES

LINES = TWO_SQL.count("\n")
ONE_SQL = "CREATE STREAM cars (segment bigint, ts timestamp, speed double) TIMESTAMP BY ts ORDERED;"
TRUTHS = ("count_if", "bool_and", "bool_or", "every", "some", "any")  # aggregates of conditions

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
    ("CREATE STREAM s (ts timestamp, x ▸nonsense)", "int, bigint, float"),
    ("CREATE STREAM s (ts timestamp, ▸x int int)", "The parser said: Expecting ).\n"),
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
    (
        "SELECT ts, count(*) AS n FROM cars GROUP BY TUMBLE(ts, 1 MINUTE) HAVING ▸m > 2",
        "one of ts, n, or an aggregate",
    ),
]

WINDOWED = "SELECT ts, count(*) AS n FROM cars GROUP BY"

# A statement with a misspelt word, what else could stand there, and what may have been meant.
MISSPELT = [
    (
        "CREATE STREAM s (ts timestamp) TIMESTAMP BY ts ▸WITHN INTERVAL 10 SECONDS",
        "INTERNAL, ORDERED, WITHIN, ADAPTIVE, FUTURE, ETS, ';' or the end", "WITHIN",
    ),
    ("CREATE STREAM s (ts timestamp) ▸TIMESTMP BY ts", "TIMESTAMP, ';' or the end", "TIMESTAMP"),
    ("CREATE ▸STREM s (ts timestamp)", "STREAM or VIEW", "STREAM"),
    ("CREATE STREAM s (agent string, ts ▸timestmp)", "one of the types tinyint", "timestamp"),
    ("CREATE STREAM s (ts timestamp, x array<▸bigit>)", "one of the types tinyint", "bigint"),
    ("CREATE STREAM s (x struct<a: int, b: ▸strng>)", "one of the types tinyint", "string"),
    ("CREATE STREAM s (x struct<a ▸strng, b int>)", "one of the types tinyint", "string"),
    ("▸SELCT * FROM cars", "SELECT or EXPLAIN", "SELECT"),
    ("SELECT ts, ▸sped FROM cars", "one of the attributes", "speed"),
    ("SELECT * ▸FORM cars", "FROM", "FROM"),
    ("SELECT ts, speed ▸FORM cars", "the end of the expression", "FROM"),
    ("SELECT * FROM cars ▸WERE speed > 20", "UNION, WHERE, GROUP BY, HAVING, ';'", "WHERE"),
    ("SELECT * FROM cars c ▸WERE speed > 20", "UNION, WHERE, GROUP BY, HAVING, ';'", "WHERE"),
    ("SELECT * FROM (SELECT * FROM cars ▸WERE speed > 20) x", "HAVING or )", "WHERE"),
    ("SELECT * FROM cars ▸GRUOP BY TUMBLE(ts, 1 MINUTE)", "GROUP BY", "GROUP BY"),
    ("SELECT * FROM cars WHERE speed > 2 ▸GRUOP BY segment", "an operator", "GROUP BY"),
    ("SELECT * FROM cars WHERE speed > 2 ▸ADN segment = 3", "an operator", "AND"),
    ("SELECT * FROM cars ▸JION vans USING (segment) WITHIN 1 MINUTE", "LEFT JOIN", "JOIN"),
    ("SELECT * FROM cars JOIN vans ▸USNG (segment) WITHIN 1 MINUTE", "ON, USING", "USING"),
    ("SELECT * FROM cars JOIN vans USING (segment) ▸WITHN 1 MINUTE", "WITHIN", "WITHIN"),
    ("SELECT * FROM ▸SROT(cars)", "SORT, MERGE", "SORT"),
    (
        "SELECT ts, ▸average(speed) AS s FROM cars GROUP BY TUMBLE(ts, 1 MINUTE)",
        "an aggregate such as count", "avg",
    ),
    (
        "SELECT ts, 1 + ▸cuont(*) AS n FROM cars GROUP BY TUMBLE(ts, 1 MINUTE)",
        "an aggregate such as count", "count",
    ),
    (f"{WINDOWED} segment, ▸TUMBEL(ts, 1 MINUTE)", "TUMBLE, HOP or ROWS", "TUMBLE"),
    (f"{WINDOWED} TUMBLE(ts, INTERVAL 1 ▸MINIT)", "a unit of time: MICROSECONDS", "MINUTE"),
    (f"{WINDOWED} TUMBLE(ts, INTERVAL '20' ▸SECNDS)", "a unit of time", "SECONDS"),
    (f"{WINDOWED} TUMBLE(ts, 1 ▸MINIT)", "DAYS, WEEKS or )", "MINUTE"),
    (f"{WINDOWED} TUMBLE(ts, 1 MINUTE) ▸HAVNG n > 2", "SPECULATIVE, HAVING", "HAVING"),
]  # fmt: skip

# Names near to words of SQL that are names all the same.
LOOK_ALIKES = [
    "SELECT were.ts FROM cars were",
    "SELECT * FROM cars were WHERE were.speed > 20",
    "SELECT * FROM cars jon JOIN cars usin USING (segment) WITHIN 1 MINUTE",
    "SELECT ts, speed form FROM cars c",
    "SELECT ts, isnull(ts) AS n, count(*) AS m FROM cars GROUP BY TUMBLE(ts, 1 MINUTE)",
]


@pytest.mark.parametrize(("marked", "said"), MALFORMED, ids=[m for m, _ in MALFORMED])
def test_an_error_points_at_the_word(marked: str, said: str) -> None:
    with pytest.raises(SqlError) as error:
        ip.sql(TWO_SQL + marked.replace("▸", ""))
    assert (error.value.line, error.value.column) == (LINES + 1, marked.index("▸") + 1)
    assert said in str(error.value)


@pytest.mark.parametrize(("marked", "said", "meant"), MISSPELT, ids=[m for m, *_ in MISSPELT])
def test_a_misspelt_word_is_pointed_at_and_the_nearest_offered(
    marked: str, said: str, meant: str
) -> None:
    with pytest.raises(SqlError) as error:
        ip.sql(TWO_SQL + marked.replace("▸", ""))
    assert (error.value.line, error.value.column) == (LINES + 1, marked.index("▸") + 1)
    assert said in error.value.expected
    word = re.split(r"\W", marked.partition("▸")[2])[0]
    assert error.value.got.startswith(repr(word))
    assert error.value.fix == f"Did you mean {meant}?"


@pytest.mark.parametrize("query", LOOK_ALIKES)
def test_a_name_may_look_like_a_word(query: str) -> None:
    assert "result" in ip.sql(ONE_SQL + query).nodes


@pytest.mark.parametrize(
    ("marked", "said"),
    [
        ("SELECT * FROM cars were ▸LIMIT 5", "A stream goes on"),
        ("SELECT * FROM cars kg ▸speed > 20", "Separate statements by ';'"),
        ("SELECT * FROM cars `were` ▸speed > 20", "Separate statements by ';'"),
        (f"{WINDOWED} ▸SESSION(ts, 1 MINUTE)", "Compute it in a view first"),
        (f"{WINDOWED} TUMBLE(ts, ▸INTERVAL '1 day 12:00')", "a duration: numbers with units"),
        (f"{WINDOWED} TUMBLE(ts, INTERVAL 1▸)", "Write INTERVAL 20 SECONDS"),
        (
            "SELECT ts, ▸hypot(speed) AS s FROM cars GROUP BY TUMBLE(ts, 1 MINUTE)",
            "'hypot', which is not known",
        ),
    ],
)
def test_where_no_word_is_near_none_is_offered(marked: str, said: str) -> None:
    with pytest.raises(SqlError) as error:
        ip.sql(TWO_SQL + marked.replace("▸", ""))
    assert (error.value.line, error.value.column) == (LINES + 1, marked.index("▸") + 1)
    assert said in str(error.value)
    assert "Did you mean" not in str(error.value)


@pytest.mark.parametrize("name", AGGREGATE_NAMES)
def test_every_aggregate_that_is_offered_is_one(name: str) -> None:
    share = ", 0.5" if name.startswith("percentile") else ""
    truth = "speed > 1" if name in TRUTHS else "speed"
    query = f"SELECT ts, {name}({truth}{share}) AS x FROM cars GROUP BY TUMBLE(ts, 1 MINUTE)"
    assert "result" in ip.sql(ONE_SQL + query).nodes


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
