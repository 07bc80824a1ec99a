"""Flows over recorded rows: files in, a table for each sink out.

    --feeds cars=cars.parquet --feeds vans=vans.csv

A file, or a folder of files of one kind (Parquet, CSV, JSON Lines), is one feed; its columns are
fitted to what the flow declares. In process a flow runs until the files end; on Spark it is one
query that reads all there is and stops.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import typer
from rich.console import Console
from rich.table import Table

from interpunct.api import Flow
from interpunct.engine.feeds import feed
from interpunct.lab.isolated import Report
from interpunct.model.errors import FeedError
from interpunct.model.page import Page
from interpunct.model.schema import Schema
from interpunct.progress.clock import ScriptedClock
from interpunct.spark.recording import Recording


@dataclass(frozen=True)
class Outcome:
    """What a flow gave: rows by sink, and how many were late where; `files` if it was written."""

    sinks: Mapping[str, pl.DataFrame]
    late: Mapping[str, int]
    files: Mapping[str, str]
    where_late: str = ""  # where the late rows are to be seen

    def to_json(self) -> dict[str, Any]:
        told: dict[str, Any] = {}
        for name, frame in self.sinks.items():
            told[name] = {"rows": frame.height, "columns": frame.columns}
            if name in self.files:
                told[name]["file"] = self.files[name]
            else:
                told[name]["data"] = json.loads(frame.write_json())
        return {"sinks": told, "late": dict(self.late)}


def show(outcome: Outcome, as_json: bool, rows: int) -> None:
    """JSON for programs; for people the first rows of each sink."""
    if as_json:
        typer.echo(json.dumps(outcome.to_json()))
        return
    console = Console()
    for name, frame in outcome.sinks.items():
        console.print(_table(name, frame, rows))
    for name, path in outcome.files.items():
        console.print(f"{name}: {path}", soft_wrap=True)
    late = ", ".join(f"{count} at {name}" for name, count in outcome.late.items())
    if late:
        console.print(f"late: {late} ({outcome.where_late})", soft_wrap=True, markup=False)


def _table(name: str, frame: pl.DataFrame, rows: int) -> Table:
    shown = min(rows, frame.height)
    caption = ("1 row" if frame.height == 1 else f"{frame.height} rows") + (
        f", the first {shown} of them" * (shown < frame.height)
    )
    table = Table(title=name, caption=caption)
    for column, dtype in frame.schema.items():
        table.add_column(column, justify="right" if dtype.is_numeric() else "left")
    for row in frame.head(rows).iter_rows():
        table.add_row(*("" if value is None else str(value) for value in row))
    return table


def paths(feeds: Sequence[str]) -> dict[str, str]:
    """The files by source, from `name=path`."""
    found: dict[str, str] = {}
    for said in feeds:
        name, equals, path = said.partition("=")
        if not equals or not name or not path or name in found:
            raise FeedError(
                "--feeds", "source=path, each source once", said, "Write --feeds cars=cars.csv."
            )
        found[name] = path
    return found


def in_process(
    flow: Flow, feeds: Mapping[str, str], arrival: str | None, out: Path | None, report: Report
) -> Outcome:
    """Run to the end of the files. With `arrival` rows come when that column says, on a clock that
    does not wait; without, as fast as they are taken."""
    recordings = _opened(flow, feeds)
    total = sum(recording.rows for recording in recordings.values()) or 1
    progress = _Progress(report, total)
    raw = {node.name: node.raw for node in flow.graph.sources}
    given = {
        name: feed(_frames(name, recording, raw[name], arrival, progress), arrival=arrival)
        for name, recording in recordings.items()
    }
    result = flow.run(given, clock=None if arrival is None else ScriptedClock())
    late = {name: frame.height for name, frame in result.late.items() if frame.height}
    return Outcome(result.sinks, late, _written(result.sinks, out), _where_late(flow, late))


def on_spark(
    flow: Flow,
    feeds: Mapping[str, str],
    checkpoint: Path,
    out: Path | None,
    lanes: int,
    report: Report,
) -> Outcome:
    """Run as one query on Spark over all there is in the files."""
    from interpunct.api import replay, session

    recordings = _opened(flow, feeds)
    progress = _Progress(report, sum(r.rows for r in recordings.values()) or 1)
    report(0, "starting Spark")
    raw = {node.name: node.raw for node in flow.graph.sources}
    schemas = {node.name: node.streams[0].schema for node in flow.graph.sinks}
    folder = checkpoint / "out" if out is None else out
    spark = session(lanes, log=checkpoint / "spark.log")
    try:
        frames = {
            name: replay(spark, _fitted_file(name, r, raw[name], checkpoint), finish=True)
            for name, r in recordings.items()
        }
        query = flow.start(
            spark, frames, checkpoint=str(checkpoint), lanes=lanes,
            sinks={name: folder / name for name in schemas}, trigger={"availableNow": True},
        )  # fmt: skip
        while not query.await_termination(1):
            progress.reach(rows_read(query.progress))
    finally:
        spark.stop()
    sinks = {name: _read(folder / name, schema) for name, schema in schemas.items()}
    behind = {n.name: _read(checkpoint / "late" / n.name).height for n in flow.graph}
    late = {name: rows for name, rows in behind.items() if rows}
    files = {} if out is None else {n: str(folder / n) for n in schemas}
    return Outcome(sinks, late, files, f"the rows are in {checkpoint}/late, as Parquet")


def _where_late(flow: Flow, late: Mapping[str, int]) -> str:
    """How to get at the late rows of a run in process, by the first of those who have some."""
    name = next(iter(late), "")
    shown = f"the rows are in flow.run(…).late[{name!r}] in Python"
    if name in (node.name for node in flow.graph.sources):
        shown += f", in SELECT * FROM LATE({name}) in SQL"
    return shown


class _Progress:
    """Counts rows as they are read, and reports."""

    def __init__(self, report: Report, total: int) -> None:
        self._report, self._total, self._read = report, total, 0

    def add(self, rows: int) -> None:
        self.reach(self._read + rows)

    def reach(self, rows: int) -> None:
        self._read = rows
        self._report(rows / self._total, f"{rows} rows")


def rows_read(progress: Sequence[Any]) -> int:
    """How many rows of its recordings a query has read, by what it last reported."""
    if not progress:
        return 0
    offsets = (json.loads(s["endOffset"] or "{}") for s in progress[-1]["sources"])
    return sum(offset.get("row", 0) for offset in offsets)


def _opened(flow: Flow, feeds: Mapping[str, str]) -> dict[str, Recording]:
    """The recordings, if there is one for each source and none besides."""
    sources = {node.name for node in flow.graph.sources}
    if sources != feeds.keys():
        missing, unknown = sorted(sources - feeds.keys()), sorted(feeds.keys() - sources)
        said = [f"none for {', '.join(missing)}"] if missing else []
        said += [f"one for {', '.join(unknown)}, which it has not"] if unknown else []
        got = " and ".join(said)
        raise FeedError(
            f"flow {flow.name!r}", f"a feed for each of {', '.join(sorted(sources))}", got,
            "Add or drop --feeds source=path.",
        )  # fmt: skip
    return {name: Recording.at(path) for name, path in feeds.items()}


def _frames(
    name: str, recording: Recording, raw: Schema, arrival: str | None, progress: _Progress
) -> Callable[[], Iterator[pl.DataFrame]]:
    extra = [] if arrival is None or arrival in raw else [arrival]

    def read() -> Iterator[pl.DataFrame]:
        for frame in recording.read(0, recording.rows, _columns(name, recording, raw) + extra):
            assert isinstance(frame, pl.DataFrame)  # nothing is unwanted here
            fitted = _fitted(name, frame, raw).with_columns(frame.select(extra))
            progress.add(frame.height)
            yield fitted

    return read


def _columns(name: str, recording: Recording, raw: Schema) -> list[str]:
    for column in raw.names:
        if column not in recording.schema:
            raise FeedError(
                f"feed of source {name!r}", f"a column {column!r}",
                f"{', '.join(recording.schema.names)} in {recording.path}",
                "Rename the column there, or declare what the file has.",
            )  # fmt: skip
    return list(raw.names)


def _fitted(name: str, frame: pl.DataFrame, raw: Schema) -> pl.DataFrame:
    """The columns as declared: numbers are widened, and times of no zone are in UTC."""
    zoned = []
    for attribute in raw.attributes:
        has, wanted = frame.schema[attribute.name], attribute.dtype
        if isinstance(has, pl.Datetime) and isinstance(wanted, pl.Datetime):
            column = pl.col(attribute.name)
            if has.time_zone is not None:
                column = column.dt.convert_time_zone("UTC")
            zoned.append(column.dt.replace_time_zone(wanted.time_zone))
    return Page.checked(raw, frame.with_columns(zoned), f"feed of source {name!r}").frame


def _fitted_file(name: str, recording: Recording, raw: Schema, checkpoint: Path) -> str:
    """The recording itself if its columns are as declared, else a copy in which they are."""
    columns = _columns(name, recording, raw)
    if all(recording.schema[c].type == raw[c].type for c in columns):
        return recording.path
    path = checkpoint / "feeds" / f"{name}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    read = recording.read(0, recording.rows, columns)
    fitted = [_fitted(name, frame, raw) for frame in read if isinstance(frame, pl.DataFrame)]
    pl.concat([raw.empty(), *fitted]).write_parquet(path)
    return str(path)


def _written(sinks: Mapping[str, pl.DataFrame], out: Path | None) -> dict[str, str]:
    if out is None:
        return {}
    out.mkdir(parents=True, exist_ok=True)
    files = {name: out / f"{name}.parquet" for name in sinks}
    for name, path in files.items():
        sinks[name].write_parquet(path)
    return {name: str(path) for name, path in files.items()}


def _read(folder: Path, schema: Schema | None = None) -> pl.DataFrame:
    """The rows that a query left in a folder, batch after batch."""
    files = sorted(folder.glob("batch=*/*.parquet"))
    frames = [pl.read_parquet(file, hive_partitioning=False) for file in files]
    if schema is None:
        return pl.concat(frames) if frames else pl.DataFrame()
    return pl.concat([schema.empty(), *(f.cast(schema.polars) for f in frames)])  # type: ignore[arg-type]
