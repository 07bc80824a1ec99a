"""Slack, sorting, punctuation: how it is counted, what comes out, and where the gain ends."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from interpunct.cli.main import app
from interpunct.lab.disorder import (
    PUNCTUATION,
    SAME_LOSS,
    SAME_WAIT,
    SORT,
    WAYS,
    Disorder,
    Hindsight,
    Setup,
    compared,
    measured,
    plot_disorder,
    punctuated,
    run,
    slacked,
    sorted_,
)
from interpunct.lab.disorder_streams import RATE, SECOND, Disordered, bids, logs
from interpunct.lab.heartbeat_streams import ZEEK
from interpunct.model.errors import FeedError

DELAY = 2 * SECOND


def short(swing: float = 10.0, seconds: float = 60.0) -> Disordered:
    """A minute of bids, at one δ."""
    return replace(bids(seconds, swing, 5), delays=(DELAY,))


def by_hand(*tuples: tuple[float, float]) -> Disordered:
    """(arrival, event) in seconds; windows of a second, δ = 2 s."""
    arrived, event = (np.array(tuples).T * SECOND).astype(np.int64)
    frame = pl.DataFrame({"key": 1, "ts": event, "arrived": arrived, "value": 1.0})
    stamped = frame.with_columns(pl.col("ts").cast(pl.Datetime("us", "UTC")))
    return Disordered("by hand", stamped, SECOND, (DELAY,))


@pytest.fixture(scope="module")
def result() -> Disorder:
    stream = short()
    outcomes = {stream.name: {DELAY: compared(stream, DELAY)}}
    return Disorder(Setup(60.0, workers=0), {stream.name: stream}, outcomes)


def test_latency_loss_and_what_is_held_by_hand() -> None:
    # δ = 2 s: window [0, 1) closes at 3, and 0.7 which comes at 3.5 is late; 0.6 at 2.5 is not.
    tuples = ((0.5, 0.5), (1.5, 1.5), (2.5, 0.6), (3.5, 0.7), (9.5, 9.5))
    stream = by_hand(*tuples)
    outcome = measured(stream, punctuated(SECOND, DELAY))
    assert (outcome.mean_s, outcome.tuple_wait_s) == (2.0, 0.0)
    assert (outcome.loss, outcome.peak) == (pytest.approx(1 / 5), 3)
    # In the sort 0.5 waits 2.5 s, 1.5 waits 2.5 s, 0.6 half a second, and the last for nothing.
    assert measured(stream, sorted_(SECOND, DELAY)).tuple_wait_s == pytest.approx(5.5 / 4)


def test_long_waits_of_many_tuples_with_epoch_times_do_not_overflow() -> None:
    start, count = 1_521_911_720, 20_000
    stream = by_hand(*[(start, start - 0.5)] * count, (start + 9, start + 9))
    outcome = measured(stream, sorted_(SECOND, DELAY))
    assert outcome.peak == count
    assert 0 < outcome.tuple_wait_s <= 3


def test_what_the_paper_leads_to_expect(result: Disorder) -> None:
    assert all(result.expected().values()), result.expected()


def test_sort_and_punctuation_give_the_same_results() -> None:
    stream = short()
    one, other = (run(stream, way(SECOND, DELAY)) for way in (punctuated, sorted_))
    assert one.results.equals(other.results)
    assert one.late == other.late > 0


def test_the_gain_over_sorting_is_that_of_partial_aggregates() -> None:
    median = pl.col("value").median()
    one, other = (run(short(), way(SECOND, DELAY), median) for way in (punctuated, sorted_))
    assert one.peak == other.peak


def test_at_a_constant_rate_slack_is_nearly_as_good() -> None:
    def excess(swing: float) -> float:
        stream = short(swing, 120.0)
        hindsight, lost = Hindsight(stream), run(stream, punctuated(SECOND, DELAY)).late
        return hindsight.late(hindsight.longest_within(DELAY / SECOND)) / lost

    assert excess(1.0) < 1.25
    assert excess(10.0) > 1.4


@pytest.mark.parametrize("size", [0, 7, 300])
def test_hindsight_knows_what_a_slack_comes_to(size: int) -> None:
    stream = short()
    outcome, hindsight = measured(stream, slacked(SECOND, size)), Hindsight(stream)
    assert round(outcome.loss * stream.frame.height) == hindsight.late(size)
    assert outcome.mean_s == pytest.approx(hindsight.mean_wait(size), abs=1e-6)


def test_the_two_slacks_are_the_nearest_there_are(result: Disorder) -> None:
    ways, stream = result.outcomes["bids"][DELAY], result.streams["bids"]
    hindsight, aim = Hindsight(stream), ways[PUNCTUATION]
    waits, loses = ways[SAME_WAIT].slack, ways[SAME_LOSS].slack
    assert waits is not None
    assert loses is not None
    assert hindsight.mean_wait(waits) <= aim.mean_s < hindsight.mean_wait(waits + 1)
    lost = round(aim.loss * stream.frame.height)
    assert hindsight.late(loses) <= lost < hindsight.late(loses - 1)


def test_bids_have_the_rate_they_should_at_any_swing() -> None:
    for swing in (1.0, 10.0):
        stream = bids(120.0, swing, 3)
        assert stream.frame.height / 120 == pytest.approx(RATE, rel=0.05)
        assert (stream.moments >= stream.ticks).all()
        assert (np.diff(stream.moments) >= 0).all()
    assert bids(30.0, 10.0, 4).frame.equals(bids(30.0, 10.0, 4).frame)


def test_json_and_figure(result: Disorder, tmp_path: Path) -> None:
    shown = json.loads(json.dumps(result.to_json()))
    assert tuple(shown["streams"]["bids"]["delays_s"]["2"]) == WAYS
    assert shown["measure"].keys() == {"latency", "tuple_wait", "peak", "loss"}
    assert shown["streams"]["bids"]["delays_s"]["2"][SORT]["slack"] is None
    plot_disorder(result, tmp_path / "disorder.png")
    assert (tmp_path / "disorder.png").stat().st_size > 10_000


def test_without_the_logs_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    command = ["lab", "disorder", "--seconds", "30", "--workers", "0", "--no-plot"]
    found = CliRunner().invoke(app, command)
    assert found.exit_code == 0, found.output
    assert "Left out: zeek" in found.stdout


def test_logs_are_read_by_log_and_others_refused(tmp_path: Path) -> None:
    frame = pl.DataFrame({"path": ["b", "a", "b"], "write_ts": [3, 2, 9], "ts": [1, 2, 3]})
    times = pl.col("write_ts", "ts").cast(pl.Datetime("us"))
    frame.with_columns(times).write_parquet(tmp_path / ZEEK)
    assert logs(tmp_path / ZEEK).frame["key"].to_list() == [1, 2, 2]
    frame.select("path").write_parquet(tmp_path / ZEEK)
    with pytest.raises(FeedError, match="write_ts"):
        logs(tmp_path / ZEEK)
