"""Tuples of a pane that come in long runs are grouped run by run, with the same results."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import interpunct as ip
from interpunct.model.expression import aggregate
from interpunct.operators import partials
from interpunct.operators.partials import Partials

SCHEMA = ip.Schema.of("k bigint, s string, ts bigint, v double", time="ts")
TIMES = st.integers(-20, 49) | st.integers(9_990, 10_020)  # nothing in between


@pytest.mark.parametrize("by", [("k",), ("k", "s"), ()], ids=str)
@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.sampled_from(["a", "b", None]), TIMES),
        min_size=1, max_size=60,
    ),
    st.booleans(), st.integers(1, 4),
)  # fmt: skip
def test_runs_give_what_all_tuples_at_once_give(
    by: tuple[str, ...], rows: list[tuple[int, str | None, int]], in_order: bool, long: int
) -> None:
    rows = sorted(rows, key=lambda row: row[2]) if in_order else rows
    k, s, ts = zip(*rows, strict=True)
    frame = pl.DataFrame({"k": k, "s": s, "ts": ts, "v": range(len(rows))}, SCHEMA.polars)
    texts = {"n": "count(*)", "total": "sum(v)", "least": "min(v)", "mean": "avg(v)"}
    known = {name: aggregate(text, SCHEMA, "test") for name, text in texts.items()}
    made = Partials(SCHEMA, "_pane", 10, by, known)
    assert made.combinable
    at_once = made.finish(made.of_tuples(frame))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(partials, "LONG", long)
        in_runs = made.of_tuples(frame)
    assert dict(in_runs.schema) == made.schema.polars
    assert_frame_equal(made.finish(in_runs), at_once, check_row_order=False)
