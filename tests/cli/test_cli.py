"""The command line: help, JSON, figures, exit codes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from interpunct import __version__
from interpunct.cli.main import app
from interpunct.lab import ets_memory
from interpunct.model.errors import FlowError

COMMANDS = [
    [],
    ["version"],
    ["status"],
    ["lab"],
    ["lab", "ets-latency"],
    ["lab", "ets-memory"],
    ["lab", "disorder"],
    ["lab", "heartbeats"],
    ["lab", "plan-heartbeats"],
    ["lab", "many-sources"],
    ["lab", "idle-source"],
    ["lab", "throughput"],
    ["lab", "trigger-cost"],
    ["lab", "bench"],
    ["lab", "imputation"],
    ["lab", "desired"],
    ["lab", "speedmap"],
    ["lab", "demanded"],
    ["lab", "lmerge-variants"],
    ["lab", "lmerge-chattiness"],
    ["lab", "lmerge-stable"],
    ["lab", "lmerge-cleanse"],
    ["lab", "lmerge-bursty"],
    ["lab", "lmerge-congestion"],
    ["lab", "lmerge-cutover"],
    ["lab", "lmerge-outages"],
]
SHORT = ["lab", "ets-memory", "--seconds", "2", "--workers", "0"]

runner = CliRunner()


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_has_help_with_an_example(command: list[str]) -> None:
    result = runner.invoke(app, [*command, "--help"])
    assert result.exit_code == 0
    assert f"Example: interpunct {' '.join(command)}".strip() in result.stdout


def test_every_command_has_json_for_programs() -> None:
    def leaves(command: Any) -> Iterator[Any]:
        below = getattr(command, "commands", {}).values()
        yield from (leaf for c in below for leaf in leaves(c)) if below else [command]

    found = list(leaves(typer.main.get_command(app)))
    assert len(found) > 30
    lacking = [c.name for c in found if not any("--json" in p.opts for p in c.params)]
    assert lacking == []


def test_version_is_the_packages() -> None:
    assert runner.invoke(app, ["version"]).stdout.strip() == __version__
    told = json.loads(runner.invoke(app, ["version", "--json"]).stdout)
    assert told == {"version": __version__}


def test_json_is_all_there_is_on_stdout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = runner.invoke(app, [*SHORT, "--seed", "5", "--json"])
    assert result.exit_code == 0
    shown = json.loads(result.stdout)
    assert shown["seed"] == 5
    assert shown["peak_queue"]["B"].keys() >= {"0.1", "1000"}
    assert not (tmp_path / "out").exists()


def test_people_get_a_table_the_seed_and_a_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = runner.invoke(app, SHORT)
    assert result.exit_code == 0
    assert "B at 1000/s" in result.stdout
    assert "seed 1" in result.stdout
    assert (tmp_path / "out" / "ets-memory.png").exists()


def test_a_figure_goes_where_it_is_asked_to(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "figure.png"
    assert runner.invoke(app, [*SHORT, "--json", "--plot", str(path)]).exit_code == 0
    assert path.exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["lab", "nonsense"],
        ["lab", "bench", "--tuples", "many"],
        ["lab", "ets-latency", "--seconds", "0"],
        ["lab", "ets-memory", "--step-cost", "-1"],
        [*SHORT, "--plot", "a.png", "--no-plot"],
    ],
    ids=" ".join,
)
def test_wrong_arguments_exit_with_2(arguments: list[str]) -> None:
    assert runner.invoke(app, arguments).exit_code == 2


def test_a_failure_is_one_line_and_exits_with_1(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise FlowError("flow 'x'", "a sink", "none [at all]", "Add one.")

    monkeypatch.setattr(ets_memory, "ets_memory", fail)
    result = runner.invoke(app, [*SHORT, "--no-plot"])
    assert result.exit_code == 1
    assert result.stderr == "error: flow 'x': expected a sink, got none [at all]. Add one.\n"


def test_a_place_that_cannot_be_written_fails_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = runner.invoke(app, [*SHORT, "--plot", str(tmp_path / "file" / "figure.png")])
    assert result.exit_code == 1
    assert result.stderr.startswith("error:")
