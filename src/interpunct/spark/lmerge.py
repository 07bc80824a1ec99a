"""Logical merge on Spark: streaming DataFrames of elements that tell one table, as one of them.

    replica a  ──split by payload──▶  lane 0: merge ──elements──────────────▶  one stream
    replica b  ──stables to all────▶  lane 1: merge ──the least of stables──▶

    merged = ip.lmerge(replica_a, replica_b, policy="first")

The columns are those of `element_schema`: element, vs, vold, ve, then the payload. Events of equal
payload meet in one lane, and every lane hears every stable (LMerge section V runs one merge; lanes
are this project's). A stable leaves once all lanes have given it: each lane that hears one tells
how far it has come, and the least of a batch is the output's. Within a batch nothing has an order;
a stable holds from the end of its batch (`lmerge_batches`).

Inputs that come and go (section V-B): rows `attach` (guaranteed from `vs`) and `detach` in an
input's own stream; and where inputs are told apart by a column (`by`), such as the partition column
of a folder into which replicas write, a new value is a new input without a restart.

An input that contradicts itself or what is frozen is quarantined by the lane that sees it. With
`checkpoint`, the one that is given to the query, all lanes have it in quarantine from the next
batch on, and `quarantined(checkpoint)` says why (`lmerge_notes`); without it each lane judges for
itself. `upstream` names the queries that write the inputs: slower ones are told what is past
(`lmerge_relay`).

Where elements of equal Vs come in one order on every input (R1: a Top-k in rank order), a column
says their places (`order`), since a batch has no order: lanes sort by Vs and place before they
count. Splitting keeps that order. The elements of a lane are those of certain payloads, the same on
every input, and what is left when the others are taken out of equal lists are equal lists. The
places of one Vs must differ and may be other numbers on each input; they do not leave the merge.

Logs of a table's changes (`keys` names its key) are merged as well: columns change (insert, update,
delete, stable), at, then the row. Changes of one key must come in the order of their times.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import polars as pl
import pyarrow as pa
from pyspark.sql import DataFrame

from interpunct.model.element_forms import AT, CHANGE
from interpunct.model.elements import (
    HEAD,
    STABLE,
    VS,
    element_schema,
    payload_names,
)
from interpunct.model.errors import FeedError, FlowError, SchemaError
from interpunct.model.page import Page
from interpunct.model.properties import Properties
from interpunct.model.schema import Attribute, Schema
from interpunct.operators.lmerge_choice import checked
from interpunct.operators.lmerge_policy import INSERTS, MergePolicy
from interpunct.spark.courier import Upstream
from interpunct.spark.lanes import lane_ids, lane_of
from interpunct.spark.lmerge_batches import comes_or_goes, is_mark, mark
from interpunct.spark.lmerge_lane import MergeProcessor, Merger
from interpunct.spark.lmerge_notes import MergeNotes, Quarantine
from interpunct.spark.lmerge_relay import Feeder, Feeders, Relay
from interpunct.spark.rows import arrow_schema, spark_schema, to_batches, to_frame
from interpunct.spark.session import check_session
from interpunct.spark.warm import freeze_first
from interpunct.spark.wire import WIRE, Note, Row, opened, to_batch

WHERE = "lmerge"
REVISED = Properties(insert_only=False)


def lmerge(
    *frames: DataFrame,
    policy: str | float | MergePolicy = "first",
    variant: str | None = None,
    properties: Properties = REVISED,
    by: str | None = None,
    keys: Sequence[str] = (),
    order: str | None = None,
    lanes: int = 2,
    checkpoint: str | None = None,
    upstream: Mapping[int | str, Upstream] | Feeders | None = None,
) -> DataFrame:
    """One streaming DataFrame of elements from several whose tables are the same.

    `policy` is a MergePolicy, or what inserts wait for. What is known of all inputs goes into
    `properties`; with nothing known the most general variant runs, which is R4. `by` names a
    column that tells inputs apart within the DataFrames; without it each DataFrame is one. With
    `keys` the inputs are change logs of a table with this key. `upstream` is by the number of the
    DataFrame, or by the name of the input.

    `order` names the column of the places among equal Vs, of any type that can be sorted. It is no
    part of the payload. R1 needs it; other variants need no order and refuse it.
    """
    if not frames:
        raise FlowError(WHERE, "one or more DataFrames", "none", "lmerge(replica_a, replica_b)")
    places = [_place(n, f, order, (*_head(keys), *keys, by)) for n, f in enumerate(frames)]
    schemas = [_schema(n, frame, (by, order), tuple(keys)) for n, frame in enumerate(frames)]
    for number, schema in enumerate(schemas):
        if schema != schemas[0]:
            raise SchemaError(
                f"{WHERE}, DataFrame {number}", f"the columns {schemas[0].ddl}", schema.ddl,
                "Select the same columns with the same types.",
            )  # fmt: skip
    for number, (first, place) in enumerate((places[0], p) for p in places):
        if first is not None and place is not None and first != place:
            raise SchemaError.wrong_type(
                f"{WHERE}, DataFrame {number}, order", place.name, first.type, place.type
            )
    chosen = _policy(policy)
    kind = _variant(variant, properties, chosen, order, tuple(keys))
    inputs = tuple(str(n) for n in range(len(frames))) if by is None else ()
    notes = None if checkpoint is None else MergeNotes(checkpoint)
    merger = Merger(
        schemas[0], inputs, kind, properties, chosen, uuid.uuid4().hex, tuple(keys), notes,
        order=places[0],
    )  # fmt: skip
    check_session(frames[0].sparkSession, lanes)
    if notes is not None:
        notes.announce(schemas[0], kind)
    relay = Relay(schemas[0], kind, notes, _feeders(upstream))
    return _merged(merger, relay, frames, by, lanes)


def quarantined(checkpoint: str) -> list[Quarantine]:
    """The inputs that the merge with this checkpoint stopped believing, and why."""
    return MergeNotes(checkpoint).quarantined()


def _merged(
    merger: Merger, relay: Relay, frames: tuple[DataFrame, ...], by: str | None, lanes: int
) -> DataFrame:
    ids = lane_ids(lanes)
    entering = [
        frame.mapInArrow(_Split(merger, str(n), by, ids), WIRE) for n, frame in enumerate(frames)
    ]
    merged = (
        reduce(DataFrame.union, entering)
        .groupBy("lane")
        .transformWithStateInPandas(MergeProcessor(merger, ids), WIRE, "append", "none")
    )
    target = spark_schema(merger.schema)
    rows = merged.repartition(lanes, "lane")
    return rows.mapInArrow(_Unpack(relay, arrow_schema(target)), target)


@dataclass(frozen=True)
class _Split:
    """For `mapInArrow`: the elements of a task as a page for each lane, marks on all of them."""

    merger: Merger
    name: str
    by: str | None
    lane_ids: tuple[int, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        freeze_first(_Split)
        for batch in batches:
            frame = to_frame([batch], self._entering)
            rows = [row for name, part in self._inputs(frame) for row in self._rows(name, part)]
            if rows:
                yield to_batch(rows)

    @property
    def _entering(self) -> Schema:
        rows = self.merger.entering
        if self.by is None:
            return rows
        return Schema(rows.attributes + Schema.of(f"`{self.by}` string").attributes)

    def _inputs(self, frame: pl.DataFrame) -> list[tuple[str, pl.DataFrame]]:
        if self.by is None:
            return [(self.name, frame)]
        parts = frame.partition_by(self.by, as_dict=True, maintain_order=True)
        return [(str(name), part.drop(self.by)) for (name,), part in parts.items()]

    def _rows(self, name: str, frame: pl.DataFrame) -> Iterator[Row]:
        """A page for every lane, even an empty one: all are to know who is there and has said
        something, since it matters to whoever attaches later."""
        marking = is_mark(self.merger.kind)
        marks, data = frame.filter(marking), frame.filter(~marking)
        keys = self.merger.keys or payload_names(self.merger.schema)
        lanes = lane_of(data, keys, len(self.lane_ids))
        said = frame.height - frame.filter(comes_or_goes(self.merger.kind)).height
        for index, lane in enumerate(self.lane_ids):
            part = Page(self.merger.entering, pl.concat([data.filter(lanes == index), marks]))
            yield Row.of_page(lane, 0, part, name)
            yield Row.of_notes(lane, 0, [Note(name, rows=said)])


@dataclass(frozen=True)
class _Unpack:
    """For `mapInArrow`, behind a shuffle that brings the lanes' reports of a batch together."""

    relay: Relay
    target: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        before: list[int] = []
        after: list[int] = []
        inputs: dict[str, int] = {}
        for load in (load for batch in batches for load in batch.column("load")):
            held = opened(memoryview(load.as_buffer()))
            if isinstance(held, Page):
                yield from to_batches(held.frame, self.target)
                continue
            for note in held:
                assert note.least is not None
                assert note.greatest is not None
                before.append(note.least)
                after.append(note.greatest)
                inputs = _least(inputs, json.loads(note.words or "{}"))
        if after:
            moved = min(after) if min(after) > min(before) else None
            self.relay.hurry(moved, inputs)
            if moved is not None:
                said = mark(self.relay.schema, STABLE, moved)
                yield from to_batches(said, self.target)


