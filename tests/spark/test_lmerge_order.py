"""R1 in the lanes of a merge: a batch has no order, so a column says it (LMerge section IV-A)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from random import Random
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interpunct.model.elements import Row, adjust, element_schema, elements, insert, stable
from interpunct.model.properties import Properties
from interpunct.model.schema import Attribute, Schema
from interpunct.model.tdb import equivalent
from interpunct.operators.lmerge_base import Report
from interpunct.operators.lmerge_policy import MergePolicy
from interpunct.operators.state import DictState
from interpunct.spark.lanes import lane_of
from interpunct.spark.lmerge_batches import ATTACH, is_mark
from interpunct.spark.lmerge_lane import LaneMerge, Merger
from interpunct.testing.revisable import Event, in_order

SCHEMA = element_schema(Schema.of("p string"))
ORDERED = Properties(ordered=True, deterministic=True)
LANES = 3
Placed = tuple[Row, Any]  # an element and its place


def merger(kind: str = "bigint") -> Merger:
    place: Attribute = Schema.of(f"seq {kind}")["seq"]
    return Merger(SCHEMA, ("a", "b"), "R1", ORDERED, MergePolicy(), "run", order=place)


def batch(rows: Sequence[Placed], kind: str = "bigint") -> pl.DataFrame:
    """Elements with their places, as a task reads them."""
    places = pl.Series("seq", [p for _, p in rows], Schema.of(f"seq {kind}")["seq"].dtype)
    return elements(SCHEMA, [r for r, _ in rows]).with_columns(places)


class Lane:
    """A lane with its state, which is restarted from it before every batch."""

    def __init__(self, kind: str = "bigint") -> None:
        self._merger, self._state, self._kind = merger(kind), DictState(), kind
        self.out = [SCHEMA.empty()]
        self.lies: dict[str, Report] = {}

    def take(self, name: str, frame: pl.DataFrame) -> None:
        lane = LaneMerge(self._merger, self._state)
        pages, lies = lane.take(name, frame)
        lane.save()
        self.out += pages
        self.lies |= lies

    def hears(self, name: str, *rows: Placed) -> None:
        self.take(name, batch(rows, self._kind))

    @property
    def shown(self) -> list[tuple[Any, Any]]:
        return pl.concat(self.out).select("p", "vs").rows()


def tied(random: Random) -> list[Event]:
    """Many events at few times, duplicates among them."""
    return [(random.choice("ABCDE"), random.randint(0, 3), 10) for _ in range(30)]


def told(events: Sequence[Event], random: Random) -> list[pl.DataFrame]:
    """A replica in a few batches, each in any order; its places are numbers of its own."""
    place, rows = 0, []
    for row in in_order(events, random, 0.1):
        place += random.randint(1, 9)
        rows.append((row, place))
    cuts = sorted(random.sample(range(len(rows)), 3))
    ends = itertools.pairwise([0, *cuts, len(rows)])
    return [batch(random.sample(rows[a:b], b - a)) for a, b in ends]


def in_lane(frame: pl.DataFrame, lane: int) -> pl.DataFrame:
    """What a lane hears of a batch: its payloads' elements, and every mark."""
    own = (lane_of(frame, ["p"], LANES) == lane).alias("own")
    return frame.filter(own | frame.select(is_mark()).to_series())


@given(st.integers(0, 2**32))
@settings(max_examples=30, deadline=None)
def test_splitting_by_payload_leaves_every_input_of_a_lane_the_same_order(seed: int) -> None:
    random = Random(seed)
    events = tied(random)
    ways = [pl.concat(told(events, random)).filter(~is_mark()) for _ in range(2)]
    for lane in range(LANES):
        one, other = (in_lane(w, lane).sort("vs", "seq").drop("seq") for w in ways)
        assert one.equals(other)


@given(st.integers(0, 2**32))
@settings(max_examples=15, deadline=None)
def test_lanes_that_count_put_out_each_event_once_whatever_the_order_of_a_batch(seed: int) -> None:
    random = Random(seed)
    events = tied(random)
    replicas = {name: told(events, random) for name in "ab"}
    arrivals = ["a"] * len(replicas["a"]) + ["b"] * len(replicas["b"])
    random.shuffle(arrivals)
    lanes = [Lane() for _ in range(LANES)]
    for name in arrivals:
        frame = replicas[name].pop(0)
        for number, lane in enumerate(lanes):
            lane.take(name, in_lane(frame, number))
    out = pl.concat([frame for lane in lanes for frame in lane.out])
    assert not any(lane.lies for lane in lanes)
    assert equivalent(SCHEMA, out, elements(SCHEMA, [insert(*e) for e in events]))


@pytest.mark.parametrize(
    ("kind", "first", "second"),
    [
        ("string", "a", "b"),
        ("double", -0.5, float("nan")),
        ("date", date(2024, 1, 1), date(2024, 1, 2)),
        ("decimal(4,1)", Decimal("9.5"), Decimal("10.0")),
        ("boolean", False, True),
    ],
)
def test_places_are_of_any_type_that_can_be_sorted(kind: str, first: Any, second: Any) -> None:
    lane = Lane(kind)
    lane.hears("a", (insert("B", 7, 9), second), (insert("A", 7, 9), first), (stable(7), None))
    lane.hears("b", (insert("A", 7, 9), first))
    lane.hears("b", (insert("B", 7, 9), second))
    assert lane.shown == [("A", 7), ("B", 7)]
    assert not lane.lies


BROKEN: dict[str, tuple[list[Placed], str, str]] = {
    "Vs goes back": ([(insert("C", 6, 9), 5)], "insert(C, 6, 9)", "its order"),
    "an earlier place": ([(insert("C", 7, 9), 1)], "insert(C, 7, 9) at seq=1", "its order by seq"),
    "the same place": ([(insert("C", 7, 9), 2)], "insert(C, 7, 9) at seq=2", "its order by seq"),
    "no place": ([(insert("C", 8, 9), None)], "insert(C, 8, 9) at seq=None", "its order by seq"),
    "one place twice": (
        [(insert("D", 8, 9), 4), (insert("D", 8, 9), 4)],
        "insert(D, 8, 9) at seq=4", "its order by seq",
    ),
    "a revision": (
        [(adjust("A", 7, 9, 12), 3)], "adjust(A, 7, 9, 12)", "that it never revises",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_an_input_that_breaks_its_order_is_quarantined(name: str) -> None:
    """And the stable of the batch in which it does so is not believed."""
    said, element, rule = BROKEN[name]
    lane = Lane()
    lane.hears("a", (insert("A", 7, 9), 1), (insert("B", 7, 9), 2))
    lane.hears("a", *said, (stable(30), None))
    assert list(lane.lies) == ["a"]
    assert (lane.lies["a"].element, lane.lies["a"].contradicts) == (element, rule)
    lane.hears("a", (insert("E", 20, 22), 9))
    lane.hears("b", (insert("F", 25, 26), 1))
    payloads = [p for p, _ in lane.shown]
    assert payloads[:2] == ["A", "B"]
    assert "E" not in payloads
    assert payloads[-1] == "F", "nothing is stable at 25"


def test_an_input_that_attaches_again_may_begin_its_places_anew() -> None:
    lane = Lane()
    lane.hears("a", (insert("A", 7, 9), 8), (insert("B", 7, 9), 9), (stable(1), None))
    lane.hears("a", ((ATTACH, 0, None, None), None), (insert("A", 7, 9), 1))
    lane.hears("a", (insert("B", 7, 9), 2), (insert("C", 7, 9), 3))
    assert not lane.lies
    assert lane.shown == [("A", 7), ("B", 7), ("C", 7)]
