"""`interpunct run` and `interpunct sql`: a flow over recorded rows, from Python or from SQL."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from interpunct.api import Flow
from interpunct.cli.options import Json
from interpunct.cli.recorded import in_process, on_spark, paths, show
from interpunct.cli.shell import progress
from interpunct.cli.targets import load_flow
from interpunct.model.errors import FlowError
from interpunct.sql.build import build
from interpunct.sql.errors import SqlError

Feeds = Annotated[
    list[str] | None, typer.Option("--feeds", help="source=path of Parquet, CSV or JSON Lines.")
]
Out = Annotated[Path | None, typer.Option("--out", help="A folder for the sinks, as Parquet.")]
Arrival = Annotated[
    str | None,
    typer.Option("--arrival", help="The column that says when each row arrived, in process."),
]
Rows = Annotated[int, typer.Option("--rows", min=0, help="Rows of each sink to show.")]
OnSpark = Annotated[bool, typer.Option("--spark", help="As a query on Spark's local mode.")]
Checkpoint = Annotated[
    Path | None, typer.Option("--checkpoint", help="Where the query keeps its state, on Spark.")
]
Lanes = Annotated[int, typer.Option("--lanes", min=1, help="Lanes of the query, on Spark.")]


def run(
    target: Annotated[str, typer.Argument(help="file.py:flow or module:flow.")],
    feeds: Feeds = None,
    out: Out = None,
    arrival: Arrival = None,
    rows: Rows = 20,
    as_json: Json = False,
    spark: OnSpark = False,
    checkpoint: Checkpoint = None,
    lanes: Lanes = 2,
) -> None:
    """Run a flow over recorded rows until they end.

    Example: interpunct run speeds.py:flow --feeds cars=cars.parquet --out results
    """
    flow = load_flow(target)
    _carry_out(flow, feeds or [], out, arrival, rows, as_json, spark, checkpoint, lanes)


def sql(
    file: Annotated[Path, typer.Argument(help="A file of SQL statements.")],
    explain: Annotated[
        bool, typer.Option("--explain", help="What the flow would do; nothing is run.")
    ] = False,
    feeds: Feeds = None,
    out: Out = None,
    arrival: Arrival = None,
    rows: Rows = 20,
    as_json: Json = False,
    spark: OnSpark = False,
    checkpoint: Checkpoint = None,
    lanes: Lanes = 2,
) -> None:
    """Run SQL over recorded rows: CREATE STREAM names the sources, --feeds their files.

    Example: interpunct sql speeds.sql --feeds cars=cars.csv --feeds vans=vans.parquet
    """
    flow = Flow(file.stem)
    statements = _read(file)
    try:
        explained = build(statements, flow)
    except SqlError as error:
        text = f"error: {file}, {error}"
        Console(stderr=True).print(text, soft_wrap=True, markup=False, highlight=False)
        raise typer.Exit(1) from error
    if explain or explained:
        typer.echo(flow.explain())
        return
    _carry_out(flow, feeds or [], out, arrival, rows, as_json, spark, checkpoint, lanes)


def _read(file: Path) -> str:
    """The text of a file of SQL statements."""
    fix = "Check the path; for a flow in Python: interpunct run file.py:flow."
    if not file.is_file():
        got = f"a folder, {file}" if file.is_dir() else f"no file {file}"
        raise FlowError("interpunct sql", "a file of SQL statements", got, fix)
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise FlowError(
            "interpunct sql", "a file of SQL statements, in UTF-8",
            f"byte {error.object[error.start]:#04x} at {error.start} of {file}", fix,
        ) from error  # fmt: skip


def _carry_out(
    flow: Flow,
    feeds: list[str],
    out: Path | None,
    arrival: str | None,
    rows: int,
    as_json: bool,
    spark: bool,
    checkpoint: Path | None,
    lanes: int,
) -> None:
    if spark != (checkpoint is not None):
        raise typer.BadParameter("--spark and --checkpoint go together.")
    if spark and arrival is not None:
        raise typer.BadParameter("--arrival is for runs in process; Spark's batches are the clock.")
    files = paths(feeds)
    with progress(flow.name) as report:
        if checkpoint is None:
            outcome = in_process(flow, files, arrival, out, report)
        else:
            outcome = on_spark(flow, files, checkpoint, out, lanes, report)
    show(outcome, as_json, rows)
