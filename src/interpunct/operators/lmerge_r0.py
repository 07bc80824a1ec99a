"""Logical merge where Vs grows from insert to insert: LMR0, with two numbers for its state.

    in 0:  1  4  9        MaxVs   1  1  4  6  9
    in 1:     1  6  9     out     1     4  6  9

An insert that does not increase MaxVs has come out already (LMerge section IV-A).
"""

from __future__ import annotations

from interpunct.operators.lmerge_ordered import OrderedMerge
from interpunct.operators.lmerge_rows import Batch, Flags


class LogicalMergeR0(OrderedMerge):
    """Inserts only, Vs strictly increasing: every input shows the same events in one order."""

    variant = "R0"
    strict = True

    def _new(self, port: int, batch: Batch) -> Flags:
        del port  # whoever is first at a Vs is the only one there
        return batch.vs > self.max_vs
