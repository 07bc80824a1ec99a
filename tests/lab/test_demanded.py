"""Demanded feedback, small: answers at once, and final answers as ever."""

from __future__ import annotations

import pytest

from interpunct.lab.demanded import REPORTS, Demanded, Setup, demanded, recorded, with_demands

MINUTES = 30


@pytest.fixture(scope="module")
def result() -> Demanded:
    return demanded(Setup(MINUTES))


def test_what_is_expected_holds(result: Demanded) -> None:
    assert result.expected() == {
        "every_answer_is_there_before_the_next_page": True,
        "final_answers_are_unchanged": True,
    }


def test_somebody_asks_in_the_middle_of_every_minute() -> None:
    asked = [text for _, text in with_demands(recorded(MINUTES, 1))]
    assert len(asked) == REPORTS * MINUTES + 1
    assert [text is not None for text in asked] == [True, True, False] * MINUTES + [False]
    assert asked[:2] == ["![segment = 0]", "![segment = 4]"]


def test_an_answer_is_the_average_of_the_reports_so_far(result: Demanded) -> None:
    answers = result.process.answers()
    assert answers.height == result.process.asked == 2 * MINUTES
    assert answers["reports"].to_list() == [1, 2] * MINUTES
    assert (answers["n"] < answers["all"]).all()
    heard = (answers["as_of"] - answers["ts"]).dt.total_microseconds().to_list()
    assert heard == [-1, 20_000_000 - 1] * MINUTES, "marked by how far time had come"


def test_the_more_was_heard_the_nearer_the_answer_is(result: Demanded) -> None:
    shown = result.to_json()["process"]
    errors = shown["error_by_reports"]
    assert 0 < errors["2 of 3"] < errors["1 of 3"] < 5
    assert shown["waited_pages_at_most"] == 0


def test_the_final_answers_are_one_for_each_minute_and_segment(result: Demanded) -> None:
    finals = result.process.finals
    assert finals.height == 9 * (MINUTES + 1), "and the minute that has just begun"