def _least(one: dict[str, int], other: dict[str, int]) -> dict[str, int]:
    """How far each input is stable, by the lane that has heard least of it."""
    return {**one, **{n: min(at, one.get(n, at)) for n, at in other.items()}}


# Checks -----------------------------------------------------------------------------------------


def _feeders(upstream: Mapping[int | str, Upstream] | Feeders | None) -> Feeders:
    if isinstance(upstream, Mapping):
        feeders = {str(name): Feeder.of(to) for name, to in upstream.items()}
        for feeder in feeders.values():
            feeder.sink_schema()
        return feeders
    return {} if upstream is None else upstream


def _head(keys: Sequence[str]) -> tuple[str, ...]:
    """The columns of an input before its payload."""
    return (CHANGE, AT) if keys else HEAD


def _schema(
    number: int, frame: DataFrame, beside: tuple[str | None, ...], keys: tuple[str, ...]
) -> Schema:
    """The schema of a DataFrame's elements: the payload, in the order of its columns, is what is
    neither one of the first columns nor `beside` them."""
    head, time = _head(keys), AT if keys else VS
    where = f"{WHERE}, DataFrame {number}"
    if not frame.isStreaming:
        raise FeedError(
            where, "a streaming DataFrame", "a static one", "Read it with spark.readStream."
        )
    for name in (*head, *keys, *(n for n in beside if n is not None)):
        if name not in frame.columns:
            raise SchemaError.unknown_attribute(where, name, frame.columns)
    kinds = {f.name: f.dataType.simpleString() for f in frame.schema}
    for name in head[1:]:
        if kinds[name] != kinds[time]:
            raise SchemaError.wrong_type(where, name, kinds[time], kinds[name])
    payload = [f"`{n}` {kind}" for n, kind in kinds.items() if n not in (*head, *beside)]
    if not payload:
        raise SchemaError(
            where, f"a payload beside {', '.join(head)}", "none", "Add the columns of the events."
        )
    return element_schema(Schema.of(", ".join(payload)), kinds[time])


