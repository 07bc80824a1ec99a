"""Columns may be called anything that Spark lets them be called; what is called wrongly is told."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

import interpunct as ip
from interpunct.flow.words import MEANT, meant
from interpunct.model.errors import ExpressionError, FeedError, FlowError, SchemaError

ODD = ["user id", "case", "select", "values", "not", "if", "current_date", "null", "true", "a.b",
       "user-id", "2nd", "läng", "a`b", "name", "order", "timestamp"]  # fmt: skip


def written(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def visits(flow: ip.Flow, column: str, source: str = "visits") -> ip.FlowStream:
    ddl = f"{written(column)} string, ts bigint"
    return flow.source(source, ddl, time=ip.external("ts", ordered=True))


WAYS: dict[str, Callable[[ip.Flow, str], ip.FlowStream]] = {
    "as it is": visits,
    "where": lambda f, c: visits(f, c).where(f"{written(c)} = 'v'"),
    "select": lambda f, c: visits(f, c).select("ts", c),
    "select as": lambda f, c: visits(f, c).select("ts", f"upper({written(c)}) as up", c),
    "with_columns": lambda f, c: visits(f, c).with_columns(z="1 + 1"),
    "aggregate": lambda f, c: visits(f, c).aggregate(by=c, every=5, n="count(*)"),
    "join": lambda f, c: visits(f, c).join(visits(f, c, "more"), on=c, within=5),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("column", ODD)
def test_a_column_of_any_name_keeps_its_values_and_reads_back_as_sql(column: str, way: str) -> None:
    flow = ip.Flow("site")
    flow.sink("out", WAYS[way](flow, column))
    feeds = {source.name: [("v", 1)] for source in flow.graph.sources}
    assert flow.run(feeds, clock=ip.ScriptedClock())["out"][column].to_list() == ["v"]
    again = ip.sql(ip.to_sql(flow), name="site")
    assert again.run(feeds, clock=ip.ScriptedClock())["out"][column].to_list() == ["v"]


@pytest.mark.parametrize("column", ["user id", "läng", "a`b"])
def test_fields_of_structs_too(column: str) -> None:
    ddl = f"who struct<{written(column)}:string>, ts bigint"
    schema = ip.Schema.of(ddl, time="ts")
    assert ip.Schema.of(schema.ddl, time="ts") == schema
    page = ip.Page.of_rows(schema, [({column: "v"}, 1)])
    assert ip.Page.from_ipc(page.to_ipc()).frame.equals(page.frame)


@pytest.mark.parametrize("column", ["user id", "2nd", "läng"])
def test_what_is_to_be_written_instead_quotes_them(column: str) -> None:
    stream = visits(ip.Flow("site"), column)
    for word in ("filter", "withColumn", "groupBy", "count"):
        code = meant(word, stream.schema)
        assert word in MEANT
        eval(code, {"stream": stream})


def refused(kind: type[ip.InterpunctError], make: Callable[[], object], *said: str) -> None:
    with pytest.raises(kind) as error:
        make()
    for part in said:
        assert part in str(error.value)


def test_names_that_operators_give_are_said_to_be_theirs() -> None:
    refused(SchemaError, lambda: visits(ip.Flow("f"), "_reason"), "late tuples get an attribute")
    refused(SchemaError, lambda: WAYS["join"](ip.Flow("f"), "joined_at"), "results of a join")
    refused(SchemaError, lambda: WAYS["aggregate"](ip.Flow("f"), "as_of"), "of open windows")


def test_ddl_that_cannot_be_read_is_answered_with_backticks() -> None:
    for ddl in ("user id int", "a b c int", "a int(", "`d`x` date"):
        refused(SchemaError, lambda ddl=ddl: ip.Schema.of(ddl), repr(ddl), "backticks")


def test_a_name_that_is_nearly_one_is_answered_with_it() -> None:
    stream = visits(ip.Flow("site"), "visitor")
    refused(SchemaError, lambda: stream.aggregate(by="visiter", every=5, n="count(*)"),
            "Did you mean 'visitor'?")  # fmt: skip
    refused(SchemaError, lambda: stream.where("Visitors = 'v'"), "Did you mean 'visitor'?")
    refused(SchemaError, lambda: stream.where("zzz = 'v'"), "Check the spelling.")


def test_what_sql_has_and_this_has_not_is_answered_with_a_column_it_reads() -> None:
    stream = visits(ip.Flow("site"), "visitor")
    refused(ExpressionError, lambda: stream.with_columns(h="hash(visitor)"), "pl.col('visitor')")
    refused(ExpressionError, lambda: stream.with_columns(h="now()"), "pl.col('visitor')")


def test_time_and_bounds_are_asked_for_by_the_words_to_write() -> None:
    flow, ddl = ip.Flow("site"), "visitor string, ts timestamp"
    said: Any = "ts"
    refused(FlowError, lambda: flow.source("a", ddl, time=said), "time=ip.external('ts', bounds=")
    for bounds in ("5s", 5):
        given: Any = bounds
        refused(FlowError, lambda given=given: ip.external("ts", bounds=given),
                f"Write bounds=ip.bounds(skew={bounds!r})")  # fmt: skip
    refused(FlowError, lambda: ip.bounds("5s"), "skew=…, delay=… or both, got '5s' without a name")
    refused(SchemaError, lambda: flow.source("a", ddl, time=ip.external("visitor")),
            "source 'a', time attribute", "in attribute 'visitor', got string")  # fmt: skip


def test_joins_feeds_and_sinks_that_are_called_wrongly() -> None:
    flow = ip.Flow("site")
    a, b = visits(flow, "visitor"), visits(flow, "visitor", "more")
    refused(FlowError, lambda: a.join(b, on="visitor", within=5, how="outer"),
            "how='inner' or how='left'", "2 streams, how='outer'", "b.join(a")  # fmt: skip
    flow.sink("out", a.union(b))
    refused(FlowError, lambda: flow.sink("out", a), "'out' again", "sinks by what comes first")
    rows = [("v", 1)]
    refused(FeedError, lambda: flow.run({"visits": rows, "mroe": rows}),
            "no feed for ['more'] and feeds for ['mroe']")  # fmt: skip


def test_a_small_number_is_no_length_of_time_where_time_is_a_timestamp() -> None:
    flow = ip.Flow("site")
    spec = ip.external("ts", ordered=True)
    a, b = (flow.source(name, "visitor string, ts timestamp", spec) for name in "ab")
    for make in (
        lambda: a.aggregate(every=5, n="count(*)"),
        lambda: a.aggregate(every="5s", size=20, n="count(*)"),
        lambda: a.join(b, on="visitor", within=5),
    ):
        refused(ExpressionError, make, "counts microseconds", "us'.")
    few = timedelta(microseconds=5)
    flow.sink("counts", a.aggregate(every=few, n="count(*)"))
    flow.sink("pairs", a.join(b, on="visitor", within=few))
    flow.sink("seconds", a.aggregate(every=5_000_000, n="count(*)"))
    assert ip.sql(ip.to_sql(flow), name="site").explain() == flow.explain()


def test_streams_of_another_flow_are_refused_wherever_streams_are_read() -> None:
    """A name is another stream there: what was read would be this flow's own."""
    mine, other = ip.Flow("mine"), ip.Flow("other")
    a, b = visits(mine, "visitor"), visits(other, "visitor")
    reads: list[Callable[[], object]] = [
        lambda: a.join(b, on="visitor", within=5),
        lambda: a.pace(b, within=5),
        lambda: a.union(b),
        lambda: mine.merge(a, b),
        lambda: mine.lmerge(a, b),
        lambda: mine.sink("out", b),
    ]
    for read in reads:
        refused(FlowError, read, "streams of flow 'mine', got one of 'other'. Build both in one")
    strange: Any = "visits"
    refused(FlowError, lambda: mine.sink("out", strange), "streams of flow 'mine', got a str")
