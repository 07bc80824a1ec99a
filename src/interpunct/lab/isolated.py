"""Jobs in processes of their own: a measurement must not share its interpreter with a progress
bar, and Polars reads the number of its threads once, when it is imported."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

# Called with the part of the work that is done (0 to 1) and what is going on.
Report = Callable[[float, str], None]


def silent(done: float, doing: str) -> None:
    """A report nobody reads."""
    del done, doing


@dataclass(frozen=True)
class Job:
    """A module-level function, its arguments, and the seconds it is expected to take."""

    label: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    expected: float = 1.0


def run_jobs(
    jobs: Sequence[Job],
    *,
    workers: int = 1,
    report: Report = silent,
    environment: Mapping[str, str] | None = None,
) -> list[Any]:
    """The jobs' results, in order; with no workers they run here, one after another."""
    if workers == 0:
        results = []
        for number, job in enumerate(jobs):
            report(number / len(jobs), job.label)
            results.append(job.function(*job.arguments))
        return results
    with (
        _environment(environment or {}),
        ProcessPoolExecutor(workers, get_context("spawn"), max_tasks_per_child=1) as pool,
    ):
        futures = [pool.submit(job.function, *job.arguments) for job in jobs]
        try:
            _watch(jobs, futures, report)
        except BaseException:
            _end(pool)
            raise
        return [future.result() for future in futures]


def _watch(jobs: Sequence[Job], futures: list[Future[Any]], report: Report) -> None:
    """Report twice a second until all are done; a running job counts by the time it has had."""
    total = sum(job.expected for job in jobs)
    started: dict[Future[Any], float] = {}
    pending = set(futures)
    while pending:
        _, pending = wait(pending, timeout=0.5, return_when=FIRST_COMPLETED)
        done, doing = 0.0, []
        for job, future in zip(jobs, futures, strict=True):
            if future.done():
                future.result()  # a failed job ends the others
                done += job.expected
            elif future.running():
                elapsed = time.monotonic() - started.setdefault(future, time.monotonic())
                done += min(elapsed, 0.99 * job.expected)
                doing.append(job.label)
        report(done / total, ", ".join(doing))


def _end(pool: ProcessPoolExecutor) -> None:
    """No job goes on that nobody waits for: leaving the pool would wait for those that run."""
    running = list((pool._processes or {}).values())
    pool.shutdown(wait=False, cancel_futures=True)
    for process in running:
        process.terminate()


@contextmanager
def _environment(changes: Mapping[str, str]) -> Iterator[None]:
    """Environment variables for the processes started inside."""
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
