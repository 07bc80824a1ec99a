"""Vitals: what can be seen of a running flow from outside, small enough to be written every batch.

    operator   holds  guards  skipped  made          source    has come to  last heard  late
    together     312       1    4 021  9 980         vehicles  12:00:05     12:00:08       3
    average       18       1       12    420         sensors   12:00:07     12:00:08       0

A lane leaves its own beside the checkpoint, and `together` makes one picture of those of all lanes
of all stages. In process the engine has the same picture of itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from interpunct.engine.arcs import Vertex
from interpunct.engine.blame import ENTRY, EXPORT, Blame, across_stages, blame, quiet_of, still
from interpunct.engine.lane_source import LaneSource
from interpunct.engine.merge_vitals import MergeVitals
from interpunct.flow.outline import Outline
from interpunct.model.schema import END_OF_TIME, LAST_YEAR, START_OF_TIME
from interpunct.operators.sink import Sink
from interpunct.operators.source import Source

PATIENCE = 20_000_000  # µs without a sign of life after which a query is silent
LEAST = 10_000_000  # µs for which a source is sending after it was heard of, however short batches


@dataclass(frozen=True)
class OperatorVitals:
    """What an operator holds, what feedback has spared it, and what it has put out, by output; a
    sink, to the outside."""

    held: int = 0  # tuples
    guards: int = 0
    skipped: int = 0  # tuples
    made: tuple[int, ...] = (0,)

    def beside(self, other: OperatorVitals) -> OperatorVitals:
        """Two lanes of one operator: tuples add up; guards do not, for feedback is told to all
        lanes and each installs the same."""
        return OperatorVitals(
            self.held + other.held,
            max(self.guards, other.guards),
            self.skipped + other.skipped,
            _added(self.made, other.made),
        )


@dataclass(frozen=True)
class SourceVitals:
    """How far a source has come, in ticks, and when it was last heard of, in µs of the clock."""

    reached: int | None = None  # the greatest time it has promised; None before any and after all
    heard: int | None = None
    rows: int = 0
    late: int = 0
    quiet: str = ""
    clocked: bool = True  # whether ticks are microseconds
    finished: bool = False  # it has come to the end of time, which is no time to be shown

    @classmethod
    def of_json(cls, said: Mapping[str, Any]) -> SourceVitals:
        """What a lane left; lanes of older versions wrote the end of time as a number."""
        if said["reached"] is not None and said["reached"] >= END_OF_TIME:
            return cls(**{**said, "reached": None, "finished": True})
        return cls(**said)

    def beside(self, other: SourceVitals) -> SourceVitals:
        """Two lanes of one source: all lanes know of all its rows, each has its own late ones."""
        if self.finished or other.finished:
            reached = other.reached if self.finished else self.reached
        else:
            reached = _least(self.reached, other.reached)
        return SourceVitals(
            reached,
            max((h for h in (self.heard, other.heard) if h is not None), default=None),
            max(self.rows, other.rows),
            self.late + other.late,
            self.quiet or other.quiet,
            self.clocked,
            self.finished and other.finished,
        )


@dataclass(frozen=True)
class Vitals:
    """Of one lane of one stage, or of a whole flow."""

    operators: Mapping[str, OperatorVitals] = field(default_factory=dict)
    sources: Mapping[str, SourceVitals] = field(default_factory=dict)
    waiting: tuple[Blame, ...] = ()

    def after(self, before: Vitals) -> Vitals:
        """With what was counted before the operators were built again from their state."""
        nothing, unheard = OperatorVitals(), SourceVitals()
        operators = {
            name: OperatorVitals(
                v.held,
                v.guards,
                v.skipped,
                _added(v.made, before.operators.get(name, nothing).made),
            )
            for name, v in self.operators.items()
        }
        sources = {
            name: replace(
                v,
                rows=v.rows + before.sources.get(name, unheard).rows,
                late=v.late + before.sources.get(name, unheard).late,
            )
            for name, v in self.sources.items()
        }
        return Vitals(operators, sources, self.waiting)

    def counts(self) -> bytes:
        """What only grows, for the lane's own state: it is to be as exact as that, and not to count
        twice what is computed twice."""
        made = {name: v.made for name, v in self.operators.items()}
        rows = {name: (v.rows, v.late) for name, v in self.sources.items()}
        return json.dumps({"made": made, "rows": rows}).encode()

    @classmethod
    def of_counts(cls, stored: bytes) -> Vitals:
        said = json.loads(stored)
        operators = {n: OperatorVitals(made=tuple(made)) for n, made in said["made"].items()}
        sources = {
            n: SourceVitals(rows=rows, late=late) for n, (rows, late) in said["rows"].items()
        }
        return cls(operators, sources)

    def since(self, moment: int) -> Vitals:
        """As it is to be told: a source that was heard of since this moment is sending."""
        sources = {
            n: replace(s, quiet=still(s.quiet, s.heard, moment)) for n, s in self.sources.items()
        }
        waiting = (replace(x, quiet=still(x.quiet, x.since, moment)) for x in self.waiting)
        return Vitals(self.operators, sources, tuple(waiting))

    @property
    def heard(self) -> int | None:
        """When the source that was heard of last was; None where none ever was."""
        return max((s.heard for s in self.sources.values() if s.heard is not None), default=None)

    @property
    def skipped(self) -> int:
        """Tuples that feedback has spared somebody."""
        return sum(v.skipped for v in self.operators.values())

    def to_json(self) -> dict[str, Any]:
        return {
            "operators": {name: asdict(v) for name, v in self.operators.items()},
            "sources": {name: asdict(v) for name, v in self.sources.items()},
            "waiting": [asdict(line) for line in self.waiting],
        }

    @classmethod
    def of_json(cls, said: Mapping[str, Any]) -> Vitals:
        operators = {
            name: OperatorVitals(**{**v, "made": tuple(v["made"])})
            for name, v in said["operators"].items()
        }
        sources = {name: SourceVitals.of_json(v) for name, v in said["sources"].items()}
        return cls(operators, sources, tuple(Blame(**line) for line in said["waiting"]))


@dataclass(frozen=True)
class QueryVitals:
    """The batches of a query: how many, when the last one began and how long it took; and whether
    it runs. One that said so and has not been heard of for too long is silent, and runs no more."""

    batches: int
    began: int  # µs of the clock
    seconds: float
    running: bool
    heard: int | None = None  # when it was last known to be alive; None where it never says so
    silent: bool = False
    since: int | None = None  # when it was started, maybe again; None where it does not say so

    def judged(self, sign: Sign | None, arrival: int | None, now: int) -> QueryVitals:
        """What is to be thought of it at a moment, where this is its last sign of life; that a
        batch was done is one as well, and that lanes told of an arrival."""
        if sign is None:
            return self
        done = self.began + round(self.seconds * 1e6)
        heard = max(m for m in (sign.at, done, arrival) if m is not None)
        silent = self.running and now - heard > PATIENCE
        runs = self.running and not silent
        return replace(self, running=runs, heard=heard, silent=silent, since=sign.since)

    @property
    def starting(self) -> bool:
        """Whether it runs, and no batch is done since it was started again."""
        return self.running and self.since is not None and self.began < self.since


@dataclass(frozen=True)
class Sign:
    """A sign of life: a query was alive at this moment of the clock, and its batches began this
    long after each other, if there were two; it was started at that moment."""

    at: int
    every: int | None = None  # µs
    since: int | None = None


@dataclass(frozen=True)
class Logged:
    """What a checkpoint says of batches by itself: how many are done, when the last of them began,
    and when one began that is not done; in µs of the clock. Not whether the query runs."""

    batches: int
    began: int | None = None
    unfinished: int | None = None


def lately(query: QueryVitals | None, sign: Sign | None, now: int) -> int:
    """The moment since which a source must have been heard of to be sending: two batches ago, of a
    query that runs no more two batches before its last one was done."""
    every = 0 if sign is None or sign.every is None else sign.every
    if query is None:
        return now - LEAST
    length = round(query.seconds * 1e6)
    ago = 2 * max(every, length)
    return now - max(ago, LEAST) if query.running else query.began + length - ago


@dataclass(frozen=True)
class Snapshot:
    """All that is known of a flow at one moment of the clock."""

    at: int
    outline: Outline | None
    vitals: Vitals
    query: QueryVitals | None = None  # None in process, where there are no batches
    reached: Mapping[str, int] = field(default_factory=dict)  # by sink, in ticks
    merge: MergeVitals | None = None  # where the query is a logical merge
    logged: Logged | None = None  # where the query itself tells nothing

    @property
    def rows(self) -> int:
        return sum(s.rows for s in self.vitals.sources.values())

    @property
    def begun(self) -> bool:
        """Whether something has come out yet of which there is anything to tell."""
        done = self.logged is not None and self.logged.batches > 0
        told = self.query is not None or self.merge is not None
        return told or done or bool(self.vitals.sources)

    def put_out(self, name: str) -> int:
        """Tuples that an operator or a source has put out, but for late ones, or that a sink has
        been given."""
        made = self.vitals.operators[name].made
        return made[0] if name in self.vitals.sources else sum(made)

    @property
    def lag(self) -> int | None:
        """How far the results are behind the clock, in µs; None where time is no clock's, where it
        has not begun, and where nothing more is to come: of a query that has ended, or of sinks
        whose sources have."""
        if self.query is not None and not self.query.running:
            return None
        clocked = all(s.clocked for s in self.vitals.sources.values())
        reached = list(self.reached.values())
        if self.merge is not None:
            clocked, reached = self.merge.clocked, [self.merge.stable]
        begun = [ticks for ticks in reached if START_OF_TIME < ticks <= LAST_YEAR]
        return max(self.at - min(begun), 0) if begun and clocked else None


def vitals(vertices: Iterable[Vertex]) -> Vitals:
    """Of the operators of an engine, or of one lane."""
    vertices = [v for v in vertices if not v.name.startswith((ENTRY, EXPORT))]
    sources = {v.name: _source(v, v.operator) for v in vertices if isinstance(v.operator, Source)}
    return Vitals({v.name: _operator(v) for v in vertices}, sources)


def with_blame(vertices: Iterable[Vertex]) -> Vitals:
    """And whom its operators wait for."""
    vertices = list(vertices)
    seen = vitals(vertices)
    return Vitals(seen.operators, seen.sources, tuple(blame(vertices)))


def together(parts: Mapping[int, Iterable[Vitals]]) -> Vitals:
    """The lanes of all stages, by the number of the stage, as one flow.

    Of a source that enters several stages the first tells, which has its late tuples too; what it,
    and those behind it before the shuffle, have put out is counted there.
    """
    operators: dict[str, OperatorVitals] = {}
    sources: dict[str, SourceVitals] = {}
    waiting: list[Blame] = []
    for _, lanes in sorted(parts.items()):
        known, already = frozenset(sources), frozenset(operators)
        for lane in lanes:
            waiting += lane.waiting
            for name, told in lane.operators.items():
                seen = replace(told, made=()) if name in already else told
                other = operators.get(name)
                operators[name] = seen if other is None else seen.beside(other)
            for name, source in lane.sources.items():
                if name not in known:
                    beside = sources.get(name)
                    sources[name] = source if beside is None else source.beside(beside)
    return Vitals(operators, sources, tuple(across_stages(waiting)))


def _operator(vertex: Vertex) -> OperatorVitals:
    held = vertex.held()
    made = tuple(vertex.made.get(port, 0) for port in range(len(vertex.operator.outputs)))
    if isinstance(vertex.operator, Sink):
        made = (vertex.taken,)
    skipped = sum(vertex.operator.skipped().values())
    return OperatorVitals(held.tuples, held.guards, skipped, made)


def _source(vertex: Vertex, source: Source) -> SourceVitals:
    """In a lane, tuples enter behind their source, and it is told how many there were."""
    time, late = source.time, vertex.made.get(1, 0)
    reached = None if time.finished or time.given == START_OF_TIME else time.given
    if isinstance(source, LaneSource):
        rows = vertex.taken
    else:
        rows = vertex.made.get(0, 0) + late + sum(source.skipped().values())
    quiet = quiet_of(source)
    return SourceVitals(reached, time.arrived, rows, late, quiet, time.clocked, time.finished)


def _added(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
    length = max(len(one), len(other))
    padded = (made + (0,) * (length - len(made)) for made in (one, other))
    return tuple(a + b for a, b in zip(*padded, strict=True))


def _least(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else min(one, other)
