"""Bad input is refused with an error that says where, what was expected, what came, what to do;
or, where data is bad and not the program, it leaves by the late output with its reason."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import polars as pl
import pytest

import interpunct as ip
from interpunct.engine.run import Engine
from interpunct.flow.graph import Graph
from interpunct.flow.nodes import Ref, SelectNode, SinkNode, SourceNode
from interpunct.model.errors import (
    ExpressionError,
    FeedError,
    FlowError,
    PageError,
    PatternError,
    SchemaError,
)
from interpunct.model.expression import predicate
from interpunct.model.late import Reason

SCHEMA = "item bigint, ts timestamp, price double"
SEQUENCE = "k bigint, ts bigint"


def bids(flow: ip.Flow | None = None, name: str = "bids") -> Any:
    return (flow or ip.Flow("auction")).source(name, SCHEMA, time=ip.external("ts", ordered=True))


def says(error: pytest.ExceptionInfo[ip.InterpunctError], where: str, *parts: str) -> None:
    """The error names the place, has all four parts, and mentions these."""
    assert error.value.where.startswith(where)
    text = str(error.value)
    assert text == (
        f"{error.value.where}: expected {error.value.expected}, got {error.value.got}. "
        f"{error.value.fix}"
    )
    assert error.value.fix
    for part in parts:
        assert part in text


# Names and types --------------------------------------------------------------------------------


def test_unknown_column_in_where() -> None:
    with pytest.raises(SchemaError) as error:
        bids().where("prize > 3")
    says(error, "where 'where_1'", "item, ts, price", "'prize'", "Did you mean 'price'?")


def test_unknown_column_in_aggregate_by() -> None:
    with pytest.raises(SchemaError) as error:
        bids().aggregate(by="itme", every="1m", n="count(*)")
    says(error, "aggregate 'aggregate_1'", "item, ts, price", "'itme'")


def test_unknown_column_in_an_aggregate() -> None:
    with pytest.raises(SchemaError) as error:
        bids().aggregate(every="1m", best="max(prize)")
    says(error, "aggregate 'aggregate_1'", "'prize'")


def test_unknown_join_key() -> None:
    flow = ip.Flow("auction")
    with pytest.raises(SchemaError) as error:
        bids(flow).join(bids(flow, "asks"), on="person", within="1m")
    says(error, "join 'join_1', input 0", "item, ts, price", "'person'")


def test_a_join_without_a_window() -> None:
    flow = ip.Flow("auction")
    with pytest.raises(FlowError) as error:
        bids(flow).join(bids(flow, "asks"), on="item")
    says(error, "join 'join_1'", "how far apart in time", "no length of time", "within='20s'")


def test_a_join_with_its_key_where_streams_are_named() -> None:
    flow = ip.Flow("auction")
    with pytest.raises(FlowError) as error:
        bids(flow).join(bids(flow, "asks"), "item", "left", within="1m")  # type: ignore[arg-type]
    says(error, "join 'join_1'", "streams", "'item'", "on='key'")


def test_unknown_time_attribute() -> None:
    with pytest.raises(SchemaError) as error:
        ip.Flow("f").source("bids", SCHEMA, time=ip.external("at", ordered=True))
    says(error, "source 'bids'", "item, ts, price", "'at'")


def test_a_time_attribute_that_is_no_time() -> None:
    with pytest.raises(SchemaError) as error:
        ip.Flow("f").source("bids", SCHEMA, time=ip.external("price", ordered=True))
    says(error, "source 'bids', time attribute", "timestamp", "double", "'price'")


def test_a_predicate_that_is_not_boolean() -> None:
    with pytest.raises(SchemaError) as error:
        bids().where("price + 1")
    says(error, "where 'where_1'", "a boolean", "double", "price + 1")


def test_an_expression_that_cannot_be_parsed() -> None:
    with pytest.raises(ExpressionError) as error:
        bids().where("price >")
    says(error, "where 'where_1'", "price >")


def test_a_feed_column_of_the_wrong_type() -> None:
    flow = ip.Flow("f")
    flow.sink("out", bids(flow))
    frame = pl.DataFrame(
        {"item": ["one"], "ts": [datetime(2024, 5, 1, tzinfo=UTC)], "price": [1.0]}
    )
    with pytest.raises(FeedError) as error:
        flow.run({"bids": frame}, clock=ip.ScriptedClock())
    says(error, "feed of source 'bids'", "bigint", "'item'", "string", "Cast")


def test_a_feed_without_a_column() -> None:
    flow = ip.Flow("f")
    flow.sink("out", bids(flow))
    with pytest.raises(FeedError) as error:
        flow.run({"bids": pl.DataFrame({"item": [1]})}, clock=ip.ScriptedClock())
    says(error, "feed of source 'bids'", "a column 'ts'", "columns item")


def test_feed_rows_that_do_not_fit() -> None:
    flow = ip.Flow("f")
    flow.sink("out", bids(flow))
    with pytest.raises(FeedError) as error:
        flow.run({"bids": [(1, "yesterday", 2.0)]}, clock=ip.ScriptedClock())
    says(error, "feed of source 'bids', row 0", "timestamp in 'ts'", "'yesterday' (str)")


def test_a_feed_that_is_no_data() -> None:
    flow = ip.Flow("f")
    flow.sink("out", bids(flow))
    with pytest.raises(FeedError) as error:
        flow.run({"bids": "bids.csv"}, clock=ip.ScriptedClock())
    says(error, "feed of source 'bids'", "a frame", "str")


def test_a_missing_feed_and_an_unknown_one() -> None:
    flow = ip.Flow("f")
    flow.sink("out", bids(flow))
    with pytest.raises(FeedError) as error:
        flow.run({}, clock=ip.ScriptedClock())
    says(error, "run", "['bids']", "no feed for ['bids']", "feeds=")
    with pytest.raises(FeedError) as error:
        flow.run({"bids": [], "asks": []}, clock=ip.ScriptedClock())
    says(error, "run", "feeds for ['asks']")


def test_an_arrival_column_that_is_not_sorted() -> None:
    flow = ip.Flow("f")
    flow.sink("out", flow.source("s", SEQUENCE, time=ip.external("ts", ordered=True)))
    frame = pl.DataFrame({"k": [1, 2], "ts": [1, 2], "arrival": [5, 4]})
    with pytest.raises(FeedError) as error:
        flow.run({"s": ip.feed(frame, arrival="arrival")}, clock=ip.ScriptedClock())
    says(error, "feed of source 's'", "never decrease", "disorder", "frame.sort('arrival')")


# Data: the late output --------------------------------------------------------------------------


def engine_of(time: Any, schema: str = SEQUENCE) -> Engine:
    flow = ip.Flow("f")
    flow.sink("out", flow.source("s", schema, time=time))
    return Engine(flow.graph, ip.ScriptedClock())


def late_of(engine: Engine, *rows: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """(time, reason, lateness) of what these tuples add to the late output."""
    engine.late.clear()
    engine.feed("s", ip.Page.of_rows(engine.graph.sources[0].raw, rows))
    engine.settle()
    frames = [f.select("ts", "_reason", "_lateness") for f in engine.late.get("s", [])]
    return [row for frame in frames for row in frame.rows()]


def test_a_null_time_goes_to_the_late_output() -> None:
    engine = engine_of(ip.external("ts", ordered=True))
    assert late_of(engine, (1, 1), (2, None)) == [(None, Reason.NULL_TIME.value, None)]


def test_an_absurd_time_goes_to_the_late_output_and_does_not_move_time() -> None:
    engine = engine_of(ip.external("ts", ordered=True), "k bigint, ts timestamp")
    raw = engine.graph.sources[0].raw
    absurd = pl.DataFrame({"k": [1], "ts": [10**18]}).cast({"ts": pl.Datetime("us", "UTC")})
    engine.feed("s", ip.Page(raw, absurd))
    engine.settle()
    (frame,) = engine.late["s"]
    assert frame["_reason"].to_list() == [Reason.ABSURD_TIME.value]
    assert late_of(engine, (2, datetime(2024, 5, 1, tzinfo=UTC))) == []


def test_an_absurd_sequence_number_goes_to_the_late_output() -> None:
    engine = engine_of(ip.external("ts", ordered=True))
    assert [row[:2] for row in late_of(engine, (1, 2**62), (2, -(2**63)))] == [
        (2**62, Reason.ABSURD_TIME.value),
        (-(2**63), Reason.ABSURD_TIME.value),
    ]


def test_a_tuple_out_of_order_on_a_stream_declared_ordered() -> None:
    engine = engine_of(ip.external("ts", ordered=True))
    assert late_of(engine, (1, 10), (2, 7), (3, 10)) == [(7, Reason.DISORDER.value, 3)]


def test_a_tuple_behind_its_own_streams_bound() -> None:
    engine = engine_of(ip.external("ts", bounds=ip.bounds(skew=2)))
    assert late_of(engine, (1, 10), (2, 9), (3, 8)) == [(8, Reason.LATE.value, 0)]


def test_a_tuple_exactly_the_delay_later_is_in_time_and_one_after_that_is_not() -> None:
    time = ip.external("ts", bounds=ip.bounds(delay=10, skew=0))
    engine = engine_of(time)
    assert late_of(engine, (1, 100)) == []
    engine.clock.wait_until(10)
    assert late_of(engine, (2, 50), (3, 60)) == []
    engine.clock.wait_until(11)
    assert late_of(engine, (4, 100), (5, 101)) == [(100, Reason.LATE.value, 0)]


def test_a_tuple_that_breaks_a_punctuation_does_not_make_those_behind_it_late() -> None:
    engine = engine_of(ip.external("ts", ordered=True))
    raw = engine.graph.sources[0].raw
    engine.feed("s", ip.Page(raw, raw.empty(), (ip.Punctuation.parse("[k=1]", raw),)))
    assert late_of(engine, (1, 90), (2, 6)) == [(90, Reason.PUNCTUATED.value, None)]


def test_a_tuple_that_breaks_the_feeds_own_punctuation() -> None:
    engine = engine_of(ip.external("ts", ordered=True))
    raw = engine.graph.sources[0].raw
    promise = ip.Punctuation.parse("[k=1]", raw)
    engine.feed("s", ip.Page(raw, raw.empty(), (promise,)))
    assert late_of(engine, (1, 5), (2, 6)) == [(5, Reason.PUNCTUATED.value, None)]


def test_a_tuple_behind_the_feeds_own_heartbeat() -> None:
    engine = engine_of(ip.external("ts", ordered=True))
    raw = engine.graph.sources[0].raw
    engine.feed("s", ip.Page(raw, raw.empty(), (ip.Punctuation.parse("[ts ≤ 100]", raw),)))
    assert late_of(engine, (1, 90), (2, 101)) == [(90, Reason.LATE.value, 10)]


def test_a_tuple_behind_a_heartbeat_the_source_gave_on_demand() -> None:
    time = ip.external("ts", bounds=ip.bounds(skew="4us"))
    engine = engine_of(time, "k bigint, ts timestamp")
    late_of(engine, (1, datetime(1970, 1, 1, tzinfo=UTC)))
    source: Any = engine.operators["s"]
    engine.clock.wait_until(20)
    source.on_demand(16)  # t + τ − δ = 0 + 20 − 4
    moment = datetime(1970, 1, 1, 0, 0, 0, 10, tzinfo=UTC)
    assert late_of(engine, (2, moment)) == [(moment, Reason.LATE.value, 6e-6)]


# Graphs -----------------------------------------------------------------------------------------


def test_a_graph_with_a_cycle() -> None:
    source = SourceNode("s", (), (), ip.Schema.of(SEQUENCE), ip.external("ts", ordered=True))
    stream = source.outputs[0]
    test = predicate("k > 0", stream.schema, "where")
    one = SelectNode("one", (Ref("two"),), (stream,), test)
    two = SelectNode("two", (Ref("one"),), (stream,), test)
    graph = Graph("loop", [source, one, two, SinkNode("out", (Ref("two"),), (stream,))])
    with pytest.raises(FlowError) as error:
        graph.checked()
    says(error, "flow 'loop'", "without cycles", "one → two → one", "feedback")


def test_an_operator_that_leads_nowhere_is_left_out() -> None:
    flow = ip.Flow("auction")
    stream = bids(flow)
    flow.sink("out", stream)
    stream.where("price > 3", name="forgotten").where("price > 4", name="too")
    with pytest.warns(UserWarning, match="'forgotten', 'too' not run.*flow.sink") as told:
        result = flow.run({"bids": [(0, 7, 5)]}, clock=ip.ScriptedClock())
    assert result["out"].height == 1
    assert {w.filename for w in told} == {__file__}
    with pytest.warns(UserWarning, match="not run"):
        assert "forgotten" not in flow.explain()


def test_a_source_that_leads_nowhere() -> None:
    flow = ip.Flow("auction")
    flow.sink("out", bids(flow))
    flow.source("others", "k bigint, ts bigint", time=ip.external("ts")).where(
        "k > 3", name="tried"
    )
    with pytest.warns(UserWarning, match="'tried' not run"), pytest.raises(FlowError) as error:
        flow.run({"bids": [], "others": []}, clock=ip.ScriptedClock())
    says(error, "flow 'auction'", "lead to a sink", "'others' unconnected", "flow.sink")


def test_a_flow_without_a_sink() -> None:
    flow = ip.Flow("auction")
    bids(flow)
    with pytest.raises(FlowError) as error:
        flow.explain()
    says(error, "flow 'auction'", "one sink", "1 sources and 0 sinks")


def test_two_nodes_of_one_name() -> None:
    flow = ip.Flow("auction")
    bids(flow)
    with pytest.raises(FlowError) as error:
        bids(flow)
    says(error, "flow 'auction'", "'bids' again", "name=")


def test_a_union_of_different_schemas() -> None:
    flow = ip.Flow("f")
    other = flow.source("other", SEQUENCE, time=ip.external("ts", ordered=True))
    with pytest.raises(FlowError) as error:
        flow.union(bids(flow), other)
    says(error, "union 'union_1', input 1", SCHEMA, SEQUENCE, "select")


def test_a_merge_of_a_disordered_stream() -> None:
    flow = ip.Flow("f")
    time = ip.external("ts", bounds=ip.bounds(skew="1s"))
    streams = [flow.source(n, SCHEMA, time=time) for n in "ab"]
    with pytest.raises(FlowError) as error:
        flow.merge(*streams)
    says(error, "merge 'merge_1', input 0", "in time order", "disordered", "Sort")


def test_a_slide_longer_than_its_window() -> None:
    with pytest.raises(FlowError) as error:
        bids().aggregate(every="2m", size="1m", n="count(*)")
    says(error, "window", "no longer than the window", "120000000 > 60000000", "vanish")


def test_a_slide_longer_than_its_tuple_window() -> None:
    with pytest.raises(FlowError) as error:
        bids().aggregate(rows=2, slide=3, n="count(*)")
    says(error, "aggregate 'aggregate_1'", "slide ≤ rows", "rows=2, slide=3")


def test_a_projection_without_the_time() -> None:
    with pytest.raises(FlowError) as error:
        bids().select("item")
    says(error, "project 'select_1'", "'ts'", "Add ts, or name it anew")


# Patterns and pages -----------------------------------------------------------------------------


def test_a_malformed_pattern_text_shows_the_place() -> None:
    with pytest.raises(PatternError) as error:
        ip.Pattern.parse("[item=3, price ≤ ]", ip.Schema.of(SCHEMA))
    says(error, "pattern text, column 18", "']'", "[item=3, price ≤ ]\n                     ^")


def test_a_pattern_with_too_few_entries() -> None:
    with pytest.raises(PatternError) as error:
        ip.Pattern.parse("[3, *]", ip.Schema.of(SCHEMA))
    says(error, "pattern text, column 6", "3 entries", "']'")


def test_page_bytes_that_are_no_page() -> None:
    with pytest.raises(PageError) as error:
        ip.Page.from_ipc(b"not arrow at all")
    says(error, "page", "Arrow IPC", "16 bytes", "Page.to_ipc")


def test_page_bytes_cut_short() -> None:
    data = ip.Page.of_rows(ip.Schema.of(SEQUENCE), [(1, 2)]).to_ipc()
    for length in range(len(data)):
        try:
            page = ip.Page.from_ipc(data[:length])
        except PageError:
            continue
        assert page.height == 1  # only the end-of-stream mark is missing


def test_words_that_are_functions_need_backticks_as_attributes() -> None:
    with pytest.raises(SchemaError, match="backticks"):
        ip.Schema.of("current_date bigint")
    schema = ip.Schema.of("`current_date` bigint, m decimal(10)")
    assert schema.ddl == "`current_date` bigint, m decimal(10,0)"
    assert ip.Schema.of(schema.ddl).names == schema.names


def test_count_of_nothing_says_so() -> None:
    flow = ip.Flow("f")
    rows = flow.source("rows", "ts bigint", time=ip.external("ts"))
    with pytest.raises(ip.InterpunctError, match="Say of what"):
        rows.aggregate(every=10, n="count()")
