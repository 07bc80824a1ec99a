"""Logical merge where equal Vs come in any order: LMR2, which remembers one Vs.

    in 0:  7a 7b           at 7:  {a, b, c}
    in 1:  7c 7a 7b        out:   7a 7b 7c

Of the events at the greatest Vs the payloads are kept; beyond it everything is new and the table
starts again (LMerge section IV-A). Only rows at the greatest Vs, before or after the page, are ever
hashed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from interpunct.model.schema import Schema
from interpunct.operators.contract import Held, Stream
from interpunct.operators.lmerge_index import KeyIndex, fingerprints
from interpunct.operators.lmerge_ordered import OrderedMerge
from interpunct.operators.lmerge_policy import MergePolicy
from interpunct.operators.lmerge_rows import Batch, Flags, picked
from interpunct.operators.lmerge_tables import copied
from interpunct.operators.shelf import Shelf
from interpunct.operators.state import State


class LogicalMergeR2(OrderedMerge):
    """Inserts only, Vs never decreasing, (Vs, payload) a key."""

    variant = "R2"

    def __init__(
        self,
        name: str,
        inputs: Sequence[Stream],
        policy: MergePolicy | None = None,
        state: State | None = None,
    ) -> None:
        super().__init__(name, inputs, policy, state)
        schema = Schema(tuple(self.output[n] for n in self.payload))
        self._payloads = Shelf(self.state, "front", schema)
        self._front_index = KeyIndex()
        if 0 in self._payloads:
            self._remember(self._payloads.get(0))

    def _new(self, port: int, batch: Batch) -> Flags:
        del port
        fresh = batch.insert & (batch.vs > self.max_vs)
        level = np.flatnonzero(batch.insert & (batch.vs == self.max_vs))
        if level.size:
            keys = fingerprints(picked(batch.frame.select(self.payload), level))
            fresh[level] = self._front_index.find(*keys) < 0
        self._turn_to(batch, fresh)
        return fresh

    def _turn_to(self, batch: Batch, fresh: Flags) -> None:
        """Remember the fresh events at what is the greatest Vs from now on."""
        rows = np.flatnonzero(fresh)
        if not rows.size:
            return
        last = batch.vs[rows[-1]]
        if last > self.max_vs:
            self._front_index = KeyIndex()
            self._payloads.drop(0)
        kept = copied(batch.frame.select(self.payload), rows[batch.vs[rows] == last])
        self._payloads.append(0, kept)
        self._remember(kept)

    def _remember(self, payloads: pl.DataFrame) -> None:
        self._front_index.add(*fingerprints(payloads), np.zeros(payloads.height, np.int64))

    def _held(self) -> Held:
        front = Held(self._payloads.height, self._payloads.nbytes() + self._front_index.nbytes)
        return super()._held() + front

    def _save(self) -> None:
        super()._save()
        self._payloads.save()
