"""`interpunct status`: how a running flow is doing, and who holds it up.

    operator  holds  waits for  which is                  behind  last heard of
    union_1   3      vehicles   silent since last heard   7s      12:00:01
    union_1 is released by a tuple stamped 12:00:06 …

Every lane of a flow leaves its part of this beside the checkpoint when it changes, and the query
tells of its batches; here the parts are put together. The flow need not be running, and nothing of
it is touched. `interpunct studio attach` draws the same.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table

from interpunct.cli.options import Json
from interpunct.engine.blame import Blame
from interpunct.engine.merge_vitals import MergeVitals
from interpunct.engine.vitals import Logged, QueryVitals, Snapshot
from interpunct.model.durations import format_duration
from interpunct.model.schema import END_OF_TIME, LAST_YEAR, START_OF_TIME

SECOND, DAY = 1_000_000, 86_400_000_000  # µs
WIDE = 10_000  # wider than any table
WORDS = ("which is", "which was")  # columns whose text may go on in the next line


def status(
    checkpoint: Annotated[str, typer.Argument(help="The checkpoint of a flow, as given to start.")],
    as_json: Json = False,
    metrics: Annotated[
        bool, typer.Option("--metrics", help="Prometheus text on stdout, for its collector.")
    ] = False,
) -> None:
    """Batches and lag of a flow, heartbeats of its sources, what its operators hold and what they
    were spared; and which source holds which operator back, since when, by how much, and what would
    release it. Of a logical merge: its inputs, how far each is stable, and which one leads.

    An operator holds what waits in it and what it keeps: tuples that a join may still match, open
    windows. Who holds nothing waits for nobody; --json lists that one too.

    A query that was killed cannot tell its end. One that has given no sign of life for 20 seconds
    is said not to have been heard of; with --json `silent` is true of it, and `running` false.

    For a query made of flow.to_df, or on Spark Connect, nobody reports: its batches are those of
    which its checkpoint tells, with --json under `logged`, and whether it runs is not known.

    With --json a heartbeat that no clock shows is null: none yet, or, where `finished` says so of a
    source or a sink, none any more.

    Example: interpunct status /data/checkpoints/speed-map --json
    """
    from interpunct.spark.lmerge import quarantined
    from interpunct.spark.reporter import seen

    snapshot = seen(checkpoint)
    if as_json:
        liars = [asdict(q) for q in quarantined(checkpoint)]
        told = {"checkpoint": checkpoint, **_plain(snapshot), "quarantined": liars}
        typer.echo(json.dumps(told))
    elif metrics:
        from interpunct.studio.exposition import exposition

        typer.echo(exposition(snapshot), nl=False)
    else:
        _show(snapshot, Console())
        for found in quarantined(checkpoint):
            typer.echo(f"Batch {found.batch} put input {found.input} in quarantine: {found.why}.")


def _show(snapshot: Snapshot, console: Console) -> None:
    """For people."""
    if snapshot.query is not None:
        console.print(_batches(snapshot.query, snapshot.at, snapshot.lag), soft_wrap=True)
    elif snapshot.logged is not None:
        console.print(_by_checkpoint(snapshot.logged, snapshot.vitals.heard), soft_wrap=True)
    if snapshot.vitals.sources:
        _print(sources_table(snapshot), console)
    if snapshot.vitals.operators:
        _print(operators_table(snapshot), console)
    if snapshot.merge is not None:
        _print(merge_table(snapshot.merge), console)
    waiting = [line for line in snapshot.vitals.waiting if line.holds]
    if waiting:
        _print(blame_table(waiting, snapshot.query), console)
        released = "would have been released" if _over(snapshot.query) else "is released"
        for line in waiting:
            console.print(f"{line.operator} {released} by {line.release}.", soft_wrap=True)
    elif snapshot.merge is None:
        console.print("Nothing waits." if snapshot.begun else "No batch has come to its end yet.")
        if any(o.held for o in snapshot.vitals.operators.values()):
            console.print("What operators hold they keep for tuples that are still to come.")


def _batches(query: QueryVitals, now: int, lag: int | None) -> str:
    runs = "runs:" if query.running else "has ended:"
    if query.starting and query.since is not None:
        runs = f"was started again at {_time(query.since)} and is in its first batch since: before,"
    if query.silent and query.heard is not None:
        runs = f"has not been heard of since {_time(query.heard)}: it may have been killed."
    text = (
        f"The query {runs} {_counted(query.batches)}, the last that is done began at "
        f"{_time(query.began)} and took {query.seconds:g} s"
    )
    if lag is not None and lag < DAY:
        text += f"; results are {format_duration(lag // 1000 * 1000)} behind the clock"
    elif lag is not None:  # most likely a recording
        text += f"; results have come to {_time(now - lag)}"
    return f"{text}."


def _by_checkpoint(log: Logged, heard: int | None) -> str:
    """Of a query for which nobody reports: what its checkpoint tells, and what that leaves open."""
    text = f"By its checkpoint, {_counted(log.batches)} of this query"
    text += " is done" if log.batches == 1 else " are done"
    if log.began is not None:
        last = "which" if log.batches == 1 else "the last of which"
        text += f", {last} began at {_time(log.began)}"
    if log.unfinished is not None:
        text += f"; one that began at {_time(log.unfinished)} is not done"
    if heard is not None:
        text += f"; a source was last heard of at {_time(heard)}"
    return f"{text}. Whether it runs is not known, since nobody reports for it."


def _counted(batches: int) -> str:
    return "1 batch" if batches == 1 else f"{batches or 'no'} batches"


def _over(query: QueryVitals | None) -> bool:
    """Whether a query is known to run no more."""
    return query is not None and not query.running


def _print(table: Table, console: Console) -> None:
    """Whole, whatever the terminal: where it is narrow, words go on in the next line and blanks are
    left out; where that is not enough, the terminal breaks lines."""
    wide = console.options.update(width=WIDE)
    if Measurement.get(console, wide, table).minimum > console.width:
        table.padding = (0, 0)
    least = Measurement.get(console, wide, table).minimum
    table.width = least if least > console.width else None
    console.print(table, crop=False)


def sources_table(snapshot: Snapshot) -> Table:
    """How far each source has come."""
    kind = "which was" if _over(snapshot.query) else "which is"
    rows = []
    for name, source in snapshot.vitals.sources.items():
        beat = "finished" if source.finished else "none"
        if source.reached is not None:
            beat = _time(source.reached) if source.clocked else str(source.reached)
        heard = "never" if source.heard is None else _time(source.heard)
        rows.append((name, beat, heard, f"{source.rows:,}", f"{source.late:,}", source.quiet))
    head = ("source", "heartbeat", "last heard of", "rows", "late", kind)
    return _table("sources", head, rows, numbers=("rows", "late"))


def operators_table(snapshot: Snapshot) -> Table:
    """What each operator has, and what feedback has spared it."""
    numbers = ("holds", "guards", "skipped", "put out")
    rows = []
    for name, seen in snapshot.vitals.operators.items():
        counts = (seen.held, seen.guards, seen.skipped, snapshot.put_out(name))
        rows.append((name, *(f"{n:,}" for n in counts)))
    return _table("operators", ("operator", *numbers), rows, numbers=numbers)


def blame_table(lines: Sequence[Blame], query: QueryVitals | None = None) -> Table:
    """Who waits for whom, or did when the query ended or was last heard of."""
    title, waits, kind = "who waits for whom", "waits for", "which is"
    if query is not None and _over(query):
        when = "was last heard of" if query.silent else "ended"
        title, waits, kind = f"who waited for whom when it {when}", "waited for", "which was"
    rows = [
        (
            line.operator, f"{line.holds:,}", line.source, line.quiet, _behind(line),
            "never" if line.since is None else _time(line.since),
        )
        for line in lines
    ]  # fmt: skip
    head = ("operator", "holds", waits, kind, "behind", "last heard of")
    table = _table(title, head, rows, numbers=("holds", "behind"))
    if any(line.behind for line in lines):
        table.caption = "behind: how much further the source's time must come for it to go on"
    return table


def merge_table(merge: MergeVitals) -> Table:
    """What a logical merge thinks of its inputs."""
    rows = [
        (name, seen.status, _stable(merge, seen.stable), "leads" if name == merge.leader else "")
        for name, seen in merge.inputs.items()
    ]
    title = f"logical merge {merge.variant}, stable: {_stable(merge, merge.stable)}"
    return _table(title, ("input", "status", "stable", "leads"), rows)


def _table(
    title: str, head: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: Sequence[str] = ()
) -> Table:
    """Names, times and numbers stay whole; where a terminal is narrow, words go on in the next
    line."""
    table = Table(title=title)
    for at, name in enumerate(head):
        cells = [row[at] for row in rows]
        whole = name not in WORDS
        parts = [name, *cells] if whole else " ".join([name, *cells]).split()
        justify: Literal["left", "right"] = "right" if name in numbers else "left"
        width = max(map(cell_len, parts))
        table.add_column(name, justify=justify, no_wrap=whole, min_width=width)
    for row in rows:
        table.add_row(*map(escape, row))
    return table


def _stable(merge: MergeVitals, ticks: int) -> str:
    if ticks == START_OF_TIME:
        return "none"
    if ticks >= (LAST_YEAR if merge.clocked else END_OF_TIME):
        return "∞"
    return _time(ticks) if merge.clocked else str(ticks)


def _plain(snapshot: Snapshot) -> dict[str, Any]:
    """For programs: times of the clock as text, ticks as they are, null where there is none: before
    the first heartbeat, and after the last, where `finished` is true of a source and names a sink.
    """
    vitals = snapshot.vitals
    come = snapshot.reached.items()
    query = None if snapshot.query is None else asdict(snapshot.query)
    if query is not None:
        query["began"] = _moment(query["began"]).isoformat()
        for name in ("heard", "since"):
            moment = query[name]
            query[name] = None if moment is None else _moment(moment).isoformat()
    sources = {
        name: {**asdict(s), "heard": None if s.heard is None else _moment(s.heard).isoformat()}
        for name, s in vitals.sources.items()
    }
    return {
        "flow": None if snapshot.outline is None else snapshot.outline.flow,
        "query": query,
        "logged": _logged(snapshot.logged),
        "rows": snapshot.rows,
        "lag": snapshot.lag,
        "reached": {n: t if START_OF_TIME < t < END_OF_TIME else None for n, t in come},
        "finished": [name for name, ticks in come if ticks >= END_OF_TIME],
        "sources": sources,
        "operators": {name: asdict(seen) for name, seen in vitals.operators.items()},
        "waiting": [_line(line) for line in vitals.waiting],
        "merge": None if snapshot.merge is None else snapshot.merge.to_json(),
    }


def _logged(log: Logged | None) -> dict[str, Any] | None:
    if log is None:
        return None
    times = {"began": log.began, "unfinished": log.unfinished}
    shown = {n: None if at is None else _moment(at).isoformat() for n, at in times.items()}
    return {"batches": log.batches, **shown}


def _line(line: Blame) -> dict[str, Any]:
    since = None if line.since is None else _moment(line.since).isoformat()
    return {**vars(line), "since": since}


def _behind(line: Blame) -> str:
    if line.behind is None:
        return "unknown"
    if not line.clocked:
        return str(line.behind)
    exact = SECOND // 10 if line.behind >= SECOND else 1_000  # enough to look at
    return format_duration(round(line.behind / exact) * exact)


def _moment(since: int) -> datetime:
    return datetime.fromtimestamp(since / 1e6, UTC)


def _time(since: int) -> str:
    return f"{_moment(since):%Y-%m-%d %H:%M:%S}"
