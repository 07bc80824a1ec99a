"""Learned bounds against hindsight: how it is counted, and what comes out on generated spikes."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from interpunct.cli.main import app
from interpunct.lab.heartbeat_streams import LOGS, ZEEK, find_zeek, in_pages, spiky, zeek
from interpunct.lab.heartbeats import (
    CONFIDENCE,
    FIXED,
    Fixed,
    Heartbeats,
    Policy,
    Setup,
    heartbeats,
    hindsight_skew,
    late_by,
    measure,
    plot_heartbeats,
)
from interpunct.model.errors import FeedError
from interpunct.progress.adaptive import adaptive

S = 1_000_000


def small(*tuples: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    arrival, event = np.array(tuples).T * S
    return arrival, event


def test_waits_lateness_and_buffer_by_hand() -> None:
    # (arrival, event), one a page, δ = 2 s:      heartbeat after it    who waits after it
    #  10, 10                                      8                    10
    #  11, 11                                      9                    10 11
    #  13, 13                                      11                   13       10 waited 3, 11 2
    #  14, 11   late: not above 11                 11                   13
    #  15, 12                                      11                   13 12
    #  16, 15                                      13                   15       13 waited 3, 12 1
    # the clock goes on: at 18 the heartbeat is 15, and 15 waited 2
    stream = in_pages("s", *small((10, 10), (11, 11), (13, 13), (14, 11), (15, 12), (16, 15)), 1)
    outcome = measure(stream, late_by(stream), Fixed(2 * S))
    assert outcome.completeness == pytest.approx(5 / 6)
    assert outcome.mean_wait_s == pytest.approx((3 + 2 + 3 + 1 + 2) / 5)
    assert outcome.peak_buffer == 2


def test_a_way_that_never_promises_makes_all_wait_for_the_end() -> None:
    stream = in_pages("s", *small((1, 1), (2, 2), (3, 3)), 1)
    outcome = measure(stream, late_by(stream), Policy(adaptive()))
    assert (outcome.completeness, outcome.mean_wait_s, outcome.peak_buffer) == (1.0, 1.0, 2)


def test_a_page_arrives_with_its_last_tuple() -> None:
    stream = in_pages("s", *small((3, 1), (1, 2), (2, 3)), 2)
    assert stream.moments.tolist() == [2 * S, 3 * S]
    assert [page.tolist() for page in stream.ticks] == [[2 * S, 3 * S], [S]]
    assert [late.tolist() for late in late_by(stream)] == [[0, 0], [2 * S + 1]]


def test_hindsight_is_the_least_delay_that_is_enough() -> None:
    stream = spiky(600, 1, 5, 100)
    late = late_by(stream)
    skew = hindsight_skew(late, 0.999)
    assert measure(stream, late, Fixed(skew)).completeness >= 0.999
    assert measure(stream, late, Fixed(skew - 1)).completeness < 0.999


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Heartbeats:
    folder = tmp_path_factory.mktemp("logs")
    _logs(folder / ZEEK)
    return heartbeats(Setup(page=200, seed=4, data=folder))


def _logs(path: Path) -> None:
    start, rows = datetime(2018, 3, 24), 600
    frame = pl.DataFrame(
        {
            "path": [(*LOGS, "weird")[k % 3] for k in range(rows)],
            "write_ts": [start + timedelta(seconds=k) for k in range(rows)],
            "ts": [start + timedelta(seconds=k - k % 7) for k in range(rows)],
        }
    )
    frame.write_parquet(path)


def test_on_spikes_learned_bounds_wait_less_than_hindsight(result: Heartbeats) -> None:
    spikes = {name: holds for name, holds in result.expected().items() if "spikes" in name}
    assert len(spikes) == 4
    assert all(spikes.values()), spikes
    ways = result.outcomes["spikes"]
    assert ways[CONFIDENCE].mean_wait_s < 0.8 * ways[FIXED].mean_wait_s


def test_what_the_paper_says_of_w_and_alpha_trades_waiting_for_lateness(
    result: Heartbeats,
) -> None:
    ways = result.outcomes["spikes"]
    names = ("Figure 4 W=1000 α=0", "Figure 4 W=5000 α=0.5", "Figure 4 W=20000 α=0.9",
             "section 6.1")  # fmt: skip
    waits = [ways[name].mean_wait_s for name in names]
    complete = [ways[name].completeness for name in names]
    assert waits == sorted(waits)
    assert complete == sorted(complete)


def test_json_has_every_stream_and_way(result: Heartbeats, tmp_path: Path) -> None:
    shown = json.loads(json.dumps(result.to_json()))
    assert shown["streams"].keys() == {"zeek", "zeek_ssl", "zeek_dns", "spikes"}
    assert shown["left_out"] == []
    assert len({tuple(stream["ways"]) for stream in shown["streams"].values()}) == 1
    plot_heartbeats(result, tmp_path / "heartbeats.png")
    assert (tmp_path / "heartbeats.png").stat().st_size > 10_000


def test_without_the_logs_it_says_so_and_runs_on_the_generated_stream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    command = ["lab", "heartbeats", "--seconds", "60", "--spikes", "1"]
    shown = json.loads(CliRunner().invoke(app, [*command, "--json"]).stdout)
    assert shown["streams"].keys() == {"spikes"}
    assert ZEEK in shown["left_out"][0]
    assert "Left out: zeek" in CliRunner().invoke(app, [*command, "--no-plot"]).stdout


def test_data_that_is_not_there_or_not_the_logs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FeedError, match="a directory that holds"):
        find_zeek(tmp_path)
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / ZEEK)
    with pytest.raises(FeedError, match="write_ts"):
        list(zeek(tmp_path / ZEEK, 100))


def test_the_same_seed_is_the_same_stream() -> None:
    one, two = spiky(100, 1, 9, 50), spiky(100, 1, 9, 50)
    assert one.moments.tolist() == two.moments.tolist()
    assert np.concatenate(one.ticks).tolist() == np.concatenate(two.ticks).tolist()
