"""Tuples leave a task in pages of a bounded size, each tuple once, in its lane, in order."""

from __future__ import annotations

from functools import partial

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from interpunct.model.page import Page
from interpunct.spark import outgoing
from interpunct.spark.lanes import lane_ids, lane_of
from interpunct.spark.outgoing import Outgoing
from interpunct.spark.wire import Row


@given(
    st.lists(st.lists(st.integers(0, 9), max_size=12), max_size=6),
    st.integers(1, 3),
    st.integers(1, 7),
)
def test_every_tuple_leaves_once_in_its_lane_and_in_order(
    sent: list[list[int]], lanes: int, full: int
) -> None:
    ids = lane_ids(lanes)
    frames = [pl.DataFrame({"k": keys, "n": range(len(keys))}, _COLUMNS) for keys in sent]
    mine = Outgoing(0, "s", partial(lane_of, keys=("k",), lanes=lanes), ids)
    rows: list[Row] = []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(outgoing, "FULL", full)
        for frame in frames:
            mine.add(frame)
            rows += mine.full()
        rows += mine.rest()
    pages = [(row.lane, Page.from_ipc(row.load).frame) for row in rows]
    assert all(0 < page.height <= full for _, page in pages)
    whole = pl.concat([pl.DataFrame(schema=_COLUMNS), *frames])
    lane = lane_of(whole, ("k",), lanes)
    for index, lane_id in enumerate(ids):
        got = [page for to, page in pages if to == lane_id]
        assert_frame_equal(
            pl.concat([pl.DataFrame(schema=_COLUMNS), *got]), whole.filter(lane == index)
        )


def test_what_fills_a_page_for_each_lane_does_not_wait() -> None:
    mine = Outgoing(0, "s", partial(lane_of, keys=("k",), lanes=2), lane_ids(2))
    mine.add(pl.DataFrame({"k": range(2 * outgoing.FULL - 1)}))
    assert not list(mine.full())
    mine.add(pl.DataFrame({"k": [7]}))
    assert sum(Page.from_ipc(row.load).height for row in mine.full()) == 2 * outgoing.FULL
    assert not list(mine.rest())


_COLUMNS = {"k": pl.Int64, "n": pl.Int64}
