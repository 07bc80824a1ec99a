"""What a query tells of its batches: of those that ran, and whether it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from interpunct.engine.vitals import QueryVitals
from interpunct.spark.hints import Hints
from interpunct.spark.reporter import Reporter

RAN = {"batchId": 1, "timestamp": "1970-01-01T00:01:40.000Z",
       "durationMs": {"addBatch": 4665, "triggerExecution": 5002}}  # fmt: skip
# As Spark reports every ten seconds of a query whose sources have nothing.
IDLE = {"batchId": 2, "timestamp": "1970-01-01T00:01:55.000Z",
        "durationMs": {"latestOffset": 8, "triggerExecution": 8}}  # fmt: skip
BATCH = QueryVitals(2, 100_000_000, 5.002, True)


class Query:
    """What a reporter sees of one: its name, its last progress, and whether it runs."""

    name = "speeds"

    def __init__(self) -> None:
        self.isActive, self.lastProgress = True, None

    def show(self, progress: dict[str, Any] | None, running: bool = True) -> None:
        self.isActive, self.lastProgress = running, progress


def told(query: Query, hints: Hints) -> QueryVitals | None:
    """After one look."""
    Reporter(query, hints)._told()  # type: ignore[arg-type]
    return hints.query()


def test_a_look_at_sources_that_had_nothing_is_no_batch(tmp_path: Path) -> None:
    query, hints = Query(), Hints(str(tmp_path))
    query.show(IDLE)
    assert told(query, hints) is None
    query.show(RAN)
    assert told(query, hints) == BATCH
    query.show(IDLE)
    assert told(query, hints) == BATCH


def test_a_query_that_is_started_again_runs_before_its_first_batch(tmp_path: Path) -> None:
    query, hints = Query(), Hints(str(tmp_path))
    query.show(RAN, running=False)
    assert told(query, hints) == QueryVitals(2, 100_000_000, 5.002, False)
    query.show(None)
    assert told(query, hints) == BATCH
