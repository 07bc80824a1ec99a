"""Gates in lanes: what Heartbeats section 7 asks of a plan holds when it is cut into stages."""

from __future__ import annotations

from typing import Any

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

import interpunct as ip
from interpunct.engine.lane import Facts, Lane, LaneBatch, exports_of
from interpunct.flow.lane_key import LaneKey
from interpunct.flow.planner import stages
from interpunct.model.page import Page
from interpunct.operators.state import DictState

SECOND = 1_000_000
LANES = 2


def two_keys(heartbeats: str) -> ip.Flow:
    """Figure 5 with a key for each join, so that it takes two stages and S3 paces the first."""
    flow = ip.Flow("keys", heartbeats=heartbeats)
    ddl, time = "k bigint, j bigint, ts timestamp", ip.external("ts", ordered=True, ets="never")
    one, two, three = (flow.source(f"S{i}", ddl, time=time) for i in (1, 2, 3))
    first = one.join(two.select("k", "ts"), on="k", within="2s", name="O1")
    again = first.select("k", "j", ts="joined_at")
    flow.sink("out", again.join(three.select("j", "ts"), on="j", within="2s", name="O2"))
    return flow


def in_lanes(flow: ip.Flow, batches: list[dict[str, pl.DataFrame]]) -> list[tuple[Any, ...]]:
    """The flow's stages in two lanes each, the lane of a tuple being its first key modulo two."""
    graph = flow.graph
    cut = stages(graph)
    exports = exports_of(graph, cut)
    lanes = {
        (s.number, n): Lane(graph, s, LANES, DictState(), exports=exports[s.number])
        for s in cut
        for n in range(LANES)
    }
    rows: list[tuple[Any, ...]] = []
    for number, batch in enumerate(batches):
        inputs = {at: LaneBatch((number + 1) * SECOND) for at in lanes}
        for (stage, n), into in inputs.items():
            for ref, keys in cut[stage].keys.items():
                if ref.node in batch:  # as an ingest does: facts always, pages where there are
                    frame = batch[ref.node]
                    last = frame["ts"].to_physical().max() if frame.height else None
                    into.facts[ref.node] = Facts(frame.height, last)  # type: ignore[arg-type]
                    own = mine(frame, keys, n)
                    into.raw[ref.node] = [own] if own.height else []
        for (stage, n), lane in lanes.items():
            output = lane.run(inputs[stage, n])
            rows += [row for frame in output.sinks.values() for row in frame.rows()]
            for ref, sent in output.onward.items():
                for later in (s for s in cut if ref in s.keys and ref.node not in s.nodes):
                    for m in range(LANES):
                        part = Page(
                            sent.schema, mine(sent.frame, later.keys[ref], m), sent.punctuations
                        )
                        inputs[later.number, m].pages.setdefault(ref, []).append((n, part))
    return rows


def mine(frame: pl.DataFrame, keys: tuple[LaneKey, ...], lane: int) -> pl.DataFrame:
    return frame.filter(pl.col(keys[0].name) % LANES == lane) if keys else frame.filter(lane == 0)


def test_pacers_reach_every_lane_and_need_no_key() -> None:
    cut = stages(two_keys("query").graph)
    assert [{str(r): tuple(map(str, k)) for r, k in s.keys.items()} for s in cut] == [
        {"S1": ("k",), "S2": ("k",), "S3": ()},
        {"S3": ("j",), "select_2": ("j",)},
    ]


@settings(max_examples=10)
@given(data=st.data())
def test_lanes_give_the_same_rows_with_gates_and_without(data: st.DataObject) -> None:
    batches = []
    for number in range(4):
        batch = {}
        for i, name in enumerate(("S1", "S2", "S3")):
            low = 4 * max(0, number - (i == 2))  # S3 is a batch behind
            ticks = sorted(data.draw(st.lists(st.integers(low, low + 3), max_size=4)))
            keys = [data.draw(st.tuples(st.integers(0, 3), st.integers(0, 3))) for _ in ticks]
            rows = [(k, j, t * SECOND) for (k, j), t in zip(keys, ticks, strict=True)]
            frame = pl.DataFrame(
                rows, schema=dict.fromkeys(("k", "j", "ts"), pl.Int64), orient="row"
            )
            batch[name] = frame.with_columns(pl.col("ts").cast(pl.Datetime("us", "UTC")))
        batches.append(batch)
    end = pl.DataFrame({"k": [9], "j": [9], "ts": [10**12]})
    last = end.with_columns(pl.col("ts").cast(pl.Datetime("us", "UTC")))
    batches.append(dict.fromkeys(("S1", "S2", "S3"), last))  # moves time past all before it
    plain, gated = (in_lanes(two_keys(mode), batches) for mode in ("operator", "query"))
    assert finished(plain) == finished(gated)


def finished(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """The results that the tuples with which all streams end have no part in."""
    return sorted((row for row in rows if row[0] != 9), key=repr)
