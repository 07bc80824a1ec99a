"""Durations: text, timedelta and ticks mean the same, and format reads back."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpunct.model.durations import duration, format_duration
from interpunct.model.errors import ExpressionError
from interpunct.model.schema import END_OF_TIME

SECOND = 1_000_000


@pytest.mark.parametrize(
    ("value", "ticks"),
    [
        ("20s", 20 * SECOND),
        ("20 seconds", 20 * SECOND),
        ("1 minute", 60 * SECOND),
        ("1h 30m", 5400 * SECOND),
        ("1h30m", 5400 * SECOND),
        ("1 hour 30 mins", 5400 * SECOND),
        ("500ms", 500_000),
        ("10us", 10),
        ("10µs", 10),
        ("1.5 s", 1_500_000),
        ("0.000001s", 1),
        ("1 day", 86_400 * SECOND),
        ("1w", 7 * 86_400 * SECOND),
        (" 20 S ", 20 * SECOND),
        ("0s", 0),
        (timedelta(seconds=20), 20 * SECOND),
        (timedelta(0), 0),
        (7, 7),
    ],
)
def test_a_duration_means_its_ticks(value: str | timedelta | int, ticks: int) -> None:
    assert duration(value, "window") == ticks


@pytest.mark.parametrize(
    "value",
    ["", " ", "20", "s", "20 parsecs", "1 month", "1 year", "-20s", "20s!", "1.s", "1e3s", "s20",
     "1:30", "0.5us", "99999999999w", timedelta(seconds=-1), -1, END_OF_TIME, True, 1.5, None],
)  # fmt: skip
def test_what_is_no_duration_is_refused_with_examples(value: object) -> None:
    with pytest.raises(ExpressionError, match=r"window: expected .*'1h 30m'"):
        duration(value, "window")  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [-2, "-2s", " - 1h 30m", timedelta(seconds=-2)])
def test_a_negative_duration_is_told_what_the_least_is(value: str | timedelta | int) -> None:
    with pytest.raises(ExpressionError, match="expected a duration of at least 0"):
        duration(value, "skew")


@pytest.mark.parametrize(
    ("ticks", "text"),
    [
        (0, "0s"),
        (20 * SECOND, "20s"),
        (90 * SECOND, "1m 30s"),
        (500_000, "500ms"),
        (1_500_001, "1s 500ms 1us"),
        (86_400 * SECOND, "1d"),
        (-20 * SECOND, "-20s"),
    ],
)
def test_a_duration_is_written_in_the_largest_units(ticks: int, text: str) -> None:
    assert format_duration(ticks) == text


@given(st.integers(0, END_OF_TIME - 1))
def test_what_is_written_reads_back(ticks: int) -> None:
    assert duration(format_duration(ticks), "test") == ticks
