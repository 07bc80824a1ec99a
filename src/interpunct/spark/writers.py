"""Writers: what `foreachBatch` does with the rows of each output, and the clock it sets.

A function of the user's is called when there are rows, after the batch has been computed as a
whole: it may look at as few of them as it likes. A writer of ours takes every row, so that where
only one output has rows, to write it is the one job of a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from interpunct.spark.clock import WakeFile, Wanted
from interpunct.spark.compile import Leaving
from interpunct.spark.courier import Courier, Leaf
from interpunct.spark.expectation import NOTHING, Expectation
from interpunct.spark.files import absolute
from interpunct.spark.stopping import interruptible
from interpunct.spark.wire import BEAT, FEEDBACK, PROOF, SINK, WAKE

Writer = Callable[[DataFrame, int], None]


@dataclass(frozen=True)
class Parquet:
    """A folder of Parquet files, one subfolder per batch; a batch written again replaces itself,
    so that a restart leaves every row exactly once."""

    path: str

    def __call__(self, rows: DataFrame, batch: int) -> None:
        rows.write.mode("overwrite").parquet(f"{self.path}/batch={batch:08d}")


@dataclass(frozen=True)
class Discard:
    """Computes every row and keeps none, as Spark's `noop`; for measurements."""

    def __call__(self, rows: DataFrame, batch: int) -> None:
        del batch
        rows.write.format("noop").mode("overwrite").save()


def writer(target: str | Path | Writer) -> Writer:
    """A path stands for Parquet; a function is called with each batch's rows and its number."""
    return target if callable(target) else Parquet(absolute(str(target)))


@dataclass
class Batches:
    """For `foreachBatch`: each output of a batch to its writer, and the clock set."""

    leaving: Leaving
    writers: Mapping[str, Writer]
    wake: WakeFile
    provable: Sequence[str] = ()  # sources whose silence lanes may want proven
    courier: Courier | None = None
    _expected: Expectation = field(default_factory=Expectation)

    def __call__(self, rows: DataFrame, batch: int) -> None:
        """Write all outputs of a batch: as one job where its rows need not be kept, as it seems
        from the last batches. If there is more after all, everything is computed and written
        again, so that what was written is of the same run as the state that stays."""
        with interruptible():
            alone = self._alone()
            if alone is None or not self._in_one_job(rows, batch, alone):
                self._in_several(rows, batch, alone)

    def _in_several(self, rows: DataFrame, batch: int, alone: str | None) -> None:
        """Compute the batch once, kept, and write each output that has rows."""
        rows.persist()
        try:
            found = self._computed(rows, batch)
            filled = self._found(found)
            for name in self.writers:
                if name == alone or name in filled:
                    self._write(rows, batch, name)
            self._finish(rows, found, batch)
        finally:
            rows.unpersist()

    def _alone(self) -> str | None:
        """The output whose writing can be the one job; NOTHING where none is expected to have rows,
        None where rows have to be kept."""
        careless = [name for name, writer in self.writers.items() if isinstance(writer, Discard)]
        alone = self._expected.alone(careless)
        if alone in (None, NOTHING):
            return alone
        return alone if isinstance(self.writers.get(alone), Discard | Parquet) else None

    def _in_one_job(self, rows: DataFrame, batch: int, alone: str) -> bool:
        """Compute the batch and write this output; whether that was all."""
        found = self._computed(rows, batch, alone)
        if not self._found(found) <= {alone}:
            return False
        self._finish(rows, found, batch)
        return True

    def _computed(self, rows: DataFrame, batch: int, writing: str = NOTHING) -> Mapping[str, Any]:
        """Compute the batch while writing an output, or for its own sake; what is known of it."""
        seen = Observation()
        observed = rows.observe(seen, *self._facts)
        if writing == NOTHING:
            Discard()(observed.select("stream"), batch)
        else:
            self._write(observed, batch, writing)
        return seen.get

    def _found(self, found: Mapping[str, Any]) -> set[str]:
        """The outputs that have rows, and FEEDBACK if some is to be carried on."""
        names = {name for number, name in enumerate(self.writers) if found[str(number)]}
        return names | ({FEEDBACK} if found[FEEDBACK] else set())

    def _finish(self, rows: DataFrame, found: Mapping[str, Any], batch: int) -> None:
        """Tell everyone who has to know."""
        self._expected.saw(self._found(found))
        self._tell_writers(found, batch)
        self._carry(rows, found)
        proofs = {n: found[f"{PROOF}{n}"] for n in self.provable}
        self.wake.write(Wanted(found["wake"], {n: m for n, m in proofs.items() if m is not None}))

    def _tell_writers(self, found: Mapping[str, Any], batch: int) -> None:
        """A writer that has a method `reached` hears the heartbeat its sink has come to."""
        for name in self._sinks:
            tell, ticks = (
                getattr(self.writers[f"{SINK}{name}"], "reached", None),
                found[BEAT + name],
            )
            if tell is not None and ticks is not None:
                tell(ticks, batch)

    def _carry(self, rows: DataFrame, found: Mapping[str, Any]) -> None:
        """Feedback that leaves the lanes goes where it is heard next; senders learn how far the
        sinks have come."""
        if self.courier is None:
            return
        if found[FEEDBACK]:
            said = rows.filter(self.courier.carries())
            kept = said.select("stream", "sender", "rows", "page").collect()
            self.courier.deliver(
                Leaf(r.stream.removeprefix(FEEDBACK), r.sender, r.rows, bytes(r.page).decode())
                for r in kept
            )
        reached = {n: found[f"{BEAT}{n}"] for n in self._sinks}
        told = {n: ticks for n, ticks in reached.items() if ticks is not None}
        if told:
            self.courier.channel.tell_reached(told)

    @property
    def _sinks(self) -> list[str]:
        return [n.removeprefix(SINK) for n in self.writers if n.startswith(SINK)]

    @cached_property
    def _facts(self) -> list[Column]:
        """What is to be known of a batch: when to run again, and how many rows each output has."""
        stream = F.col("stream")
        asked = {"wake": WAKE, **{f"{PROOF}{name}": f"{PROOF}{name}" for name in self.provable}}
        moments = [
            F.min(F.when(stream == row, F.col("greatest"))).alias(name)
            for name, row in asked.items()
        ]
        counts = [
            F.count(F.when(self.leaving.filled_by(name), F.lit(1))).alias(str(number))
            for number, name in enumerate(self.writers)
        ]
        carried = F.lit(False) if self.courier is None else self.courier.carries()
        said = F.count(F.when(carried, F.lit(1))).alias(FEEDBACK)
        reached = [
            F.min(F.when(stream == f"{BEAT}{n}", F.col("greatest"))).alias(f"{BEAT}{n}")
            for n in self._sinks
        ]
        return [*moments, *counts, said, *reached]

    def _write(self, rows: DataFrame, batch: int, name: str) -> None:
        self.writers[name](self.leaving.rows_of(rows, name), batch)
