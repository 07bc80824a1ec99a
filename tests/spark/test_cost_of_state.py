"""A batch costs what it touches: with ten times the windows open it costs no more than half again.

Counted is what reaches Spark's state store, calls and bytes, through the state that lanes use.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import interpunct as ip
from interpunct.engine.lane import Lane, LaneBatch, through_prefix
from interpunct.engine.lane_source import Facts
from interpunct.flow.planner import Stage, stages
from interpunct.flow.pushdown import prefix_of
from interpunct.model.schema import Schema
from interpunct.operators.shelf import FEW, Shelf
from interpunct.operators.state import DictState
from interpunct.spark.state import SparkState

T0 = 1_700_000_000_000_000
WINDOW = 10_000_000
KEYS = 20
MOST = 1.5  # times the cost, for ten times the windows


@dataclass
class Store:
    """A MapState in a dict that counts what Spark's would be asked to do."""

    values: dict[str, bytes] = field(default_factory=dict)
    calls: int = 0
    read: int = 0
    written: int = 0

    def getValue(self, key: tuple[str]) -> tuple[bytes] | None:
        found = self.values.get(key[0])
        self.calls += 1
        self.read += len(found or b"")
        return None if found is None else (found,)

    def updateValue(self, key: tuple[str], value: tuple[bytes]) -> None:
        self.values[key[0]] = value[0]
        self.calls += 1
        self.written += len(value[0])

    def removeKey(self, key: tuple[str]) -> None:
        del self.values[key[0]]
        self.calls += 1

    def iterator(self) -> Iterator[tuple[tuple[str], tuple[bytes]]]:
        raise AssertionError("a lane must not go through all of its state")

    @property
    def bytes(self) -> int:
        return self.read + self.written


def averages() -> ip.Flow:
    flow = ip.Flow("averages")
    times = ip.external("ts", ip.bounds(skew=1_000 * WINDOW), ets="never")
    rows = flow.source("rows", "k bigint, ts timestamp, v double", time=times)
    flow.sink("out", rows.aggregate(by="k", every=WINDOW, mean="avg(v)"))
    return flow


class Running:
    """One lane with so many windows open, driven as the processor drives it."""

    def __init__(self, windows: int) -> None:
        self.windows, self.batches = windows, 0
        self.graph = averages().graph
        self.store = Store()
        self.restart()
        self.batch(range(windows))

    @property
    def stage(self) -> Stage:
        (stage,) = stages(self.graph)
        return stage

    def restart(self) -> None:
        """As in a worker that has not seen the lane before."""
        self.state = SparkState(self.store)
        self.lane = Lane(self.graph, self.stage, 1, self.state)

    def batch(self, windows: range) -> int:
        """Rows for these windows; how many results come out."""
        ticks = T0 + WINDOW * np.repeat(np.arange(windows.start, windows.stop), KEYS)
        stamps = pl.Series(ticks).cast(pl.Datetime("us", "UTC"))
        frame = pl.DataFrame({"k": np.arange(len(ticks)) % KEYS, "ts": stamps, "v": ticks * 1.0})
        facts = Facts()
        facts.add(frame.height, int(ticks[-1]), int(ticks[0]))
        prefix = prefix_of(self.graph, self.stage, "rows")
        entering = through_prefix(self.graph, prefix, frame, Counter())
        self.batches += 1
        given = LaneBatch(T0 + self.batches, {"rows": facts}, entering={"rows": [entering]})
        assert self.state.still_current(self.store) or self.batches == 1
        output = self.lane.run(given)
        self.lane.save()
        self.state.flush()
        return sum(f.height for f in output.sinks.values())

    def one_window(self) -> None:
        """A window that has been open for a while gets rows, each time another."""
        at = self.batches * 7 % self.windows
        assert self.batch(range(at, at + 1)) == 0

    def counted(self, batches: int) -> Store:
        """The calls and bytes of some batches, each of which touches one window."""
        before = (self.store.calls, self.store.read, self.store.written)
        for _ in range(batches):
            self.one_window()
        after = (self.store.calls, self.store.read, self.store.written)
        return Store({}, *(b - a for a, b in zip(before, after, strict=True)))


@pytest.mark.parametrize("windows", [10, 100])
def test_ten_times_the_open_windows_cost_at_most_half_as_much_again(windows: int) -> None:
    few, many = (Running(n).counted(100) for n in (windows, 10 * windows))
    assert many.calls <= MOST * few.calls
    assert many.written <= MOST * few.written
    assert many.bytes <= MOST * few.bytes


@pytest.mark.parametrize("windows", [10, 100])
def test_a_restart_reads_as_many_entries_whatever_is_open(windows: int) -> None:
    calls = []
    for running in (Running(windows), Running(10 * windows)):
        running.one_window()
        running.restart()
        calls.append(running.counted(1).calls)
    assert calls[1] <= calls[0]


def test_a_restart_forgets_no_window() -> None:
    left, right = Running(100), Running(100)
    for number in range(80):
        left.one_window()
        right.one_window()
        if number % 9 == 0:
            right.restart()
    rows = [sum(h.tuples for h in x.lane.held().values()) for x in (left, right)]
    assert rows[0] == rows[1] > 100 * KEYS
    far = range(10_000, 10_001)
    assert left.batch(far) == right.batch(far) == 100 * KEYS
    assert len(left.store.values) == len(right.store.values) < 10


def test_the_time_of_a_batch_does_not_follow_the_open_windows() -> None:
    """The two take turns and the fastest of many counts, so that others on the machine do not."""
    lanes = (Running(100), Running(1000))
    fastest = [float("inf")] * 2
    for _ in range(60):
        for at, running in enumerate(lanes):
            began = time.perf_counter()
            running.one_window()
            fastest[at] = min(fastest[at], time.perf_counter() - began)
    assert fastest[1] <= MOST * fastest[0]


ACTIONS = st.tuples(
    st.sampled_from(["append", "append", "put", "drop", "save", "restart"]),
    st.integers(0, 3 * FEW),
    st.integers(1, 2 * FEW),
)


@given(st.lists(ACTIONS, max_size=40))
def test_a_shelf_restored_at_any_moment_has_what_was_put_there(
    actions: list[tuple[str, int, int]],
) -> None:
    """Some keys from `first` on get a row each, or lose what they have."""
    state, schema = DictState(), Schema.of("v bigint")
    shelf, model = Shelf(state, "shelf", schema), dict[int, list[int]]()
    for number, (action, first, count) in enumerate(actions):
        frame = pl.DataFrame({"v": [number]})
        for key in range(first, first + count):
            if action == "append":
                shelf.append(key, frame)
                model.setdefault(key, []).append(number)
            elif action == "put":
                shelf.put(key, frame)
                model[key] = [number]
            elif action == "drop":
                shelf.drop(key)
                model.pop(key, None)
        if action in {"save", "restart"}:
            shelf.save()
        if action == "restart":
            shelf = Shelf(state, "shelf", schema)
    shelf.save()
    for kept in (shelf, Shelf(state, "shelf", schema)):
        assert set(kept) == set(model)
        assert {key: kept.get(key)["v"].to_list() for key in kept} == model
    pages = sum(len(parts) for parts in model.values())
    assert len(state.entries) <= pages + 2, "pages that no key has"
