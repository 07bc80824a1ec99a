"""Running a merge by itself on rows, for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from interpunct.model.elements import Row, elements
from interpunct.model.frames import stacked
from interpunct.model.page import Page
from interpunct.model.properties import Properties
from interpunct.operators.contract import Stream
from interpunct.operators.lmerge import MergePolicy, lmerge
from interpunct.operators.state import DictState
from interpunct.testing.compatibility import Watch
from interpunct.testing.revisable import SCHEMA

KNOWN = {
    "R0": Properties(strict=True),
    "R1": Properties(ordered=True, deterministic=True),
    "R2": Properties(ordered=True, keyed=True),
    "R3": Properties(insert_only=False, keyed=True),
    "R3-": Properties(insert_only=False, keyed=True),
    "R4": Properties(insert_only=False),
}


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
