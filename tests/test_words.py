"""What a user of PySpark writes on a stream works, or is answered with the word that does."""

from __future__ import annotations

import copy
import pickle
import re
from functools import partial

import polars as pl
import pytest

import interpunct as ip
from interpunct.flow.words import MEANT, meant
from interpunct.model.errors import ExpressionError, FlowError, WordError


def two(flow: ip.Flow, ddl: str = "item bigint, ts bigint, price double") -> list[ip.FlowStream]:
    spec = ip.external("ts", ordered=True)
    return [flow.source(name, ddl, time=spec) for name in ("asks", "bids")]


def united(by_stream: bool, **options: object) -> ip.Flow:
    flow = ip.Flow("market")
    a, b = two(flow)
    c = flow.source("more", "item bigint, ts bigint, price double", ip.external("ts", ordered=True))
    both = a.union(b, c, **options) if by_stream else flow.union(a, b, c, **options)  # type: ignore[arg-type]
    flow.sink("out", both.where("price > 0"))
    return flow


@pytest.mark.parametrize("options", [{}, {"in_order": False}, {"name": "all"}])
def test_the_union_of_a_stream_is_that_of_the_flow(options: dict[str, object]) -> None:
    one, other = united(True, **options), united(False, **options)
    assert one.explain() == other.explain()
    assert ip.to_sql(one) == ip.to_sql(other)
    assert ip.sql(ip.to_sql(one), name="market").explain() == one.explain()
    rows = pl.DataFrame({"item": [1, 2], "ts": [1, 2], "price": [0.5, -1.0]})
    feeds = dict.fromkeys(("asks", "bids", "more"), rows)
    assert one.run(feeds, clock=ip.ScriptedClock())["out"].height == 3


def test_the_union_of_a_stream_refuses_what_that_of_the_flow_does() -> None:
    a, b = two(ip.Flow("market"))
    with pytest.raises(FlowError, match=r"union 'union_1': expected two or more streams, got 1"):
        a.union()
    with pytest.raises(FlowError, match=r"Give them one shape first"):
        a.union(b.select("ts"))
    with pytest.raises(FlowError, match=r"Build both in one flow"):
        a.union(two(ip.Flow("other"))[0])


def test_a_word_of_pyspark_is_answered_with_ours() -> None:
    a, _ = two(ip.Flow("market"))
    with pytest.raises(AttributeError) as error:
        a.filter("price > 0")  # type: ignore[attr-defined]
    assert isinstance(error.value, WordError)
    assert str(error.value) == (
        "stream 'asks': expected a word of streams, got 'filter'. Write stream.where('price > 0')."
    )
    for word in MEANT:
        with pytest.raises(WordError, match=word) as told:
            getattr(a, word)
        assert told.value.fix == f"Write {meant(word, a.schema)}."


@pytest.mark.parametrize(
    "ddl",
    [
        "item bigint, ts bigint, price double",
        "ts timestamp, name string, n int",
        "name string, ts bigint",
    ],
)
def test_what_is_to_be_written_names_columns_that_are_there_and_builds(ddl: str) -> None:
    for word in MEANT:
        flow = ip.Flow("market")
        stream, other = two(flow, ddl)
        instead = meant(word, stream.schema)
        code = re.split(r", (?=with|which|one)", instead)[0]
        if "…" not in code and not code.startswith("flow."):
            eval(code, {"stream": stream, "a": stream, "b": other, "flow": flow, "ip": ip})


def test_no_word_of_ours_is_said_to_be_missing_and_what_is_meant_is_there() -> None:
    assert not [word for word in MEANT if hasattr(ip.FlowStream, word)]
    for instead in MEANT.values():
        on, _, word = instead.partition("(")[0].rpartition(".")
        owner = {"flow": ip.Flow, "stream": ip.FlowStream, "a": ip.FlowStream}.get(on)
        assert owner is None or hasattr(owner, word), instead


def test_other_words_are_missing_as_they_are_elsewhere() -> None:
    a, _ = two(ip.Flow("market"))
    with pytest.raises(AttributeError, match=r"'FlowStream' object has no attribute 'pivot'"):
        a.pivot  # type: ignore[attr-defined]
    assert not hasattr(a, "filter")
    assert not hasattr(a, "pivot")
    assert getattr(a, "filter", None) is None


