"""Elements in other forms and other types; what a table and its events are told by."""

from __future__ import annotations

from datetime import datetime
from random import Random

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from merging import Merging

from interpunct.model.element_forms import changes_schema, from_changes, from_marks, to_marks
from interpunct.model.elements import (
    adjust,
    describe,
    element_schema,
    elements,
    infinity,
    insert,
    payload_names,
    stable,
)
from interpunct.model.errors import SchemaError, StreamError
from interpunct.model.page import Page
from interpunct.model.properties import Properties
from interpunct.model.schema import END_OF_TIME, LAST_YEAR, Schema
from interpunct.model.tdb import difference, equivalent, last_stable, tdb, violations
from interpunct.operators import lmerge_index
from interpunct.operators.contract import Stream
from interpunct.operators.lmerge import lmerge
from interpunct.operators.lmerge_in3t import balance
from interpunct.testing.revisable import SCHEMA, Telling, retold, table

TIMED = element_schema(Schema.of("user string, n bigint"), "timestamp")
KEYED = element_schema(Schema.of("k bigint, v string"))


def test_infinity_is_a_time_that_every_system_can_show() -> None:
    assert infinity(SCHEMA) == END_OF_TIME
    assert infinity(TIMED) == LAST_YEAR
    frame = elements(TIMED, [insert(("A", 1), datetime(2026, 1, 2), "∞"), stable("∞")])
    assert frame["ve"][0].year == 9999
    assert describe(TIMED, frame).endswith("∞), stable(∞)")


def test_pages_of_elements_survive_the_wire() -> None:
    page = Page(TIMED, elements(TIMED, [insert(("A", 1), datetime(2026, 1, 2), "∞"), stable("∞")]))
    assert Page.from_ipc(page.to_ipc()).frame.equals(page.frame)


def test_a_merge_of_timestamps_with_a_wider_payload() -> None:
    stream = Stream(TIMED, Properties(insert_only=False, keyed=True))
    merge = lmerge("merge", [stream, stream])
    noon, one, two = (datetime(2026, 1, 2, h) for h in (12, 13, 14))

    def shown(port: int, *rows: tuple[object, ...]) -> str:
        pages = merge.accept(port, Page(TIMED, elements(TIMED, rows))).pages
        return "; ".join(describe(TIMED, page.frame) for _, page in pages)

    shown(0, insert(("A", 1), noon, "∞"), insert(("A", None), noon, one))
    found = shown(1, insert(("A", 1), noon, one), insert(("A", None), noon, one), stable(two))
    start = "2026-01-02 12:00:00+00:00"
    assert found.startswith(f"adjust(A, 1, {start}, ∞, 2026-01-02 13:00:00+00:00), stable(")


def test_payloads_may_not_use_the_names_of_the_head() -> None:
    with pytest.raises(SchemaError, match="without the attributes"):
        element_schema(Schema.of("vs bigint"))
    with pytest.raises(SchemaError, match="element_schema"):
        payload_names(Schema.of("a bigint"))


@given(seed=st.integers(0, 2**32))
@settings(max_examples=20)
def test_every_telling_of_a_table_is_a_stream_with_that_table(seed: int) -> None:
    random = Random(seed)
    events = table(random, 10, duplicates=True)
    frame = elements(SCHEMA, retold(events, random, Telling()))
    assert not violations(SCHEMA, frame)
    assert equivalent(SCHEMA, frame, elements(SCHEMA, [insert(*e) for e in events]))
    assert last_stable(frame) == END_OF_TIME


def test_a_difference_says_what_is_there_more_and_less_often() -> None:
    one = elements(SCHEMA, [insert("A", 1, 2), insert("A", 1, 2), insert("B", 1, 2)])
    other = elements(SCHEMA, [insert("A", 1, 2), insert("C", 1, 2)])
    found = difference(SCHEMA, one, other)
    assert sorted(found.rows()) == [(1, 2, "A", 1), (1, 2, "B", 1), (1, 2, "C", -1)]


def test_a_violation_names_its_row_and_its_rule() -> None:
    rows = [insert("A", 1, 2), insert("A", 1, 3), insert("B", 5, 5), adjust("A", 1, 2, 0)]
    found = violations(SCHEMA, elements(SCHEMA, rows), keyed=True)
    assert [str(v) for v in found] == [
        "row 1, insert(A, 1, 3): there is an event with this payload and Vs already",
        "row 2, insert(B, 5, 5): its event ends no later than it starts",
        "row 3, adjust(A, 1, 2, 0): its event ends before it starts",
    ]


# Open and close ---------------------------------------------------------------------------------


