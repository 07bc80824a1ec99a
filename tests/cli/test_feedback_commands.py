"""`interpunct explain` and `interpunct feedback`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

import interpunct as ip
from interpunct.cli.main import app
from interpunct.engine.vitals import QueryVitals
from interpunct.flow.feedback import MOST_UNDELIMITED, Desk, voices
from interpunct.flow.graph import Graph
from interpunct.model.errors import FeedbackError
from interpunct.model.feedback import Feedback
from interpunct.spark.channel import Channel
from interpunct.spark.files import JsonFolder
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


def test_explain_tells_programs_what_it_tells_people(speeds: str) -> None:
    said = ("--labels", "--feedback", "~[segment=3, ts ≤ 100]")
    told = json.loads(run("explain", f"{speeds}:flow", "--json", *said)[1])
    names = ["cars", "count", "map"]
    assert [part["name"] for part in told["parts"]] == names
    assert told["stages"] == [{"nodes": names, "keys": {"cars": ["segment"]}}]
    assert told["labels"] == {name: ["cars"] for name in names}
    assert [step["node"] for step in told["feedback"]] == names[::-1]
    assert told["feedback"][2]["does"] == "guard output 0 with [3, ≤ 119, *]"


@pytest.mark.parametrize("name", ["nothing.py:flow", "no_such_module:flow"])
def test_explain_of_nothing_says_so(name: str) -> None:
    code, out = run("explain", name)
    assert code == 1
    assert "error:" in out


@pytest.mark.parametrize(("command", "examples"), [("explain", 2), ("feedback", 2)])
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
    told = json.loads(run("feedback", str(tmp_path), "map", "~[4, ≤ '2026-01-01']", "--json")[1])
    assert told["sink"] == "map"
    assert told["sent"].startswith("¬[4, ≤ ")
    for sink, text, said in (
        ("mpa", "~[3, ≤ '2026-01-01']", "one of the sinks map"),
        ("map", "~[segment=3]", "ends in time"),
        ("map", "~[lane=3]", "lane"),
    ):
        code, out = run("feedback", str(tmp_path), sink, text)
        assert code == 1
        assert said in out


# The same judgement as in Python ------------------------------------------------------------------

SECOND = 1_000_000
MAP = ip.Schema.of("segment bigint, ts timestamp", time="ts")


def speed_map(*, partial: bool = False) -> Graph:
    flow = ip.Flow("speeds")
    cars = flow.source("cars", "segment bigint, ts timestamp", time=ip.external("ts"))
    count = cars.aggregate(by="segment", every="20s", n="count(*)", name="count")
    flow.sink("map", count)
    if partial:
        flow.sink("now", count.partial)
    return flow.graph


def announced(folder: Path, graph: Graph) -> Channel:
    """The channel of a flow that has been started."""
    channel = Channel.of(str(folder))
    channel.announce(voices(graph))
    return channel


def texts(channel: Channel) -> list[str]:
    return [message.text for message in channel.messages(0, channel.take(0))]


def test_lasting_ends_what_is_said_so_long_after_what_the_sink_has_reached(tmp_path: Path) -> None:
    channel = announced(tmp_path, speed_map())
    channel.tell_reached({"map": 60 * SECOND})
    code, out = run("feedback", str(tmp_path), "map", "~[segment ≠ 3]", "--lasting", "2m")
    assert code == 0, out
    desk = Desk(speed_map())
    same = desk.take("map", "~[segment ≠ 3]", reached=60 * SECOND, lasting="2m")
    assert f"sent to map: {same}" in out
    assert len(texts(channel)) == 1


def test_lasting_is_in_ticks_where_it_has_no_unit(tmp_path: Path) -> None:
    channel = Channel.of(str(tmp_path))
    channel.announce({"map": ip.Schema.of("segment bigint, ts bigint", time="ts")})
    channel.tell_reached({"map": 100})
    code, out = run("feedback", str(tmp_path), "map", "~[segment=3]", "--lasting", "600")
    assert code == 0, out
    assert texts(channel) == ["¬[segment=3, ts≤700]"]


def test_lasting_needs_a_heartbeat_to_count_from(tmp_path: Path) -> None:
    channel = announced(tmp_path, speed_map())
    code, out = run("feedback", str(tmp_path), "map", "~[segment ≠ 3]", "--lasting", "2m")
    assert (code, channel.waiting()) == (1, 0)
    assert "wait for the first results" in out


def test_undelimited_is_accepted_with_a_warning_up_to_a_cap(tmp_path: Path) -> None:
    channel = announced(tmp_path, speed_map())
    for segment in range(MOST_UNDELIMITED):
        code, out = run("feedback", str(tmp_path), "map", f"~[segment={segment}]", "--undelimited")
        assert code == 0, out
        assert "warning: feedback for sink 'map': no punctuation covers" in out
    code, out = run("feedback", str(tmp_path), "map", "~[segment=99]", "--undelimited")
    assert (code, channel.waiting()) == (1, MOST_UNDELIMITED)
    assert f"at most {MOST_UNDELIMITED} patterns" in out


@pytest.mark.parametrize(
    ("sink", "text"),
    [
        ("map", "![segment=3]"),
        ("map", "~[segment=3]"),
        ("map", "~[segment in {}]"),
        ("map", "~[lane=3]"),
        ("map", "segment=3"),
        ("mpa", "~[segment=3]"),
    ],
)
def test_what_python_refuses_the_shell_refuses_in_the_same_words(
    tmp_path: Path, sink: str, text: str
) -> None:
    channel = announced(tmp_path, speed_map())
    with pytest.raises(ip.InterpunctError) as refused:
        Desk(speed_map()).take(sink, text)
    code, out = run("feedback", str(tmp_path), sink, text)
    assert (code, channel.waiting()) == (1, 0)
    assert " ".join(str(refused.value).split()) in " ".join(out.split())


def test_a_demand_that_somebody_answers_is_sent(tmp_path: Path) -> None:
    channel = announced(tmp_path, speed_map(partial=True))
    code, out = run("feedback", str(tmp_path), "map", "![segment=3]")
    assert (code, channel.waiting()) == (0, 1), out


def test_a_wish_for_what_another_program_assumed_away_is_refused(tmp_path: Path) -> None:
    channel = announced(tmp_path, speed_map())
    Channel.of(str(tmp_path)).hand_in("map", "~[segment=3, ts ≤ '1970-01-01 00:01:00']")
    wish = ("feedback", str(tmp_path), "map", "?[segment=3, ts ≤ '1970-01-01 00:00:30']")
    code, out = run(*wish)
    assert code == 1
    assert "assumed away stays away" in out
    channel.tell_reached({"map": 60 * SECOND})
    code, out = run(*wish)
    assert code == 0, "what was assumed is over"
    assert not JsonFolder(channel.path).names("said"), "and forgotten"


def test_a_checkpoint_of_an_earlier_version_takes_every_demand(tmp_path: Path) -> None:
    channel = Channel.of(str(tmp_path))
    JsonFolder(channel.path).write("sinks", {"map": {"ddl": MAP.ddl, "time": "ts"}})
    code, out = run("feedback", str(tmp_path), "map", "![segment=3]")
    assert (code, channel.waiting()) == (0, 1), out


def test_what_was_said_of_attributes_that_a_sink_has_no_more_is_passed_over(tmp_path: Path) -> None:
    channel = Channel.of(str(tmp_path))
    channel.announce({"map": ip.Schema.of("lane bigint, ts bigint", time="ts")})
    channel.hand_in("map", "~[lane=3, ts ≤ 9]")
    channel.announce({"map": ip.Schema.of("segment bigint, ts bigint", time="ts")})
    assert channel.hand_in("map", "?[segment=3]")


def test_feedback_to_a_flow_that_was_never_started_names_the_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out = run("feedback", "live/ck", "map", "~[segment=3]")
    assert code == 1
    assert "got live/ck" in out
    assert "live/ck/interpunct" not in out
    assert "Start the flow first" in out
    assert not (tmp_path / "live").exists(), "and nothing is left there"


def test_a_full_inbox_names_the_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("interpunct.spark.channel.MOST_MESSAGES", 0)
    channel = announced(tmp_path, speed_map())
    with pytest.raises(FeedbackError, match="Is the query running") as refused:
        channel.hand_in("map", "?[segment=3]")
    assert channel.path not in str(refused.value)
