"""Narrow columns are the same columns again, whatever is in them."""

from __future__ import annotations

from datetime import date

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpunct.model.narrow import FEW, narrowed, widened
from interpunct.model.page import Page
from interpunct.model.schema import Schema

EDGES = (-(2**63), -(2**31), -1, 0, 2**31 - 1, 2**63 - 1)


@given(
    low=st.sampled_from(EDGES) | st.integers(-(2**62), 2**62),
    span=st.sampled_from([0, 255, 256, 65_535, 65_536, 2**32 - 1, 2**32, 2**62]),
    nulls=st.booleans(),
    width=st.sampled_from([pl.Int64, pl.Datetime("us", "UTC"), pl.Datetime("us")]),
)
def test_what_is_widened_is_what_was_narrowed(low, span, nulls, width) -> None:
    high = min(low + span, 2**63 - 1)
    values = [low, high, *([None] if nulls else [])] * FEW
    frame = pl.DataFrame({"t": pl.Series(values, dtype=pl.Int64).cast(width), "x": 1.5})
    small, least = narrowed(frame)
    assert widened(small, least, frame.schema).equals(frame)
    assert ("t" in least) == (high - low < 2**32)
    assert small.schema["x"] == pl.Float64


@pytest.mark.parametrize(
    ("values", "dtype", "narrow"),
    [
        ([date(2024, 1, 1), date(2024, 6, 1)], pl.Date, pl.UInt8),
        ([-(2**31), 2**31 - 1], pl.Int32, pl.Int32),
        ([-300, 300], pl.Int32, pl.UInt16),
        ([-1, 1], pl.Int16, pl.Int16),
        ([None, None], pl.Int64, pl.Int64),
        ([True, False], pl.Boolean, pl.Boolean),
        (["a", "b"], pl.String, pl.String),
        ([[1, 2], [3]], pl.List(pl.Int64), pl.List(pl.Int64)),
    ],
)
def test_a_column_takes_no_more_than_it_needs(values, dtype, narrow) -> None:
    frame = pl.DataFrame({"a": pl.Series(values * FEW, dtype=dtype)})
    small, least = narrowed(frame)
    assert small.schema["a"] == narrow
    assert widened(small, least, frame.schema).equals(frame)


def test_a_small_page_is_left_as_it_is() -> None:
    frame = pl.DataFrame({"a": range(FEW - 1)})
    assert narrowed(frame) == (frame, {})


def test_a_page_of_keys_and_times_close_together_takes_about_half() -> None:
    schema = Schema.of("key bigint, ts timestamp, value double", time="ts")
    start = 1_700_000_000_000_000
    wide = pl.DataFrame({"key": range(50_000), "ts": range(start, start + 50_000), "value": 0.5})
    page = Page(schema, wide.cast(schema.polars))  # type: ignore[arg-type]
    data = page.to_ipc()
    assert len(data) < 0.6 * page.frame.estimated_size()
    assert Page.from_ipc(data).frame.equals(page.frame)


def test_a_page_in_other_units_than_its_schema_is_cast_when_it_is_read() -> None:
    schema = Schema.of("ts timestamp, day timestamp", time="ts")
    days = pl.Series("day", [date(2024, 1, 1), date(2024, 6, 1)] * FEW)
    other = pl.DataFrame({"ts": days.cast(pl.Datetime("ms", "UTC")), "day": days})
    found = Page.from_ipc(Page(schema, other).to_ipc()).frame
    assert found["ts"].to_list() == found["day"].to_list() == other["ts"].to_list()
