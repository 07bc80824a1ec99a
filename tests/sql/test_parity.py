"""SQL and Python build the same flows, and print as SQL that builds them again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sql.pairs import CARS_SQL, QUERIES, STREAMS, Build, cars, vans

import interpunct as ip
from interpunct.model.errors import FlowError

PAIRS = STREAMS | QUERIES
START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(("text", "build"), PAIRS.values(), ids=PAIRS)
def test_sql_builds_the_flow_that_python_builds(text: str, build: Build) -> None:
    flow = ip.Flow("sql")
    build(flow)
    assert ip.sql(text).explain() == flow.explain()


@pytest.mark.parametrize(("text", "build"), PAIRS.values(), ids=PAIRS)
def test_a_flow_prints_as_sql_that_builds_it(text: str, build: Build) -> None:
    flow = ip.Flow("sql")
    build(flow)
    printed = ip.to_sql(flow)
    again = ip.sql(printed)
    assert again.explain() == flow.explain()
    assert ip.to_sql(again) == printed
    assert ip.to_sql(ip.sql(text)) == printed


def moments(*seconds: int) -> list[tuple[int, datetime, float]]:
    return [(s % 2, START + timedelta(seconds=s), float(s)) for s in seconds]


def test_sql_and_python_give_the_same_rows() -> None:
    text, build = QUERIES["tumble"]
    flow = ip.Flow("sql")
    build(flow)
    feeds = {"cars": moments(1, 2, 3, 25, 21, 60)}
    rows = ip.sql(text).run(feeds)["result"]
    assert rows.equals(flow.run(feeds)["result"])
    assert rows.height == 4


def test_the_last_operator_of_a_view_bears_its_name() -> None:
    flow = ip.sql(
        CARS_SQL + "CREATE VIEW fast AS SELECT ts, speed FROM cars WHERE speed > 3;\n"
        "CREATE VIEW same AS SELECT * FROM fast; INSERT INTO out SELECT * FROM same"
    )
    kinds = {node.name: node.kind for node in flow.nodes.values()}
    assert kinds == {"cars": "source", "where_1": "select", "fast": "project", "out": "sink"}


def test_names_after_with_hold_for_their_query_alone() -> None:
    text = CARS_SQL + "WITH fast AS (SELECT * FROM cars WHERE speed > 3) SELECT * FROM fast;\n"
    assert ip.sql(text).run({"cars": moments(1, 9)})["result"].height == 1
    both = text + "INSERT INTO more SELECT * FROM fas"
    with pytest.raises(ip.InterpunctError, match="a stream or a view: cars, fast"):
        ip.sql(both)


def test_sql_reads_the_nodes_of_a_flow_built_in_python() -> None:
    flow = ip.Flow("mixed")
    clean = cars(flow).where("speed > 0", name="clean")
    vans(flow).where("speed > 1", name="imputed")
    assert clean.schema.names == ("segment", "ts", "speed")
    built = ip.sql(
        "SELECT * FROM clean UNION imputed WITH PACE ON MAX(clean.ts, imputed.ts) 1 MINUTE",
        flow=flow,
    )
    assert built is flow
    feeds = {"cars": moments(0, 100), "vans": moments(50, 120)}
    assert flow.run(feeds)["result"]["speed"].to_list() == [100.0, 50.0, 120.0]


def test_feedback_section_3_3_runs_as_it_is_printed() -> None:
    schema = "(id bigint, time timestamp) TIMESTAMP BY time ORDERED"
    flow = ip.sql(f"""
        CREATE STREAM stream1 {schema}; CREATE STREAM stream2 {schema};

        SELECT *
        FROM stream1 UNION stream2
        WITH PACE ON MAX(stream1.time, stream2.time)
             1 MINUTE
    """)
    one, two = ([row[:2] for row in moments(*at)] for at in ((100, 200), (0, 150)))
    result = flow.run({"stream1": one, "stream2": two})
    assert result["result"].height == 3
    assert result.late["pace_1"].height == 1


def test_attributes_named_like_functions_keep_their_backticks() -> None:
    flow = ip.Flow("sql")
    stream = flow.source("s", "ts bigint, `current_date` bigint", ip.external("ts", ordered=True))
    flow.sink(
        "result", stream.where("`current_date` > 3").select("ts", current_date="`current_date`")
    )
    printed = ip.to_sql(flow)
    assert "SELECT ts, `current_date` FROM where_1" in printed
    again = ip.sql(printed.replace("FROM s WHERE `cur", "FROM s WHERE s.`cur"))
    assert again.explain() == flow.explain()


def test_a_star_of_one_stream_is_its_attributes() -> None:
    flow = ip.sql(
        CARS_SQL + "SELECT b.*, joined_at FROM cars a JOIN cars b USING (segment) WITHIN 1 SECOND"
    )
    names = flow.graph.sinks[0].streams[0].schema.names
    assert names == ("segment", "ts_right", "speed_right", "joined_at")


def test_unions_of_what_stands_in_parentheses() -> None:
    text = (
        CARS_SQL + "SELECT ts, speed FROM cars UNION (SELECT ts, speed FROM cars WHERE speed > 3)"
    )
    assert ip.sql(text).run({"cars": moments(1, 9)})["result"].height == 3
    text = CARS_SQL + "SELECT ts, speed FROM cars UNION (cars)"
    assert ip.sql(text).run({"cars": moments(1, 9)})["result"].height == 4


def test_late_and_partial_results_are_streams() -> None:
    flow = ip.sql(
        CARS_SQL + "CREATE VIEW n AS SELECT segment, ts, count(*) AS n FROM cars "
        "GROUP BY segment, TUMBLE(ts, 20 SECONDS);\n"
        "INSERT INTO out SELECT * FROM n; INSERT INTO late SELECT * FROM LATE(cars);\n"
        "INSERT INTO now SELECT * FROM PARTIAL(n)"
    )
    assert {n.name for n in flow.graph.sinks} == {"out", "late", "now"}
    assert ip.sql(ip.to_sql(flow)).explain() == flow.explain()
    assert flow.run({"cars": [*moments(100), *moments(0)]})["late"].height == 1


def test_explain_prints_what_the_flow_will_do(capsys: pytest.CaptureFixture[str]) -> None:
    flow = ip.sql(CARS_SQL + "EXPLAIN SELECT * FROM cars WHERE speed > 3")
    assert capsys.readouterr().out == flow.explain() + "\n"


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda c: c.duplicate(2)[1], "duplicate 'duplicate_1'"),
        (lambda c: c.split("speed > 3")[0], "split 'split_1'"),
        (lambda c: c.where(pl.col("speed") > 3), "select 'where_1'"),
        (lambda c: c.impute("speed", archive="postgresql://u:pw@h/d", query="select 1"), "impute"),
    ],
)
def test_what_sql_cannot_say_is_named(make: object, named: str) -> None:
    flow = ip.Flow("sql")
    flow.sink("result", make(cars(flow)))  # type: ignore[operator]
    with pytest.raises(FlowError, match=named) as error:
        ip.to_sql(flow)
    assert "pw" not in str(error.value)


def test_settings_of_a_flow_are_not_lost_in_silence() -> None:
    flow = ip.Flow("sql", heartbeats="query")
    flow.sink("result", cars(flow))
    with pytest.raises(FlowError, match="heartbeats='query'"):
        ip.to_sql(flow)


# Any flow ----------------------------------------------------------------------------------------

STEPS = {
    "where": lambda s, o: s.where("speed > 3 or segment in (1, 2)"),
    "select": lambda s, o: s.with_columns(speed="case when speed > 3 then 0 else speed end"),
    "tumble": lambda s, o: s.aggregate(by="segment", every="1m", speed="avg(speed)").select(
        "segment", "ts", "speed"
    ),
    "rows": lambda s, o: s.aggregate(by="segment", rows=3, speed="last(speed) ignore nulls").select(
        "segment", "ts", "speed"
    ),
    "union": lambda s, o: s.flow.union(s, o),
    "pace": lambda s, o: s.pace(o, within="1m", on=o),
    "join": lambda s, o: s.join(o, on="segment", within=("1s", "2s")).select(
        "segment", ts="joined_at", speed="speed + speed_right"
    ),
    "sort": lambda s, o: s.sort(),
    "punctuate": lambda s, o: s.punctuate(every="1m", delay="1s"),
    "poll": lambda s, o: s.poll(keep="1m"),
}
NAMES = st.none() | st.sampled_from(
    ["map", "order", "select", "a b", "ünder", "from", "x`y", "1st"]
)


@settings(max_examples=40)
@given(steps=st.lists(st.sampled_from(sorted(STEPS)), max_size=5), sink=NAMES, column=NAMES)
def test_any_flow_of_these_survives_the_way_there_and_back(
    steps: list[str], sink: str | None, column: str | None
) -> None:
    flow = ip.Flow("sql")
    one, other = cars(flow), vans(flow)
    for step in steps:
        one = STEPS[step](one, other)
    if column is not None:
        one = one.select("ts", **{column: "segment"})
    flow.sink(sink or "result", one)
    if not any(ref.node == "vans" for node in flow.nodes.values() for ref in node.inputs):
        flow.sink("rest", other)
    assert ip.sql(ip.to_sql(flow)).explain() == flow.explain()