def _place(
    number: int, frame: DataFrame, order: str | None, taken: Sequence[str | None]
) -> Attribute | None:
    """The column of the places among equal times."""
    if order is None or order not in frame.columns:
        return None  # an unknown one is refused with the other columns
    where = f"{WHERE}, DataFrame {number}, order"
    if order in taken:
        raise SchemaError(
            where, "a column of its own", repr(order),
            "Number the elements of equal vs in a column that says nothing else.",
        )  # fmt: skip
    (place,) = Schema.of(f"`{order}` {frame.schema[order].dataType.simpleString()}").attributes
    if place.dtype.is_nested():
        raise SchemaError.wrong_type(where, order, "a type that can be sorted", place.type)
    return place


def _policy(policy: str | float | MergePolicy) -> MergePolicy:
    if isinstance(policy, MergePolicy):
        return policy
    if isinstance(policy, str) and policy not in INSERTS:
        raise FlowError(
            WHERE, f"a policy among {', '.join(INSERTS)}, a fraction or a MergePolicy",
            repr(policy), "Correct the policy.",
        )  # fmt: skip
    return MergePolicy(inserts=policy)  # type: ignore[arg-type]


def _variant(
    variant: str | None,
    properties: Properties,
    policy: MergePolicy,
    order: str | None,
    keys: tuple[str, ...],
) -> str:
    """R1 counts on the order of elements with equal Vs, which Spark's tasks do not keep: it takes a
    column that says it, which no other variant has a use for."""
    if order is None and variant == "R1":
        raise FlowError(
            WHERE, "order=, a column with the order among equal times, for R1", "none",
            'lmerge(…, order="seq"), or take R2 where (vs, payload) is unique, else R4.',
        )  # fmt: skip
    if order is not None and keys:
        raise FlowError(
            WHERE, "order= for elements", f"keys={list(keys)}: logs of changes",
            "Leave it out: changes are ordered by their times.",
        )  # fmt: skip
    known = properties if order is not None else replace(properties, deterministic=False)
    kind = checked(WHERE, variant, [known], remembering=not policy.stateless)
    if order is not None and kind != "R1":
        raise FlowError(
            WHERE, "R1, which order= is for: ordered, deterministic, insert-only inputs and the "
            "policy 'first'", f"{kind}, with inputs that are: {properties}",
            "Declare these properties if they hold, or leave out order= and drop the column.",
        )  # fmt: skip
    return kind
