"""What explain prints, kept as it is: a change of it is a change users see."""

from __future__ import annotations

from pathlib import Path

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
