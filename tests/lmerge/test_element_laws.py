"""The laws of every operator, for those around a logical merge."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interpunct.model.expression import aggregate
from interpunct.model.properties import Properties
from interpunct.model.schema import Schema
from interpunct.operators.contract import Stream
from interpunct.operators.lmerge_declared import Declared
from interpunct.operators.lmerge_events import Events
from interpunct.operators.speculative_aggregate import SpeculativeAggregate
from interpunct.operators.windows import Windows
from interpunct.testing import LAWS, Case, Law, arrivals

SCHEMA = Schema.of("k bigint, ts bigint, v bigint", time="ts")
ORDERED, DISORDERED = Stream(SCHEMA, Properties(ordered=True)), Stream(SCHEMA)
COUNT = {"n": aggregate("count(*)", SCHEMA, "test")}
KEYED = Properties(ordered=True, keyed=True)

CASES = [
    Case("declare", lambda c: Declared("d", ORDERED, KEYED, c.state), arrivals([ORDERED])),
    Case(
        "speculative",
        lambda c: SpeculativeAggregate("n", DISORDERED, Windows(20, 10), ["k"], COUNT, c.state),
        arrivals([DISORDERED]),
    ),
    Case("events", lambda c: Events("e", DISORDERED, 5, c.state), arrivals([DISORDERED])),
]


# What a speculative aggregate shows on its way depends on its pages; what it comes to does not.
PAIRS = [
    pytest.param(case, law, id=f"{case}-{name}")
    for case in CASES
    for name, law in LAWS.items()
    if (case.name, name) != ("speculative", "splitting_changes_nothing")
]


@pytest.mark.parametrize(("case", "law"), PAIRS)
@given(data=st.data())
@settings(max_examples=4)
def test_every_operator_keeps_every_law(case: Case, law: Law, data: st.DataObject) -> None:
    law(case, data)
