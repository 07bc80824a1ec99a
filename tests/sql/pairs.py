"""The same flows twice: in SQL, and with the Python builder."""

from __future__ import annotations

from collections.abc import Callable

import interpunct as ip
from interpunct.operators.lmerge_policy import MergePolicy

CARS = "segment bigint, ts timestamp, speed double"
NUMBERED = "k bigint, t bigint, v double"
CARS_SQL = f"CREATE STREAM cars ({CARS}) TIMESTAMP BY ts WITHIN INTERVAL 30 SECONDS;\n"
VANS_SQL = f"CREATE STREAM vans ({CARS}) TIMESTAMP BY ts ORDERED;\n"
TWO_SQL = CARS_SQL + VANS_SQL

Build = Callable[[ip.Flow], None]


def cars(flow: ip.Flow) -> ip.FlowStream:
    return flow.source("cars", CARS, ip.external("ts", ip.bounds(skew="30s")))


def vans(flow: ip.Flow) -> ip.FlowStream:
    return flow.source("vans", CARS, ip.external("ts", ordered=True))


def declared(schema: str, time: ip.TimeSpec) -> Build:
    """A source alone, with its sink."""

    def build(flow: ip.Flow) -> None:
        flow.sink("result", flow.source("s", schema, time))

    return build


def over_cars(make: Callable[[ip.FlowStream], ip.FlowStream]) -> Build:
    def build(flow: ip.Flow) -> None:
        flow.sink("result", make(cars(flow)))

    return build


def over_two(make: Callable[[ip.FlowStream, ip.FlowStream], ip.FlowStream]) -> Build:
    def build(flow: ip.Flow) -> None:
        flow.sink("result", make(cars(flow), vans(flow)))

    return build


def _s(clause: str, schema: str = CARS) -> str:
    return f"CREATE STREAM s ({schema}) {clause}; SELECT * FROM s"


STREAMS: dict[str, tuple[str, Build]] = {
    "latent": (_s(""), declared(CARS, ip.latent())),
    "unsaid bounds are learned": (_s("TIMESTAMP BY ts"), declared(CARS, ip.external("ts"))),
    "ordered": (_s("TIMESTAMP BY ts ORDERED"), declared(CARS, ip.external("ts", ordered=True))),
    "within": (
        _s("TIMESTAMP BY ts WITHIN INTERVAL 30 SECONDS"),
        declared(CARS, ip.external("ts", ip.bounds(skew="30s"))),
    ),
    "within and delay": (
        _s("TIMESTAMP BY ts WITHIN INTERVAL '1h 30m' DELAY INTERVAL '5' SECOND"),
        declared(CARS, ip.external("ts", ip.bounds(delay="5s", skew="90m"))),
    ),
    "integers": (
        _s("TIMESTAMP BY t WITHIN 30 DELAY 2 MINUTES", NUMBERED),
        declared(NUMBERED, ip.external("t", ip.bounds(delay="2m", skew=30))),
    ),
    "adaptive": (
        _s("TIMESTAMP BY ts ADAPTIVE COMPLETENESS 0.99"),
        declared(CARS, ip.external("ts", ip.adaptive(0.99))),
    ),
    "adaptive in detail": (
        _s(
            "TIMESTAMP BY ts ADAPTIVE COMPLETENESS 0.95 METHOD adaptive WINDOW INTERVAL 1 MINUTE "
            "ALPHA 0.5 WARM UP 1 SAFETY 3 FUTURE INTERVAL 1 DAY"
        ),
        declared(
            CARS,
            ip.external(
                "ts",
                ip.adaptive(
                    0.95, method="adaptive", window="1m", alpha=0.5, warm_up=1.0, safety=3.0
                ),
                future="1d",
            ),
        ),
    ),
    "internal": (
        _s("TIMESTAMP BY at INTERNAL ETS EVERY INTERVAL 100 MILLISECONDS"),
        declared(CARS, ip.internal("at", ip.periodic("100ms"))),
    ),
    "no heartbeats": (
        _s("TIMESTAMP BY ts ORDERED ETS NEVER"),
        declared(CARS, ip.external("ts", ets="never", ordered=True)),
    ),
    "types": (
        _s("TIMESTAMP BY ts ORDERED", "ts timestamp_ntz, a array<struct<x:int,y:decimal(10,2)>>"),
        declared(
            "ts timestamp_ntz, a array<struct<x:int,y:decimal(10,2)>>",
            ip.external("ts", ordered=True),
        ),
    ),
}

