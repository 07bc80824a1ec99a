"""What the lanes do without, at the ingest side: tuples that nobody wants are not even taken in.

Each lane leaves its assumptions about a source beside the checkpoint; a task reads them when it
begins. They are hints: a tuple that slips through is dropped by the guard in the lane. What all
lanes do without can be left unread by a source that knows what is where; what one lane does without
is dropped from the tuples that would go to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import polars as pl

from interpunct.model.pattern import Pattern
from interpunct.model.schema import Schema
from interpunct.spark.hints import Hints
from interpunct.spark.lanes import LanesOf


@dataclass(frozen=True)
class Unread:
    """Rows that a source left unread because nobody wants them, and what is known of them."""

    rows: int
    least: int | None
    greatest: int | None


@dataclass(frozen=True)
class Assumed:
    """What each lane of one stage does without, in terms of a source's tuples."""

    by_lane: tuple[tuple[Pattern, ...], ...]

    @classmethod
    def of(
        cls, hints: Hints | None, stage: int, lanes: Sequence[int], source: str, schema: Schema
    ) -> Assumed:
        """As the lanes left it; patterns on what a raw tuple does not have are for the lanes."""
        left = [None] if hints is None else hints.assumed(stage, lanes)
        texts = [[] if said is None else said["assumed"].get(source, []) for said in left]
        return cls(tuple(tuple(_expressible(words, schema)) for words in texts))

    def __bool__(self) -> bool:
        return any(self.by_lane)

    @cached_property
    def by_all(self) -> tuple[Pattern, ...]:
        """What every lane does without."""
        return in_common(self.by_lane)

    def wanted(self, frame: pl.DataFrame, lanes_of: LanesOf) -> pl.DataFrame:
        """The tuples that some lane wants, of those that would go to it."""
        if self.by_all:
            frame = frame.filter(~pl.any_horizontal(p.expr() for p in self.by_all))
        alone = [[p for p in patterns if p not in self.by_all] for patterns in self.by_lane]
        if not any(alone) or not frame.height:
            return frame
        lanes = lanes_of(frame)
        for number, patterns in enumerate(alone):
            if patterns:
                unwanted = pl.any_horizontal(p.expr() for p in patterns)
                kept = ~((lanes == number) & frame.select(unwanted).to_series())
                frame, lanes = frame.filter(kept), lanes.filter(kept)
        return frame


def in_common(said: Sequence[Sequence[Pattern]]) -> tuple[Pattern, ...]:
    """The patterns of the first that all others cover as well."""
    first, *others = said
    return tuple(p for p in first if all(any(p.implies(q) for q in other) for other in others))


def _expressible(said: Sequence[tuple[list[str], str]], schema: Schema) -> list[Pattern]:
    return [Pattern.parse(text, schema) for names, text in said if all(n in schema for n in names)]
