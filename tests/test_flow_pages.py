"""A whole flow gives the same whatever its pages, and goes on after a restart as if without one."""

from __future__ import annotations

from collections import Counter
from typing import Any

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

import interpunct as ip
from interpunct.engine.run import Engine
from interpunct.operators.state import DictState

ROWS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(-2, 6)), max_size=12)


def flow() -> ip.Flow:
    """Select, sliding aggregate, left join, split and union in one graph."""
    flow = ip.Flow("everything")
    a, b = (
        flow.source(n, "k bigint, ts bigint, v bigint", time=ip.external("ts", ordered=True))
        for n in ("a", "b")
    )
    wide = a.where("v > 0").aggregate(by="k", every=3, size=7, n="count(*)", s="sum(v)")
    low, high = b.split("v < 3")
    joined = low.join(wide, on="k", within=(4, 2), how="left")
    flow.sink("joined", joined)
    flow.sink("united", flow.union(high.select("k", "ts"), wide.select("k", "ts")))
    return flow


def frame(rows: list[tuple[int, int, int]]) -> pl.DataFrame:
    """(key, step in time, value) as a stream in order."""
    schema = {"k": pl.Int64, "step": pl.Int64, "v": pl.Int64}
    steps = pl.DataFrame(rows, schema=schema, orient="row")
    return steps.select("k", pl.col("step").cum_sum().alias("ts"), "v")


def bags(result: ip.Result) -> dict[str, Counter[Any]]:
    return {name: Counter(frame.rows()) for name, frame in result.sinks.items()}


@settings(max_examples=20)
@given(one=ROWS, two=ROWS, size=st.integers(1, 5))
def test_the_size_of_pages_makes_no_difference(one: Any, two: Any, size: int) -> None:
    feeds = {"a": frame(one), "b": frame(two)}
    cut = {name: ip.feed(data, page_size=size) for name, data in feeds.items()}
    whole = flow().run(feeds, clock=ip.ScriptedClock())
    assert bags(flow().run(cut, clock=ip.ScriptedClock())) == bags(whole)


@settings(max_examples=15)
@given(one=ROWS, two=ROWS, moment=st.integers(0, 12))
def test_a_flow_restored_from_its_state_goes_on_where_it_was(
    one: Any, two: Any, moment: int
) -> None:
    pages = [("a", frame(one)[i : i + 1]) for i in range(len(one))]
    pages += [("b", frame(two)[i : i + 1]) for i in range(len(two))]
    assert _restarted(pages, moment) == _restarted(pages, None)


def _restarted(pages: list[tuple[str, pl.DataFrame]], moment: int | None) -> dict[str, Any]:
    """What reaches the sinks when the engine is rebuilt from bytes after so many pages."""
    state = DictState()
    got: dict[str, Counter[Any]] = {"joined": Counter(), "united": Counter()}

    def build() -> Engine:
        deliver = {n: (lambda f, n=n: got[n].update(f.rows())) for n in got}
        return Engine(flow().graph, ip.ScriptedClock(), deliver=deliver, state=state)

    engine = build()
    raw = engine.graph.sources[0].raw
    for number, (source, rows) in enumerate(pages):
        if number == moment:
            engine.save()
            state.entries = {
                key: ip.Page.from_ipc(value.to_ipc()) if isinstance(value, ip.Page) else value
                for key, value in state.entries.items()
            }
            engine = build()
        engine.feed(source, ip.Page(raw, rows))
        engine.settle()
    for source in ("a", "b"):
        engine.finish(source)
    engine.settle()
    return got
