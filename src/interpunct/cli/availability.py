"""`interpunct standby`, `cutover`, `jumpstart`: replicas of a running query, merged into one table.

    standby    another replica of the job, from the beginning of its input       LMerge section I:
    cutover    a rewritten job instead of a replica, once it has caught up       high availability,
    jumpstart  another replica, from a copy of a running one's checkpoint        cutover, jumpstart

A job is a Python file with `flow()` and `feeds(spark, replica)`. Everything about one replicated
query is in its home folder; the merged table is `<home>/table`, read through its manifest.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from interpunct.cli.options import Json
from interpunct.model.errors import FlowError

_Home = Annotated[Path, typer.Argument(help="The folder of the replicated query.")]
_JobFile = Annotated[Path, typer.Argument(help="A Python file: flow() and feeds(spark, replica).")]


def standby(
    home: _Home,
    job: _JobFile,
    name: Annotated[str, typer.Option(help="The replica's name.")] = "standby",
    as_json: Json = False,
) -> None:
    """Start a replica of a job as a process of its own, and the merger if there is none; a replica
    that was killed goes on where it was.

    Example: interpunct standby /data/speeds speeds_job.py --name b
    """
    from interpunct.cli.replicas import Home

    place = Home(home)
    merger = place.start_merger(job)
    process = place.start(job, name)
    _say(
        {"replica": name, "pid": process.pid, "merger": merger, "log": place.log_of(name)}, as_json
    )


def jumpstart(
    home: _Home,
    job: _JobFile,
    old: Annotated[str, typer.Option("--from", help="The replica whose checkpoint is copied.")],
    name: Annotated[str, typer.Option(help="The new replica's name.")] = "jumpstarted",
    as_json: Json = False,
) -> None:
    """Start a replica from a copy of another's checkpoint, which may be running: it counts once the
    table is stable up to where it begins.

    Example: interpunct jumpstart /data/speeds speeds_job.py --from a --name c
    """
    from interpunct.cli.replicas import Home

    place = Home(home)
    start = place.jumpstart(job, old, name)
    process = place.start(job, name)
    said = {
        "replica": name,
        "pid": process.pid,
        "guaranteed_from": start,
        "log": place.log_of(name),
    }
    _say(said, as_json)


def cutover(
    home: _Home,
    job: _JobFile,
    old: Annotated[str, typer.Option("--from", help="The replica that is to end.")],
    name: Annotated[str, typer.Option(help="The new replica's name.")] = "rewritten",
    as_json: Json = False,
) -> None:
    """Start a rewritten job, wait until it has come as far as the replica it replaces, and end that
    one.

    Example: interpunct cutover /data/speeds speeds_job_v2.py --from a --name v2
    """
    from interpunct.cli.replica_process import Job
    from interpunct.cli.replicas import Home
    from interpunct.spark.replica import ElementFiles, elements_of

    place = Home(home)
    schema = Job.load(job).schema
    told = _told_schema(home, old)
    if told is not None and list(told) != list(elements_of(schema).names):
        raise FlowError(f"cutover from {old}", f"a sink that tells {', '.join(told)}",
                        schema.ddl, "Keep the columns of the sink.")  # fmt: skip
    process = place.start(job, name)
    place.wait(process, name, lambda: place.stable(name) >= place.stable(old))
    passed = {"new": place.stable(name), "old": place.stable(old)}
    place.stop(old)
    place.wait(process, name, lambda: place.pid_of(old) is None)
    ElementFiles(home, old, schema).detach()
    said = {"replica": name, "pid": process.pid, "stopped": old, "stable": passed,
            "longest_silence_s": round(place.longest_silence(), 3),
            "quarantined": place.quarantined()}  # fmt: skip
    _say(said, as_json)


def _told_schema(home: Path, name: str) -> list[str] | None:
    from interpunct.spark.replica import told

    frame = told(home, name)
    if frame is None:
        raise FlowError(f"cutover from {name}", "a replica that has told something", "none",
                        "Check the home and the name.")  # fmt: skip
    return frame.columns


def _say(said: dict[str, Any], as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(said))
    else:
        typer.echo("\n".join(f"{key.replace('_', ' ')}: {value}" for key, value in said.items()))
