"""Every operator keeps every law."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from operator_cases import CASES

from interpunct.testing import LAWS, Case, Law

# A few examples for each of hundreds of pairs; HYPOTHESIS_PROFILE=explore tries many more.
EXAMPLES = settings().max_examples // 8


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS.keys())
@pytest.mark.parametrize("case", CASES, ids=str)
@settings(max_examples=EXAMPLES)
@given(data=st.data())
def test_every_operator_keeps_every_law(case: Case, law: Law, data: st.DataObject) -> None:
    law(case, data)
