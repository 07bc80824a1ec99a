"""What waits behind the registers: what is kept of it, and how it is put in order."""

from __future__ import annotations

import polars as pl

from interpunct.model.page import Page
from interpunct.model.schema import Schema
from interpunct.operators.state import DictState
from interpunct.operators.tsm import Waiting, put_in_order

SCHEMA = Schema.of("ts bigint, v bigint", time="ts")


def frame(*ticks: int, v: int = 0) -> pl.DataFrame:
    return pl.DataFrame({"ts": ticks, "v": [v] * len(ticks)}, schema=SCHEMA.polars)


def test_of_a_run_that_has_left_in_part_only_the_rest_is_kept() -> None:
    state = DictState()
    waiting = Waiting(state, "wait", SCHEMA)
    waiting.add(frame(*range(1000)))
    assert sum(f.height for f in waiting.take(997)) == 998
    waiting.save()
    kept = [page.height for page in state.entries.values() if isinstance(page, Page)]
    assert kept == [2]
    again = Waiting(state, "wait", SCHEMA)
    assert again.rows == 2
    assert [f["ts"].to_list() for f in again.take(2000)] == [[998, 999]]


def test_frames_that_follow_each_other_are_put_so_whatever_order_they_came_in() -> None:
    found = put_in_order(SCHEMA, [frame(5, 6), frame(), frame(1, 4)])
    assert found["ts"].to_list() == [1, 4, 5, 6]


def test_tuples_of_one_time_stay_in_the_order_they_came_in() -> None:
    found = put_in_order(SCHEMA, [frame(3, 5, v=1), frame(2, 3, v=2)])
    assert found.rows() == [(2, 2), (3, 1), (3, 2), (5, 1)]


def test_a_frame_alone_is_put_in_order_too() -> None:
    assert put_in_order(SCHEMA, [frame(2, 1)])["ts"].to_list() == [1, 2]
    assert put_in_order(SCHEMA, [frame()]).height == 0