def test_marks_keep_stables_and_removals() -> None:
    rows = [insert("A", 1, "∞"), stable(1), adjust("A", 1, "∞", 1), insert("A", 4, 9)]
    frame = elements(SCHEMA, rows)
    marks = to_marks(SCHEMA, frame)
    assert marks.rows() == [
        ("open", 1, "A"),
        ("stable", 1, None),
        ("close", 1, "A"),
        ("open", 4, "A"),
        ("close", 9, "A"),
    ]
    assert equivalent(SCHEMA, from_marks(SCHEMA, marks), frame)


def test_what_open_and_close_cannot_say_is_refused() -> None:
    early = elements(SCHEMA, [insert("A", 1, 5), insert("A", 6, 9), adjust("A", 1, 5, 4)])
    with pytest.raises(StreamError, match=r"inserted last, got row 2 \(p='A'\)"):
        to_marks(SCHEMA, early)
    close = pl.DataFrame({"mark": ["close"], "at": [4], "p": ["A"]})
    with pytest.raises(StreamError, match="an open before each close"):
        from_marks(SCHEMA, close)


# Change logs ------------------------------------------------------------------------------------

LOG = [
    ("insert", 3, 1, "x"),
    ("insert", 4, 2, "y"),
    ("update", 7, 1, "z"),
    ("delete", 8, 2, None),
    ("insert", 9, 2, "w"),
]
VERSIONS = [(3, 7, 1, "x"), (4, 8, 2, "y"), (7, END_OF_TIME, 1, "z"), (9, END_OF_TIME, 2, "w")]


def log(rows) -> pl.DataFrame:
    return Page.of_rows(changes_schema(KEYED), rows).frame


def test_each_version_of_a_key_is_an_event_that_the_next_one_ends() -> None:
    found, current = from_changes(KEYED, log(LOG), ["k"])
    assert tdb(KEYED, found).rows() == VERSIONS
    assert not violations(KEYED, found, keyed=True)
    assert sorted(current.select("k", "v").rows()) == [(1, "z"), (2, "w")]


@pytest.mark.parametrize("cut", range(len(LOG) + 1))
def test_a_log_in_two_parts_gives_what_it_gives_as_one(cut: int) -> None:
    first, current = from_changes(KEYED, log(LOG[:cut]), ["k"])
    second, _ = from_changes(KEYED, log(LOG[cut:]), ["k"], current)
    assert pl.concat([first, second]).equals(from_changes(KEYED, log(LOG), ["k"])[0])


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([("insert", 1, 1, "x"), ("insert", 2, 1, "y")], "only of a key that is not there"),
        ([("update", 1, 1, "x")], "only of keys that are there"),
        ([("insert", 5, 1, "x"), ("update", 2, 1, "y")], "in the order of their times"),
    ],
)
def test_a_log_that_contradicts_itself_is_refused(rows, expected: str) -> None:
    with pytest.raises(StreamError, match=expected):
        from_changes(KEYED, log(rows), ["k"])


# What the variants are built on -----------------------------------------------------------------


def test_keys_that_share_one_hash_are_told_apart_by_the_other(monkeypatch) -> None:
    """With two bits of the first hash almost all keys collide in it."""
    honest = lmerge_index.fingerprints

    def poor(frame: pl.DataFrame):
        first, second = honest(frame)
        return first & np.uint64(3), second

    monkeypatch.setattr("interpunct.operators.lmerge_tables.fingerprints", poor)
    events = [(p, vs, vs + 5) for p in "ABCDE" for vs in range(10)]
    run = Merging("R3", 2)
    for port in (0, 1):
        run.rows(port, *(insert(*e) for e in events))
    run.rows(1, stable("∞"))
    assert equivalent(SCHEMA, run.output, elements(SCHEMA, [insert(*e) for e in events]))


def test_balance_removes_inserts_and_pairs_with_the_fewest_adjusts() -> None:
    """Event 0: one too many; event 1: one too few; event 2: ends to be exchanged."""
    event = np.array([0, 0, 1, 2, 2, 2, 2])
    there = np.array([1, 0, 1, 1, 0, 0, 1])
    shown = np.array([1, 1, 0, 0, 1, 1, 0])
    final = np.array([True, False, False, True, True, False, False])
    found = balance(event, there, shown, final, inserts=True, removes=True)
    changes = list(zip(found.event, found.before, found.after, strict=True))
    assert changes == [(0, 1, -1), (1, -1, 2), (2, 4, 3)]


def test_memory_is_given_back_as_time_becomes_stable() -> None:
    """Ten thousand events pass through; never more than a few are held at once."""
    for variant in ("R3", "R4", "R3-"):
        run = Merging(variant, 2)
        for at in range(0, 10_000, 1000):
            rows = [insert("x", vs, vs + 3) for vs in range(at, at + 1000)]
            for port in (0, 1):
                run.rows(port, *rows, stable(at + 1000))
            copies = 1 if variant != "R3-" else 3
            assert run.merge.held().tuples <= 3 * copies
        assert run.merge.held().bytes < 3_000_000
        run.merge.save()
        assert len(run.state.entries) < 60
