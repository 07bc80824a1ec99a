"""`interpunct status` puts together what the lanes left beside a checkpoint."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

import interpunct as ip
from interpunct.cli.main import app
from interpunct.engine.run import Engine
from interpunct.engine.vitals import QueryVitals, SourceVitals, Vitals, together
from interpunct.flow.outline import Outline
from interpunct.model.schema import END_OF_TIME
from interpunct.spark.channel import Channel
from interpunct.spark.hints import Hints

SECOND = 1_000_000
runner = CliRunner()


def demo_flow(schema: str = "ts timestamp") -> ip.Flow:
    """A union of two sources."""
    flow = ip.Flow("waiting")
    time = ip.external("ts", ip.bounds(skew=2 * SECOND), ets="never")
    a, b = (flow.source(n, schema, time=time) for n in "ab")
    flow.sink("out", flow.union(a, b, name="both"))
    return flow


def waiting(schema: str = "ts timestamp") -> Vitals:
    """One of the two is silent; as the engine sees it."""
    engine = Engine(demo_flow(schema).graph, ip.ScriptedClock(at=100 * SECOND))
    for source, tick in (("b", 90), ("a", 99)):
        page = ip.Page.of_rows(ip.Schema.of("ts bigint"), [(tick * SECOND,)])
        raw = ip.Schema.of(schema)
        frame = page.frame.cast({"ts": raw["ts"].dtype})
        engine.feed(source, ip.Page(raw, frame))
    engine.settle()
    return engine.vitals()


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
    Channel.of(str(checkpoint)).tell_reached({"out": 88 * SECOND})
    command = ["status", str(checkpoint)]
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


def test_a_report_that_says_nothing_new_is_not_written_again(checkpoint: Path) -> None:
    hints, path = (
        Hints(f"{checkpoint}/interpunct"),
        checkpoint / "interpunct" / "vitals" / "0" / "3",
    )
    before = path.stat()
    hints.report(0, 3, waiting())
    assert path.stat().st_ino == before.st_ino  # a new report is a new file
    hints.report(0, 3, Vitals())
    assert path.stat().st_ino != before.st_ino
    assert len(hints.vitals().waiting) == len(waiting().waiting)
