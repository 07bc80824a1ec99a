"""A number without a unit is no length of time where time is a timestamp."""

from __future__ import annotations

import pytest

import interpunct as ip
from interpunct.model.errors import FlowError
from tests.test_bad_input import says


@pytest.mark.parametrize(
    ("statements", "got"),
    [
        ("CREATE STREAM s (ts timestamp) TIMESTAMP BY ts WITHIN 5; SELECT * FROM s", "5, which"),
        (
            "CREATE STREAM s (ts timestamp) TIMESTAMP BY ts ORDERED;"
            "SELECT ts, count(*) AS n FROM s GROUP BY TUMBLE(ts, 10)",
            "10, which",
        ),
        (
            "CREATE STREAM s (k int, ts timestamp) TIMESTAMP BY ts ORDERED;"
            "CREATE STREAM t (k int, ts timestamp) TIMESTAMP BY ts ORDERED;"
            "SELECT * FROM s JOIN t USING (k) WITHIN 20",
            "20, which",
        ),
    ],
    ids=["WITHIN", "TUMBLE", "JOIN"],
)
def test_a_number_without_a_unit_is_no_length_of_timestamps(statements: str, got: str) -> None:
    with pytest.raises(ip.InterpunctError, match=f"{got} counts microseconds.*INTERVAL"):
        ip.sql(statements)
    longer = statements.replace("5;", "INTERVAL '5us';").replace("10)", "INTERVAL '10us')")
    assert ip.sql(longer.replace("WITHIN 20", "WITHIN INTERVAL '20us'")).nodes


def test_bounds_of_timestamps_have_a_unit() -> None:
    flow = ip.Flow("auction")
    with pytest.raises(ip.InterpunctError, match=r"source .s., skew: .*2, which counts"):
        flow.source("s", "ts timestamp", time=ip.external("ts", bounds=ip.bounds(skew=2)))
    flow.source("t", "ts timestamp", time=ip.external("ts", bounds=ip.bounds(skew="2us")))
    flow.source("u", "ts bigint", time=ip.external("ts", bounds=ip.bounds(skew=2)))


def test_bounds_of_nothing() -> None:
    with pytest.raises(FlowError) as error:
        ip.bounds()
    says(error, "bounds", "skew=…", "neither", "ordered=True")
