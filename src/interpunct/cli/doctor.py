"""`interpunct doctor`: what this machine lacks for flows on Spark, and how to get it.

    ok     Java                   21.0.2 (/usr/bin/java)
    wrong  disk                   0.3 GB free in /tmp  Free some space: Spark's shuffles …

The last check is the one that counts: a flow with one row, run by a query on Spark.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Annotated

import polars as pl
import typer
from packaging.requirements import Requirement
from rich.console import Console
from rich.markup import escape

from interpunct.cli.options import Json
from interpunct.lab.folders import passing

JAVA = 17  # the least that Spark 4 runs on
NAMES = 21  # letters of the longest name of a check, PYSPARK_DRIVER_PYTHON
ROOM = 2.0  # GB that state, shuffles and checkpoints should find at least


@dataclass(frozen=True)
class Finding:
    """What was looked at, what was found, and what to do where it is wrong."""

    name: str
    ok: bool
    found: str
    fix: str = ""


def doctor(
    as_json: Json = False,
    quick: Annotated[bool, typer.Option("--quick", help="Without the job on Spark.")] = False,
) -> None:
    """Check Python, Java, libraries, settings and disk, and run a flow with one row on Spark.

    Exits with 1 if something is wrong.

    Example: interpunct doctor --quick
    """
    findings, console = [], Console()
    for finding in examined(quick=quick):
        findings.append(finding)
        if not as_json:
            console.print(_line(finding), soft_wrap=True)
    healthy = all(finding.ok for finding in findings)
    if as_json:
        told = {"ok": healthy, "checks": [asdict(finding) for finding in findings]}
        typer.echo(json.dumps(told, indent=2))
    else:
        console.print("All is well." if healthy else "Something is wrong: see above.")
    if not healthy:
        raise typer.Exit(1)


def examined(*, quick: bool) -> Iterator[Finding]:
    """Every check, in the order in which one would mend things."""
    yield python()
    yield from libraries()
    yield java()
    yield from settings()
    yield from disk()
    if not quick:
        Console(stderr=True).print("running a flow on Spark, which can take a minute …")
        yield spark_job()


def python() -> Finding:
    found = ".".join(map(str, sys.version_info[:3]))
    return Finding("Python", sys.version_info >= (3, 11), found, "Install Python 3.11 or later.")


def libraries() -> Iterator[Finding]:
    """What the package asks for, as it is installed."""
    for text in requires("interpunct") or []:
        asked = Requirement(text)
        if asked.marker is not None and not asked.marker.evaluate({"extra": ""}):
            continue
        fix = f"pip install '{asked.name}{asked.specifier}'"
        try:
            found = version(asked.name)
        except PackageNotFoundError:
            yield Finding(asked.name, False, "not installed", fix)
            continue
        fits = asked.specifier.contains(found, prereleases=True)
        yield Finding(asked.name, fits, found, "" if fits else fix)


def java() -> Finding:
    """The Java that Spark would start: JAVA_HOME's, else the one on the path."""
    home = os.environ.get("JAVA_HOME")
    program = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    fix = f"Install Java {JAVA} or later (openjdk) and point JAVA_HOME at it."
    if program is None or not Path(program).exists():
        place = f"none in JAVA_HOME={home}" if home else "none on the path, and no JAVA_HOME"
        return Finding("Java", False, place, fix)
    said = _java_says(program)
    number = re.search(r'version "(?:1\.)?(\d+)([^"]*)"', said)
    if number is None:
        return Finding("Java", False, f"{program} does not say its version", fix)
    old = int(number[1]) < JAVA
    return Finding("Java", not old, f"{number[1]}{number[2]} ({program})", fix if old else "")


def _java_says(program: str) -> str:
    done = subprocess.run([program, "-version"], capture_output=True, text=True, check=False)
    return done.stderr + done.stdout


def settings() -> Iterator[Finding]:
    """Variables that make Spark run something else than what is installed here."""
    import pyspark

    home = os.environ.get("SPARK_HOME")
    own = Path(pyspark.__file__).parent
    if home is not None and Path(home).resolve() != own.resolve():
        yield Finding(
            "SPARK_HOME", False, home, f"Unset it: PySpark {pyspark.__version__} brings its own."
        )
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        chosen = os.environ.get(name)
        if chosen is not None and shutil.which(chosen) != shutil.which(sys.executable):
            fix = f"Unset it, or set it to {sys.executable}, which has interpunct."
            yield Finding(name, False, chosen, fix)
    if not os.environ.keys() & {"SPARK_HOME", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"}:
        yield Finding("settings", True, "no SPARK_HOME or PYSPARK_PYTHON in the way")


def disk() -> Iterator[Finding]:
    """Room where Spark writes, and where one is."""
    places = {os.environ.get("SPARK_LOCAL_DIRS", tempfile.gettempdir()), str(Path.cwd())}
    for place in sorted(places):
        folder = place.split(",")[0]
        if not os.access(folder, os.W_OK):
            yield Finding("disk", False, f"{folder} cannot be written", "Choose another folder.")
            continue
        free = shutil.disk_usage(folder).free / 1e9
        fix = "Free some space: Spark's shuffles and state go there."
        yield Finding("disk", free >= ROOM, f"{free:.1f} GB free in {folder}", fix * (free < ROOM))


def spark_job() -> Finding:
    """One row through a window on Spark: session, workers, state store and all."""
    from interpunct.api import Flow, replay, session
    from interpunct.progress.timestamps import external

    flow = Flow("doctor")
    rows = flow.source("rows", "ts bigint, n bigint", external("ts", ordered=True))
    flow.sink("sums", rows.aggregate(every=10, total="sum(n)"))
    with passing() as folder:
        file = f"{folder}/rows.parquet"
        pl.DataFrame({"ts": [1], "n": [42]}).write_parquet(file)
        try:
            spark = session(1, log=f"{folder}/spark.log")
            try:
                query = flow.start(
                    spark, {"rows": replay(spark, file, finish=True)},
                    checkpoint=f"{folder}/checkpoint", sinks={"sums": f"{folder}/sums"},
                    lanes=1, trigger={"availableNow": True},
                )  # fmt: skip
                query.await_termination()
            finally:
                spark.stop()
        except Exception as error:
            said = str(error).strip().splitlines() or [type(error).__name__]
            return Finding("Spark job", False, said[0], _advice(said[0]))
        sums = pl.read_parquet(f"{folder}/sums/*/*.parquet", hive_partitioning=False)
    right = sums.rows() == [(0, 42)]
    return Finding("Spark job", right, f"a window of one row gave {sums.rows()}")


def _advice(said: str) -> str:
    if "failed to connect back" in said:
        return (
            "The machine was too busy for a worker to start in time: try again, in a session of "
            "your own with spark.python.authenticate.socketTimeout=60s."
        )
    return "Mend what is wrong above, then see this."


def _line(finding: Finding) -> str:
    """One line, told as soon as it is known."""
    mark = "[green]ok   [/]" if finding.ok else "[red]wrong[/]"
    fix = "" if finding.ok else f"  {finding.fix}"
    return f"{mark}  {finding.name:{NAMES}}  {escape(finding.found + fix)}"
