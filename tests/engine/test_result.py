"""What a run returns, as people see it."""

from __future__ import annotations

import pytest

import interpunct as ip
from interpunct.model.errors import FlowError


def test_a_result_tells_how_many_rows_came_out_and_how_many_were_late() -> None:
    flow = ip.Flow("orders")
    time = ip.external("at", ip.bounds(skew=0), ets="never")
    orders = flow.source("orders", "id bigint, at bigint", time=time)
    flow.sink("map", orders)
    result = flow.run({"orders": ip.feed([(1, 10), (2, 50), (3, 20)], page_size=1)})
    assert repr(result) == "Result(map: 2 rows, late of orders: 1 row)"


def test_a_sink_that_is_not_there_is_told_those_that_are() -> None:
    flow = ip.Flow("orders")
    flow.sink("map", flow.source("orders", "id bigint"))
    with pytest.raises(FlowError) as error:
        flow.run({"orders": []})["maps"]
    assert str(error.value) == "result: expected one of the sinks map, got 'maps'. Check the name."
