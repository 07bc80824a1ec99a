"""Running a merge by itself on rows, for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import product
from random import Random
from typing import Any

import polars as pl

from interpunct.model.elements import Row, elements, insert
from interpunct.model.frames import stacked
from interpunct.model.page import Page
from interpunct.model.properties import Properties
from interpunct.operators.contract import Stream
from interpunct.operators.lmerge import MergePolicy, lmerge
from interpunct.operators.lmerge_policy import ADJUSTS
from interpunct.operators.state import DictState
from interpunct.testing.attendance import Turn, script
from interpunct.testing.compatibility import Watch
from interpunct.testing.revisable import SCHEMA, Event, Telling, in_order, retold, table

KNOWN = {
    "R0": Properties(strict=True),
    "R1": Properties(ordered=True, deterministic=True),
    "R2": Properties(ordered=True, keyed=True),
    "R3": Properties(insert_only=False, keyed=True),
    "R3-": Properties(insert_only=False, keyed=True),
    "R4": Properties(insert_only=False),
}

# Every policy that there is, and for every variant those that it takes (section V-A).
AT_ONCE = [MergePolicy(a, i) for a, i in product(ADJUSTS, ("first", "half-frozen"))]
FOLLOWING = [MergePolicy("stable", "leader"), MergePolicy("leader", "leader")]
QUORUMS = [MergePolicy("stable", 0.6), MergePolicy("every", 0.6), MergePolicy("every", 1.0)]
LAGGING = [
    MergePolicy(p.adjusts, p.inserts, stable_lag=3) for p in (*AT_ONCE, *FOLLOWING, *QUORUMS)
]
POLICIES = [*AT_ONCE, *FOLLOWING, *QUORUMS, *LAGGING]
PLAIN = [p for p in POLICIES if (p.adjusts, p.inserts) == ("stable", "first")]
CASES = [(v, p) for v in ("R3", "R4") for p in POLICIES]
CASES += [(v, p) for v in ("R0", "R1", "R2", "R3-") for p in PLAIN]


def named(case: Any) -> str:
    """A case as the name of a test."""
    if not isinstance(case, MergePolicy):
        return str(case)
    return f"{case.inserts} {case.adjusts}" + (f" lag {case.stable_lag}" * bool(case.stable_lag))


@dataclass
class Merging:
    """A merge and everything it has put out."""

    variant: str = "R3"
    inputs: int = 2
    policy: MergePolicy = field(default_factory=MergePolicy)

    def __post_init__(self) -> None:
        self.state = DictState()
        self.log: list[pl.DataFrame] = [SCHEMA.empty()]
        self.restart()

    def restart(self) -> None:
        """What a process does that has read the state of another."""
        streams = [Stream(SCHEMA, KNOWN[self.variant])] * self.inputs
        self.merge = lmerge("merge", streams, self.variant, self.policy, self.state)

    def frame(self, port: int, frame: pl.DataFrame) -> list[Row]:
        pages = [page for _, page in self.merge.accept(port, Page(SCHEMA, frame)).pages]
        self.log += [page.frame for page in pages]
        return [row for page in pages for row in page.frame.rows()]

    def rows(self, port: int, *rows: Row) -> list[Row]:
        return self.frame(port, elements(SCHEMA, rows))

    @property
    def output(self) -> pl.DataFrame:
        return stacked(self.log)


def fed(merging: Merging, arrived: Iterable[tuple[int, Row]]) -> Merging:
    """Element by element, the output compatible with the inputs after each."""
    watch = Watch(merging.inputs, keyed=merging.variant not in ("R1", "R4"))
    for port, row in arrived:
        watched(merging, watch, port, port, row)
    return merging


def watched(merging: Merging, watch: Watch, port: int, stream: int, row: Row) -> None:
    """One element on a port; `stream` is which of the watched streams the port carries."""
    watch.arrives(stream, plain(row))
    for emitted in merging.rows(port, row):
        watch.emits(emitted)
    faults = watch.faults()
    assert not faults, (faults, row, merging.output.rows())


def plain(row: Sequence[Any]) -> Row:
    """A row as its frame has it: infinity is a number."""
    return elements(SCHEMA, [tuple(row)]).row(0)


# Random replicas --------------------------------------------------------------------------------


def reference(variant: str, random: Random, events: int = 8) -> list[Event]:
    duplicates = variant in ("R1", "R4")
    return table(random, events, duplicates=duplicates, distinct_starts=variant == "R0")


def as_stream(events: Sequence[Event]) -> pl.DataFrame:
    return elements(SCHEMA, [insert(*e) for e in events])


def told(variant: str, events: Sequence[Event], random: Random) -> list[Row]:
    """A stream that keeps what the variant needs."""
    if variant in ("R0", "R1"):
        return in_order(events, random)
    if variant == "R2":
        return in_order(events, random, shuffled_ties=True)
    telling = Telling(random.choice([0.0, 0.4, 0.7]), stables=random.choice([0.1, 0.4]),
                      disorder=random.choice([0, 6, 15]))  # fmt: skip
    return retold(events, random, telling)


def attended(variant: str, lag: int, random: Random) -> tuple[list[Event], list[Turn]]:
    """A table, and three inputs that tell it as they come and go."""
    events = reference(variant, random)
    turns = script(
        events, lambda part, random: told(variant, part, random), random,
        ordered=variant in ("R0", "R1", "R2"), lag=lag, rounds=12, most=random.choice([2, 5]),
    )  # fmt: skip
    return events, turns


def played(merging: Merging, turns: Iterable[Turn], names: str = "abc") -> None:
    """Turn by turn, the output compatible with the inputs after each element and as far stable as
    it should be after each turn."""
    watch = Watch(merging.inputs, keyed=merging.variant not in ("R1", "R4"))
    streams: dict[str, int] = {}
    for turn in turns:
        port = names.index(turn.name)
        if turn.attach is not None:
            if merging.merge.status(port) != "detached":
                merging.merge.detach(port)
            merging.merge.attach(port, turn.attach)
        if turn.attach is not None or turn.name not in streams:
            start = {} if turn.attach is None else {"guaranteed_from": turn.attach}
            streams[turn.name] = watch.attaches(lacks=turn.lacks, **start)
        for row in turn.rows:
            watched(merging, watch, port, streams[turn.name], row)
        assert merging.merge.max_stable == turn.stable, turn
        if turn.detach:
            merging.merge.detach(port)
