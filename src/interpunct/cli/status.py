"""`interpunct status`: who holds a running flow up.

    operator  holds  waits for  which is          behind  last heard of
    union_1   3      vehicles   not heard since   7s      12:00:01       a tuple stamped 12:00:06 …

Every lane of a flow leaves its part of this beside the checkpoint when it changes; here the parts
are put together. The flow need not be running, and nothing of it is touched.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from interpunct.engine.blame import Blame, across_stages
from interpunct.model.durations import format_duration
from interpunct.model.errors import FlowError

GAUGES = {
    "interpunct_held_tuples": "Tuples that an operator holds back.",
    "interpunct_behind_ticks": "How far the source it waits for is behind what it needs.",
    "interpunct_heard_timestamp_seconds": "When that source was last heard of.",
}


def status(
    checkpoint: Annotated[str, typer.Argument(help="The checkpoint of a flow, as given to start.")],
    as_json: Annotated[bool, typer.Option("--json", help="Pure JSON on stdout.")] = False,
    metrics: Annotated[
        bool, typer.Option("--metrics", help="Prometheus text on stdout, for its collector.")
    ] = False,
) -> None:
    """Which source holds which operator of a flow back, since when, by how much, and what would
    release it.

    Example: interpunct status /data/checkpoints/speed-map --json
    """
    lines = blamed(checkpoint)
    if as_json:
        typer.echo(json.dumps({"checkpoint": checkpoint, "waiting": list(map(_plain, lines))}))
    elif metrics:
        typer.echo(exposition(lines), nl=False)
    else:
        Console().print(blame_table(lines) if lines else "Nothing waits.")


def blamed(checkpoint: str) -> list[Blame]:
    """What the lanes last left beside a checkpoint; an error where none has left anything."""
    from interpunct.spark.hints import Hints

    if "://" not in checkpoint and not (Path(checkpoint) / "interpunct").is_dir():
        raise FlowError(
            "status", "the checkpoint of a flow that has run a batch", checkpoint,
            "Give the path that flow.start(checkpoint=…) was given.",
        )  # fmt: skip
    return across_stages(Hints(f"{checkpoint}/interpunct").reports())


def blame_table(lines: Sequence[Blame]) -> Table:
    """For people."""
    table = Table(title="who waits for whom")
    for name in ("operator", "holds", "waits for", "which is", "behind", "last heard of"):
        table.add_column(name, justify="right" if name in ("holds", "behind") else "left")
    table.add_column("released by", overflow="fold")
    for line in lines:
        table.add_row(
            line.operator, str(line.holds), line.source, line.quiet, _behind(line),
            "never" if line.since is None else f"{_moment(line.since):%Y-%m-%d %H:%M:%S}",
            line.release,
        )  # fmt: skip
    return table


def exposition(lines: Iterable[Blame]) -> str:
    """In the text format of Prometheus, which any collector of text files takes."""
    samples: dict[str, list[str]] = {name: [] for name in GAUGES}
    for line in lines:
        label = f'{{operator="{_escaped(line.operator)}",source="{_escaped(line.source)}"}}'
        heard = None if line.since is None else line.since / 1e6
        for name, value in zip(GAUGES, (line.holds, line.behind, heard), strict=True):
            if value is not None:
                samples[name].append(f"{name}{label} {value}\n")
    return "".join(
        f"# HELP {name} {said}\n# TYPE {name} gauge\n{''.join(samples[name])}"
        for name, said in GAUGES.items()
    )


def _escaped(name: str) -> str:
    return name.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _plain(line: Blame) -> dict[str, Any]:
    since = None if line.since is None else _moment(line.since).isoformat()
    return {**vars(line), "since": since}


def _behind(line: Blame) -> str:
    if line.behind is None:
        return "unknown"
    return format_duration(line.behind) if line.clocked else str(line.behind)


def _moment(since: int) -> datetime:
    return datetime.fromtimestamp(since / 1e6, UTC)
