"""Cleanse: a revisable stream in the order of Vs and without revisions, at the price of waiting.

    ins(B,8,∞) ins(A,6,12) adj(B,8,∞,10)  stable(11)         stable(13)
                                           nothing: A may     ins(A,6,12) ins(B,8,10) stable(13)
                                           end anywhere

Elements are kept until a stable makes their events final; those are released in the order of Vs,
unless one that began earlier is not final yet (LMerge section VI-D, example 2 of section IV-D). Its
output suits the cheapest merges, but every input needs one of its own, and an event comes out only
when its end has passed. Figure 6 shows what that costs.

Events of one Vs come in the order of their payloads, so that all cleansed copies of a stream agree.
"""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from interpunct.model.attribute_map import AttributeMap
from interpunct.model.elements import (
    INSERT,
    KIND,
    STABLE,
    VE,
    VOLD,
    VS,
    framed,
    infinity,
    payload_names,
    ticks,
    ticks_expr,
)
from interpunct.model.frames import stacked
from interpunct.model.page import Page
from interpunct.model.pattern import Pattern
from interpunct.model.punctuation import Punctuation
from interpunct.model.schema import START_OF_TIME
from interpunct.model.tdb import tdb
from interpunct.operators.contract import Emission, Held, Operator, Stream
from interpunct.operators.lmerge_rows import Output
from interpunct.operators.responses import Response, at_output
from interpunct.operators.shelf import Shelf
from interpunct.operators.state import Record, State


class Cleanse(Operator):
    """Elements in any order in, final events in the order of Vs out."""

    def __init__(self, name: str, stream: Stream, state: State | None = None) -> None:
        schema = stream.schema
        self._payload = payload_names(schema)
        known = replace(stream.properties, insert_only=True, ordered=True, deterministic=True)
        mapping = AttributeMap.identity(schema)
        super().__init__(name, [stream], [Stream(schema, known)], mapping, state)
        self._waiting = Shelf(self.state, "waiting", schema)
        self._record = Record(self.state, "cleanse", {"given": START_OF_TIME})

    def on_page(self, port: int, page: Page) -> Emission:
        del port
        stables = page.frame.filter(pl.col(KIND) == STABLE)
        told = page.frame.filter(pl.col(KIND) != STABLE)
        if told.height:
            self._waiting.append(0, told)
        latest = ticks(stables, VS).max()
        return self._released(latest) if isinstance(latest, int) else Emission()

    def on_punctuation(self, port: int, punctuation: Punctuation) -> Emission:
        """Only stables say that an event is final."""
        del port, punctuation
        return Emission()

    def _released(self, stable: int) -> Emission:
        """The final events before the first that is not, and a stable that says so."""
        events = self._events()
        final = ticks_expr(VE) < stable
        if stable >= infinity(self.output):
            final = pl.lit(value=True)
        begun = ticks(events.filter(~final), VS).min()
        upto = min(stable, begun) if isinstance(begun, int) else stable
        ready = final & (ticks_expr(VS) < upto)
        self._waiting.put(0, events.filter(~ready))
        order = [VS, *(n for n in self._payload if not self.output[n].dtype.is_nested()), VE]
        out = Output(self.output)
        out.frame(events.filter(ready).sort(order, maintain_order=True))
        if upto > self._record["given"]:
            self._record["given"] = upto
            out.stable(upto)
        return self.tuples(out.taken())

    def _events(self) -> pl.DataFrame:
        """What the elements so far amount to, as inserts."""
        table = tdb(self.output, stacked([self._waiting.get(0)]))
        head = [pl.lit(INSERT).alias(KIND), pl.col(VS), pl.lit(None, pl.Int64).alias(VOLD)]
        return framed(self.output, table, [*head, pl.col(VE), *map(pl.col, self._payload)])

    def characterise(self, pattern: Pattern, port: int) -> Response:
        """Elements that come together make an event, so only the output can be guarded."""
        return at_output("¬[…]", pattern, port)

    def _held(self) -> Held:
        return Held(self._waiting.height, self._waiting.nbytes())

    def _save(self) -> None:
        self._waiting.save()
        self._record.save()
