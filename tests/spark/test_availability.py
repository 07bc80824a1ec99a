"""Replicas as processes: killed, replaced or jump-started, their merged table is that of one
undisturbed run, with no row twice."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

import interpunct as ip
from interpunct.cli.main import app
from interpunct.cli.replica_process import Job
from interpunct.cli.replicas import POLL, Home, ended
from interpunct.spark.merge_tables import MANIFEST, read_table
from interpunct.spark.replica import checkpoint_of
from tests.spark import availability_job
from tests.spark.streams import SECOND, T0, write

pytestmark = [
    pytest.mark.slow,
    # Processes that outlive the object that started them are what this is about.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

JOB = Path(availability_job.__file__)
CLOSING = T0 + 3600 * SECOND
DISORDER = 15 * SECOND  # half of what the job's bounds allow
PATIENCE = 1500  # looks, each POLL seconds after the one before

REWRITTEN = """
from tests.spark.availability_job import DDL, feeds
import interpunct as ip

def flow():
    made = ip.Flow("rewritten")
    rows = made.source("rows", DDL, time=ip.external("ts", ip.bounds(skew="20s"), ets="never"))
    finer = rows.aggregate(by="k", every="5s", n="count(*)", total="sum(v)")
    made.sink("totals", finer.aggregate(by="k", every="10s", n="sum(n)", total="sum(total)"))
    return made
