"""What explain prints, kept as it is: a change of it is a change users see."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

import interpunct as ip

GOLDEN = Path(__file__).parent / "golden" / "explain.txt"


def test_explain_is_this_text() -> None:
    flow = ip.Flow("speed-map")
    sensors = flow.source(
        "sensors", "segment bigint, ts timestamp, speed double", ip.external("ts", ordered=True)
    )
    vehicles = flow.source(
        "vehicles",
        "segment bigint, ts timestamp, speed double, vehicle bigint",
        time=ip.external("ts", bounds=ip.bounds(delay="0s", skew="30s")),
    )
    probe = vehicles.where("speed between 0 and 120").aggregate(
        by="segment", every="20s", size="1m", speed="avg(speed)", n="count(*)"
    )
    flow.sink("map", sensors.join(probe, on=["segment"], within="20s", how="left"))
    clean = flow.source("bids", "item bigint", time=ip.internal("at", ets=ip.periodic("100ms")))
    flow.sink("raw", clean)
    assert flow.explain() == GOLDEN.read_text(encoding="utf-8").rstrip("\n")


ALL = "is over all tuples (with by=… it runs in lanes)"
NONE = "in which no plain column of a source is, and none computed of such (one gives lanes)"


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda s, _: s.aggregate(every="20s", n="count(*)"), f"aggregate_1 {ALL}"),
        (lambda s, _: s.aggregate(rows=9, slide=3, n="count(*)"), f"aggregate_1 {ALL}"),
        (lambda s, _: s.slack(10, window="5s"), "slack_1 counts all tuples"),
        (lambda s, t: s.pace(t, within="1m"), "pace_1 compares the times of whole streams"),
        (
            lambda s, _: s.with_columns(g=pl.concat_list("k")).aggregate(
                by="g", every="20s", n="count(*)"
            ),
            f"aggregate_1 goes by g, {NONE}",
        ),
    ],
)  # fmt: skip
def test_explain_says_why_there_is_one_lane(
    make: Callable[[ip.FlowStream, ip.FlowStream], ip.FlowStream], reason: str
) -> None:
    flow = ip.Flow("alone")
    streams = [
        flow.source(name, "k bigint, ts timestamp", time=ip.external("ts", ordered=True))
        for name in "st"
    ]
    flow.sink("out", make(*streams))
    flow.sink("rest", streams[1].where("k > 0"))  # so that both are read
    lines = flow.explain().splitlines()
    assert f"  in one lane because {reason}" in lines


def test_a_stream_that_shares_a_stage_with_others_is_alone_in_its_lane() -> None:
    flow = ip.Flow("two")
    for name, by in (("a", None), ("b", "k")):
        stream = flow.source(name, "k bigint, ts timestamp", ip.external("ts", ordered=True))
        flow.sink(f"of_{name}", stream.aggregate(by=by or (), every="20s", n="count(*)"))
    text = flow.explain()
    assert "stage 0: lanes (all of a in one; b by k)\n  in one lane because aggregate_1" in text
    assert text.count("because") == 1


def test_a_stream_without_a_plain_column_has_one_lane() -> None:
    flow = ip.Flow("nested")
    flow.sink("out", flow.source("s", "a array<int>", time=ip.latent()).where("a is not null"))
    assert "because no plain column reaches out unchanged" in flow.explain()
