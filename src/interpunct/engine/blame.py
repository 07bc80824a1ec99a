"""Blame: which source holds an operator back, by how much, since when, and what would release it.

    union  holds 3 tuples, the first stamped 12:00:05
      └ select ─ vehicles: has come to 11:59:58, 7 s behind, last heard of at 12:00:01

Found the way the engine finds whom to ask for an enabling timestamp: from the operator that waits,
along the input it waits for, back to a source, each operator translating what it would need.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import polars as pl

from interpunct.engine.arcs import Vertex
from interpunct.model.schema import END_OF_TIME, FIRST_YEAR, LAST_YEAR, START_OF_TIME, TimeKind
from interpunct.operators.contract import Demand
from interpunct.operators.sink import Sink
from interpunct.operators.source import Source, SourceOperator

# What a lane calls the ends of streams that come from another stage or go on to one.
ENTRY, EXPORT = "entry ", "export "
FINISHED = "finished"  # the quiet of a source that will send nothing more
STALLED = "silent since last heard"  # of one of which there is no evidence
SENDING = "sending"  # no quiet at all

COLUMNS = {
    "operator": pl.String, "source": pl.String, "quiet": pl.String, "holds": pl.Int64,
    "wanted": pl.Int64, "reached": pl.Int64, "behind": pl.Int64, "since": pl.Int64,
    "release": pl.String,
}  # fmt: skip
_MOMENT, _LENGTH = pl.Datetime("us", "UTC"), pl.Duration("us")


@dataclass(frozen=True)
class Blame:
    """Times are ticks of the source, `since` is a moment of the clock; None means never."""

    operator: str
    source: str
    quiet: str  # what `quiet_of` says of the source
    holds: int  # tuples the operator has in its keeping
    wanted: int  # the heartbeat it would need of the source
    reached: int | None  # the one it has
    behind: int | None
    since: int | None  # when the source was last heard of
    release: str
    clocked: bool = True  # whether ticks are microseconds


def blame(vertices: Iterable[Vertex]) -> list[Blame]:
    """A line for each operator that waits, and one for each sink, which waits for whatever would
    come next."""
    found = []
    for vertex in vertices:
        need: Demand | None = None
        if isinstance(vertex.operator, Sink):
            timed = vertex.operator.inputs[0].schema.time is not None
            if timed and vertex.operator.reached < END_OF_TIME:
                need = Demand(0, vertex.operator.reached + 1)
        else:
            need = vertex.operator.needs()
        culprit = None if need is None else _culprit(vertex, need)
        if culprit is not None:
            found.append(_line(vertex, *culprit))
    return [line for line in found if line.operator.startswith(EXPORT) or _awaited(line)]


def across_stages(lines: Iterable[Blame]) -> list[Blame]:
    """The lines of all lanes of all stages as those of one plan: an operator that waits for the
    stage before it blames whom that stage blames, and lanes are taken together."""
    lines = list(lines)
    blamed = {x.operator.removeprefix(EXPORT): x for x in lines if x.operator.startswith(EXPORT)}
    merged: dict[tuple[str, str], Blame] = {}
    for line in lines:
        if line.operator.startswith(EXPORT):
            continue
        source = _followed(line, blamed)
        known = merged.get((line.operator, source.source))
        together = replace(source, operator=line.operator, holds=line.holds)
        if known is not None:
            together = replace(
                min(known, together, key=lambda x: x.wanted), holds=known.holds + line.holds
            )
        merged[line.operator, source.source] = together
    return [line for line in merged.values() if _awaited(line)]


def _awaited(line: Blame) -> bool:
    """Whether there is anything to wait for: a source that has finished has said it all, and what
    it said is on its way. The end of a stage keeps such a line, for the stages that follow it."""
    return line.quiet != FINISHED


def _followed(line: Blame, blamed: Mapping[str, Blame]) -> Blame:
    """The line about a source at the end of a chain through the stages."""
    while line.source in blamed:
        line = blamed[line.source]
    return line


def table(lines: Iterable[Blame]) -> pl.DataFrame:
    """The lines as a frame, with `since` as a moment of the clock. Where the streams' time is a
    timestamp, `wanted` and `reached` are moments and `behind` is a length; all three are integers
    as soon as one stream in the table counts in integers, because a column has one type. A time
    that no calendar has, before any or after all, is null.

    Polars cuts long text when it prints: `pl.Config(fmt_str_lengths=200)` shows all of `release`.
    """
    lines = list(lines)
    rows = [{name: getattr(line, name) for name in COLUMNS} for line in lines]
    frame = pl.DataFrame(rows, schema=COLUMNS).with_columns(pl.col("since").cast(_MOMENT))
    if not all(line.clocked for line in lines):
        return frame
    ticks = pl.col("wanted", "reached")
    moments = pl.when(ticks.is_between(FIRST_YEAR, LAST_YEAR)).then(ticks).cast(_MOMENT)
    return frame.with_columns(moments, pl.col("behind").cast(_LENGTH))


def _culprit(vertex: Vertex, need: Demand) -> tuple[SourceOperator, int] | None:
    """The source at the end of what an operator needs, and the heartbeat needed of it; None when
    what is needed is already on its way."""
    demand: Demand | None = need
    while demand is not None:
        producer = vertex.inputs[demand.port].producer
        if producer.source is not None:
            return producer.source, demand.wanted
        vertex, demand = producer, producer.operator.demand(demand.wanted)
    return None


def _line(vertex: Vertex, source: SourceOperator, wanted: int) -> Blame:
    holds = vertex.operator.held().tuples
    if not isinstance(source, Source):  # a stream from the stage before, or a timer
        name = source.name.removeprefix(ENTRY)
        return Blame(vertex.name, name, "", holds, wanted, None, None, None, "its progress")
    time = source.time
    reached = None if time.given == START_OF_TIME else time.given
    behind = None if reached is None or wanted >= END_OF_TIME else max(wanted - reached, 0)
    return Blame(
        vertex.name, source.name, quiet_of(source), holds, wanted, reached, behind, time.arrived,
        _release(source, wanted), time.clocked,
    )  # fmt: skip


def quiet_of(source: Source) -> str:
    """The kind of quiet a source keeps, if it does."""
    if source.time.finished:
        return FINISHED
    if source.time.arrived is None and source.time.given == START_OF_TIME:
        return "never seen"
    if source.time.blocked:
        return "has something unread"
    return "idle" if source.time.idle else STALLED


def still(quiet: str, heard: int | None, since: int) -> str:
    """A kind of quiet as it is to be told: there is none where a source was heard of since a
    moment. Other kinds rest on evidence that is newer than what was heard, and stay."""
    if quiet not in (STALLED, SENDING):
        return quiet
    return SENDING if heard is not None and heard >= since else STALLED


def _release(source: Source, wanted: int) -> str:
    """What the source would have to do."""
    time, schema = source.time, source.output
    if time.finished:
        return "nothing: it has finished"
    if time.spec.kind is TimeKind.INTERNAL:
        return "its clock, at the next enabling timestamp"
    if time.bounds is None and not time.spec.ordered:
        return "more tuples: how late they are is still being learned"
    bounds = time.bounds
    stamp = wanted + (bounds.skew if bounds is not None else 1)
    low, high = schema.time_range
    if wanted <= low or stamp > high:
        return "any tuple"
    said = f"a tuple stamped {_readable(schema.value_of(stamp))} or later"
    if bounds is None or time.arrived is None or time.spec.ets.mode == "never":
        return said
    if time.spec.ets.mode == "proven":
        return f"{said}, or proof that it has nothing to send"
    return (
        f"{said}, or silence: with bounds {bounds} its time goes on with the clock, as far behind "
        "it as when its last tuple was read"
    )


def _readable(value: object) -> str:
    """A time for people: no finer than milliseconds, and not before what it stands for, for a
    tuple stamped like this has to be enough."""
    if not isinstance(value, datetime):
        return str(value)
    up = value.replace(tzinfo=None) + timedelta(microseconds=-value.microsecond % 1000)
    return up.isoformat(" ", "milliseconds" if up.microsecond else "seconds")
