"""Logical merge where equal Vs come in one order: LMR1, which counts.

    in 0:  7a 7b           counts at 7:  in 0: 2, in 1: 3, out: 3
    in 1:  7a    7b 7c     out:  7a 7b 7c

At the greatest Vs each input has shown so many events, the first ones of the same list; an insert
that makes its input's count the greatest is new (LMerge section IV-A: a Top-k in rank order is such
a stream). The count of the output is kept apart from those of the inputs, so that it stays when the
input that led leaves.
"""

from __future__ import annotations

import numpy as np

from interpunct.operators.lmerge_ordered import OrderedMerge
from interpunct.operators.lmerge_rows import Batch, Flags


class LogicalMergeR1(OrderedMerge):
    """Inserts only, Vs never decreasing, equal Vs in the same order on every input."""

    variant = "R1"

    def _new(self, port: int, batch: Batch) -> Flags:
        beyond, level = batch.vs > self.max_vs, batch.insert & (batch.vs == self.max_vs)
        shown = self._counts().get(str(port), 0) + np.cumsum(level)
        fresh: Flags = beyond | (level & (shown > self._counts().get("out", 0)))
        self._count(port, batch, int(shown[-1]))
        return fresh

    def _counts(self) -> dict[str, int]:
        counts: dict[str, int] = self._record.values.setdefault("counts", {})
        return counts

    def _count(self, port: int, batch: Batch, shown: int) -> None:
        inserted = batch.vs[batch.insert]
        if not inserted.size:
            return
        if inserted[-1] > self.max_vs:
            shown = int((inserted == inserted[-1]).sum())
            self._record["counts"] = {str(port): shown, "out": shown}
        else:
            counts = self._counts()
            counts[str(port)], counts["out"] = shown, max(shown, counts.get("out", 0))

    def _left(self, port: int) -> None:
        super()._left(port)
        self._counts().pop(str(port), None)
