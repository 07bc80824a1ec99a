"""`interpunct demo`: the main job, with something to look at in the end."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from interpunct.cli.options import Json
from interpunct.cli.shell import progress, show
from interpunct.lab import speed_map
from interpunct.lab.folders import fresh
from interpunct.spark.session import session

MADE = (
    "spark.log", "sensors.parquet", "vehicles.parquet", "checkpoint", "map", "plain",
    "plain-checkpoint", "speed-map.png",
)  # fmt: skip


def demo(
    seconds: Annotated[int, typer.Option("--seconds", min=70, help="Of recorded traffic.")] = 100,
    folder: Annotated[Path, typer.Option("--folder", help="Where everything is written.")] = Path(
        "out/speed-map"
    ),
    as_json: Json = False,
) -> None:
    """The speed map on Spark's local mode, beside the same job in plain PySpark.

    Vehicles go quiet for 40 seconds. About two minutes; what an earlier demo left in the folder is
    deleted first, and a folder with anything else is refused.

    Example: interpunct demo --seconds 100
    """
    fresh(folder, known=MADE)
    plan = speed_map.Plan(seconds=seconds, folder=folder)
    console = Console(stderr=True)
    console.print("Starting Spark …")
    spark = session(2, log=folder / "spark.log")
    try:
        race = speed_map.start(spark, plan)
        with progress("speed map") as report:
            for done in race.watch():
                report(done, _state(race))
        race.stop()
        result = speed_map.outcome(race)
    finally:
        spark.stop()
    path = folder / "speed-map.png"
    speed_map.picture(result, path)
    show(result.to_json(), lambda: _table(result), as_json, path)
    if not as_json:
        _say(result, folder)


def _state(race: speed_map.Race) -> str:
    """Anew every five seconds."""
    low, high = race.plan.quiet
    at = race.elapsed() // 5 * 5
    if not at:
        return "waiting for the first batches"
    rows = ", ".join(f"{n} {d.total}" for n, d in race.delivered.items())
    quiet = "vehicles QUIET" if low <= at < high else "vehicles sending"
    return f"second {at:.0f} of the traffic, {quiet}, rows so far: {rows}"


def _table(result: speed_map.Outcome) -> Table:
    windows = result.windows[-5:]
    table = Table(title="Average vehicle speed by segment and 20 seconds")
    table.add_column("segment")
    for window in windows:
        table.add_column(f"{window:%H:%M:%S}", justify="right")
    speeds = {(s, t): v for s, t, v, _ in result.speeds.iter_rows()}
    for segment in range(speed_map.SEGMENTS):
        found = (speeds.get((segment, w)) for w in windows)
        table.add_row(str(segment), *("–" if v is None else f"{v:.1f}" for v in found))
    return table


def _say(result: speed_map.Outcome, folder: Path) -> None:
    """What came when, in words, and where everything is."""
    console = Console(soft_wrap=True, highlight=False)
    numbers = result.to_json()["rows_during_quiet"]
    assert isinstance(numbers, dict)
    told = ", ".join(f"{name} {rows}" for name, rows in numbers.items())
    low, high = result.counted
    command = "interpunct" if shutil.which("interpunct") else sys.argv[0]
    console.print("Where no vehicle was seen there is no speed: – here, grey in the figure.")
    quiet = result.plan.quiet[0]
    console.print(f"Rows from {low} s to {high} s, the vehicles quiet since {quiet} s: {told}.")
    if lead := result.lead():
        rows, ours, theirs = lead
        console.print(f"interpunct had {rows} rows at {ours:.0f} s, plain at {theirs:.0f} s.")
    console.print(
        f"Rows are in {folder / 'map'}, late ones in {folder / 'checkpoint' / 'late'}, what Spark "
        f"printed is in {folder / 'spark.log'}.\n"
        f"Next: {command} status {folder / 'checkpoint'}, and {command} studio demo."
    )
