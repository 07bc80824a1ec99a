"""`interpunct explain` and `interpunct feedback`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

import interpunct as ip
from interpunct.cli.main import app
from interpunct.engine.vitals import QueryVitals
from interpunct.model.feedback import Feedback
from interpunct.spark.channel import Channel
from interpunct.spark.hints import Hints

FLOW = """
import interpunct as ip

def flow():
    flow = ip.Flow("speeds")
    cars = flow.source("cars", "segment bigint, ts bigint, mph double", time=ip.external("ts"))
    flow.sink("map", cars.aggregate(by="segment", every=20, n="count(*)", name="count"))
    return flow

other = flow()
"""


def run(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, list(words))
    return done.exit_code, done.output


@pytest.fixture
def speeds(tmp_path: Path) -> str:
    path = tmp_path / "speeds.py"
    path.write_text(FLOW)
    return str(path)


def test_explain_prints_the_tables_for_a_pattern(speeds: str) -> None:
    code, out = run("explain", f"{speeds}:flow", "--feedback", "¬[*, *, ≥ 5]")
    assert code == 0
    assert "count (aggregate) ¬[*, ≥ a]: close groups once [*, *, ≥ 5]" in out


def test_explain_finds_the_only_flow_and_shows_its_stages(speeds: str) -> None:
    code, out = run("explain", speeds)
    assert code == 0
    assert "count" in out


@pytest.mark.parametrize("name", ["nothing.py:flow", "no_such_module:flow"])
def test_explain_of_nothing_says_so(name: str) -> None:
    code, out = run("explain", name)
    assert code == 1
    assert "error:" in out


@pytest.mark.parametrize(("command", "examples"), [("explain", 2), ("feedback", 1)])
def test_the_patterns_in_the_helps_are_understood(command: str, examples: int) -> None:
    help_text = " ".join(run(command, "--help")[1].split())
    found = re.findall(r'"([¬~?!]\[[^"]+\])"', help_text)
    assert len(found) == examples
    schema = ip.Schema.of("segment bigint, ts timestamp", time="ts")
    assert all(Feedback.parse(text, schema) for text in found)


def test_a_caret_stands_below_what_it_points_at(tmp_path: Path) -> None:
    schema = ip.Schema.of("segment bigint, ts timestamp", time="ts")
    Channel.of(str(tmp_path)).announce({"map": schema})
    code, out = run("feedback", str(tmp_path), "map", "~[segment ≠ 1, ts ≤ '09:00']")
    assert code == 1
    said, pattern, caret = out.splitlines()
    assert said.endswith("It stands at:")
    assert pattern[caret.index("^") :] == "'09:00']"


@pytest.mark.parametrize("running", [True, False])
def test_feedback_to_a_query_that_has_ended_says_so(tmp_path: Path, running: bool) -> None:
    channel = Channel.of(str(tmp_path))
    channel.announce({"map": ip.Schema.of("segment bigint, ts timestamp", time="ts")})
    Hints(f"{tmp_path}/interpunct").tell_query(QueryVitals(3, 0, 0.5, running))
    code, out = run("feedback", str(tmp_path), "map", "~[3, ≤ '2026-01-01 09:00']")
    assert (code, channel.waiting()) == (0, 1)
    assert ("nobody reads this until it is started again" in out) is not running


def test_explain_of_sql_names_the_command_for_it() -> None:
    code, out = run("explain", "speeds.sql")
    assert code == 1
    assert "interpunct sql speeds.sql --explain" in out


def test_feedback_reaches_the_inbox_of_a_checkpoint(tmp_path: Path) -> None:
    channel = Channel.of(str(tmp_path))
    channel.announce({"map": ip.Schema.of("segment bigint, ts timestamp", time="ts")})
    code, out = run("feedback", str(tmp_path), "map", "~[3, ≤ '2026-01-01 09:00']")
    assert code == 0, out
    assert channel.waiting() == 1
    for sink, text, said in (
        ("mpa", "~[3, ≤ '2026-01-01']", "one of the sinks map"),
        ("map", "~[segment=3]", "ends in time"),
        ("map", "~[lane=3]", "lane"),
    ):
        code, out = run("feedback", str(tmp_path), sink, text)
        assert code == 1
        assert said in out
