"""The processor of a merge's lane: all inputs' elements of some payloads, on Spark's state."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from interpunct.model.element_forms import AT, CHANGE, changes_schema, from_changes
from interpunct.model.elements import KIND, STABLE, VS, framed
from interpunct.model.errors import StreamError
from interpunct.model.page import Page
from interpunct.model.properties import Properties
from interpunct.model.schema import Schema
from interpunct.operators.contract import Stream
from interpunct.operators.lmerge import LogicalMerge, MergePolicy, lmerge
from interpunct.operators.lmerge_base import JOINED, JOINING
from interpunct.operators.state import Record, Scoped, State
from interpunct.spark.lmerge_batches import attached_from, detaches, is_mark, net
from interpunct.spark.processor import MOST_WARM, freeze_once
from interpunct.spark.state import KEY, VALUE, SparkState
from interpunct.spark.wire import COLUMNS, OUT, Row

if TYPE_CHECKING:
    import pandas as pd

log = logging.getLogger("interpunct.lmerge")

# As with the lanes of flows: warm only as long as the nonce in the state proves it current.
_warm: OrderedDict[tuple[str, int], tuple[LaneMerge, SparkState]] = OrderedDict()


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

    @property
    def entering(self) -> Schema:
        """The rows of an input: elements, or changes."""
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
        self._names = Record(state, "inputs", {"names": list(merger.inputs)})
        self.merge = merger.built(Scoped(state, "merge"))

    def take(self, name: str, frame: pl.DataFrame) -> list[pl.DataFrame]:
        """What comes out of one input's share of a batch, without stables."""
        told = len(self.merge.reports())
        broken = None
        if self._logs is not None:
            frame, broken = self._logs.elements(name, frame)
        port = self._port(name, attached_from(frame))
        pages = self.merge.accept(port, Page(self._schema, net(self._schema, frame))).pages
        if broken is not None and self.merge.status(port) in (JOINED, JOINING):
            self.merge.quarantine(port, broken.got, broken.expected)
        for report in self.merge.reports()[told:]:
            log.warning("input %s is quarantined: %s contradicts %s", name, report.element,
                        report.contradicts)  # fmt: skip
        if detaches(frame):
            self.merge.detach(port)
        return [page.frame.filter(pl.col(KIND) != STABLE) for _, page in pages]

    def save(self) -> None:
        self._names.save()
        if self._logs is not None:
            self._logs.save()
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


class MergeProcessor(StatefulProcessor):
    """Pages of elements in, pages of elements out; and for each batch with a mark a report of how
    far the lane's stable has come, addressed to the first lane."""

    def __init__(self, merger: Merger, lane_ids: tuple[int, ...]) -> None:
        self._merger, self._ids = merger, lane_ids

    def init(self, handle: StatefulProcessorHandle) -> None:
        freeze_once()
        self._entries = handle.getMapState("state", KEY, VALUE)

    def handleInputRows(  # noqa: N802 (Spark's name)
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: Any,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        import pandas as pd

        del timerValues
        lane_id = int(key[0])
        frames = self._frames(pd.concat(list(rows)))
        lane, state = self._lane(lane_id)
        before = lane.merge.max_stable
        emitted = [out for name in sorted(frames) for out in lane.take(name, frames[name])]
        lane.save()
        self._remember(lane_id, lane, state)
        leaving = []
        if any(out.height for out in emitted):
            page = Page(self._merger.schema, pl.concat(emitted)).to_ipc("lmerge")
            leaving.append(Row(lane_id, OUT, "elements", page=page))
        if any(frame.select(is_mark(self._merger.kind).any()).item() for frame in frames.values()):
            after = lane.merge.max_stable
            leaving.append(Row(self._ids[0], OUT, STABLE, greatest=after, least=before))
        if leaving:
            yield pd.DataFrame([[getattr(r, c) for c in COLUMNS] for r in leaving], columns=COLUMNS)

    def close(self) -> None:
        """State is Spark's; there is nothing to close."""

    def _frames(self, arrived: pd.DataFrame) -> dict[str, pl.DataFrame]:
        """The elements of each input."""
        pages: dict[str, list[pl.DataFrame]] = {}
        for name, data in zip(arrived["stream"], arrived["page"], strict=True):
            pages.setdefault(name, []).append(Page.from_ipc(data).frame)
        return {name: pl.concat(frames) for name, frames in pages.items()}

    def _lane(self, lane_id: int) -> tuple[LaneMerge, SparkState]:
        """The lane with its state: warm if this worker had it last, else rebuilt from state."""
        found = _warm.pop((self._merger.run, lane_id), None)
        if found is not None and found[1].still_current(self._entries):
            return found
        state = SparkState(self._entries)
        return LaneMerge(self._merger, state), state

    def _remember(self, lane_id: int, lane: LaneMerge, state: SparkState) -> None:
        state.flush()
        _warm[(self._merger.run, lane_id)] = (lane, state)
        while len(_warm) > MOST_WARM:
            _warm.popitem(last=False)
