"""A backlog: tuples that wait for work or for a request, the oldest first.

    held:  3 5 9 12        oldest(2) → 3 5        oldest(2, since=9) → 9 12        3 5 stay

It is what waits at an idle-waiting operator (sorted runs on a shelf, of which only those that
changed are written), with two more ways to leave it.

>>> from interpunct.model.schema import Schema
>>> from interpunct.operators.state import DictState
>>> schema = Schema.of("ts bigint", time="ts")
>>> backlog = Backlog(DictState(), "late work", schema)
>>> _ = backlog.add(pl.DataFrame({"ts": [9, 3, 12, 5]}))
>>> backlog.oldest(2, since=9)["ts"].to_list(), backlog.first
([9, 12], 3)
"""

from __future__ import annotations

from bisect import insort

import polars as pl

from interpunct.model.frames import stacked
from interpunct.model.pattern import Pattern
from interpunct.model.punctuation import Punctuation
from interpunct.model.schema import START_OF_TIME
from interpunct.operators.tsm import Waiting, _Run


class Backlog(Waiting):
    """Tuples by time; they leave a few at a time, or because they match."""

    def oldest(self, count: int, since: int = START_OF_TIME) -> pl.DataFrame:
        """Remove and return the `count` oldest tuples of those stamped at or after `since`."""
        taken = [self._schema.empty()]
        while count:
            found = self._oldest_run(since)
            if found is None:
                break
            piece = self._cut(*found, count)
            taken.append(piece)
            count -= piece.height
        return stacked(taken)

    def matching(self, pattern: Pattern) -> pl.DataFrame:
        """Remove and return the tuples that match, in no particular order."""
        held = self.all()
        found = held.filter(pattern.mask(held))
        if found.height:
            super().purge(pattern)
        return found

    def purge(self, pattern: Pattern) -> int:
        """Forget the tuples that match; where only old ones do, the others are not looked at."""
        before, upto = self.rows, Punctuation(pattern).heartbeat_ticks
        if upto is None:
            return self.matching(pattern).height if before else 0
        self.take(upto)
        return before - self.rows

    def _oldest_run(self, since: int) -> tuple[_Run, int, int | None] | None:
        """The run to take from, the row at which to begin, and the time up to which no other run
        has anything older."""
        heads: list[tuple[int, int, int, _Run]] = []
        beyond = 0
        for run in self._runs:
            if run.last < since:
                continue
            row, tick = 0, run.first
            if tick < since:
                ticks = self._schema.ticks(self._remaining(run))
                row = int(ticks.search_sorted(since, side="left"))
                tick = int(ticks[row])
            else:
                beyond += 1
            heads.append((tick, run.key, row, run))
            if beyond == 2:  # runs come by their first time: the others are no older
                break
        if not heads:
            return None
        heads.sort(key=lambda head: head[:2])
        _, _, row, run = heads[0]
        return run, row, heads[1][0] if len(heads) > 1 else None

    def _cut(self, run: _Run, row: int, upto: int | None, count: int) -> pl.DataFrame:
        """Take rows out of a run, from one on, at most `count` and none later than `upto`."""
        frame = self._remaining(run)
        if upto is not None:
            within = int(self._schema.ticks(frame).search_sorted(upto, side="right"))
            count = min(count, within - row)
        piece = frame.slice(row, count)
        after = row + piece.height
        self._runs.remove(run)
        if row or after == frame.height:
            self._forget(run)
            self._put_back(frame.head(row))
            self._put_back(frame.slice(after))
            return piece
        self.rows -= piece.height
        first = int(self._schema.ticks(frame.slice(after, 1))[0])
        rest = (run.rows - piece.height, run.start + piece.height, run.frame, run.shelved)
        insort(self._runs, _Run(first, run.key, run.last, *rest))
        return piece

    def _put_back(self, frame: pl.DataFrame) -> None:
        if frame.height:
            ticks = self._schema.ticks(frame)
            self._push(frame, int(ticks[0]), int(ticks[-1]))
