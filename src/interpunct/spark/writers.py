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

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from interpunct.spark.clock import WakeFile, Wanted
from interpunct.spark.compile import Leaving
from interpunct.spark.courier import Courier
from interpunct.spark.expectation import NOTHING, Expectation
from interpunct.spark.files import absolute
from interpunct.spark.ownership import BATCH
from interpunct.spark.stopping import interruptible
from interpunct.spark.wire import BEAT, FEEDBACK, LATE, PROOF, SINK, WAKE, Note

Writer = Callable[[DataFrame, int], None]


@dataclass(frozen=True)
class Parquet:
    """A folder of Parquet files, one subfolder per batch; a batch written again replaces itself,
    so that a restart leaves every row exactly once."""

    path: str

    def __call__(self, rows: DataFrame, batch: int) -> None:
        rows.write.mode("overwrite").parquet(f"{self.path}/{BATCH}{batch:08d}")


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
            told = self._computed(rows, batch)
            for name in self.writers:
                if name == alone or name in told.outputs:
                    self._write(rows, batch, name)
            self._finish(told, batch)
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
        told = self._computed(rows, batch, alone)
        if not told.outputs <= {alone}:
            return False
        self._finish(told, batch)
        return True

    def _computed(self, rows: DataFrame, batch: int, writing: str = NOTHING) -> Told:
        """Compute the batch while writing an output, or for its own sake; what is known of it."""
        seen = Observation()
        observed = rows.observe(seen, self._notes)
        if writing == NOTHING:
            Discard()(observed.select("stream"), batch)
        else:
            self._write(observed, batch, writing)
        return Told([Note.of(text) for text in seen.get["notes"]])

    @cached_property
    def _notes(self) -> Column:
        """One thing is asked of each row, and most have nothing there."""
        return F.collect_list("stream").alias("notes")

    def _finish(self, told: Told, batch: int) -> None:
        """Tell everyone who has to know."""
        self._expected.saw(told.outputs & self.writers.keys())
        reached = told.least(BEAT)
        for name, ticks in reached.items():
            # A writer that has a method `reached` hears the heartbeat its sink has come to.
            tell = getattr(self.writers[f"{SINK}{name}"], "reached", None)
            if tell is not None:
                tell(ticks, batch)
        if self.courier is not None:
            self.courier.deliver(n for n in told.notes if n.stream.startswith(FEEDBACK))
            if reached:
                self.courier.channel.tell_reached(reached)
        proofs = told.least(PROOF)
        wanted = {name: proofs[name] for name in self.provable if name in proofs}
        self.wake.write(Wanted(told.least(WAKE).get(""), wanted))

    def _write(self, rows: DataFrame, batch: int, name: str) -> None:
        self.writers[name](self.leaving.rows_of(rows, name), batch)


@dataclass(frozen=True)
class Told:
    """What the lanes told of a batch."""

    notes: Sequence[Note]

    @cached_property
    def outputs(self) -> set[str]:
        """The outputs that have rows."""
        return {n.stream for n in self.notes if n.stream.startswith((SINK, LATE)) and n.rows}

    def least(self, kind: str) -> dict[str, int]:
        """By what is named behind the kind, the least moment or heartbeat that a lane told."""
        found: dict[str, int] = {}
        for n in self.notes:
            if n.stream.startswith(kind) and n.greatest is not None:
                name = n.stream.removeprefix(kind)
                found[name] = min(found.get(name, n.greatest), n.greatest)
        return found
