"""Two replicas of a query and their logical merge, to be watched while one of them fails.

    a ─ 0.5 s late ─┐
                    ├─ lmerge ─ out          stop a: b leads, and nothing is missing or doubled
    b ─ 1.5 s late ─┘

Both tell the speed of nine segments, second by second, with a delay of their own. A replica that is
stopped leaves the merge; started again, it goes on where it stopped, tells what it has missed and
is joined once the output has come to where it is guaranteed from (LMerge section V-B).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np
import polars as pl

from interpunct.api import Flow
from interpunct.model.elements import KIND, STABLE, element_schema, elements, insert, stable
from interpunct.model.schema import START_OF_TIME, Schema
from interpunct.operators.lmerge_base import LogicalMerge
from interpunct.progress.clock import ScriptedClock

SECOND = 1_000_000
SEGMENTS = 9
CATCH_UP = 8  # seconds of the stream that a replica which is behind tells in one turn
KEPT = 400  # moments
MOST_EVENTS = 10
SCHEMA = element_schema(Schema.of("segment bigint, speed bigint"))


@dataclass
class Replica:
    """One input: how late it is, whether it runs, and up to which second it has told."""

    name: str
    delay: float
    told: int
    running: bool = True
    elements: int = 0

    def turn(self, now: int) -> pl.DataFrame | None:
        """The elements that are due; None for none."""
        due = int((now - self.delay * SECOND) // SECOND)
        until = min(due, self.told + CATCH_UP)
        if not self.running or until <= self.told:
            return None
        rows = [
            insert((segment, speed(segment, second)), second * SECOND, (second + 1) * SECOND)
            for second in range(self.told, until)
            for segment in range(SEGMENTS)
        ]
        self.told = until
        self.elements += len(rows)
        return elements(SCHEMA, [*rows, stable(until * SECOND)])


@dataclass
class Merging:
    """The merge in process, moved on by whoever has a clock."""

    now: int
    delays: tuple[float, ...] = (0.5, 1.5)
    moments: deque[dict[str, float]] = field(default_factory=lambda: deque(maxlen=KEPT))
    events: deque[str] = field(default_factory=lambda: deque(maxlen=MOST_EVENTS))
    out: int = 0  # events that came out, each of them once

    def __post_init__(self) -> None:
        first = self.now // SECOND
        names = "abcdefgh"[: len(self.delays)]
        self.replicas = [Replica(n, d, first) for n, d in zip(names, self.delays, strict=True)]
        flow = Flow("replicas")
        inputs = [
            flow.source(r.name, SCHEMA).declare(keyed=True, insert_only=False)
            for r in self.replicas
        ]
        flow.sink("out", flow.lmerge(*inputs, name="merge"))
        self._live = flow.live(ScriptedClock(self.now))

    @property
    def merge(self) -> LogicalMerge:
        merge = self._live.engine.operators["merge"]
        assert isinstance(merge, LogicalMerge)
        return merge

    @property
    def variant(self) -> str:
        return self.merge.variant

    @property
    def leader(self) -> str | None:
        port = self.merge.leader
        return None if port is None else self.replicas[port].name

    @property
    def waste(self) -> int:
        """Elements that told again what was out already."""
        return sum(r.elements for r in self.replicas) - self.out

    def status(self, replica: Replica) -> str:
        return self.merge.status(self.replicas.index(replica))

    def turn(self, now: int) -> None:
        """Time has come this far: each replica tells what is due, and the merge what it makes."""
        self.now, led = now, self.leader
        for replica in self.replicas:
            due = replica.turn(now)
            if due is not None:
                self._live.feed(replica.name, due)
        came = self._live.take("out")
        self.out += came.filter(pl.col(KIND) != STABLE).height
        if self.leader != led:
            self._note(f"{self.leader} leads")
        self.moments.append(self._moment())

    def toggle(self, replica: Replica) -> None:
        """Stop a replica that runs, start one that does not."""
        port = self.replicas.index(replica)
        replica.running = not replica.running
        if replica.running:
            replica.told -= 1  # what ends just where it stopped is not final yet: it tells it again
            self.merge.attach(port, replica.told * SECOND + 1)
            self._note(f"{replica.name} starts again, guaranteed from where it stopped")
            return
        led = self.leader
        self.merge.detach(port)
        self._note(f"{replica.name} has stopped")
        if self.leader != led:
            self._note("nobody leads" if self.leader is None else f"{self.leader} leads")

    def _moment(self) -> dict[str, float]:
        """How far each has come, in seconds behind the clock."""
        behind = {r.name: (self.now - r.told * SECOND) / SECOND for r in self.replicas}
        reached = self.merge.max_stable
        out = float("nan") if reached == START_OF_TIME else (self.now - reached) / SECOND
        return {"at": self.now / 1000, **behind, "out": out}

    def _note(self, event: str) -> None:
        self.events.append(f"{datetime.fromtimestamp(self.now / SECOND, UTC):%H:%M:%S} {event}")


def speed(segment: int, second: int) -> int:
    """What both replicas say of a segment in a second: they are equivalent."""
    return int(55 + 25 * np.sin(second / 15 + segment))
