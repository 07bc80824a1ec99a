"""The ledger of a self-correcting sink: what should be in its table, as a sum of files.

    base-0000000041.parquet    what batches up to 41 come to, in the order of vs
    0000000042.parquet         the net changes of batch 42
    0000000043.parquet         of batch 43, which may be running again: it replaces its file
    progress                   how far the stream is stable, when the table changed last

A file is written under another name first, and counts once it has its own. When what came after the
base has grown to as much as the base, or to too many files, all but the last batch become a new
base: a base counts for all batches up to its number, whose files are ignored from then on, so it
does not matter which of them a crash leaves behind. The last batch stays apart, because Spark may
run it again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from interpunct.model.elements import VE, VS, ticks_expr
from interpunct.model.errors import FlowError
from interpunct.model.schema import END_OF_TIME, START_OF_TIME, Schema
from interpunct.model.tdb import COUNT
from interpunct.spark.files import JsonFolder, put

BASE = "base-"
PROGRESS = "progress"
LEAST_ROWS = 10_000  # of later batches before it is worth making a base of them
MOST_FILES = 256  # of later batches
SLICE = 250_000  # events that are looked at together

Starts = tuple[int, int]  # the first and the last Vs, in ticks


@dataclass
class Ledger:
    """The files of one sink; `event` is the schema of its rows: vs, ve and the payload."""

    folder: Path
    event: Schema
    least_rows: int = LEAST_ROWS

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)

    def write(self, batch: int, changes: pl.DataFrame) -> bool:
        """The net changes of a batch; whether it had written some before."""
        base, _ = self._files()
        if base and batch <= _number(base[0]):
            raise FlowError(
                f"ledger {self.folder}", f"a batch after {_number(base[0])}", f"batch {batch}",
                "Go on from the query's last checkpoint, or begin with an empty ledger and table.",
            )  # fmt: skip
        path = self.folder / f"{batch:010d}.parquet"
        again = path.exists()
        if changes.height or again:
            put(path, lambda part: self._typed(changes.lazy()).collect().write_parquet(part))
        return again

    def events(self, *, ends_from: int | None = None, starts: Starts | None = None) -> pl.DataFrame:
        """What should be there, each event with how often: all, those that end at this tick or
        later, or those that begin between these."""
        wanted = [] if ends_from is None else [ticks_expr(VE) >= ends_from]
        if starts is not None:
            wanted.append(ticks_expr(VS).is_between(*starts))
        base, later = self._files()
        return self._summed([*base, *later], wanted).collect(engine="streaming")

    def slices(self) -> Iterator[Starts | None]:
        """All of time in pieces with not too many events of the base each; None if one will do."""
        base, _ = self._files()
        bounds: list[int] = []
        for path in base:
            starts = pl.scan_parquet(path).select(ticks_expr(VS).gather_every(SLICE))
            bounds = starts.collect().to_series().unique().sort().to_list()[1:]
        if not bounds:
            yield None
            return
        edges = [START_OF_TIME, *bounds]
        yield from zip(edges, [*(b - 1 for b in bounds), END_OF_TIME], strict=True)

    # Compaction -------------------------------------------------------------------------------

    def compact(self, running: int) -> bool:
        """A new base from all batches before this one, if that is worth it by now."""
        base, later = self._files()
        closed = [p for p in later if _number(p) < running]
        rows = sum(map(_rows, closed))
        grown = rows >= max(self.least_rows, sum(map(_rows, base)))
        if not closed or not (grown or len(closed) >= MOST_FILES):
            return False
        made = self._summed([*base, *closed], []).sort(VS, VE)
        path = self.folder / f"{BASE}{_number(closed[-1]):010d}.parquet"
        put(path, made.sink_parquet)
        self.tidy()
        return True

    def tidy(self) -> None:
        """Remove what a base has made superfluous, or a crash has left behind."""
        base, later = self._files()
        for path in sorted(self.folder.glob("*.parquet")):
            if path not in base and path not in later:
                path.unlink(missing_ok=True)
        for path in self.folder.glob("*.part"):
            path.unlink(missing_ok=True)

    def _files(self) -> tuple[list[Path], list[Path]]:
        """The base, if there is one, and the batches after it."""
        paths = sorted(self.folder.glob("*.parquet"))
        base = [p for p in paths if p.name.startswith(BASE)][-1:]
        upto = _number(base[0]) if base else -1
        return base, [p for p in paths if not p.name.startswith(BASE) and _number(p) > upto]

    def _summed(self, paths: list[Path], wanted: list[pl.Expr]) -> pl.LazyFrame:
        frames = [self._typed(pl.scan_parquet(p)).filter(*wanted) for p in paths]
        empty = self._typed(self.event.empty().with_columns(pl.lit(0).alias(COUNT)).lazy())
        return summed([empty, *frames])

    def _typed(self, events: pl.LazyFrame) -> pl.LazyFrame:
        kinds = {**self.event.polars, COUNT: pl.Int64()}
        return events.select(pl.col(n).cast(kind) for n, kind in kinds.items())

    # Progress ---------------------------------------------------------------------------------

    def progress(self) -> Progress:
        return progress(self.folder)

    def note(self, now: Progress) -> None:
        JsonFolder(str(self.folder)).rewrite(PROGRESS, vars(now))


@dataclass(frozen=True)
class Progress:
    """How far the stream is stable; when a batch last changed the table, and the longest time from
    one such batch to the next, in microseconds."""

    stable: int = START_OF_TIME
    changed: int | None = None
    silence: int = 0

    def after(self, stable: int, changed: int | None) -> Progress:
        """Once a batch is in the table, which it changed at that moment, if it did."""
        stable = max(self.stable, stable)
        if changed is None:
            return Progress(stable, self.changed, self.silence)
        since = 0 if self.changed is None else changed - self.changed
        return Progress(stable, changed, max(self.silence, since))


def progress(folder: str | Path) -> Progress:
    """What a sink with its ledger in this folder has noted."""
    noted: dict[str, Any] = JsonFolder(str(folder)).read(PROGRESS) or {}
    return Progress(**noted)


def summed(frames: list[pl.LazyFrame]) -> pl.LazyFrame:
    """Events with how often they are there, without those that are not."""
    event = pl.exclude(COUNT)
    counted = pl.concat(frames).group_by(event).agg(pl.col(COUNT).sum())
    return counted.filter(pl.col(COUNT) != 0)


def _number(path: Path) -> int:
    """The batch of a file, or the last one of a base."""
    return int(path.stem.removeprefix(BASE))


def _rows(path: Path) -> int:
    return int(pl.scan_parquet(path).select(pl.len()).collect().item())
