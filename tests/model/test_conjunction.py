"""Predicates as patterns: where there is one, it says exactly what the expression says."""

from __future__ import annotations

import math

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpunct.model.expression import predicate
from interpunct.model.schema import Schema

SCHEMA = Schema.of("n bigint, x double, s string")
FRAME = pl.DataFrame(
    {
        "n": [None, -3, 0, 1, 2, 3, 9],
        "x": [0.5, None, -1.5, 0.0, 2.0, math.nan, math.inf],
        "s": ["a", "b", None, "", "ab", "B", "é"],
    },
    schema=SCHEMA.polars,
)
CONSTANTS = {
    "n": st.sampled_from(["0", "1", "2", "-3", "7"]),
    "x": st.sampled_from(["0", "2", "-1.5", "0.5", "2.0"]),
    "s": st.sampled_from(["'a'", "'ab'", "''", "'é'"]),
}


@st.composite
def comparisons(draw: st.DrawFn) -> str:
    name = draw(st.sampled_from(["n", "x", "s"]))
    one, other = draw(CONSTANTS[name]), draw(CONSTANTS[name])
    operator = draw(st.sampled_from(["<", "<=", ">", ">=", "=", "!=", "<>"]))
    return draw(
        st.sampled_from(
            [f"{name} {operator} {one}", f"{one} {operator} {name}",
             f"{name} between {one} and {other}", f"({name} {operator} {one})"]
        )
    )  # fmt: skip


@given(st.lists(comparisons(), min_size=1, max_size=4))
def test_pattern_and_expression_select_the_same(parts: list[str]) -> None:
    test = predicate(" and ".join(parts), SCHEMA, "where")
    assert test.pattern is not None
    assert test.pattern.mask(FRAME).to_list() == FRAME.select(test.polars).to_series().to_list()


@pytest.mark.parametrize(
    "text",
    ["n > x", "n > 0.5", "n = 1 or n = 2", "not n = 1", "n + 1 = 2",
     "s like 'a%'", "n is null", "n > 99999999999999999999", "n = -x", "n = 1 and abs(n) = 1"],
)  # fmt: skip
def test_what_a_pattern_cannot_say_is_left_to_the_expression(text: str) -> None:
    assert predicate(text, SCHEMA, "where").pattern is None
