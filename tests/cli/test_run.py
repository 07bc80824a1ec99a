"""`interpunct run` and `interpunct sql` over files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from interpunct.cli.main import app
from interpunct.cli.recorded import Outcome, rows_read, show
from interpunct.cli.shell import progress
from interpunct.progress.clock import ScriptedClock

SQL = """
CREATE STREAM cars (segment bigint, ts timestamp, speed double) TIMESTAMP BY ts
  WITHIN INTERVAL 5 SECONDS;
SELECT segment, ts, avg(speed) AS speed, count(*) AS n FROM cars
GROUP BY segment, TUMBLE(ts, INTERVAL 20 SECONDS)
"""
PYTHON = """
import interpunct as ip
flow = ip.Flow("speeds")
ddl = "segment bigint, ts timestamp, speed double"
cars = flow.source("cars", ddl, ip.external("ts", ip.bounds(skew="5s")))
flow.sink("fast", cars.where("speed > 51"))
"""
CSV = """segment,ts,speed
3,2026-01-01 09:00:01,50
3,2026-01-01 09:00:05,54
4,2026-01-01 09:00:25,60.5
4,2026-01-01 09:00:01,1
"""
WINDOWS = [[3, "2026-01-01T09:00:00+00:00", 52.0, 2], [4, "2026-01-01T09:00:20+00:00", 60.5, 1]]

runner = CliRunner()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "speeds.sql").write_text(SQL)
    (tmp_path / "speeds.py").write_text(PYTHON)
    (tmp_path / "cars.csv").write_text(CSV)
    frame = pl.read_csv("cars.csv", try_parse_dates=True)
    frame.write_parquet("cars.parquet")
    frame.with_columns(pl.col("ts").dt.to_string("iso:strict")).write_ndjson("cars.jsonl")
    return tmp_path


@pytest.mark.parametrize("command", ["run", "sql", "doctor"])
def test_each_has_help_with_an_example(command: str) -> None:
    result = runner.invoke(app, [command, "--help"])
    assert result.exit_code == 0
    assert f"Example: interpunct {command}" in result.stdout


@pytest.mark.parametrize("file", ["cars.csv", "cars.parquet", "cars.jsonl"])
def test_sql_runs_over_files_of_each_kind(place: Path, file: str) -> None:
    result = runner.invoke(app, ["sql", "speeds.sql", "--feeds", f"cars={file}", "--json"])
    assert result.exit_code == 0
    told = json.loads(result.stdout)
    assert [list(row.values()) for row in told["sinks"]["result"]["data"]] == WINDOWS
    assert told["late"] == {"cars": 1}


def test_people_get_a_table_and_what_was_late(place: Path) -> None:
    result = runner.invoke(app, ["sql", "speeds.sql", "--feeds", "cars=cars.csv", "--rows", "1"])
    assert result.exit_code == 0
    assert "2 rows, the first 1 of them" in result.stdout
    assert "late: 1 at cars (the rows are in flow.run(…).late['cars'] in Python" in result.stdout
    Path("late.sql").write_text(f"{SQL.partition('SELECT')[0]} SELECT * FROM LATE(cars)")
    shown = runner.invoke(app, ["sql", "late.sql", "--feeds", "cars=cars.csv", "--json"])
    assert "SELECT * FROM LATE(cars) in SQL" in result.stdout
    assert json.loads(shown.stdout)["sinks"]["result"]["rows"] == 1


def test_late_rows_of_a_query_on_spark_are_told_with_their_place(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show(Outcome({}, {"cars": 2}, {}, "the rows are in c/late, as Parquet"), False, 20)
    assert capsys.readouterr().out == "late: 2 at cars (the rows are in c/late, as Parquet)\n"


def test_a_python_flow_runs_the_same_way_and_is_written(place: Path) -> None:
    command = ["run", "speeds.py:flow", "--feeds", "cars=cars.csv", "--out", "results", "--json"]
    result = runner.invoke(app, command)
    assert result.exit_code == 0
    told = json.loads(result.stdout)["sinks"]["fast"]
    assert told == {
        "rows": 2, "columns": ["segment", "ts", "speed"], "file": "results/fast.parquet",
    }  # fmt: skip
    assert pl.read_parquet("results/fast.parquet")["speed"].to_list() == [54.0, 60.5]


def test_rows_arrive_when_their_column_says(place: Path) -> None:
    Path("late.sql").write_text(
        "CREATE STREAM cars (segment bigint, ts timestamp) TIMESTAMP BY ts ADAPTIVE;\n"
        "PUNCTUATE cars EVERY 10 SECONDS DELAY 5 SECONDS"
    )
    frame = pl.read_csv("cars.csv", try_parse_dates=True)
    arrived = frame.with_columns(pl.col("ts").cum_max().alias("at"))
    arrived.write_parquet("arrived.parquet")
    command = ["sql", "late.sql", "--feeds", "cars=arrived.parquet", "--arrival", "at", "--json"]
    result = runner.invoke(app, command)
    assert result.exit_code == 0
    told = json.loads(result.stdout)
    assert (told["sinks"]["result"]["rows"], told["late"]) == (3, {"punctuate_1": 1})


def test_explain_runs_nothing(place: Path) -> None:
    asked = runner.invoke(app, ["sql", "speeds.sql", "--explain"])
    Path("explain.sql").write_text(SQL.replace("SELECT", "EXPLAIN SELECT"))
    said = runner.invoke(app, ["sql", "explain.sql"])
    assert (asked.exit_code, said.exit_code) == (0, 0)
    assert asked.stdout.startswith("flow speeds\n")
    assert said.stdout.splitlines()[1:] == asked.stdout.splitlines()[1:]


def test_wrong_sql_is_shown_with_a_caret(place: Path) -> None:
    Path("wrong.sql").write_text(SQL.replace("avg(speed)", "avg(sped)"))
    result = runner.invoke(app, ["sql", "wrong.sql"])
    assert result.exit_code == 1
    assert result.stderr.splitlines()[0].startswith("error: wrong.sql, line 4, column 25: ")
    assert result.stderr.splitlines()[2].index("^") - 4 == 24


@pytest.mark.parametrize(
    ("feeds", "said"),
    [
        ([], "a feed for each of cars, got none for cars"),
        (["cars=cars.csv", "vans=cars.csv"], "got one for vans"),
        (["car=cars.csv"], "got none for cars and one for car, which it has not"),
        (["cars=none.csv"], "a file or folder"),
        (["cars"], "source=path"),
        (["cars=vans.csv"], "a column 'segment'"),
    ],
)
def test_wrong_feeds_are_one_line_and_exit_with_1(place: Path, feeds: list[str], said: str) -> None:
    Path("vans.csv").write_text("x\n1\n")
    given = [part for feed in feeds for part in ("--feeds", feed)]
    result = runner.invoke(app, ["sql", "speeds.sql", *given])
    assert result.exit_code == 1
    assert said in result.stderr
    assert result.stderr.count("\n") == 1


def test_nothing_is_done_of_a_file_whose_columns_do_not_fit(place: Path) -> None:
    Path("cars.csv").write_text(CSV.replace("50\n", "fast\n"))
    result = runner.invoke(app, ["run", "speeds.py:flow", "--feeds", "cars=cars.csv"])
    assert result.exit_code == 1
    assert "'speed'" in result.stderr
    assert "done" not in result.stderr


def test_progress_that_has_nothing_to_add_ends_with_done(
    capsys: pytest.CaptureFixture[str],
) -> None:
    clock = ScriptedClock()
    with progress("lab", clock) as report:
        report(0.2, "soon")
        assert capsys.readouterr().err == "", "of short work nothing is said"
        clock.advance(3_000_000)
        report(0.5, "half of it")
        report(1.0, "")
    assert capsys.readouterr().err.splitlines() == ["lab: 50 % done, half of it", "lab: 100 % done"]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("nope.sql", None, "expected a file of SQL statements, got no file nope.sql. Check"),
        (".", None, "got a folder"),
        ("latin.sql", b"SELECT '\xe4'", "in UTF-8, got byte 0xe4 at 8 of latin.sql"),
    ],
)
def test_a_file_of_sql_that_cannot_be_read_is_told_like_any_error(
    place: Path, name: str, content: bytes | None, said: str
) -> None:
    if content is not None:
        Path(name).write_bytes(content)
    result = runner.invoke(app, ["sql", name])
    assert result.exit_code == 1
    assert said in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "more", [["--spark"], ["--checkpoint", "c"], ["--spark", "--checkpoint", "c", "--arrival", "a"]]
)
def test_options_that_do_not_go_together_exit_with_2(place: Path, more: list[str]) -> None:
    assert runner.invoke(app, ["sql", "speeds.sql", *more]).exit_code == 2


def test_rows_read_are_counted_by_the_offsets_of_the_recordings() -> None:
    """Beside the recordings a query has its clock; a source that has not begun has no offset."""
    ends = ['{"row": 40}', '{"row": 2}', '{"tick": 0}', None]
    assert rows_read([{}, {"sources": [{"endOffset": end} for end in ends]}]) == 42
    assert rows_read([]) == 0


@pytest.mark.slow
def test_sql_runs_on_spark(place: Path) -> None:
    """In a process of its own, because the command stops the session it started."""
    rows = "\n".join(CSV.splitlines()[:-1])
    Path("cars.csv").write_text(rows)
    command = ["sql", "speeds.sql", "--feeds", "cars=cars.csv", "--json", "--lanes", "1"]
    done = subprocess.run(
        [sys.executable, "-m", "interpunct.cli.main", *command, "--spark", "--checkpoint", "c"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    told = json.loads(done.stdout)
    assert [list(row.values()) for row in told["sinks"]["result"]["data"]] == WINDOWS
    assert told["late"] == {}
