"""Killed at any moment and started again, a job ends with the rows of an undisturbed run."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from tests.spark.recovery_job import job
from tests.spark.scenario import batches, comparable, in_process, write_files
from tests.spark.test_parity import read

pytestmark = pytest.mark.slow

KILLS = 10
EXECUTOR_KILLS = 3
EXECUTORS = "local-cluster[2,1,1024]"  # processes of their own, which the driver starts again
ROOT = Path(__file__).parents[2]


def launch(folder: Path, *master: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.spark.recovery_job", str(folder), *master]
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log, start_new_session=True)


def committed(folder: Path) -> int:
    commits = folder / "checkpoint" / "commits"
    return sum(f.name.isdigit() for f in commits.glob("*")) if commits.exists() else 0


def kill_soon(process: subprocess.Popen[bytes], folder: Path, dice: random.Random) -> bool:
    """SIGKILL the driver and all it started, some time after its next batch or two."""
    target = committed(folder) + dice.choice([0, 1, 1, 2])
    while committed(folder) < target:
        if ended(process, 0.05):
            return False
    if ended(process, dice.uniform(0, 0.6)):
        return False
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return True


def reasons(folder: Path) -> str:
    """What the log says went wrong, without the plans that Spark prints after it."""
    lines = (folder / "log").read_text().splitlines()
    telling = [n for n in lines if "Exception" in n or "Error" in n or "Lost executor" in n]
    return "\n".join(n[:300] for n in telling[-60:])


def ended(process: subprocess.Popen[bytes], within: float) -> bool:
    try:
        process.wait(within)
    except subprocess.TimeoutExpired:
        return False
    return True


def executors(process: subprocess.Popen[bytes]) -> list[int]:
    """The executor processes of a driver, which are in its process group."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            command = (path / "cmdline").read_bytes()
            mine = os.getpgid(int(path.name)) == process.pid
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended since
        if mine and b"CoarseGrainedExecutorBackend" in command:
            found.append(int(path.name))
    return sorted(found)


def kill_executor(process: subprocess.Popen[bytes], folder: Path, dice: random.Random) -> bool:
    """SIGKILL one executor, some time after the next batch; the driver goes on."""
    target = committed(folder) + 1
    while committed(folder) < target or not executors(process):
        if ended(process, 0.05):
            return False
    if ended(process, dice.uniform(0, 1.5)):
        return False
    victims = executors(process)
    if victims:
        os.kill(dice.choice(victims), signal.SIGKILL)
    return bool(victims)


def prepared(folder: Path, count: int) -> dict[str, pl.DataFrame]:
    """The job's files for so many batches, and what an undisturbed run makes of them.

    A driver killed between Spark's two notes of a new file reads it together with the next one
    later, and a batch judges by what was known before it. So a tuple here is late by far, whatever
    it is read with, or not late at all."""
    data = [{n: b[n] for n in ("a", "c")} for b in batches(count=count, lag=4)]
    write_files(data, folder)
    return in_process(job(), data)


def test_ten_kills_of_the_driver_leave_every_row_exactly_once(tmp_path: Path) -> None:
    seed = 20
    print("seed", seed)
    dice = random.Random(seed)
    expected = prepared(tmp_path, 26)
    kills = 0
    while kills < KILLS:
        process = launch(tmp_path)
        if not kill_soon(process, tmp_path, dice):
            assert process.returncode == 0, reasons(tmp_path)
            break
        kills += 1
    process = launch(tmp_path)
    assert process.wait(300) == 0, reasons(tmp_path)
    assert kills == KILLS, "the job ended before it could be killed often enough"
    check_rows(tmp_path, expected)


def test_killed_executors_leave_every_row_exactly_once(tmp_path: Path) -> None:
    """Spark starts executors and tasks again; where it gives up, which it may when there is hardly
    any processor to be had, the driver is started again, as whoever runs a driver would."""
    seed = 21
    print("seed", seed)
    dice = random.Random(seed)
    expected = prepared(tmp_path, 7)
    kills = 0
    for driver in range(1 + EXECUTOR_KILLS):
        process = launch(tmp_path, EXECUTORS)
        while kills < EXECUTOR_KILLS and process.poll() is None:
            kills += kill_executor(process, tmp_path, dice)
        if process.wait(300) == 0:
            break
        print("driver", driver, "gave up:", reasons(tmp_path))
    assert process.returncode == 0, reasons(tmp_path)
    assert kills == EXECUTOR_KILLS, "the job ended before executors were killed often enough"
    check_rows(tmp_path, expected)


def check_rows(folder: Path, expected: dict[str, pl.DataFrame]) -> None:
    """What the job wrote is what the engine delivers in process."""
    found = {name: read(folder / "out" / name) for name in ("joined", "total")}
    late = folder / "checkpoint" / "late" / "c"
    if late.exists():
        found["late:c"] = read(late)
    assert set(found) == set(expected)
    judged = ["_heartbeat", "_lateness"]  # by what was known when it came
    for name, frame in expected.items():
        got, wanted = (f.drop(judged, strict=False) for f in (found[name], frame))
        assert comparable(got) == comparable(wanted), name