def test_an_error_behind_a_property_stays_what_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(stream: ip.FlowStream) -> object:
        return stream.flow.nothing  # type: ignore[attr-defined]

    monkeypatch.setattr(ip.FlowStream, "stream", property(broken))
    with pytest.raises(AttributeError, match="nothing"):
        two(ip.Flow("market"))[0].schema


def test_streams_are_copied_and_pickled_as_before() -> None:
    a, _ = two(ip.Flow("market"))
    assert copy.copy(a) == a
    assert copy.deepcopy(a).schema.names == a.schema.names
    assert pickle.loads(pickle.dumps(a)).schema.names == a.schema.names


def test_the_error_can_be_pickled() -> None:
    error = WordError("stream 'a'", "a word of streams", "'filter'", "Write stream.where(…).")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def people() -> ip.FlowStream:
    return two(ip.Flow("people"), "name string, ts bigint, born bigint")[0]


def test_a_column_may_be_called_name() -> None:
    stream = people()
    assert stream.with_columns(age="ts - born").schema.names == ("name", "ts", "born", "age")
    assert stream.with_columns("upper(name) as name").schema.names == ("name", "ts", "born")
    assert stream.select("ts", "name").schema.names == ("ts", "name")
    assert stream.select("ts", "upper(name) AS `full name`").schema.names == ("ts", "full name")
    first = stream.aggregate("first(name) as name", by="born", every=10, n="count(*)")
    assert first.schema.names == ("born", "ts", "name", "n")


def test_an_operator_is_not_named_when_a_column_was_meant() -> None:
    stream = people()
    for name in ("born", "upper(name)"):
        for make in (stream.select, stream.with_columns, partial(stream.aggregate, every=10)):
            with pytest.raises(
                FlowError, match=r"name=… what the operator is to be called"
            ) as told:
                make("ts", name=name)
            assert told.value.fix == f"For a column called 'name' write '{name} as name'."
    assert stream.select("ts", name="the time").ref.node == "the time"


def test_an_expression_that_is_given_no_name_asks_for_one() -> None:
    with pytest.raises(ExpressionError, match=r"Write 'ts - born as total', or total='ts - born'"):
        people().select("ts", "ts - born")


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (
            lambda a, b: a.where(lambda row: True),
            r"SQL as text, or a Polars .* a function",
        ),
        (lambda a, b: a.aggregate(every=1, n=max), r"Write it as text: .*'max\(item\)'"),
        (lambda a, b: a.price, r"got its column 'price'\. Name columns in text: stream\.where"),
        (lambda a, b: a["price"], r"got \['price'\]\. Name columns in text"),
        (lambda a, b: a.join(b, on="a.item = b.item", within=5), r"got 'a\.item = b.*on='key'"),
        (lambda a, b: a.join(b, on="itm", within=5), r"Did you mean 'item'\?"),
        (
            lambda a, b: a.aggregate(by="window(ts, 5)", every=5, n="count(*)"),
            r"Windows are every=",
        ),
        (lambda a, b: a.flow.source("c", {"k": "int"}), r"its columns as Spark DDL, got a dict"),
    ],
)
def test_columns_are_named_in_text(wrong, says) -> None:
    with pytest.raises((ip.InterpunctError, WordError), match=says):
        wrong(*two(ip.Flow("market")))


def test_a_column_of_pyspark_is_called_so() -> None:
    column = type("Column", (), {"__module__": "pyspark.sql.classic.column"})
    with pytest.raises(ExpressionError, match=r"got PySpark's Column\. Write it as text"):
        two(ip.Flow("market"))[0].where(column())  # type: ignore[arg-type]


def test_a_result_is_read_like_a_dict() -> None:
    flow = ip.Flow("market")
    flow.sink("out", flow.union(*two(flow)))
    result = flow.run({"asks": [(1, 2, 0.5)], "bids": []}, clock=ip.ScriptedClock())
    assert {name: frame.height for name, frame in result.items()} == {"out": 1}
    assert dict(result)["out"].equals(result["out"])  # type: ignore[call-overload]
