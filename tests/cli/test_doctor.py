"""`interpunct doctor`: it finds what is wrong, says what to do, and tells by its exit code."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from interpunct.cli import doctor
from interpunct.cli.main import app

runner = CliRunner()


def java_home(folder: Path, said: str) -> str:
    """A Java that says this of its version."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho '{said}' >&2\n")
    program.chmod(0o755)
    return str(folder)


@pytest.mark.parametrize(
    ("said", "ok", "found"),
    [
        ('openjdk version "21.0.2" 2024-01-16', True, "21.0.2"),
        ('openjdk version "17.0.15" 2025-04-15', True, "17.0.15"),
        ('java version "1.8.0_401"', False, "8.0_401"),
        ("what?", False, "does not say its version"),
    ],
)
def test_java_is_asked_for_its_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, ok: bool, found: str
) -> None:
    monkeypatch.setenv("JAVA_HOME", java_home(tmp_path / "java", said))
    finding = doctor.java()
    assert (finding.ok, found in finding.found) == (ok, True)
    assert ok or "Install Java 17" in finding.fix


def test_no_java_at_all_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert doctor.java().found == "none on the path, and no JAVA_HOME"
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert doctor.java().found == f"none in JAVA_HOME={tmp_path}"


def test_what_is_wrong_is_told_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    monkeypatch.setenv("PYSPARK_PYTHON", "/bin/sh")
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path / "nowhere"))
    result = runner.invoke(app, ["doctor", "--quick", "--json"])
    assert result.exit_code == 1
    told = json.loads(result.stdout)
    wrong = {check["name"]: check["fix"] for check in told["checks"] if not check["ok"]}
    assert wrong.keys() == {"SPARK_HOME", "PYSPARK_PYTHON", "disk"}
    assert all(wrong.values())
    assert told["ok"] is False


def test_the_libraries_are_those_the_package_asks_for() -> None:
    found = {finding.name: finding for finding in doctor.libraries()}
    assert {"polars", "pyspark", "sqlglot", "typer"} <= found.keys()
    assert "hypothesis" not in found  # asked for by an extra
    assert all(finding.ok for finding in found.values())


def test_each_check_is_told_before_the_next_begins(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told = []

    def last() -> doctor.Finding:
        told.append(capsys.readouterr())
        return doctor.Finding("Spark job", True, "one [row]")

    monkeypatch.setattr(doctor, "spark_job", last)
    doctor.doctor()
    (before,) = told
    assert "Java" in before.out
    assert "running a flow on Spark" in before.err
    assert "one [row]" in capsys.readouterr().out


def test_lines_for_people(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SPARK_HOME", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        monkeypatch.delenv(name, raising=False)
    result = runner.invoke(app, ["doctor", "--quick"])
    assert result.exit_code == 0
    assert result.stdout.rstrip().endswith("All is well.")


@pytest.mark.slow
def test_the_job_on_spark_is_a_real_one() -> None:
    """In a process of its own, because the command stops the session it started."""
    done = subprocess.run(
        [sys.executable, "-m", "interpunct.cli.main", "doctor", "--json"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert json.loads(done.stdout)["checks"][-1]["found"] == "a window of one row gave [(0, 42)]"


def test_a_worker_that_did_not_start_in_time_is_no_fault_of_what_is_above() -> None:
    assert "socketTimeout" in doctor._advice("Python worker failed to connect back.")
    assert doctor._advice("no such folder") == "Mend what is wrong above, then see this."
