"""Rows fed from Python: the value that does not fit is named, and nothing is lost in silence."""

from __future__ import annotations

from typing import Any

import pytest

import interpunct as ip
from interpunct.model.errors import FeedError


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([(1, 2, 3.0), (1, 2, "much")], ["row 1", "double in 'price'", "'much' (str)"]),
        ([(1.5, 2, 3.0)], ["row 0", "bigint in 'item'", "1.5 (float)"]),
        ([(1, 2**70, 3.0)], ["row 0", "bigint in 'ts'", f"{2**70} (int)"]),
        ([(1, 2)], ["row 0", "3 values", "2: (1, 2)"]),
        ([(1, 2, 3.0, 4)], ["row 0", "3 values", "4: (1, 2, 3.0, 4)"]),
        ([(1, 2, 3.0), 5], ["row 1", "a row of", "5 (int)"]),
        ([{"item": 1, "ts": 2}, {"item": 1, "ts": 2, "prize": 3.0}],
         ["row 1", "a column 'price'", "columns item, ts, prize"]),
        ([(1, 2, 3.0)] * 20_000 + [(1, 2, "much")], ["row 20000", "'much' (str)"]),
    ],
)  # fmt: skip
def test_the_value_of_a_row_that_does_not_fit_is_named(rows: list[Any], said: list[str]) -> None:
    flow = ip.Flow("f")
    flow.sink("out", flow.source("bids", "item bigint, ts bigint, price double"))
    with pytest.raises(FeedError) as error:
        flow.run({"bids": rows}, clock=ip.ScriptedClock())
    for part in ("feed of source 'bids', ", *said):
        assert part in str(error.value)


def test_what_a_mapping_does_not_name_is_null_and_what_nobody_asked_for_is_left() -> None:
    schema = ip.Schema.of("item bigint, price double")
    rows = [{"item": 1}, {"price": 2, "item": 3.0, "more": 4}]
    assert ip.Page.of_rows(schema, rows).frame.rows() == [(1, None), (3, 2.0)]
