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
    assert str(error.value) == (
        "result: expected one of the sinks map or late:orders, got 'maps'. Check the name."
    )


@pytest.mark.parametrize(("ids", "late"), [([1, 2, 3], [3]), ([1, 2], [])])
def test_what_was_late_at_a_node_is_there_as_it_is_on_spark(
    ids: list[int], late: list[int]
) -> None:
    flow = ip.Flow("orders")
    time = ip.external("at", ip.bounds(skew=0), ets="never")
    orders = flow.source("orders", "id bigint, at bigint", time=time)
    flow.sink("map", orders)
    rows = list(zip(ids, (10, 50, 20), strict=False))
    result = flow.run({"orders": ip.feed(rows, page_size=1)})
    frame = result["late:orders"]
    assert frame["id"].to_list() == late
    assert frame.columns == ["id", "at", "_source", "_reason", "_lateness", "_heartbeat"]
    if late:
        assert frame is result.late["orders"]
    for wrong in ("late:order", "late:map", "orders"):
        with pytest.raises(FlowError, match="one of the sinks map or late:orders, got"):
            result[wrong]


def test_late_tuples_that_are_read_are_in_the_sink_that_reads_them() -> None:
    flow = ip.Flow("orders")
    orders = flow.source("orders", "id bigint, at bigint", ip.external("at", ordered=True))
    flow.sink("map", orders)
    flow.sink("behind", orders.late)
    result = flow.run({"orders": [(1, 10), (2, 5)]})
    assert result["behind"]["id"].to_list() == [2]
    with pytest.raises(FlowError, match="one of the sinks map, behind, got"):
        result["late:orders"]
