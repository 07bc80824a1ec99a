"""A home of replicas: which processes run, and how one is started, ended or copied.

home/replicas/<name>/   process.json   log   checkpoint/
home/merger/            process.json   log   checkpoint/
home/elements/replica=<name>/          what each replica tells
home/ledger/  home/table/              what the merger keeps
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from interpunct.cli.replica_process import Job
from interpunct.model.errors import FlowError
from interpunct.spark.lmerge import quarantined
from interpunct.spark.merge_ledger import progress
from interpunct.spark.replica import (
    ElementFiles,
    checkpoint_of,
    guaranteed_after,
    merger_checkpoint,
    stable_of,
)

POLL = 0.2  # seconds from one look at what a process has told to the next
ATTEMPTS = 5  # to copy a checkpoint in which a running query clears away


@dataclass(frozen=True)
class Home:
    """The folder of one replicated query."""

    path: Path

    # Processes ----------------------------------------------------------------------------------

    def start(self, job: Path, name: str) -> subprocess.Popen[bytes]:
        """A replica as a process of its own; one that was killed goes on where it was."""
        files = ElementFiles(self.path, name, Job.load(job).schema)
        if files.detached:
            raise FlowError(f"replica {name}", "a name that is not used up",
                            "one that was cut over", "Take another name.")  # fmt: skip
        return self._launch(self.path / "replicas" / name, "replica", job, name)

    def start_merger(self, job: Path) -> int:
        """The merger, unless it runs already."""
        running = self.merger
        return self._launch(self.path / "merger", "merger", job).pid if running is None else running

    @property
    def merger(self) -> int | None:
        """The merger's process, if it runs."""
        return self._running(self.path / "merger")

    def pid_of(self, name: str) -> int | None:
        """The process of a replica, if it runs."""
        return self._running(self.path / "replicas" / name)

    def stop(self, name: str) -> None:
        """End a replica's process and all it started; what it told and its checkpoint stay."""
        pid = self.pid_of(name)
        if pid is not None:
            os.killpg(pid, signal.SIGTERM)

    def wait(self, process: subprocess.Popen[bytes], name: str, until: Callable[[], bool]) -> None:
        """Look again and again; an error if the replica's process ends meanwhile."""
        while not until():
            if ended(process, POLL):
                raise FlowError(
                    f"replica {name}", "a job that runs", f"exit {process.returncode}",
                    f"See {self.log_of(name)}.",
                )  # fmt: skip

    def _launch(self, folder: Path, kind: str, job: Path, *name: str) -> subprocess.Popen[bytes]:
        running = self._running(folder)
        if running is not None:
            raise FlowError(f"{kind} {' '.join(name)}", "one that does not run",
                            f"process {running}", "Take another name, or end it.")  # fmt: skip
        folder.mkdir(parents=True, exist_ok=True)
        words = [kind, str(self.path), str(job.resolve()), *name]
        with (folder / "log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "interpunct.cli.replica_process", *words],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        # It outlives this program; while this program lives, somebody must take its exit status.
        threading.Thread(target=process.wait, daemon=True).start()
        told = {"pid": process.pid, "job": str(job.resolve())}
        (folder / "process.json").write_text(json.dumps(told))
        return process

    def _running(self, folder: Path) -> int | None:
        path = folder / "process.json"
        if not path.exists():
            return None
        pid = int(json.loads(path.read_text())["pid"])
        return pid if _is_ours(pid) else None

    # Copies -------------------------------------------------------------------------------------

    def jumpstart(self, job: Path, old: str, name: str) -> int:
        """Copy a replica's checkpoint for another; returns from when that one is guaranteed."""
        target = checkpoint_of(self.path, name)
        if target.exists():
            raise FlowError(f"replica {name}", "a name without a checkpoint", str(target),
                            "Take another name.")  # fmt: skip
        last = copied(checkpoint_of(self.path, old), target)
        start = guaranteed_after(self.path, old, last)
        ElementFiles(self.path, name, Job.load(job).schema).attach(start)
        return start

    # What is known ------------------------------------------------------------------------------

    def stable(self, name: str) -> int:
        return stable_of(self.path, name)

    def longest_silence(self) -> float:
        """The longest time, in seconds, from one batch that changed the table to the next."""
        return progress(self.path / "ledger").silence / 1e6

    def quarantined(self) -> dict[str, str]:
        """The replicas that the merger does not believe, and what each did last."""
        found = quarantined(str(merger_checkpoint(self.path)))
        return {q.input: f"{q.element} contradicts {q.contradicts}" for q in found}

    def log_of(self, name: str) -> str:
        return str(self.path / "replicas" / name / "log")


def copied(source: Path, target: Path) -> int:
    """Copy the checkpoint of a query that may be running, as of its last finished batch.

    What belongs to later batches is left out of the logs that say which batches there were; files
    of theirs that were copied are written again when the copy comes to them. Our own hints beside
    it tell about those batches too, and stay behind.
    """
    finished = _batches(source / "commits")
    if not finished:
        raise FlowError(str(source), "a checkpoint with a finished batch", "none",
                        "Wait for the replica's first batch, or start one anew.")  # fmt: skip
    for attempt in range(ATTEMPTS):
        shutil.rmtree(target, ignore_errors=True)
        try:
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("interpunct", ".*"))
            break
        except shutil.Error:  # a file was cleared away while the folder was read
            if attempt == ATTEMPTS - 1:
                raise
    for log in ("commits", "offsets"):
        for batch in _batches(target / log):
            if batch > finished[-1]:
                (target / log / str(batch)).unlink()
    return finished[-1]


def _batches(log: Path) -> list[int]:
    return sorted(int(p.name) for p in log.glob("*") if p.name.isdecimal())


def _is_ours(pid: int) -> bool:
    """Whether a process is there, has not ended, and is one of those started here."""
    folder = Path("/proc") / str(pid)
    try:
        ended = (folder / "stat").read_text().rpartition(")")[2].split()[0] in "ZX"
        return not ended and b"interpunct.cli.replica_process" in (folder / "cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False


def ended(process: subprocess.Popen[Any], within: float) -> bool:
    """Whether a process ends within so many seconds."""
    try:
        process.wait(within)
    except subprocess.TimeoutExpired:
        return False
    return True