QUERIES: dict[str, tuple[str, Build]] = {
    "where": (
        CARS_SQL + "SELECT * FROM cars WHERE speed between 0 and 120",
        over_cars(lambda c: c.where("speed between 0 and 120")),
    ),
    "where by the stream's name": (
        CARS_SQL + "SELECT * FROM cars AS c WHERE c.speed > 3 -- fast\n AND c.speed IS NULL",
        over_cars(lambda c: c.where("speed > 3 AND speed IS NULL")),
    ),
    "select": (
        CARS_SQL + "SELECT segment, ts, speed * 1.609 AS kmh FROM cars",
        over_cars(lambda c: c.select("segment", "ts", kmh="speed * 1.609")),
    ),
    "select with a name and no AS": (
        CARS_SQL + "SELECT ts, speed * 1.609 kmh FROM cars",
        over_cars(lambda c: c.select("ts", kmh="speed * 1.609")),
    ),
    "functions that are words elsewhere": (
        CARS_SQL + "SELECT ts, right(left('abc', 2), 1) AS r, position('b' IN 'abc') AS p, "
        "segment & 3 | 8 AS bits, get_json_object('{}', '$.a[0]') AS j FROM cars "
        "WHERE left(date_format(ts, 'yyyy'), 2) = '20'",
        over_cars(
            lambda c: c.where("left(date_format(ts, 'yyyy'), 2) = '20'").select(
                "ts", r="right(left('abc', 2), 1)", p="position('b' IN 'abc')",
                bits="segment & 3 | 8", j="get_json_object('{}', '$.a[0]')",
            )
        ),
    ),
    "star and more": (
        CARS_SQL + "SELECT *, speed IS DISTINCT FROM 3.0 AS `is it` FROM cars",
        over_cars(lambda c: c.with_columns(**{"is it": "speed IS DISTINCT FROM 3.0"})),
    ),
    "tumble": (
        CARS_SQL + "SELECT segment, ts, avg(speed) AS speed, count(*) AS n FROM cars "
        "GROUP BY segment, TUMBLE(ts, INTERVAL 20 SECONDS)",
        over_cars(
            lambda c: c.aggregate(by="segment", every="20s", speed="avg(speed)", n="count(*)")
        ),
    ),
    "hop": (
        CARS_SQL + "SELECT ts, max(speed) AS top FROM cars GROUP BY HOP(ts, 20 SECONDS, 1 MINUTE)",
        over_cars(lambda c: c.aggregate(every="20s", size="1m", top="max(speed)")),
    ),
    "rows": (
        CARS_SQL + "SELECT segment, window, ts, sum(speed) AS total FROM cars "
        "GROUP BY segment, ROWS(100, 10)",
        over_cars(lambda c: c.aggregate(by="segment", rows=100, slide=10, total="sum(speed)")),
    ),
    "having and a computed list": (
        CARS_SQL + "SELECT ts, sum(speed) / count(*) AS mean, count(*) AS n FROM cars "
        "GROUP BY TUMBLE(ts, 1 MINUTE) HAVING n > 3 AND max(speed) < 9",
        over_cars(
            lambda c: c.aggregate(every="1m", _1="sum(speed)", _2="count(*)", n="count(*)",
                                  _4="max(speed)")
            .where("n > 3 AND _4 < 9").select("ts", mean="_1 / _2", n="n")
        ),
    ),
    "words of SQL before a parenthesis are no calls": (
        CARS_SQL + "SELECT ts, count(*) AS n FROM cars "
        "GROUP BY TUMBLE(ts, 1 MINUTE) HAVING n IN (2, 3) AND (max(speed) < 9)",
        over_cars(
            lambda c: c.aggregate(every="1m", n="count(*)", _2="max(speed)")
            .where("n IN (2, 3) AND (_2 < 9)").select("ts", n="n")
        ),
    ),
    "speculative": (
        CARS_SQL + "SELECT segment, ts, count(*) AS n FROM cars "
        "GROUP BY segment, TUMBLE(ts, 1 MINUTE) SPECULATIVE",
        over_cars(lambda c: c.aggregate(by="segment", every="1m", speculative=True, n="count(*)")),
    ),
    "join": (
        TWO_SQL + "SELECT * FROM cars JOIN vans ON cars.segment = vans.segment "
        "WITHIN INTERVAL 20 SECONDS",
        over_two(lambda c, v: c.join(v, on="segment", within="20s")),
    ),
    "left join, thrifty and impatient": (
        TWO_SQL + "SELECT * FROM cars LEFT OUTER JOIN vans USING (segment) "
        "WITHIN (INTERVAL 20 SECONDS, INTERVAL 1 MINUTE) THRIFTY IMPATIENT",
        over_two(
            lambda c, v: c.join(v, on="segment", within=("20s", "1m"), how="left", thrifty=True,
                                impatient=True)
        ),
    ),
    "join of three by time alone": (
        TWO_SQL + "SELECT * FROM cars JOIN vans JOIN cars c2 WITHIN 5 SECONDS",
        over_two(lambda c, v: c.join(v, c, within="5s")),
    ),
    "names after a join": (
        TWO_SQL + "SELECT a.speed AS mine, v.speed AS theirs, joined_at AS at FROM cars a "
        "JOIN vans v USING (segment) WITHIN 5 SECONDS WHERE v.speed > a.speed",
        over_two(
            lambda c, v: c.join(v, on="segment", within="5s").where("speed_right > speed")
            .select(mine="speed", theirs="speed_right", at="joined_at")
        ),
    ),
    "union": (
        TWO_SQL + "SELECT * FROM cars UNION vans",
        over_two(lambda c, v: c.flow.union(c, v)),
    ),
    "union of queries": (
        TWO_SQL + "SELECT * FROM cars WHERE speed > 3 UNION SELECT * FROM vans",
        over_two(lambda c, v: c.flow.union(c.where("speed > 3"), v)),
    ),
    "union all": (
        TWO_SQL + "SELECT * FROM cars UNION ALL vans",
        over_two(lambda c, v: c.flow.union(c, v, in_order=False)),
    ),
    "pace (Feedback section 3.3)": (
        TWO_SQL + "SELECT *\nFROM cars UNION vans\n"
        "WITH PACE ON MAX(cars.ts, vans.ts)\n     1 MINUTE",
        over_two(lambda c, v: c.pace(v, within="1m")),
    ),
    "pace by one stream, silently": (
        TWO_SQL + "SELECT * FROM cars UNION vans WITH PACE ON cars.ts INTERVAL 1 MINUTE "
        "WITHOUT FEEDBACK",
        over_two(lambda c, v: c.pace(v, within="1m", on=c, feedback=False)),
    ),
    "punctuate": (
        CARS_SQL + "PUNCTUATE cars EVERY INTERVAL 1 MINUTE DELAY INTERVAL 10 SECONDS",
        over_cars(lambda c: c.punctuate(every="1m", delay="10s")),
    ),
    "impute": (
        CARS_SQL + "SELECT * FROM cars IMPUTE speed FROM 'speeds.db' USING "
        "'select avg(speed) as speed from r where name <> \\'x\\' and segment = :segment' "
        "BATCH 10 BUDGET INTERVAL 1 SECOND OVERWRITE",
        over_cars(
            lambda c: c.impute(
                "speed", archive="speeds.db", batch=10, budget="1s", overwrite=True,
                query="select avg(speed) as speed from r where name <> 'x' and segment = :segment",
            )
        ),
    ),
    "impute from DuckDB": (
        CARS_SQL + "SELECT * FROM cars IMPUTE speed FROM 'duckdb:////x/speeds' USING 'select 1'",
        over_cars(lambda c: c.impute("speed", archive="duckdb:////x/speeds", query="select 1")),
    ),
    "sort": (CARS_SQL + "SELECT * FROM SORT(cars)", over_cars(lambda c: c.sort())),
    "merge": (
        TWO_SQL + "SELECT * FROM MERGE(SORT(cars), vans)",
        over_two(lambda c, v: c.flow.merge(c.sort(), v)),
    ),
    "slack": (
        CARS_SQL + "SLACK(cars, 5, INTERVAL 1 MINUTE)",
        over_cars(lambda c: c.slack(5, window="1m")),
    ),
    "poll": (CARS_SQL + "POLL(cars, 10 MINUTES)", over_cars(lambda c: c.poll(keep="10m"))),
    "lmerge": (
        TWO_SQL + "SELECT * FROM LMERGE(cars, vans)",
        over_two(lambda c, v: c.flow.lmerge(c, v)),
    ),
    "lmerge in detail": (
        TWO_SQL + "LMERGE(EVENTS(cars, 1 MINUTE), EVENTS(vans, 1 MINUTE)) VARIANT 'R4' INSERTS 0.5 "
        "LAG 3 WITHOUT FEEDBACK",
        over_two(
            lambda c, v: c.flow.lmerge(
                c.events(lasting="1m"), v.events(lasting="1m"), variant="R4", feedback=False,
                policy=MergePolicy(inserts=0.5, stable_lag=3),
            )
        ),
    ),
    "declare": (
        CARS_SQL + "DECLARE(cars, ordered, NOT insert_only)",
        over_cars(lambda c: c.declare(ordered=True, insert_only=False)),
    ),
}  # fmt: skip
