"""`interpunct status` puts together what the lanes left beside a checkpoint."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.cli.waiting import SECOND, demo_flow, waiting
from typer.testing import CliRunner

import interpunct as ip
from interpunct.cli.main import app
from interpunct.cli.status import _moment
from interpunct.engine.blame import Blame
from interpunct.engine.run import Engine
from interpunct.engine.vitals import (
    OperatorVitals,
    QueryVitals,
    Sign,
    SourceVitals,
    Vitals,
    together,
)
from interpunct.flow.outline import Outline
from interpunct.model.schema import END_OF_TIME
from interpunct.progress.clock import RealClock
from interpunct.spark.channel import Channel
from interpunct.spark.hints import Hints
from interpunct.spark.reporter import seen

runner = CliRunner()


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    lines = waiting()
    hints = Hints(f"{tmp_path}/interpunct")
    for lane in (0, 3):
        hints.report(0, lane, lines)
    hints.announce(Outline.of(demo_flow().graph))
    hints.tell_query(QueryVitals(7, 100 * SECOND, 0.25, True))
    return tmp_path


def test_people_see_who_waits_for_whom(checkpoint: Path) -> None:
    result = runner.invoke(app, ["status", str(checkpoint)], env={"COLUMNS": "200"})
    assert result.exit_code == 0
    blamed = result.stdout[result.stdout.index("who waits for whom") :]
    both, helps = [line for line in blamed.splitlines() if "both" in line]
    cells = [cell.strip() for cell in both.strip("│").split("│")]
    assert cells == ["both", "4", "b", "silent since last heard", "2s", "1970-01-01 00:01:40"]
    assert helps.startswith("both is released by a tuple stamped 1970-01-01 00:01:32")


def test_a_narrow_terminal_breaks_words_and_no_times(checkpoint: Path) -> None:
    narrow = runner.invoke(app, ["status", str(checkpoint)], env={"COLUMNS": "80"}).stdout
    wide = runner.invoke(app, ["status", str(checkpoint)], env={"COLUMNS": "200"}).stdout
    moments = re.findall(r"[0-9-]{10} [0-9:]{8}", wide)
    assert moments
    assert re.findall(r"[0-9-]{10} [0-9:]{8}", narrow) == moments
    assert max(map(len, narrow.splitlines()[1:])) <= 80


def test_who_holds_nothing_is_listed_for_programs_alone(checkpoint: Path) -> None:
    shown = runner.invoke(app, ["status", str(checkpoint)], env={"COLUMNS": "200"}).stdout
    assert "out" not in [line.strip("│ ").split(" ")[0] for line in shown.splitlines()[-6:]]
    assert "out is released" not in shown
    told = json.loads(runner.invoke(app, ["status", str(checkpoint), "--json"]).stdout)
    assert {line["operator"]: line["holds"] for line in told["waiting"]} == {"both": 4, "out": 0}


def test_people_see_batches_heartbeats_and_guards(checkpoint: Path) -> None:
    shown = runner.invoke(app, ["status", str(checkpoint)], env={"COLUMNS": "200"}).stdout
    assert "7 batches, the last that is done began at 1970-01-01 00:01:40 and took 0.25 s" in shown
    rows = [[c.strip() for c in line.strip("│").split("│")] for line in shown.splitlines()]
    heard = "1970-01-01 00:01:40"
    assert ["b", "1970-01-01 00:01:28", heard, "1", "0", "silent since last heard"] in rows
    assert ["both", "4", "0", "0", "0"] in rows  # holds, guards, skipped, put out


def test_programs_get_json_and_nothing_else(checkpoint: Path) -> None:
    shown = json.loads(runner.invoke(app, ["status", str(checkpoint), "--json"]).stdout)
    by_name = {line["operator"]: line for line in shown["waiting"]}
    assert (by_name["both"]["source"], by_name["both"]["behind"]) == ("b", 2 * SECOND)
    assert by_name["both"]["since"] == "1970-01-01T00:01:40+00:00"
    assert shown["query"]["began"] == "1970-01-01T00:01:40+00:00"
    assert shown["sources"]["b"]["reached"] == 88 * SECOND
    assert shown["operators"]["both"] == {"held": 4, "guards": 0, "skipped": 0, "made": [0]}


def test_collectors_get_gauges(checkpoint: Path) -> None:
    shown = runner.invoke(app, ["status", str(checkpoint), "--metrics"]).stdout
    assert 'interpunct_held_tuples{flow="waiting",operator="both"} 4.0\n' in shown
    assert 'interpunct_behind_ticks{flow="waiting",operator="both",source="b"} 2e+06\n' in shown
    assert 'interpunct_heard_timestamp_seconds{flow="waiting",source="b"} 100.0\n' in shown
    assert 'interpunct_heartbeat_timestamp_seconds{flow="waiting",source="b"} 88.0\n' in shown
    assert 'interpunct_batches_total{flow="waiting"} 7.0\n' in shown


def test_a_folder_that_is_no_checkpoint_is_an_error_in_one_line(tmp_path: Path) -> None:
    result = runner.invoke(app, ["status", str(tmp_path)])
    assert result.exit_code == 1
    assert "a flow that has run a batch" in result.stderr


def finished(schema: str = "ts timestamp") -> Vitals:
    """Both sources have come to their end."""
    engine = Engine(demo_flow(schema).graph, ip.ScriptedClock(at=100 * SECOND))
    for source in "ab":
        engine.finish(source)
    engine.settle()
    return engine.vitals()


@pytest.fixture
def ended(tmp_path: Path) -> Path:
    """The checkpoint of a flow whose sources have finished, and which has ended."""
    hints = Hints(f"{tmp_path}/interpunct")
    hints.announce(Outline.of(demo_flow().graph))
    hints.report(0, 0, finished())
    hints.tell_query(QueryVitals(7, 100 * SECOND, 0.25, False))
    Channel.of(str(tmp_path)).tell_reached({"out": END_OF_TIME})
    return tmp_path


def test_the_end_of_time_is_shown_as_finished_and_nobody_waits_for_it(ended: Path) -> None:
    result = runner.invoke(app, ["status", str(ended)], env={"COLUMNS": "200"})
    assert result.exit_code == 0
    rows = [[c.strip() for c in line.strip("│").split("│")] for line in result.stdout.splitlines()]
    assert ["b", "finished", "never", "0", "0", "finished"] in rows
    assert "Nothing waits." in result.stdout
    assert "behind" not in result.stdout  # nothing more will come that could be


def test_programs_read_the_end_of_time_as_null_and_finished(ended: Path) -> None:
    shown = json.loads(runner.invoke(app, ["status", str(ended), "--json"]).stdout)
    assert (shown["sources"]["b"]["reached"], shown["sources"]["b"]["finished"]) == (None, True)
    assert (shown["reached"], shown["finished"]) == ({"out": None}, ["out"])
    assert (shown["lag"], shown["waiting"]) == (None, [])


def test_collectors_are_told_no_heartbeat_of_a_year_that_is_none(ended: Path) -> None:
    shown = runner.invoke(app, ["status", str(ended), "--metrics"]).stdout
    beats = [n for n in shown.splitlines() if n.startswith("interpunct_heartbeat_timestamp")]
    assert all(line.endswith("+Inf") for line in beats)


def test_the_end_of_time_as_older_lanes_wrote_it_is_read() -> None:
    old = {"reached": END_OF_TIME, "heard": 5, "rows": 1, "late": 0, "quiet": "finished"}
    assert SourceVitals.of_json(old) == SourceVitals(None, 5, 1, 0, "finished", finished=True)


def test_a_source_has_come_as_far_as_the_lane_in_which_it_has_not_finished() -> None:
    done, on = SourceVitals(finished=True), SourceVitals(reached=7)
    for lanes in ((done, on), (on, done)):
        seen = together({0: [Vitals(sources={"a": lane}) for lane in lanes]}).sources["a"]
        assert (seen.reached, seen.finished) == (7, False)


def test_results_are_behind_the_clock_as_long_as_the_query_runs(checkpoint: Path) -> None:
    channel, command = Channel.of(str(checkpoint)), ["status", str(checkpoint)]
    channel.tell_reached({"out": 88 * SECOND})
    shown = runner.invoke(app, command, env={"COLUMNS": "400"}).stdout
    assert "results have come to 1970-01-01 00:01:28." in shown, "which says more than 56 years"
    channel.tell_reached({"out": RealClock().now() - 88 * SECOND})
    shown = runner.invoke(app, command, env={"COLUMNS": "400"}).stdout
    assert "behind the clock." in shown
    Hints(f"{checkpoint}/interpunct").tell_query(QueryVitals(7, 100 * SECOND, 0.25, False))
    assert "behind the clock" not in runner.invoke(app, command, env={"COLUMNS": "400"}).stdout


@pytest.mark.parametrize("part", ["metadata", "offsets/0"])
def test_the_checkpoint_of_another_query_is_told_from_none(tmp_path: Path, part: str) -> None:
    (tmp_path / part).parent.mkdir(exist_ok=True)
    (tmp_path / part).write_text("")
    result = runner.invoke(app, ["status", str(tmp_path)])
    assert result.exit_code == 1
    assert "got the checkpoint of another query" in result.stderr
    assert "query.lastProgress, where eventTime has the watermark" in result.stderr


def test_a_flow_in_which_nothing_waits_says_so_once_it_has_begun(tmp_path: Path) -> None:
    hints = Hints(f"{tmp_path}/interpunct")
    hints.report(0, 0, Vitals())
    assert "No batch has come" in runner.invoke(app, ["status", str(tmp_path)]).stdout
    hints.tell_query(QueryVitals(1, 100 * SECOND, 0.25, True))
    assert "Nothing waits." in runner.invoke(app, ["status", str(tmp_path)]).stdout


def test_a_lane_that_reports_takes_nothing_from_the_others(checkpoint: Path) -> None:
    hints = Hints(f"{checkpoint}/interpunct")
    hints.report(0, 3, Vitals())
    assert len(hints.vitals().waiting) == len(waiting().waiting)


@pytest.fixture
def killed(checkpoint: Path) -> Path:
    """The checkpoint of a query that ran, and was last heard of 120 seconds into time."""
    Channel.of(str(checkpoint)).tell_reached({"out": 88 * SECOND})
    Hints(f"{checkpoint}/interpunct").tell_alive(Sign(120 * SECOND, every=5 * SECOND))
    return checkpoint


def test_a_query_that_is_not_heard_of_any_more_is_not_said_to_run(killed: Path) -> None:
    shown = runner.invoke(app, ["status", str(killed)], env={"COLUMNS": "200"}).stdout
    assert shown.splitlines()[0] == (
        "The query has not been heard of since 1970-01-01 00:02:00: it may have been killed. "
        "7 batches, the last that is done began at 1970-01-01 00:01:40 and took 0.25 s."
    )
    assert "who waited for whom when it was last heard of" in shown
    assert "both would have been released by a tuple stamped 1970-01-01 00:01:32" in shown


def test_programs_and_collectors_are_told_of_silence(killed: Path) -> None:
    shown = json.loads(runner.invoke(app, ["status", str(killed), "--json"]).stdout)
    assert (shown["query"]["running"], shown["query"]["silent"]) == (False, True)
    assert (shown["query"]["heard"], shown["lag"]) == ("1970-01-01T00:02:00+00:00", None)
    metrics = runner.invoke(app, ["status", str(killed), "--metrics"]).stdout
    assert 'interpunct_running{flow="waiting"} 0.0\n' in metrics
    assert "interpunct_lag_seconds" not in metrics


def test_no_source_was_heard_of_after_the_query_was(killed: Path) -> None:
    """A batch may be under way when a query is killed that had said for a while only that it is
    alive: its lanes have told of it, and it has not."""
    hints = Hints(f"{killed}/interpunct")
    hints.report(0, 3, Vitals(sources={"a": SourceVitals(heard=122 * SECOND)}))
    shown = runner.invoke(app, ["status", str(killed)], env={"COLUMNS": "200"}).stdout
    assert shown.startswith("The query has not been heard of since 1970-01-01 00:02:02:")
    rows = [[c.strip() for c in line.strip("│").split("│")] for line in shown.splitlines()]
    assert next(row[2] for row in rows if row[0] == "a") == "1970-01-01 00:02:02"
    told = json.loads(runner.invoke(app, ["status", str(killed), "--json"]).stdout)
    assert told["query"]["heard"] == told["sources"]["a"]["heard"] == "1970-01-01T00:02:02+00:00"


def test_a_query_that_has_just_been_heard_of_runs(killed: Path) -> None:
    alive = RealClock().now()
    Hints(f"{killed}/interpunct").tell_alive(Sign(alive))
    assert "The query runs: 7 batches" in runner.invoke(app, ["status", str(killed)]).stdout
    shown = json.loads(runner.invoke(app, ["status", str(killed), "--json"]).stdout)
    assert (shown["query"]["running"], shown["query"]["silent"]) == (True, False)
    assert shown["lag"] > 0


def test_a_query_that_was_started_again_says_so_until_a_batch_is_done(killed: Path) -> None:
    alive = RealClock().now()
    Hints(f"{killed}/interpunct").tell_alive(Sign(alive, since=alive))
    shown = runner.invoke(app, ["status", str(killed)], env={"COLUMNS": "300"}).stdout
    again = _moment(alive).strftime("%Y-%m-%d %H:%M:%S")
    assert shown.startswith(
        f"The query was started again at {again} and is in its first batch since: before, 7 batches"
    )
    told = json.loads(runner.invoke(app, ["status", str(killed), "--json"]).stdout)
    assert told["query"]["since"] == _moment(alive).isoformat()
    Hints(f"{killed}/interpunct").tell_alive(Sign(alive, since=1))
    assert "The query runs: 7 batches" in runner.invoke(app, ["status", str(killed)]).stdout


@pytest.mark.parametrize(
    ("now", "every", "said"),
    [
        (101, None, "sending"),
        (109, 5, "sending"),
        (111, 5, "silent since last heard"),
        (150, 60, "sending"),
        (221, 60, "silent since last heard"),
    ],
)
def test_a_source_is_sending_when_it_was_heard_of_within_the_last_batches(
    checkpoint: Path, now: int, every: int | None, said: str
) -> None:
    hints = Hints(f"{checkpoint}/interpunct")
    hints.tell_alive(Sign(now * SECOND, None if every is None else every * SECOND))
    vitals = seen(str(checkpoint), now * SECOND).vitals  # both sources were heard of at 100
    assert {s.quiet for s in vitals.sources.values()} == {said}
    assert {line.quiet for line in vitals.waiting} == {said}


def test_of_a_query_that_runs_no_more_sources_are_told_as_of_its_last_batch(killed: Path) -> None:
    vitals = seen(str(killed), 10**15).vitals
    assert {s.quiet for s in vitals.sources.values()} == {"sending"}
    shown = runner.invoke(app, ["status", str(killed)], env={"COLUMNS": "200"}).stdout
    assert "which was" in shown
    assert "which is" not in shown


def test_a_source_that_left_out_the_last_batches_of_a_query_that_has_ended_was_not_sending(
    checkpoint: Path,
) -> None:
    hints = Hints(f"{checkpoint}/interpunct")
    hints.tell_alive(Sign(104 * SECOND, every=SECOND))
    hints.tell_query(QueryVitals(9, 104 * SECOND, 0.25, False))
    vitals = seen(str(checkpoint), 105 * SECOND).vitals  # both sources were heard of at 100
    assert {s.quiet for s in vitals.sources.values()} == {"silent since last heard"}


@pytest.mark.parametrize("kind", ["idle", "finished", "never seen", "has something unread"])
def test_what_is_known_of_a_quiet_source_is_said_however_lately_it_sent(kind: str) -> None:
    waits = Blame("both", "a", kind, 2, 9, 5, 4, 100, "a tuple")
    vitals = Vitals({}, {"a": SourceVitals(heard=100, quiet=kind)}, (waits,))
    assert vitals.since(0) == vitals


def long_names(folder: Path) -> tuple[str, ...]:
    """A checkpoint in which names are long."""
    union, source, other = "union_of_vehicles", "vehicles_downtown", "temperature"
    quiet = "silent since last heard"
    hints = Hints(f"{folder}/interpunct")
    sources = {
        source: SourceVitals(SECOND, SECOND, 1234, 17, quiet),
        other: SourceVitals(SECOND, SECOND, 1234, 0, "idle"),
    }
    waits = Blame(union, source, quiet, 1234, 9, 5, 4 * SECOND, SECOND, "a tuple")
    hints.report(0, 0, Vitals({union: OperatorVitals(1234)}, sources, (waits,)))
    return union, source, other


@pytest.mark.parametrize("columns", [80, 40])
def test_a_narrow_terminal_cuts_no_name(tmp_path: Path, columns: int) -> None:
    names = long_names(tmp_path)
    env = {"COLUMNS": str(columns)}
    shown = runner.invoke(app, ["status", str(tmp_path)], env=env).stdout
    assert "…" not in shown
    cells = {c.strip() for line in shown.splitlines() for c in line.strip("│").split("│")}
    assert cells >= {*names, "1,234", "1970-01-01 00:00:01"}
    if columns == 80:
        assert max(map(len, shown.splitlines())) <= columns


def test_people_are_told_times_in_one_form(checkpoint: Path) -> None:
    shown = runner.invoke(app, ["status", str(checkpoint)], env={"COLUMNS": "200"}).stdout
    assert "+00:00" not in shown
    assert not re.search(r":[0-9]{2}\.[0-9]", shown)
