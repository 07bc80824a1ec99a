"""No command deletes what it has not made."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from interpunct.cli.demo import MADE
from interpunct.cli.main import app
from interpunct.lab import feedback_speed_map_spark, throughput, trigger_cost
from interpunct.lab.folders import MARK, fresh
from interpunct.model.errors import InterpunctError

runner = CliRunner()


def left(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.mark.parametrize("command", [["demo"], ["studio", "demo"]], ids=" ".join)
def test_a_demo_refuses_a_folder_with_files_of_others(command: list[str], tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    result = runner.invoke(app, [*command, "--folder", str(tmp_path)], env={"COLUMNS": "400"})
    assert result.exit_code == 1
    assert "expected one that is empty, new, or made by an earlier run" in result.stderr
    assert "Name another, or empty it yourself; nothing was deleted." in result.stderr
    assert (tmp_path / "thesis.tex").read_text() == "years of work"
    assert left(tmp_path) == {"thesis.tex"}


def test_a_demo_refuses_a_file(tmp_path: Path) -> None:
    file = tmp_path / "thesis.tex"
    file.write_text("years of work")
    result = runner.invoke(app, ["demo", "--folder", str(file)], env={"COLUMNS": "400"})
    assert (result.exit_code, "got a file" in result.stderr) == (1, True)
    assert file.read_text() == "years of work"


def test_an_experiment_refuses_a_folder_with_files_of_others(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    for run in (
        lambda: throughput.throughput(throughput.Setup(folder=tmp_path)),
        lambda: trigger_cost.trigger_cost(trigger_cost.Setup(folder=tmp_path)),
        lambda: feedback_speed_map_spark.spark_speed_map(
            feedback_speed_map_spark.Setup(folder=tmp_path)
        ),
    ):
        with pytest.raises(InterpunctError, match="files of others"):
            run()
    assert left(tmp_path) == {"thesis.tex"}


def test_what_an_earlier_run_made_is_emptied(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    fresh(folder)
    (folder / "map").mkdir()
    (folder / "map" / "rows").write_text("1")
    (folder / "spark.log").write_text("…")
    fresh(folder)
    assert left(folder) == {MARK}


def test_what_was_made_before_there_were_marks_is_known_by_its_names(tmp_path: Path) -> None:
    for name in ("spark.log", "sensors.parquet"):
        (tmp_path / name).write_text("…")
    (tmp_path / "notes").write_text("mine")
    with pytest.raises(InterpunctError, match="files of others"):
        fresh(tmp_path, known=MADE)
    (tmp_path / "notes").unlink()
    fresh(tmp_path, known=MADE)
    assert left(tmp_path) == {MARK}


def test_what_a_link_points_to_stays(tmp_path: Path) -> None:
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    theirs.mkdir()
    (theirs / "thesis.tex").write_text("years of work")
    fresh(ours)
    (ours / "link").symlink_to(theirs)
    fresh(ours)
    assert (left(ours), left(theirs)) == ({MARK}, {"thesis.tex"})
