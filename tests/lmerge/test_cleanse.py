"""Cleanse: order and finality in exchange for waiting."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from merging import KNOWN, Merging
from test_random import as_stream, seeds

from interpunct.model.elements import INSERT, KIND, VS, Row, adjust, describe, elements, insert
from interpunct.model.elements import stable as stable_at
from interpunct.model.feedback import Feedback
from interpunct.model.frames import stacked
from interpunct.model.page import Page
from interpunct.model.tdb import equivalent, violations
from interpunct.operators.contract import Stream
from interpunct.operators.lmerge_choice import choose
from interpunct.operators.lmerge_cleanse import Cleanse
from interpunct.operators.state import DictState
from interpunct.testing.revisable import SCHEMA, Telling, retold, table

KEYED = Stream(SCHEMA, KNOWN["R3"])


def said(operator: Cleanse, *rows: Row) -> str:
    pages = operator.accept(0, Page(SCHEMA, elements(SCHEMA, rows))).pages
    return ", ".join(describe(SCHEMA, page.frame) for _, page in pages)


def test_events_come_when_they_are_final_in_the_order_of_their_starts() -> None:
    cleanse = Cleanse("cleanse", KEYED)
    rows = [insert("B", 8, "∞"), insert("A", 6, 12), adjust("B", 8, "∞", 10)]
    assert said(cleanse, *rows, stable_at(11)) == "stable(6)"  # A may still end anywhere
    assert said(cleanse, stable_at(13)) == "insert(A, 6, 12), insert(B, 8, 10), stable(13)"
    assert cleanse.held().tuples == 0


def test_its_output_can_be_merged_by_counting() -> None:
    assert choose([KEYED.properties] * 2) == "R3"
    assert choose([Cleanse("cleanse", KEYED).outputs[0].properties] * 2) == "R1"


@given(seed=seeds)
@settings(max_examples=25)
def test_the_table_stays_and_the_stream_is_ordered_and_never_revised(seed: int) -> None:
    random = Random(seed)
    events = table(random, 10)
    rows = retold(events, random, Telling())
    state, frames = DictState(), [SCHEMA.empty()]
    cleanse = Cleanse("cleanse", KEYED, state)
    for row in rows:
        page = Page(SCHEMA, elements(SCHEMA, [row]))
        frames += [p.frame for _, p in cleanse.accept(0, page).pages]
        if random.random() < 0.3:
            cleanse.save()
            cleanse = Cleanse("cleanse", KEYED, state)
    out = stacked(frames)
    assert not violations(SCHEMA, out, keyed=True)
    assert out.filter(out[KIND] == INSERT)[VS].is_sorted()
    assert "adjust" not in out[KIND].to_list()
    assert equivalent(SCHEMA, out, as_stream(events))


@pytest.mark.parametrize("variant", ["R0", "R1", "R2", "R3", "R3-", "R4"])
def test_a_merge_saves_its_guards_with_its_state(variant: str) -> None:
    run = Merging(variant, 2)
    run.merge.on_feedback(Feedback.parse("¬[p='A']", SCHEMA))
    run.merge.save()
    run.restart()
    shown = run.rows(0, insert("A", 6, 12)) + run.rows(0, insert("B", 7, 12))
    assert [row[-1] for row in shown] == ["B"]
    assert run.merge.held().guards == 1
