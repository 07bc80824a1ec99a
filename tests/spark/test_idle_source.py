"""The experiment with a quiet source, small, and the page that tells of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from interpunct.cli.main import app
from interpunct.lab.idle_source import Setup, idle_source, plot_idle

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")

PAGE = Path(__file__).parents[2] / "docs" / "synchronize.md"


def test_only_the_synchronized_jobs_go_on_while_a_source_is_quiet(
    spark: SparkSession, tmp_path: Path
) -> None:
    result = idle_source(Setup(quiet_seconds=6, lead=2, tail=2), spark=spark)
    shown = result.to_json()
    assert shown["plain"]["rows_during_quiet"] == 0
    assert shown["interpunct"]["rows_during_quiet"] > 50
    assert shown["interpunct"]["latency_batches"] == {"p50": 1, "max": 1}
    assert all(shown["expected"].values()), shown["expected"]
    plot_idle(result, tmp_path / "idle.png")
    assert (tmp_path / "idle.png").stat().st_size > 10_000


def test_the_command_explains_itself() -> None:
    shown = CliRunner().invoke(app, ["lab", "idle-source", "--help"])
    assert shown.exit_code == 0
    assert "Example: interpunct lab idle-source" in shown.stdout
    wrong = CliRunner().invoke(app, ["lab", "idle-source", "--quiet-seconds", "0"])
    assert wrong.exit_code == 2


def test_the_page_prints_what_it_says(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    text = PAGE.read_text()
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (output,) = re.findall(r"```output\n(.*?)```", text, re.DOTALL)
    exec(compile(code, str(PAGE), "exec"), {"__name__": "page"})
    assert capsys.readouterr().out == output
