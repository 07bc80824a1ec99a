"""What a checkpoint remembers of a flow, where tuples go, when the clock ticks: without a JVM."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import interpunct as ip
from interpunct.engine.lane import through_prefix
from interpunct.flow.lane_key import keyed
from interpunct.model.errors import FlowError
from interpunct.progress.adaptive import Adaptive
from interpunct.progress.timestamps import Bounds
from interpunct.spark.clock import ClockReader, WakeFile, Wanted
from interpunct.spark.hints import FOLDER, Hints
from interpunct.spark.lanes import lane_ids, lane_of, spark_partition
from interpunct.spark.program import Program


def averages(every: str = "20s", by: str = "k") -> ip.Flow:
    flow = ip.Flow("averages")
    rows = flow.source(
        "rows", "k bigint, j bigint, ts timestamp, v double", time=ip.external("ts", ordered=True)
    )
    flow.sink("out", rows.aggregate(by=by, every=every, v="avg(v)"))
    return flow


def test_the_same_flow_goes_on_with_its_checkpoint() -> None:
    stored = Program.of(averages().graph, 2).check(0, None)
    assert Program.of(averages().graph, 2).check(0, stored) == stored


@pytest.mark.parametrize(
    ("changed", "lanes", "told"),
    [
        (averages(every="30s"), 2, "was '… rows [every 20s by k: …', is '… rows [every 30s"),
        (averages(by="j"), 2, "lane keys: was 'rows: k', is 'rows: j'"),
        (averages(), 4, "lanes: was '2', is '4'"),
    ],
)
def test_a_changed_flow_is_refused_with_what_changed(
    changed: ip.Flow, lanes: int, told: str
) -> None:
    stored = Program.of(averages().graph, 2).check(0, None)
    with pytest.raises(FlowError) as refused:
        Program.of(changed.graph, lanes).check(0, stored)
    assert told in str(refused.value)
    assert "new checkpoint" in str(refused.value)


def test_of_a_long_description_only_what_changed_is_told() -> None:
    def wide(least: int) -> Program:
        flow = ip.Flow("wide")
        columns = ", ".join(f"a_rather_long_name_{n} double" for n in range(8))
        time = ip.external("ts", ip.bounds(skew="5s"))
        rows = flow.source("rows", f"ts timestamp, v double, {columns}", time=time)
        flow.sink("out", rows.where(f"v > {least}"))
        return Program.of(flow.graph, 2)

    with pytest.raises(FlowError) as refused:
        wide(6).check(0, wide(5).check(0, None))
    told = str(refused.value)
    assert "> 5" in told
    assert "> 6" in told
    assert "a_rather_long_name_0" not in told


def test_bounds_may_be_others_on_the_same_checkpoint() -> None:
    def bounded(bounds: Bounds | Adaptive) -> Program:
        flow = ip.Flow("bounded")
        flow.sink("out", flow.source("rows", "ts timestamp", time=ip.external("ts", bounds)))
        return Program.of(flow.graph, 2)

    stored = bounded(ip.bounds(skew="5s")).check(0, None)
    for bounds in (ip.bounds(delay="1s", skew="9s"), ip.adaptive()):
        assert bounded(bounds).check(0, stored) == stored


def test_another_flow_is_refused_before_it_starts_once_there_is_state(tmp_path: Path) -> None:
    hints = Hints(str(tmp_path / FOLDER))
    made = Program.of(averages().graph, 2, hints)
    hints.remember(0, 7, made.check(0, None))
    other = Program.of(averages(every="30s").graph, 2, hints)
    (tmp_path / "commits").mkdir()
    (tmp_path / "commits" / "6").write_text("v1")
    other.check_start()  # the batch that would have written the state did not finish
    (tmp_path / "commits" / "7").write_text("v1")
    made.check_start()
    with pytest.raises(FlowError, match=r"was '… rows \[every 20s by k"):
        other.check_start()


@pytest.mark.parametrize("lanes", [1, 2, 3, 7, 16])
def test_lanes_fall_on_partitions_of_their_own(lanes: int) -> None:
    assert [spark_partition(n, lanes) for n in lane_ids(lanes)] == list(range(lanes))


def test_the_lane_of_a_key_never_changes() -> None:
    """State depends on these numbers: if this test fails, the hash must be put back."""
    frame = pl.DataFrame(
        {
            "i": [0, 1, -1, None, 2**40],
            "s": ["", "a", "żółć", None, "a"],
            "f": [0.0, -0.0, float("nan"), None, 1.5],
            "b": [True, False, None, True, False],
        }
    )
    assert lane_of(frame, ["i"], 1000).to_list() == [0, 338, 706, 883, 2]
    assert lane_of(frame, ["s"], 1000).to_list() == [0, 823, 956, 883, 823]
    assert lane_of(frame, ["f"], 1000).to_list() == [0, 0, 275, 883, 903]
    assert lane_of(frame, ["i", "s", "b"], 1000).to_list() == [338, 782, 458, 706, 626]
    assert lane_of(frame, [], 1000).to_list() == [0] * 5


@pytest.mark.parametrize(
    "way",
    [
        lambda s: s.with_columns(g="k % 3"),
        lambda s: s.where("v > 0.3").with_columns(h="k + j").select("ts", "v", g="h % 3"),
        lambda s: s.with_columns(h=pl.col("k") % 5).where("h > 1").select("ts", "v", g="h"),
        lambda s: s.with_columns(k="k % 3").select("ts", "v", g="k"),
        lambda s: s.split("v > 0.5")[0].select("ts", "k", w="v").with_columns(g="k % 3"),
    ],
)
def test_a_tuple_has_one_lane_before_and_behind_what_computes_its_key(
    way: Callable[[ip.FlowStream], ip.FlowStream],
) -> None:
    flow = ip.Flow("computed")
    rows = flow.source("rows", "k bigint, j bigint, ts timestamp, v double", ip.external("ts"))
    flow.sink("out", way(rows).aggregate(by="g", rows=9, slide=3, n="count(*)"))
    (target,) = Program.of(flow.graph, 7).targets("rows")
    assert target.keys
    random = np.random.default_rng(1)
    sent = pl.DataFrame(
        {"k": random.integers(0, 9, 60), "j": random.integers(0, 9, 60), "v": random.random(60)}
    ).with_columns(ts=pl.lit(datetime(2026, 1, 1, tzinfo=UTC)).cast(pl.Datetime("us", "UTC")))
    lanes = lane_of(*keyed(flow.graph, target.keys, sent), 7)
    assert lanes.n_unique() > 1
    entered = 0
    for number in range(60):
        tuples = through_prefix(flow.graph, target.prefix, sent[number], Counter())
        own = lane_of(*keyed(flow.graph, target.entry_keys, tuples), 7)
        assert own.to_list() == lanes[number : number + 1].to_list()[: tuples.height]
        entered += tuples.height
    assert entered > 20


def test_the_clock_ticks_once_at_the_start_and_then_only_when_asked(tmp_path: Path) -> None:
    wake = WakeFile(tmp_path / "wake")
    reader = ClockReader({"wake": str(wake.path), "lanes": "[[0, 0]]"})
    start = reader.initialOffset()
    first = reader.latestOffset(start, None)  # type: ignore[arg-type]
    assert first["tick"] > start["tick"]
    assert reader.latestOffset(first, None) == first  # type: ignore[arg-type]
    wake.write(Wanted(first["tick"] + 3_600_000_000))  # an hour ahead: not yet
    assert reader.latestOffset(first, None) == first  # type: ignore[arg-type]
    wake.write(Wanted(first["tick"] + 1))
    assert reader.latestOffset(first, None)["tick"] > first["tick"]  # type: ignore[arg-type]
    wake.write(Wanted())
    assert reader.latestOffset(first, None) == first  # type: ignore[arg-type]
