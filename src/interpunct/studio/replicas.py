"""Two replicas of a query on Spark and their logical merge, to be watched while one of them fails.

    sensors ─┬───────────── a ─ elements ─┐
             │                            ├─ ip.lmerge ─ table      stop a: b leads; nothing
             └─ 4 s later ─ b ─ elements ─┘                         is missing or doubled

All three are queries of one driver, so that a page can stop and start them; `interpunct standby`
runs each as a process of its own. A replica that is started again goes on from its checkpoint, and
the merge tells it what is past (LMerge section V-D). One that lies is quarantined, and comes back
by attaching anew, guaranteed from where it stopped (section V-B).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from interpunct.api import Flow
from interpunct.engine.merge_vitals import InputVitals, MergeVitals
from interpunct.model.elements import VS, elements, insert, ticks_expr
from interpunct.model.errors import InterpunctError
from interpunct.model.schema import START_OF_TIME, Schema
from interpunct.operators.lmerge_base import DETACHED, JOINED, QUARANTINED
from interpunct.progress.clock import Clock, RealClock
from interpunct.progress.timestamps import bounds, external
from interpunct.spark.files import put
from interpunct.spark.hints import Hints
from interpunct.spark.lmerge_batches import ATTACH, mark
from interpunct.spark.lmerge_notes import MergeNotes
from interpunct.spark.merge_sink import MergedTable
from interpunct.spark.merge_tables import ParquetTable
from interpunct.spark.query import FlowQuery
from interpunct.spark.replica import (
    ElementFiles,
    checkpoint_of,
    elements_of,
    guaranteed_after,
    merged,
    merger_checkpoint,
    replica_folder,
    stable_of,
)
from interpunct.spark.reporter import Reporter
from interpunct.spark.rows import spark_schema
from interpunct.studio.merging import Merging

SECOND = 1_000_000
WINDOW = 2  # seconds
WIDTH = WINDOW * SECOND
EVERY = 1.0  # seconds between two files of the sensors
PATIENCE = 3 * SECOND  # that a batch may still take when its replica is stopped
POLL = 0.02  # seconds from one look at whether it has ended to the next
SEGMENTS = 9
EVER = 2**31  # a batch after all others
ATTEMPTS = 3  # to start a replica
TRIGGER = "2 seconds"
LATER = {"a": 0.0, "b": 4.0}
UNHEARD = InputVitals(DETACHED)
ROWS = Schema.of("segment bigint, ts timestamp, speed bigint")


def replica(name: str) -> Flow:
    """Whole numbers, so that replicas agree whatever the order in which they add."""
    flow = Flow(f"replica {name}")
    time = external("ts", bounds(skew="1s"), ets="never")  # what it slept through is not late
    rows = flow.source("sensors", ROWS, time=time)
    flow.sink("speeds", rows.aggregate(by="segment", every=f"{WINDOW}s", n="count(*)",
                                       total="sum(speed)"))  # fmt: skip
    return flow


SINK = replica("").graph.sinks[0].streams[0].schema


class Feed(threading.Thread):
    """Puts what the sensors send into a folder for each replica, a file every second or so: there
    it waits for a replica that does not run, as it would in a broker."""

    def __init__(
        self, sensors: Path, folder: Path, later: Mapping[str, float], clock: Clock
    ) -> None:
        super().__init__(name="sensors", daemon=True)
        self._folder, self._later, self._clock = folder, later, clock
        self._closed = threading.Event()
        first = clock.now() // WIDTH * WIDTH + WIDTH
        rows = pl.read_parquet(sensors).filter(ticks_expr("ts") >= first)
        self._rows = rows.with_columns(pl.col("speed").round().cast(pl.Int64))
        self._told = dict.fromkeys(later, first)

    def run(self) -> None:
        while not self._closed.wait(EVERY):
            for name, seconds in self._later.items():
                self._tell(name, self._clock.now() - round(seconds * SECOND))

    def _tell(self, name: str, until: int) -> None:
        arrived = ticks_expr("arrival")
        rows = self._rows.filter(arrived >= self._told[name], arrived < until)
        if rows.height:
            path = self._folder / name / f"{until}.parquet"
            put(path, rows.select(ROWS.names).write_parquet)
            self._told[name] = until

    def close(self) -> None:
        self._closed.set()
        self.join()


@dataclass
class Checked:
    """The table that the merge keeps, compared after each batch with what should be there."""

    table: MergedTable
    rows: int = 0
    missing: int = 0
    doubled: int = 0

    def __call__(self, rows: DataFrame, batch: int) -> None:
        self.table(rows, batch)
        final = self.table.table.stored(None).filter(ticks_expr(VS) < self.table.stable)
        self.rows, places = final.height, final.select(VS, "segment").unique()
        starts = places.select(ticks_expr(VS)).to_series()
        first, last = starts.min(), starts.max()
        if isinstance(first, int) and isinstance(last, int):
            windows = (last - first) // WIDTH + 1
            self.missing = windows * SEGMENTS - places.height
            self.doubled = final.height - places.height


@dataclass
class Bench:
    """The queries; what is done with them takes seconds, and is done by a thread of its own."""

    spark: SparkSession
    home: Path
    sensors: Path  # a recording whose arrivals are moments of the clock to come
    later: Mapping[str, float] = field(default_factory=lambda: LATER)  # seconds, by replica
    trigger: str = TRIGGER
    after: StreamingQuery | None = None  # what is to run before
    merging: Merging = field(default_factory=Merging)
    clock: Clock = field(default_factory=RealClock)
    doing: str = ""
    step: str = ""  # of the start, which takes about a minute
    trouble: str = ""
    running: dict[str, FlowQuery] = field(default_factory=dict)
    begun: bool = False

    def __post_init__(self) -> None:
        table = MergedTable(self.home / "ledger", ParquetTable(self.home / "table"))
        self.checked = Checked(table)
        self.merger: StreamingQuery | None = None
        self.feed: Feed | None = None
        self._lies, self._hurry = 0, threading.Event()
        self._hands = ThreadPoolExecutor(1, "interpunct bench")

    @property
    def names(self) -> list[str]:
        return list(self.later)

    def look(self) -> MergeVitals | None:
        """What the merge tells beside its checkpoint; who has failed is noted by the way."""
        for name in list(self.running) if not self.doing else ():
            error = self.running[name].query.exception()
            if error is not None:
                del self.running[name]
                self._note(f"{name} has failed: {_first_line(error)}")
        failed = None if self.merger is None else self.merger.exception()
        if failed is not None:
            self.trouble = f"the merge has failed: {_first_line(failed)}"
        return MergeNotes(str(merger_checkpoint(self.home))).vitals()

    # What is done -------------------------------------------------------------------------------

    def begin(self) -> None:
        """Start everything, once."""
        if not self.begun:
            self.begun = True
            self._do("starting two replicas and their merge", self._begin)

    def toggle(self, name: str) -> None:
        """Stop a replica that runs, start one that does not; one in quarantine starts anew."""
        if self.quarantined(name):
            self._do(f"starting {name} anew", lambda: self._anew(name))
        elif name in self.running:
            self._do(f"stopping {name}", lambda: self._stop(name))
        else:
            self._do(f"starting {name}", lambda: self._started(name))

    def lie(self, name: str) -> None:
        """Let a replica tell an event in a time that it has called stable."""
        self._do(f"{name} lies", lambda: self._lie(name))

    def quarantined(self, name: str) -> bool:
        return self._seen(name).status == QUARANTINED

    def believed(self, name: str) -> bool:
        """Whether it has called something stable, and the merge counts on it."""
        return self._seen(name).status == JOINED and self._seen(name).stable > START_OF_TIME

    def _seen(self, name: str) -> InputVitals:
        merge = self.merging.now
        return UNHEARD if merge is None else merge.inputs.get(name, UNHEARD)

    def close(self) -> None:
        """Stop all that runs."""
        self._hurry.set()
        self._do("stopping", self._end)
        self._hands.shutdown()

    def _do(self, doing: str, work: Callable[[], None]) -> None:
        def done() -> None:
            self.doing = doing
            try:
                work()
                self.trouble = ""
            except (InterpunctError, PySparkException, Py4JError, OSError) as error:
                self.trouble = f"{doing}: {error}"
            finally:
                self.doing = ""

        self.doing = doing
        self._hands.submit(done)

    # How it is done -----------------------------------------------------------------------------

    def _begin(self) -> None:
        if self.after is not None:
            self._at_step(1, "waiting for the first batch of the query")
            self._runs(self.after)
        self.feed = Feed(self.sensors, self.home / "input", self.later, self.clock)
        self.feed.start()
        for number, name in enumerate(self.names, 2):
            self._at_step(number, f"starting replica {name}")
            self._started(name)
        self._at_step(len(self.names) + 2, "waiting for the first batch of the merge")
        checkpoint = str(merger_checkpoint(self.home))
        rows = merged(self.spark, self.home, SINK)
        stream = rows.writeStream.foreachBatch(self.checked).trigger(processingTime=self.trigger)
        self.merger = stream.option("checkpointLocation", checkpoint).start()
        Reporter.of(self.merger, Hints(f"{checkpoint}/interpunct"))

    def _at_step(self, number: int, what: str) -> None:
        self.step = f"step {number} of {len(self.names) + 2}: {what} …"

    def _start(self, name: str) -> None:
        folder = self.home / "input" / name
        folder.mkdir(parents=True, exist_ok=True)
        rows = self.spark.readStream.schema(spark_schema(ROWS)).parquet(str(folder))
        self.running[name] = replica(name).start(
            self.spark, {"sensors": rows}, checkpoint=str(checkpoint_of(self.home, name)),
            sinks={"speeds": ElementFiles(self.home, name, SINK)},
            trigger={"processingTime": self.trigger},
        )  # fmt: skip

    def _started(self, name: str) -> None:
        """Until its first batch has run. Spark gives a Python worker ten seconds to come up, and on
        a machine that does much else that may be too few."""
        for _ in range(ATTEMPTS):
            self._start(name)
            if self._runs(self.running[name].query):
                self._note(f"{name} was started")
                return

    def _runs(self, query: StreamingQuery) -> bool:
        """Whether a query is there, once its first batch has run."""
        while query.isActive and query.lastProgress is None and not self._hurry.wait(POLL):
            continue
        return bool(query.isActive)

    def _stop(self, name: str) -> None:
        """Between two batches, unless there is a hurry: Spark has much to say of one cut short."""
        query, last = self.running[name], self.clock.now() + PATIENCE
        while query.query.status["isTriggerActive"] and self.clock.now() < last:
            if self._hurry.wait(POLL):
                break
        query.stop()
        del self.running[name]
        self._note(f"{name} was stopped")

    def _anew(self, name: str) -> None:
        """Once it has stopped it is known what it has told, and so from when it is guaranteed."""
        if name in self.running:
            self._stop(name)
        start = guaranteed_after(self.home, name, batch=EVER)
        self._tell(name, f"attach-{self._lies}", mark(elements_of(SINK), ATTACH, start))
        self._started(name)

    def _lie(self, name: str) -> None:
        self._lies += 1
        at = stable_of(self.home, name) - 10 * SECOND
        event = insert((0, -1, -1), at, at + 1)
        self._tell(name, f"lie-{self._lies}", elements(elements_of(SINK), [event]))
        self._note(f"{name} told an event of what was stable")

    def _tell(self, name: str, file: str, said: pl.DataFrame) -> None:
        put(replica_folder(self.home, name) / f"{file}.parquet", said.write_parquet)

    def _end(self) -> None:
        for name in list(self.running):
            self._stop(name)
        if self.feed is not None:
            self.feed.close()
        if self.merger is not None:
            self.merger.stop()

    def _note(self, event: str) -> None:
        self.merging.note(self.clock.now(), event)


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
