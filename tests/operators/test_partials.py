"""Tuples of a pane that come in long runs are grouped run by run, with the same results."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import interpunct as ip
from interpunct.model.expression import aggregate
from interpunct.operators import dense, partials
from interpunct.operators.dense import by_position
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


KEYS = st.integers(-2, 2) | st.just(None)
VALUES = st.integers(-9, 9) | st.sampled_from([None, float("inf"), float("nan")])


@pytest.mark.parametrize("kind", ["bigint", "int", "tinyint"])
@given(
    st.lists(st.tuples(KEYS, VALUES), min_size=1, max_size=60), st.integers(-(2**7) + 2, 2**7 - 3)
)
def test_by_position_is_by_group(
    kind: str, rows: list[tuple[int | None, float | None]], away: int
) -> None:
    schema = ip.Schema.of(f"k {kind}, ts bigint, v double", time="ts")
    keys = [None if k is None else k + away for k, _ in rows]
    frame = pl.DataFrame(
        {"k": keys, "ts": 0, "v": [v for _, v in rows]}, schema.polars, strict=False
    )
    texts = {"n": "count(*)", "total": "sum(v)", "mean": "avg(v)", "more": "sum(v + 1)"}
    made = Partials(
        schema, "_pane", 10, ["k"], {n: aggregate(t, schema, "test") for n, t in texts.items()}
    )
    found = by_position(frame, "k", made._parts)
    if found is None:
        missing = frame.select("k", "v").null_count().sum_horizontal().item() > 0
        assert missing or frame.height < dense.FULL * (max(keys) - min(keys) + 1)  # type: ignore[type-var, operator]
        return
    grouped = frame.group_by("k").agg(made._partial())
    assert_frame_equal(found, grouped, check_row_order=False)


@pytest.mark.parametrize("text", ["min(v)", "sum(k)", "count(v)", "last(v)", "count_if(v > 1)"])
def test_what_is_no_sum_of_doubles_is_grouped(text: str) -> None:
    frame = pl.DataFrame({"k": [1] * 9, "s": "a", "ts": 0, "v": 1.0}, SCHEMA.polars)
    known = {"mean": aggregate("avg(v)", SCHEMA, "test"), "other": aggregate(text, SCHEMA, "test")}
    assert by_position(frame, "k", Partials(SCHEMA, "_pane", 10, ["k"], known)._parts) is None


def test_other_keys_are_grouped() -> None:
    frame = pl.DataFrame({"k": [1] * 9, "s": "a", "ts": 0, "v": 1.0}, SCHEMA.polars)
    parts = Partials(SCHEMA, "_pane", 10, ["s"], {"n": aggregate("count(*)", SCHEMA, "t")})._parts
    assert by_position(frame, "s", parts) is None
    assert by_position(frame, "k", parts) is not None
    assert by_position(frame.with_columns(k=pl.int_range(9)), "k", parts) is None  # too wide
