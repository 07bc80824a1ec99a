"""A lane inside Spark's processor: what is computed twice is counted once."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import polars as pl

import interpunct as ip
from interpunct.model.page import Page
from interpunct.spark.hints import Hints
from interpunct.spark.processor import LaneProcessor
from interpunct.spark.program import Program
from interpunct.spark.wire import RAW, Note, Row, to_pandas
from tests.spark.test_cost_of_state import Store

DDL = "k bigint, ts bigint"


def windows() -> ip.Flow:
    flow = ip.Flow("windows")
    rows = flow.source("rows", DDL, time=ip.external("ts", ip.bounds(skew=0), ets="never"))
    flow.sink("out", rows.aggregate(by="k", every=10, n="count(*)", name="count"))
    return flow


def test_a_batch_that_is_computed_again_is_counted_once(tmp_path: Path) -> None:
    """Spark forgets what the first attempt wrote; the worker and the files beside the checkpoint
    do not."""
    hints = Hints(str(tmp_path / "interpunct"))
    program = Program.of(windows().graph, 1, hints)
    (lane,), schema = program.lane_ids, program.graph.sources[0].outputs[0].schema
    processor = LaneProcessor(program, 0)

    def attempt(store: Store, ticks: range) -> None:
        frame = pl.DataFrame({"k": [t % 2 for t in ticks], "ts": list(ticks)})
        seen = Note("rows", 0, frame.height, ticks[-1], ticks[0])
        facts = Row.of_notes(lane, 0, [seen])
        page = Row.of_page(lane, 0, Page(schema, frame), RAW + "rows")
        processor.init(SimpleNamespace(getMapState=lambda *_: store))  # type: ignore[arg-type]
        given = to_pandas([facts, page]).assign(now=1)
        list(processor.handleInputRows((lane,), iter([given]), None))

    committed = Store()
    attempt(committed, range(20))
    attempt(Store(dict(committed.values)), range(20, 40))
    attempt(committed, range(20, 40))
    found = hints.vitals()
    assert found.sources["rows"].rows == 40
    assert found.operators["count"].made[0] == 2 * 4, "four windows, two keys"
