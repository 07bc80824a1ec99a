"""Windows that are given up before they end, because their result is known to be unwanted.

    ¬[*, max ≥ 50]     window 4:  40  51 ✕  38 ✕  …      it has reached 50 and will not come back

COUNT and MAX only grow and MIN only falls, so a condition on them that holds of a window in part
holds of all of it (Feedback sections 3.5 and 4.3, Table 1). Such a window is purged, later tuples
of it are kept out, lest they make a window that never was, and those upstream are told.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from interpunct.model.condition import OneOf
from interpunct.model.pattern import Pattern
from interpunct.model.punctuation import Punctuation
from interpunct.model.schema import Schema
from interpunct.model.ticks import within
from interpunct.operators.shelf import Shelf
from interpunct.operators.state import Record, State

MOST_PATTERNS = 64  # closing patterns at a time; more are not exploited
MOST_TOLD = 16  # groups of several attributes that are told upstream, each in a pattern of its own
MOST_VALUES = 4096  # groups of one attribute that are told upstream, in one pattern


class Closing:
    """The patterns, and the (window, group) pairs given up because of them."""

    def __init__(
        self, state: State, pane: str, by: Sequence[str], stream: Schema, output: Schema
    ) -> None:
        self._pane, self._by, self._input, self._output = pane, list(by), stream, output
        self._record = Record(state, "closing", {"patterns": []})
        self._patterns = [Pattern.parse(t, output) for t in self._record["patterns"]]
        groups = tuple(stream[k] for k in by) or (output[output.ordered_by],)
        self._given_up = Shelf(state, "closed", Schema(groups))

    def __bool__(self) -> bool:
        return bool(self._patterns) or bool(self._given_up.rows)

    def __len__(self) -> int:
        return len(self._patterns) + self._given_up.height

    def add(self, pattern: Pattern) -> bool:
        """One more pattern to watch for; False if it says nothing new or there is no room."""
        if any(pattern.implies(p) for p in self._patterns):
            return False
        kept = [p for p in self._patterns if not p.implies(pattern)]
        if len(kept) >= MOST_PATTERNS:
            return False
        self._patterns = [*kept, pattern]
        return True

    def unwanted(self, results: pl.DataFrame) -> pl.Series:
        """For each result, final or so far, whether nobody wants it."""
        found = pl.repeat(False, results.height, dtype=pl.Boolean, eager=True)
        for pattern in self._patterns:
            found |= pattern.mask(results)
        return found

    def admit(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Partial rows without those of windows that were given up."""
        panes = [p for p in rows.get_column(self._pane).unique().to_list() if p in self._given_up]
        if not panes:
            return rows
        if not self._by:
            return rows.filter(~pl.col(self._pane).is_in(panes))
        gone = pl.concat(
            self._given_up.get(p).with_columns(pl.lit(p, pl.Int64).alias(self._pane)) for p in panes
        )
        keys = [self._pane, *self._by]
        return rows.join(gone, on=keys, how="anti", nulls_equal=True, maintain_order="left")

    def give_up(self, pane: int, groups: pl.DataFrame) -> None:
        """These groups of a window, results so far, are done with."""
        self._given_up.append(pane, groups.select(self._by or [self._output.ordered_by]))

    def told(self, pane: int, size: int, groups: pl.DataFrame) -> list[Pattern]:
        """The groups in terms of the input, as far as a few patterns can say them."""
        time = within(self._input, pane, pane + size - 1)
        window = Pattern(self._input, {self._input.ordered_by: time})
        plain = all(not self._input[k].dtype.is_nested() for k in self._by)
        if not self._by:
            return [window]
        if len(self._by) == 1 and plain and groups.height <= MOST_VALUES:
            values = OneOf(groups.get_column(self._by[0]).to_list())
            return [window.intersect(Pattern(self._input, {self._by[0]: values}))]
        if not plain or groups.height > MOST_TOLD:
            return []
        rows = groups.select(self._by).iter_rows(named=True)
        return [window.intersect(Pattern.of(self._input, {k: OneOf((v,)) for k, v in row.items()}))
                for row in rows]  # fmt: skip

    def reached(self, heartbeat: int) -> None:
        """The output has come this far: what speaks of earlier windows alone is done with."""
        for pane in [p for p in self._given_up if p <= heartbeat]:
            self._given_up.drop(pane)
        if self._patterns:
            past = Punctuation.heartbeat(self._output, heartbeat).pattern
            self._patterns = [p for p in self._patterns if not p.implies(past)]

    def save(self) -> None:
        self._record["patterns"] = [p.by_name() for p in self._patterns]
        self._record.save()
        self._given_up.save()
