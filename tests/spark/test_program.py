"""What a checkpoint remembers of a flow, where tuples go, when the clock ticks: without a JVM."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import interpunct as ip
from interpunct.model.errors import FlowError
from interpunct.spark.clock import ClockReader, WakeFile, Wanted
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
    """The flow that `synchronize` makes is not one its user has seen."""

    def bounded(skew: str) -> Program:
        flow = ip.Flow("bounded")
        columns = ", ".join(f"a_rather_long_name_{n} double" for n in range(8))
        time = ip.external("ts", ip.bounds(skew=skew))
        flow.sink("out", flow.source("rows", f"ts timestamp, {columns}", time=time))
        return Program.of(flow.graph, 2)

    with pytest.raises(FlowError) as refused:
        bounded("9s").check(0, bounded("5s").check(0, None))
    told = str(refused.value)
    assert "δ=5s" in told
    assert "δ=9s" in told
    assert "a_rather_long_name_0" not in told


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
