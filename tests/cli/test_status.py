"""`interpunct status` puts together what the lanes left beside a checkpoint."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import interpunct as ip
from interpunct.cli.main import app
from interpunct.engine.blame import Blame
from interpunct.engine.run import Engine
from interpunct.spark.hints import Hints

SECOND = 1_000_000
runner = CliRunner()


def waiting(schema: str = "ts timestamp") -> list[Blame]:
    """A union of two sources, one of them silent, as the engine reports it."""
    flow = ip.Flow("waiting")
    time = ip.external("ts", ip.bounds(skew=2 * SECOND), ets="never")
    a, b = (flow.source(n, schema, time=time) for n in "ab")
    flow.sink("out", flow.union(a, b, name="both"))
    clock = ip.ScriptedClock(at=100 * SECOND)
    engine = Engine(flow.graph, clock)
    for source, tick in (("b", 90), ("a", 99)):
        page = ip.Page.of_rows(ip.Schema.of("ts bigint"), [(tick * SECOND,)])
        raw = ip.Schema.of(schema)
        frame = page.frame.cast({"ts": raw["ts"].dtype})
        engine.feed(source, ip.Page(raw, frame))
    engine.settle()
    return [Blame(**row) for row in engine.blame().to_dicts()]


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    lines = waiting()
    hints = Hints(f"{tmp_path}/interpunct")
    for lane in (0, 3):
        hints.report(0, lane, lines)
    return tmp_path


def test_people_see_who_waits_for_whom(checkpoint: Path) -> None:
    result = runner.invoke(app, ["status", str(checkpoint)], env={"COLUMNS": "200"})
    assert result.exit_code == 0
    (both,) = [line for line in result.stdout.splitlines() if "both" in line]
    cells = [cell.strip() for cell in both.strip("│").split("│")]
    assert cells[:6] == ["both", "4", "b", "not heard since", "2s", "1970-01-01 00:01:40"]
    assert cells[6].startswith("a tuple stamped 1970-01-01 00:01:32")


def test_programs_get_json_and_nothing_else(checkpoint: Path) -> None:
    shown = json.loads(runner.invoke(app, ["status", str(checkpoint), "--json"]).stdout)
    by_name = {line["operator"]: line for line in shown["waiting"]}
    assert (by_name["both"]["source"], by_name["both"]["behind"]) == ("b", 2 * SECOND)
    assert by_name["both"]["since"] == "1970-01-01T00:01:40+00:00"


def test_collectors_get_gauges(checkpoint: Path) -> None:
    shown = runner.invoke(app, ["status", str(checkpoint), "--metrics"]).stdout
    assert 'interpunct_held_tuples{operator="both",source="b"} 4\n' in shown
    assert 'interpunct_behind_ticks{operator="both",source="b"} 2000000\n' in shown
    assert 'interpunct_heard_timestamp_seconds{operator="both",source="b"} 100.0\n' in shown


def test_a_folder_that_is_no_checkpoint_is_an_error_in_one_line(tmp_path: Path) -> None:
    result = runner.invoke(app, ["status", str(tmp_path)])
    assert result.exit_code == 1
    assert "a flow that has run a batch" in result.stderr


def test_a_flow_in_which_nothing_waits_says_so(tmp_path: Path) -> None:
    Hints(f"{tmp_path}/interpunct").report(0, 0, [])
    assert "Nothing waits." in runner.invoke(app, ["status", str(tmp_path)]).stdout


def test_a_report_that_says_nothing_new_is_not_written_again(checkpoint: Path) -> None:
    hints, path = Hints(f"{checkpoint}/interpunct"), checkpoint / "interpunct" / "blame" / "0" / "3"
    before = path.stat()
    hints.report(0, 3, waiting())
    assert path.stat().st_ino == before.st_ino  # a new report is a new file
    hints.report(0, 3, [])
    assert path.stat().st_ino != before.st_ino
    assert len(hints.reports()) == len(waiting())