"""


def rows(seed: int) -> pl.DataFrame:
    dice = random.Random(seed)
    ticks = [T0 + dice.randrange(120 * SECOND) for _ in range(600)]
    return pl.DataFrame(
        {
            "ts": pl.Series(ticks, dtype=pl.Int64).cast(pl.Datetime("us", "UTC")),
            "k": [dice.randrange(3) for _ in ticks],
            "v": [dice.randrange(100) for _ in ticks],
        }
    )


def told(data: pl.DataFrame, seed: int, files: int) -> list[pl.DataFrame]:
    """The same rows in another order and other files, and one row far ahead that ends all."""
    dice = random.Random(seed)
    due = [t + dice.uniform(0, DISORDER) for t in data["ts"].cast(pl.Int64)]
    mixed = data.with_columns(due=pl.Series(due)).sort("due").drop("due")
    size = -(-mixed.height // files)
    end = pl.DataFrame({"ts": [CLOSING], "k": [0], "v": [0]}).with_columns(
        pl.col("ts").cast(pl.Datetime("us", "UTC"))
    )
    return [*mixed.iter_slices(size), end]


@pytest.fixture
def inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Iterator[pl.DataFrame]]:
    """Two presentations of the same rows, file by file as the test lets them in."""
    monkeypatch.setenv("INTERPUNCT_TEST_INPUT", str(tmp_path / "input"))
    for name in ("a", "b"):
        (tmp_path / "input" / name).mkdir(parents=True)
    data = rows(1)
    return {"a": iter(told(data, 2, 8)), "b": iter(told(data, 3, 6))}


@pytest.fixture
def home(tmp_path: Path, inputs: dict[str, Iterator[pl.DataFrame]]) -> Iterator[Home]:
    """A home whose processes end with the test."""
    made = Home(tmp_path / "home")
    yield made
    for path in made.path.glob("**/process.json"):
        running = made._running(path.parent)
        if running is not None:
            os.killpg(running, signal.SIGKILL)


def let_in(folder: Path, inputs: dict[str, Iterator[pl.DataFrame]], files: int | None) -> None:
    """The next few files of each presentation, or the rest."""
    for name, left in inputs.items():
        place = folder / "input" / name
        write(place, list(islice(left, files)), first=len(list(place.iterdir())))


def expected() -> list[tuple[Any, ...]]:
    """What one run in process finds, as rows of the table."""
    flow = availability_job.flow()
    found = flow.run({"rows": rows(1).sort("ts")}, clock=ip.ScriptedClock())["totals"]
    time = flow.graph.sinks[0].streams[0].schema.ordered_by
    start = pl.col(time).cast(pl.Int64)
    payload = [n for n in found.columns if n != time]
    return sorted(
        found.select(start.alias("vs"), (start + 1).alias("ve"), *payload).rows(), key=repr
    )


def found(home: Home) -> list[tuple[Any, ...]]:
    """The merged table, without the window of the row that ends all."""
    if not (home.path / "table" / MANIFEST).exists():
        return []
    frame = read_table(home.path / "table")
    if not frame.width:
        return []
    ticks = frame.with_columns(pl.col("vs", "ve").cast(pl.Int64))
    return sorted(ticks.filter(pl.col("vs") < CLOSING).rows(), key=repr)


def committed(home: Home, name: str) -> int:
    commits = checkpoint_of(home.path, name) / "commits"
    return sum(f.name.isdigit() for f in commits.glob("*")) if commits.exists() else 0


def all_read(home: Home) -> bool:
    """Whether the merger has read every file there is, and finished those batches: Spark notes the
    files of a batch first, then that it begins, then that it is done."""
    checkpoint = home.path / "merger" / "checkpoint"
    logs = [p for p in (checkpoint / "sources" / "0").glob("*") if p.name[0].isdigit()]
    seen = {e["path"] for p in logs for e in map(json.loads, p.read_text().splitlines()[1:])}
    files = list((home.path / "elements").glob("*/[!.]*.parquet"))
    noted, begun, done = (
        max((int(p.stem) for p in (checkpoint / log).glob("*") if p.stem.isdigit()), default=-1)
        for log in ("sources/0", "offsets", "commits")
    )
    return len(seen) == len(files) and noted <= begun == done


def wait(home: Home, until: Callable[[], bool], *processes: subprocess.Popen[bytes]) -> None:
    """Look again and again; a process that ends meanwhile is a failure."""
    for _ in range(PATIENCE):
        if until():
            return
        for process in processes:
            if ended(process, POLL / len(processes)) or home.merger is None:
                raise AssertionError(last_words(home))
    raise AssertionError(last_words(home))


def last_words(home: Home) -> list[str]:
    return [p.read_text()[-2000:] for p in home.path.glob("**/log")]


def complete(home: Home, *names: str) -> Callable[[], bool]:
    last = CLOSING - 60 * SECOND
    return lambda: all(home.stable(n) > last for n in names) and all_read(home)


def test_either_replica_may_be_killed_and_the_table_stays_right(
    home: Home, inputs: dict[str, Iterator[pl.DataFrame]], tmp_path: Path
) -> None:
    seed = 31
    print("seed", seed)
    dice = random.Random(seed)
    home.start_merger(JOB)
    running = {name: home.start(JOB, name) for name in ("a", "b")}
    for victim in dice.sample(["a", "b"], 2):
        target = committed(home, victim) + dice.choice([1, 2])
        let_in(tmp_path, inputs, 2)
        wait(home, lambda v=victim, t=target: committed(home, v) >= t, running[victim])
        ended(running[victim], dice.uniform(0, 0.6))
        os.killpg(running[victim].pid, signal.SIGKILL)
        running[victim].wait()
        running[victim] = home.start(JOB, victim)
    let_in(tmp_path, inputs, None)
    wait(home, complete(home, "a", "b"), *running.values())
    assert found(home) == expected()
    print("longest silence", round(home.longest_silence(), 2), "s")


def run(*words: str) -> dict[str, Any]:
    done = CliRunner().invoke(app, [*words, "--json"])
    assert done.exit_code == 0, done.output
    said: dict[str, Any] = json.loads(done.stdout)
    return said


def test_jumpstart_and_cutover_leave_no_gap_and_no_duplicate(
    home: Home, inputs: dict[str, Iterator[pl.DataFrame]], tmp_path: Path
) -> None:
    rewritten = tmp_path / "rewritten.py"
    rewritten.write_text(REWRITTEN)
    place = str(home.path)
    home.start_merger(JOB)
    first = home.start(JOB, "a")
    let_in(tmp_path, inputs, 5)
    wait(home, lambda: committed(home, "a") >= 5, first)
    jumped = run("jumpstart", place, str(JOB), "--from", "a", "--name", "a2")
    cut = run("cutover", place, str(rewritten), "--from", "a", "--name", "b2")
    assert cut["stable"]["new"] >= cut["stable"]["old"]
    assert home.pid_of("a") is None
    assert {home.pid_of("a2"), home.pid_of("b2")} == {jumped["pid"], cut["pid"]}
    first.wait()
    let_in(tmp_path, inputs, None)
    other = home.start(JOB, "b")
    wait(home, complete(home, "a2", "b2"), other)
    assert found(home) == expected()
    print(cut)


def test_a_job_or_a_replica_that_is_not_there_is_refused(tmp_path: Path) -> None:
    empty = tmp_path / "job.py"
    empty.write_text("flow = 3")
    for words in (
        ("standby", str(tmp_path), "nowhere.py"),
        ("standby", str(tmp_path), str(empty)),
        ("jumpstart", str(tmp_path), str(JOB), "--from", "a"),
        ("cutover", str(tmp_path), str(JOB), "--from", "a"),
    ):
        assert CliRunner().invoke(app, list(words)).exit_code == 1, words
    assert Job.load(JOB).sink == "totals"
