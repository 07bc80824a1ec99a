"""What a query tells of its batches: of those that ran, and whether it runs, or is alive at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JNetworkError  # type: ignore[import-untyped]

from interpunct.engine.vitals import PATIENCE, QueryVitals, Sign, SourceVitals, Vitals
from interpunct.spark.hints import Hints
from interpunct.spark.reporter import PULSE, Reporter

RAN = {"batchId": 1, "timestamp": "1970-01-01T00:01:40.000Z",
       "durationMs": {"addBatch": 4665, "triggerExecution": 5002}}  # fmt: skip
# As Spark reports every ten seconds of a query whose sources have nothing.
IDLE = {"batchId": 2, "timestamp": "1970-01-01T00:01:55.000Z",
        "durationMs": {"latestOffset": 8, "triggerExecution": 8}}  # fmt: skip
SECOND = 1_000_000
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
    return hints.told()


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


def reporter(query: Query, hints: Hints) -> Reporter:
    return Reporter(query, hints)  # type: ignore[arg-type]


def test_a_query_says_that_it_is_alive_every_few_seconds(tmp_path: Path) -> None:
    query, hints = Query(), Hints(str(tmp_path))
    looks = reporter(query, hints)
    signs = []
    for second in range(13):
        assert looks._told(now=second * SECOND)
        sign = hints.sign()
        assert sign is not None
        signs.append(sign.at)
    assert sorted(set(signs)) == [0, PULSE, 2 * PULSE]


def test_a_clock_that_is_set_back_does_not_silence_a_query(tmp_path: Path) -> None:
    query, hints = Query(), Hints(str(tmp_path))
    looks = reporter(query, hints)
    looks._told(now=100 * PULSE)
    looks._told(now=PULSE)
    assert hints.sign() == Sign(PULSE)


def test_a_query_that_said_it_runs_and_is_not_heard_of_is_silent(tmp_path: Path) -> None:
    query, hints = Query(), Hints(str(tmp_path))
    query.show(RAN)
    at = 110 * SECOND
    reporter(query, hints)._told(now=at)
    heard, gone = hints.query(now=at + PATIENCE), hints.query(now=at + PATIENCE + 1)
    assert heard == QueryVitals(2, 100_000_000, 5.002, True, heard=at)
    assert gone == QueryVitals(2, 100_000_000, 5.002, False, heard=at, silent=True)


def test_a_batch_that_was_done_is_a_sign_of_life(tmp_path: Path) -> None:
    hints = Hints(str(tmp_path))
    hints.tell_alive(Sign(103 * SECOND))
    hints.tell_query(BATCH)
    assert hints.query(now=106 * SECOND) == QueryVitals(
        2, 100_000_000, 5.002, True, heard=105_002_000
    )


def test_an_arrival_that_lanes_tell_of_is_a_sign_of_life(tmp_path: Path) -> None:
    hints = Hints(str(tmp_path))
    hints.tell_alive(Sign(103 * SECOND))
    hints.tell_query(BATCH)
    for lane, heard in enumerate((None, 108 * SECOND, 107 * SECOND)):
        hints.report(0, lane, Vitals(sources={"cars": SourceVitals(heard=heard)}))
    hints.report(1, 0, Vitals(sources={"bikes": SourceVitals(heard=106 * SECOND)}))
    vitals, query = hints.seen(now=108 * SECOND + PATIENCE)
    assert query == QueryVitals(2, 100_000_000, 5.002, True, heard=108 * SECOND)
    assert vitals.heard == query.heard
    gone = hints.query(now=108 * SECOND + PATIENCE + 1)
    assert gone == QueryVitals(2, 100_000_000, 5.002, False, heard=108 * SECOND, silent=True)


def test_a_query_that_told_its_end_is_not_silent(tmp_path: Path) -> None:
    query, hints = Query(), Hints(str(tmp_path))
    looks = reporter(query, hints)
    query.show(RAN)
    looks._told(now=0)
    query.show(RAN, running=False)
    assert not looks._told(now=PULSE)
    ended = hints.query(now=10 * PATIENCE)
    assert ended is not None
    assert (ended.running, ended.silent) == (False, False)


def test_a_query_that_never_gives_a_sign_counts_as_it_says(tmp_path: Path) -> None:
    """As those of older versions."""
    hints = Hints(str(tmp_path))
    hints.tell_query(BATCH)
    assert hints.query(now=10**18) == BATCH


def test_a_query_that_was_killed_and_is_started_again_runs(tmp_path: Path) -> None:
    query, hints = Query(), Hints(str(tmp_path))
    query.show(RAN)
    reporter(query, hints)._told(now=0)
    later = 10 * PATIENCE
    query.show(None)
    reporter(query, hints)._told(now=later)
    assert hints.query(now=later + SECOND) == QueryVitals(2, 100_000_000, 5.002, True, heard=later)


def test_what_is_judged_is_not_told(tmp_path: Path) -> None:
    hints = Hints(str(tmp_path))
    hints.tell_query(QueryVitals(2, 100_000_000, 5.002, True, heard=7, silent=True))
    assert hints.told() == BATCH


def test_a_sign_has_the_pace_of_the_batches(tmp_path: Path) -> None:
    query, hints = Query(), Hints(str(tmp_path))
    looks = reporter(query, hints)
    query.show(RAN)
    looks._told(now=0)
    query.show({**RAN, "batchId": 3, "timestamp": "1970-01-01T00:01:52.000Z"})
    looks._told(now=PULSE)
    assert hints.sign() == Sign(PULSE, every=6 * SECOND)


def test_files_that_cannot_be_written_do_not_end_the_reports(tmp_path: Path) -> None:
    (tmp_path / "folder").write_text("a file")
    query, hints = Query(), Hints(str(tmp_path / "folder"))
    looks = reporter(query, hints)
    assert looks._told(now=0)
    (tmp_path / "folder").unlink()
    assert looks._told(now=1)
    assert hints.sign() == Sign(1)


def test_the_reports_end_with_the_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(query: Query) -> bool:
        raise Py4JNetworkError("gone")

    looks = reporter(Query(), Hints(str(tmp_path)))
    monkeypatch.setattr(Query, "isActive", property(gone), raising=False)
    assert not looks._told(now=0)
