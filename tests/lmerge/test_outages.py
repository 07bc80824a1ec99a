"""The outage log as two replicas: what they are merged to is what the log comes to."""

from __future__ import annotations

from pathlib import Path

import pytest

from interpunct.lab.lmerge_outages import FILE, Setup, lmerge_outages
from interpunct.model.errors import FeedError

LOG = Path(__file__).parents[3] / "shared" / "data" / FILE


@pytest.mark.skipif(not LOG.exists(), reason=f"the outage log is not at {LOG}")
def test_the_merged_table_is_the_log_s_own_final_state() -> None:
    result = lmerge_outages(Setup(LOG))
    assert all(result.expected().values()), result
    assert result.open_outages > 10


def test_a_log_that_is_not_there_is_said_to_be_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FeedError, match=FILE):
        lmerge_outages(Setup())
