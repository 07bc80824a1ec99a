"""Which functions of time depend on a zone; no session is needed to see it."""

from __future__ import annotations

import re
from pathlib import Path

from interpunct.spark.zone import ZONED

DOCS = Path(__file__).parents[2] / "docs"
# Of instants, and of what has no hours.
ANYWHERE = {
    "second", "unix_seconds", "unix_millis", "unix_micros", "timestamp_seconds",
    "timestamp_millis", "timestamp_micros", "make_date", "date_from_unix_date",
}  # fmt: skip


def test_functions_of_hours_and_days_are_those_that_a_session_in_another_zone_is_warned_of() -> (
    None
):
    lines = (DOCS / "sql.md").read_text().splitlines()
    (line,) = [line for line in lines if line.startswith("| time | `")]
    names = set(re.findall(r"`(\w+)`", line))
    assert names > ANYWHERE
    assert {name for name in names if not ZONED.search(f"x = {name}(ts)")} == ANYWHERE
    assert not any(ZONED.search(f"{name} > 3") for name in names)
