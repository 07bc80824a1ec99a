"""The processor of a merge's lane: all inputs' elements of some payloads, on Spark's state."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl
from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

from interpunct.engine.merge_vitals import InputVitals, MergeVitals
from interpunct.model.element_forms import AT, CHANGE, changes_schema, from_changes
from interpunct.model.elements import KIND, STABLE, VS, describe, framed
from interpunct.model.errors import StreamError
from interpunct.model.page import Page
from interpunct.model.properties import Properties
from interpunct.model.schema import Attribute, Schema
from interpunct.operators.contract import Stream
from interpunct.operators.lmerge import LogicalMerge, MergePolicy, lmerge
from interpunct.operators.lmerge_base import JOINED, JOINING, QUARANTINED, Report
from interpunct.operators.state import Record, Scoped, State
from interpunct.spark.hints import current_batch
from interpunct.spark.lmerge_batches import (
    attached_from,
    detaches,
    in_order,
    is_mark,
    misplaced,
    net,
)
from interpunct.spark.lmerge_notes import MergeNotes, Quarantine
from interpunct.spark.quiet import QuietProcessor
from interpunct.spark.state import KEY, VALUE
from interpunct.spark.warm import Warm, freeze_first
from interpunct.spark.wire import OUT, Note, Row, opened, to_pandas

if TYPE_CHECKING:
    import pandas as pd

log = logging.getLogger("interpunct.lmerge")

Lies = dict[str, Report]  # by the input whose they are


@dataclass(frozen=True)
class Merger:
    """What every lane of a merge is built from."""

    schema: Schema
    inputs: tuple[str, ...]  # the names that are there from the start, if they are known
    variant: str
    properties: Properties
    policy: MergePolicy
    run: str  # one start of one query
    keys: tuple[str, ...] = ()  # of the table, where inputs are logs of its changes
    notes: MergeNotes | None = None  # beside the checkpoint, where that is known
    order: Attribute | None = None  # the place of an element among those of its Vs, for R1

    @property
    def entering(self) -> Schema:
        """The rows of an input: elements, perhaps with their places, or changes."""
        if self.order is not None:
            return Schema((*self.schema.attributes, self.order))
        return changes_schema(self.schema) if self.keys else self.schema

    @property
    def kind(self) -> str:
        """The column that says what a row is."""
        return CHANGE if self.keys else KIND

    def built(self, state: State) -> LogicalMerge:
        stream = Stream(self.schema, self.properties)
        seats = max(1, len(self.inputs))
        return lmerge("lmerge", [stream] * seats, self.variant, self.policy, state)


class LaneMerge:
    """A merge whose inputs have names; a name that was not heard before takes the next seat."""

    def __init__(self, merger: Merger, state: State) -> None:
        self._schema = merger.schema
        self._logs = ChangeLogs(merger, state) if merger.keys else None
        self._places = None if merger.order is None else Places(merger, merger.order.name, state)
        initial = {"names": list(merger.inputs), "reports": -1, "past": None}
        self._names = Record(state, "inputs", initial)
        self.merge = merger.built(Scoped(state, "merge"))

    def listen(self, notes: MergeNotes, batch: int) -> None:
        """What other lanes have reported in earlier batches, and what readers do without."""
        for found in notes.quarantined(self._names["reports"], batch):
            port = self._port(found.input, None)
            if self.merge.status(port) in (JOINED, JOINING):
                self.merge.quarantine(port, found.element, found.contradicts)
        self._names["reports"] = batch - 1
        past = notes.past(self._schema)
        if past is not None and past.pattern.by_name() != self._names["past"]:
            self._names["past"] = past.pattern.by_name()
            self.merge.on_feedback(past)

    def stables(self) -> dict[str, int]:
        """How far each input that is heard says that it is stable."""
        ports = enumerate(self._names["names"])
        heard = (JOINED, JOINING)
        return {n: self.merge.stable_of(p) for p, n in ports if self.merge.status(p) in heard}

    def vitals(self) -> MergeVitals:
        """How the inputs are seen here, for people."""
        names, merge = self._names["names"], self.merge
        led = merge.leader is not None and merge.leader < len(names)
        inputs = {n: InputVitals(merge.status(p), merge.stable_of(p)) for p, n in enumerate(names)}
        leader = names[merge.leader] if led else None
        return MergeVitals(merge.variant, merge.max_stable, leader, inputs)

    def take(
        self, name: str, frame: pl.DataFrame, *, speaks: bool = False
    ) -> tuple[list[pl.DataFrame], Lies]:
        """What comes out of one input's share of a batch, without stables; and which inputs, this
        one or another that joins because of it, went into quarantine. Whether the input `speaks`
        is for all lanes to know: who attaches later need not be guaranteed from the beginning of
        time if nobody has said anything, here or elsewhere."""
        broken = None
        if self._logs is not None:
            frame, broken = self._logs.elements(name, frame)
        port = self._port(name, attached_from(frame))
        if speaks and self.merge.status(port) in (JOINED, JOINING):
            self.merge.begin()
        before = self._quarantined()
        if self._places is None:
            told = net(self._schema, frame)
        else:
            told, broken = self._places.elements(name, frame)
        pages = self.merge.accept(port, Page(self._schema, told)).pages
        if broken is not None and self.merge.status(port) in (JOINED, JOINING):
            self.merge.quarantine(port, broken.got, broken.expected)
        last = {r.input: r for r in self.merge.reports()}
        lies = {self._names["names"][p]: last[p] for p in self._quarantined() - before}
        if detaches(frame):
            self.merge.detach(port)
        return [page.frame.filter(pl.col(KIND) != STABLE) for _, page in pages], lies

    def _quarantined(self) -> set[int]:
        ports = range(len(self._names["names"]))
        return {p for p in ports if self.merge.status(p) == QUARANTINED}

    def save(self) -> None:
        self._names.save()
        if self._logs is not None:
            self._logs.save()
        if self._places is not None:
            self._places.save()
        self.merge.save()

    def _port(self, name: str, start: int | None) -> int:
        """The seat of an input; one that says attach sits down anew."""
        names: list[str] = self._names["names"]
        if name not in names:
            self._names["names"] = names = [*names, name]
            port = len(names) - 1
            if port:  # the first seat is there from the start
                self._attach(port, start)
                return port
        port = names.index(name)
        if start is not None:
            self.merge.detach(port)
            self._attach(port, start)
        return port

    def _attach(self, port: int, start: int | None) -> None:
        if start is None:
            self.merge.attach(port)
        else:
            self.merge.attach(port, start)


class ChangeLogs:
    """Changes to elements: the current version of every key of each input, kept as a page."""

    def __init__(self, merger: Merger, state: State) -> None:
        self._schema, self._keys, self._state = merger.schema, merger.keys, Scoped(state, "current")
        self._current: dict[str, pl.DataFrame] = {}
        self._changed: set[str] = set()

    def elements(self, name: str, log: pl.DataFrame) -> tuple[pl.DataFrame, StreamError | None]:
        """The elements of one input's changes, in the order of their times, and its marks; an
        error instead of them where a change cannot be."""
        marks = log.filter(is_mark(CHANGE)).rename({CHANGE: KIND, AT: VS})
        named = [
            pl.col(n) if n in (KIND, VS) else pl.lit(None).alias(n) for n in self._schema.names
        ]
        said = framed(self._schema, marks, named)
        changes = log.filter(~is_mark(CHANGE)).sort(AT, maintain_order=True)
        known = None if attached_from(said) is not None else self._known(name)
        try:
            found, current = from_changes(self._schema, changes, self._keys, known)
        except StreamError as error:
            return said.filter(pl.col(KIND) != STABLE), error
        self._current[name] = current
        self._changed.add(name)
        return pl.concat([found, said]), None

    def save(self) -> None:
        for name in sorted(self._changed):
            self._state.put(name, Page(self._schema, self._current[name]))
        self._changed.clear()

    def _known(self, name: str) -> pl.DataFrame | None:
        if name not in self._current:
            stored = self._state.get(name)
            if isinstance(stored, Page):
                self._current[name] = stored.frame
        return self._current.get(name)


class Places:
    """Batches whose elements have places, for R1: each input's in order, and its last one kept.

    R1 in process sees the order in which elements come and can only notice that Vs goes back; here
    an element at or before the place that the input has come to at that Vs is noticed as well.
    """

    def __init__(self, merger: Merger, order: str, state: State) -> None:
        self._rows, self._schema, self._order = merger.entering, merger.schema, order
        self._state = Scoped(state, "places")
        self._last: dict[str, pl.DataFrame] = {}
        self._changed: set[str] = set()

    def elements(self, name: str, frame: pl.DataFrame) -> tuple[pl.DataFrame, StreamError | None]:
        """The elements of a batch in order; up to one in the wrong place, with an error then."""
        told, fresh = in_order(frame, self._order), attached_from(frame) is not None
        known = self._rows.empty() if fresh else self._known(name)
        wrong = misplaced(told, self._order, known)
        honest = told if wrong is None else told.head(wrong)
        self._last[name] = pl.concat([known, honest.filter(~is_mark())]).tail(1)
        self._changed.add(name)
        plain = told.drop(self._order)
        if wrong is None:
            return plain, None
        where, place = f"input {name}", told.get_column(self._order)[wrong]
        element = f"{describe(self._schema, plain.slice(wrong, 1))} at {self._order}={place}"
        error = StreamError(where, f"its order by {self._order}", element, "Attach it anew.")
        return plain.head(wrong), error

    def save(self) -> None:
        for name in sorted(self._changed):
            self._state.put(name, Page(self._rows, self._last[name]))
        self._changed.clear()

    def _known(self, name: str) -> pl.DataFrame:
        """The element that the input showed last, if there is one."""
        if name not in self._last:
            stored = self._state.get(name)
            self._last[name] = stored.frame if isinstance(stored, Page) else self._rows.empty()
        return self._last[name]


_warm: Warm[LaneMerge] = Warm()


class MergeProcessor(QuietProcessor):
    """Pages of elements in, pages of elements out; and for each batch with a mark a report of how
    far the lane's stable has come, addressed to the first lane."""

    def __init__(self, merger: Merger, lane_ids: tuple[int, ...]) -> None:
        self._merger, self._ids = merger, lane_ids

    def init(self, handle: StatefulProcessorHandle) -> None:
        freeze_first(MergeProcessor)
        self._entries = handle.getMapState("state", KEY, VALUE)

    def handleInputRows(  # noqa: N802 (Spark's name)
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: Any,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        del timerValues
        lane_id, merger = int(key[0]), self._merger
        frames, speakers = _heard(load for frame in rows for load in frame["load"])
        place = (merger.run, lane_id)
        lane, state = _warm.take(place, self._entries, lambda found: LaneMerge(merger, found))
        batch = current_batch()
        if merger.notes is not None and batch is not None:
            lane.listen(merger.notes, batch)
        before = lane.merge.max_stable
        taken = {n: lane.take(n, frames[n], speaks=n in speakers) for n in sorted(frames)}
        lane.save()
        _warm.keep(place, lane, state)
        self._report(batch, lane_id, [lies for _, lies in taken.values()])
        if merger.notes is not None:
            merger.notes.tell(lane_id, lane.vitals())
        emitted = [out for outs, _ in taken.values() for out in outs]
        leaving = []
        if any(out.height for out in emitted):
            page = Page(merger.schema, pl.concat(emitted))
            leaving.append(Row.of_page(lane_id, OUT, page, "lmerge"))
        if any(frame.select(is_mark(merger.kind).any()).item() for frame in frames.values()):
            heard = json.dumps(lane.stables())
            note = Note(STABLE, greatest=lane.merge.max_stable, least=before, words=heard)
            leaving.append(Row.of_notes(self._ids[0], OUT, [note]))
        if leaving:
            yield to_pandas(leaving)

    def close(self) -> None:
        """State is Spark's; there is nothing to close."""

    def _report(self, batch: int | None, lane: int, told: Sequence[Lies]) -> None:
        """Say who is not believed: in the worker's log, and to the other lanes."""
        lies = [(name, report) for each in told for name, report in each.items()]
        for name, report in lies:
            log.warning("input %s is quarantined: %s contradicts %s", name, report.element,
                        report.contradicts)  # fmt: skip
        if self._merger.notes is not None and batch is not None:
            found = [
                Quarantine(name, r.element, r.contradicts, r.max_stable, batch, lane)
                for name, r in lies
            ]
            self._merger.notes.report(batch, lane, found)


def _heard(loads: Iterable[bytes]) -> tuple[dict[str, pl.DataFrame], set[str]]:
    """The elements of each input, and the inputs that have said something, here or elsewhere."""
    pages: dict[str, list[pl.DataFrame]] = {}
    speakers = set[str]()
    for held in map(opened, loads):
        if isinstance(held, Page):
            pages.setdefault(held.stream, []).append(held.frame)
        else:
            speakers |= {note.stream for note in held if note.rows > 0}
    return {name: pl.concat(frames) for name, frames in pages.items()}, speakers
