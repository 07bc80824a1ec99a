"""Logical merge of streams without revisions, in the order of Vs: what R0, R1 and R2 share.

    in 0:  1  4     9 |                     out: 1  4  6  9       each event from whoever
    in 1:        4  6    9                                        shows it first

They look only at the front of time: an event comes out if it is at the greatest Vs so far and new
there, or beyond it. So a page is decided with a few comparisons and no index (LMerge section IV-A).
What they let pass must begin at or after MaxStable: an input that has fallen behind a stable could
otherwise still show an event that the leading one lacks.

A joining input cannot be compared with the others before it is guaranteed. What it shows from
MaxStable on is kept until then, and merged when it has joined.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np
import polars as pl

from interpunct.model.elements import KIND, STABLE, VS, ticks_expr
from interpunct.model.errors import FlowError
from interpunct.model.properties import Properties
from interpunct.model.schema import START_OF_TIME
from interpunct.operators.contract import Held, Stream
from interpunct.operators.lmerge_base import JOINING, LogicalMerge, Seat
from interpunct.operators.lmerge_rows import Batch, Flags, Output, Ticks, running
from interpunct.operators.shelf import Shelf

PRUNED_FROM = 4096  # rows kept for a joining input before it is worth looking for old ones


class OrderedMerge(LogicalMerge):
    """A variant adds `_new`: which inserts at or beyond the greatest Vs are new.

    Of a policy only the lag matters: there is nothing to adjust, and first inserts are all that
    can be had without remembering them.
    """

    strict = False  # whether Vs must grow from insert to insert

    def _prepare(self) -> None:
        if not self.policy.stateless:
            raise FlowError(
                self.name, f"first inserts from {self.variant}", f"inserts={self.policy.inserts!r}",
                "It does not remember who has shown what: take R3 or R4 for this policy.",
            )  # fmt: skip
        self._record.values.setdefault("max_vs", START_OF_TIME)
        self._waiting = Shelf(self.state, "joining", self.output)

    def _properties(self, inputs: Sequence[Stream]) -> Properties:
        known = [s.properties for s in inputs]
        return Properties(
            ordered=True, strict=self.strict, insert_only=True,
            keyed=self.strict or all(p.keyed for p in known),
            deterministic=self.strict or all(p.deterministic for p in known),
        )  # fmt: skip

    @property
    def max_vs(self) -> int:
        at: int = self._record["max_vs"]
        return at

    def _rules(self, seat: Seat, batch: Batch) -> list[tuple[Flags, str]]:
        before = running(np.where(batch.insert, batch.vs, START_OF_TIME), seat.last)[:-1]
        back = batch.insert & ((batch.vs <= before) if self.strict else (batch.vs < before))
        rules = super()._rules(seat, batch)
        return [*rules, (batch.adjust, "that it never revises"), (back, "its order")]

    def _merge(self, port: int, batch: Batch, out: Output) -> None:
        if self._seats[port].status == JOINING:
            self._keep(port, batch)
            return
        end = self._joins_at(batch)
        part = batch.between(0, end)
        self._front(port, part, out)
        if end < len(batch):
            self._merge(port, batch.between(end, len(batch)), out)

    def _front(self, port: int, batch: Batch, out: Output) -> None:
        """Everything up to a place where another input may join."""
        stables = self._stables(batch)
        reached = running(stables, self.max_stable)
        forward = stables > reached[:-1]
        fresh = batch.insert & (batch.vs >= reached[:-1]) & self._new(port, batch)
        out.rows(self._worded(batch, stables), np.flatnonzero(forward | fresh))
        if batch.insert.any():
            self._record["max_vs"] = max(self.max_vs, int(batch.vs[batch.insert].max()))
        if forward.any():
            self._record["leader"] = port
            self._advance(int(reached[-1]), out)

    @abstractmethod
    def _new(self, port: int, batch: Batch) -> Flags:
        """Which inserts no input has shown, and remember them."""

    def _stables(self, batch: Batch) -> Ticks:
        """The output stable each stable allows; before all time for other elements."""
        lag = np.where(batch.vs >= self._forever, 0, self.policy.stable_lag)
        return np.where(batch.stable, batch.vs - lag, START_OF_TIME)

    def _worded(self, batch: Batch, stables: Ticks) -> pl.DataFrame:
        """The elements as they come out: stables say what the policy's lag leaves of them."""
        if not self.policy.stable_lag:
            return batch.frame
        times = pl.Series(VS, np.where(batch.stable, stables, batch.vs))
        return batch.frame.with_columns(times.cast(self.output[VS].dtype))

    def _joins_at(self, batch: Batch) -> int:
        """The row after the first stable by which a joining input joins; else the end."""
        starts = [s.guaranteed_from for s in self._seats if s.status == JOINING]
        if not starts:
            return len(batch)
        joins = self._stables(batch) >= min(starts)
        return int(joins.argmax()) + 1 if joins.any() else len(batch)

    # Joining inputs -----------------------------------------------------------------------------

    def _keep(self, port: int, batch: Batch) -> None:
        useful = batch.stable | (batch.vs >= self.max_stable)
        if useful.any():
            self._waiting.append(port, batch.where(useful).frame)
        if self._waiting.rows.get(port, 0) > PRUNED_FROM:
            late = (pl.col(KIND) != STABLE) & (ticks_expr(VS) < self.max_stable)
            kept = self._waiting.get(port).filter(~late)
            if 2 * kept.height < self._waiting.rows[port]:
                self._waiting.put(port, kept)

    def _joined(self, port: int, out: Output) -> None:
        if port in self._waiting:
            frame = self._waiting.get(port)
            self._waiting.drop(port)
            self._merge(port, Batch.of(frame), out)

    def _left(self, port: int) -> None:
        if port in self._waiting:
            self._waiting.drop(port)

    def _held(self) -> Held:
        return Held(self._waiting.height, self._waiting.nbytes())

    def _save(self) -> None:
        super()._save()
        self._waiting.save()
