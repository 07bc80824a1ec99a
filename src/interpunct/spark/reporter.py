"""What a query tells of itself beside its checkpoint, for people and for other programs.

    checkpoint/interpunct/outline          what the flow looks like: written once
                         /query            its batches: once a second, if there was one
                         /alive            that it is alive: every few seconds
                         /vitals/0/17      what a lane saw: with its batch, if something changed
                         /lmerge/lanes/17  how a lane of a merge sees its inputs: likewise

The batches are told by a thread of their own, which asks Spark for its last progress. A batch
never waits for it. A query whose driver was killed cannot tell its end: who reads that it runs
looks at when it was last alive.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql.streaming.query import StreamingQuery

from interpunct.engine.vitals import QueryVitals, Sign, Snapshot
from interpunct.model.errors import FlowError
from interpunct.model.schema import to_ticks
from interpunct.progress.clock import RealClock
from interpunct.spark.channel import Channel
from interpunct.spark.checkpoint_log import logged
from interpunct.spark.hints import Hints
from interpunct.spark.lmerge_notes import MergeNotes

EVERY = 1.0  # seconds between two looks
PULSE = 5_000_000  # µs between two signs of life


class Reporter(threading.Thread):
    """Looks at a query until it ends, or until the session it belongs to does."""

    def __init__(self, query: StreamingQuery, hints: Hints, since: int | None = None) -> None:
        """The query was started at this moment, if that is to be told."""
        super().__init__(name=f"reporter of {query.name}", daemon=True)
        self._query, self._hints = query, hints
        self._closed = threading.Event()
        self._sign: Sign | None = None  # the last one
        self._last: QueryVitals | None = None  # the last batch
        self._every: int | None = None  # µs from one batch to the next
        self._since = since

    @classmethod
    def of(cls, query: StreamingQuery, hints: Hints) -> Reporter | None:
        """A reporter at work; none on Spark Connect, where each look would be a call abroad."""
        if not hasattr(query, "_jsq"):
            return None
        reporter = cls(query, hints, RealClock().now())
        reporter.start()
        return reporter

    def run(self) -> None:
        while not self._closed.wait(EVERY) and self._told():
            continue

    def close(self) -> None:
        """The query has been stopped: tell its end."""
        self._closed.set()
        self.join()
        self._told()

    def _told(self, now: int | None = None) -> bool:
        """Tell what is new; False when there is nothing more to be told."""
        try:
            running, last = bool(self._query.isActive), self._query.lastProgress
        except (Py4JError, PySparkException, OSError):
            return False  # the session is gone
        with suppress(OSError):  # a file system that fails may do better at the next look
            batch = self._paced(_vitals(last, running))
            if running:  # said first: who finds that it runs looks at when it was alive
                self._live(RealClock().now() if now is None else now)
            told = batch or self._as_before(running)
            if told is not None:
                self._hints.tell_query(told)
        return running

    def _live(self, now: int) -> None:
        """Give a sign of life, unless the last one is fresh; clocks may be set back."""
        if self._sign is None or abs(now - self._sign.at) >= PULSE:
            sign = Sign(now, self._every, self._since)
            self._hints.tell_alive(sign)
            self._sign = sign

    def _paced(self, batch: QueryVitals | None) -> QueryVitals | None:
        """The same batch, after it was noted how long after the one before it began."""
        last = self._last
        if batch is not None:
            if last is not None and batch.batches > last.batches:
                self._every = (batch.began - last.began) // (batch.batches - last.batches)
            self._last = batch
        return batch

    def _as_before(self, running: bool) -> QueryVitals | None:
        """What was told last, maybe by an earlier run, and whether the query runs now."""
        before = self._hints.told()
        return None if before is None else replace(before, running=running)


def seen(checkpoint: str, now: int | None = None) -> Snapshot:
    """All that a flow has left beside its checkpoint, by default as of now; an error where none
    has."""
    if "://" not in checkpoint and not (Path(checkpoint) / "interpunct").is_dir():
        raise _not_of_a_flow(Path(checkpoint))
    hints = Hints(f"{checkpoint}/interpunct")
    reached, merge = Channel.of(checkpoint).reached(), MergeNotes(checkpoint).vitals()
    now = RealClock().now() if now is None else now
    vitals, query = hints.seen(now)
    log = logged(checkpoint) if query is None else None
    return Snapshot(now, hints.outline(), vitals, query, reached, merge, log)


def _not_of_a_flow(folder: Path) -> FlowError:
    """What the folder is instead: another query's checkpoint, a folder of something, or nothing."""
    expected = "the checkpoint of a flow that has run a batch"
    if (folder / "metadata").is_file() or (folder / "offsets").is_dir():
        return FlowError(
            "status", expected, f"the checkpoint of another query, {folder}",
            "Only flows (flow.start) leave a status. A query over ip.synchronize reports in the "
            "progress that Spark keeps: query.lastProgress, where eventTime has the watermark.",
        )  # fmt: skip
    got = f"{folder}, {'which has none' if folder.is_dir() else 'where nothing is'}"
    return FlowError(
        "status", expected, got, "Give the path that flow.start(checkpoint=…) was given."
    )


def _vitals(progress: Any, running: bool) -> QueryVitals | None:
    """The batch that a progress tells of; None of one that tells of a look at sources which had
    nothing: it has the number of a batch to come, and the time of the look."""
    if progress is None or "addBatch" not in progress["durationMs"]:
        return None
    began = to_ticks(datetime.fromisoformat(progress["timestamp"]))
    seconds = progress["durationMs"].get("triggerExecution", 0) / 1000
    return QueryVitals(int(progress["batchId"]) + 1, began, seconds, running)
