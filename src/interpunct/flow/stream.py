"""The fluent side of the builder: a stream of a flow, and what can be made of it.

>>> from interpunct.flow.builder import FlowBuilder
>>> from interpunct.progress.timestamps import external
>>> flow = FlowBuilder("auction")
>>> bids = flow.source("bids", "item bigint, ts timestamp, price double", time=external("ts"))
>>> best = bids.where("price > 0").aggregate(by="item", every="1 minute", best="max(price)")
>>> best.schema.names
('item', 'ts', 'best')
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from interpunct.flow.feedback_nodes import ImputeNode, PaceNode, PollNode
from interpunct.flow.merge_nodes import (
    CleanseNode,
    DeclareNode,
    EventsNode,
    SpeculativeNode,
    revisable,
    select_events,
)
from interpunct.flow.nodes import (
    AggregateNode,
    DuplicateNode,
    JoinNode,
    Node,
    ProjectNode,
    PunctuateNode,
    Ref,
    SelectNode,
    SlackNode,
    SortNode,
    SplitNode,
    TimerNode,
    TupleWindowNode,
)
from interpunct.flow.words import BY_NAME, GROUPS, KEYS, MEANT, chosen, meant
from interpunct.model.durations import duration, span
from interpunct.model.errors import FlowError, WordError
from interpunct.model.expression import (
    Expression,
    aggregate,
    carried,
    named,
    predicate,
    scalar,
)
from interpunct.model.schema import Schema
from interpunct.operators.archive import Archive
from interpunct.operators.contract import Stream
from interpunct.operators.databases import open_archive
from interpunct.operators.join import JoinSpec
from interpunct.operators.tuple_window import TupleWindow
from interpunct.operators.windows import Windows

if TYPE_CHECKING:
    from interpunct.flow.builder import FlowBuilder

Source = str | pl.Expr
Length = str | timedelta | int
_NAME = re.compile(r"\w[\w :.-]*")


@dataclass(frozen=True)
class FlowStream:
    """One output of one node of a flow."""

    flow: FlowBuilder
    ref: Ref

    @property
    def stream(self) -> Stream:
        return self.flow.nodes[self.ref.node].outputs[self.ref.port]

    @property
    def schema(self) -> Schema:
        return self.stream.schema

    @property
    def late(self) -> FlowStream:
        """The late output of a source, a punctuate, a slack or a pace."""
        node = self.flow.nodes[self.ref.node]
        if node.kind not in ("source", "punctuate", "slack", "pace"):
            raise FlowError(
                f"{node.kind} {node.name!r}", "a source, punctuate, slack or pace",
                "no late output",
                "Tuples are late where time is promised: ask the source's stream.",
            )  # fmt: skip
        return FlowStream(self.flow, Ref(node.name, 1))

    @property
    def partial(self) -> FlowStream:
        """Where an aggregate over time windows answers demands: its results so far."""
        node = self.flow.nodes[self.ref.node]
        if not isinstance(node, AggregateNode):
            raise FlowError(
                f"{node.kind} {node.name!r}", "an aggregate over time windows",
                "no partial results", "Ask the stream that .aggregate(every=…) returned.",
            )  # fmt: skip
        return FlowStream(self.flow, Ref(node.name, 1))

    def where(self, condition: Source, *, name: str | None = None) -> FlowStream:
        """The tuples for which the condition is true; of a revisable stream, the events."""
        name = self.flow.fresh("where", name)
        checked = select_events if revisable(self.schema) else predicate
        test = checked(condition, self.schema, f"where {name!r}")
        return self._then(SelectNode(name, (self.ref,), (self.stream,), test))

    def select(self, *columns: str, name: str | None = None, **computed: Source) -> FlowStream:
        """These attributes, and new ones by name: ``select("ts", kmh="speed * 1.609")``, or
        ``select("ts", "speed * 1.609 as kmh")``."""
        name = self._called("select", name)
        return self._projected(name, self._scalars(columns, computed, f"select {name!r}"))

    def with_columns(
        self, *columns: str, name: str | None = None, **computed: Source
    ) -> FlowStream:
        """All attributes, some replaced or added."""
        name = self._called("select", name)
        kept = {c: carried(c, self.schema) for c in self.schema.names}
        return self._projected(name, kept | self._scalars(columns, computed, f"select {name!r}"))

    def _projected(self, name: str, columns: Mapping[str, Expression]) -> FlowStream:
        return self._then(ProjectNode(name, (self.ref,), (self.stream,), columns))

    def _scalars(
        self, columns: Sequence[str], computed: Mapping[str, Source], where: str
    ) -> dict[str, Expression]:
        """What is to be in each column, by its name."""
        said = dict(named(c, self.schema, where) for c in columns)
        return {
            **{n: carried(s, self.schema) if s in self.schema else scalar(s, self.schema, where)
               for n, s in said.items()},
            **{n: scalar(s, self.schema, where) for n, s in computed.items()},
        }  # fmt: skip

    def _called(self, kind: str, name: str | None) -> str:
        """What an operator is called. Who gives it the name of a column means that column, and one
        that is to be called `name`."""
        if name is not None and (name in self.schema or not _NAME.fullmatch(name)):
            raise FlowError(
                f"{kind} of stream {str(self.ref)!r}",
                "in name=… what the operator is to be called", repr(name),
                f"For a column called 'name' write {f'{name} as name'!r}.",
            )  # fmt: skip
        return self.flow.fresh(kind, name)

    def aggregate(
        self,
        *columns: str,
        by: str | Sequence[str] = (),
        every: Length | None = None,
        size: Length | None = None,
        rows: int | None = None,
        slide: int = 1,
        speculative: bool = False,
        name: str | None = None,
        **aggregates: Source,
    ) -> FlowStream:
        """Aggregates by group over windows.

        `every="20s"` tumbles; `every="20s", size="1m"` slides; `rows=100, slide=10` counts tuples.
        A `speculative` one does not wait for windows to close: its output is a revisable stream.
        """
        name = self._called("aggregate", name)
        where = f"aggregate {name!r}"
        aggregates = {**dict(named(c, self.schema, where) for c in columns), **aggregates}
        groups = chosen(by, self.schema, where, GROUPS)
        if not aggregates:
            raise FlowError(where, "at least one aggregate", "none", "Add n='count(*)'.")
        if (every is None) == (rows is None):
            raise FlowError(
                where, "either every=… (time windows) or rows=… (tuple windows)",
                "both" if rows else "neither", "Choose one.",
            )  # fmt: skip
        built = {n: aggregate(s, self.schema, where) for n, s in aggregates.items()}
        if speculative and rows is not None:
            raise FlowError(
                where, "time windows with speculative=True", f"rows={rows}", "Give every=…."
            )
        if rows is not None:
            ordered = self.in_order(TupleWindow.__name__)
            return self._then(
                TupleWindowNode(name, (ordered.ref,), (ordered.stream,), rows, slide, groups, built)
            )
        assert every is not None
        step = span(every, self.schema, where)
        windows = Windows(step if size is None else span(size, self.schema, where), step)
        kind = SpeculativeNode if speculative else AggregateNode
        return self._then(kind(name, (self.ref,), (self.stream,), windows, groups, built))

    def join(
        self,
        *others: FlowStream,
        on: str | Sequence[str] = (),
        within: Length | Sequence[Length] | None = None,
        how: str = "inner",
        thrifty: bool = False,
        impatient: bool = False,
        name: str | None = None,
    ) -> FlowStream:
        """Window join on equal keys; `within` is one length, or one per stream.

        `thrifty` tells each stream upstream which of its tuples cannot meet any more, `impatient`
        which ones are waited for.
        """
        name = self.flow.fresh("join", name)
        where = f"join {name!r}"
        streams = (self, *others)
        strange = [repr(other) for other in others if not isinstance(other, FlowStream)]
        if strange or within is None:
            raise FlowError(
                where, "streams, and how far apart in time their tuples may meet",
                strange[0] if strange else "no length of time",
                "Write a.join(b, on='key', within='20s', how='left'): what could meet for ever "
                "would have to be kept for ever.",
            )  # fmt: skip
        if len(streams) < 2 or how not in ("inner", "left"):
            got = f"{len(streams)} stream{'s' * (len(streams) > 1)}, how={how!r}"
            fix = "A right join is b.join(a, …, how='left'); of a full one there is none."
            raise FlowError(where, "two or more streams, how='inner' or how='left'", got, fix)
        lengths = [within] * len(streams) if isinstance(within, Length) else list(within)
        if len(lengths) != len(streams):
            raise FlowError(
                where, f"one window for all or {len(streams)}", f"{len(lengths)}",
                "Add or drop some.",
            )  # fmt: skip
        windows = tuple(span(w, self.schema, where) for w in lengths)
        keys = chosen(on, self.schema, f"{where}, input 0", KEYS)
        spec = JoinSpec(keys, windows, how)
        refs, inputs = self.flow.inputs(where, streams)
        return self._then(JoinNode(name, refs, inputs, spec, thrifty, impatient))

    def union(
        self, *others: FlowStream, in_order: bool = True, name: str | None = None
    ) -> FlowStream:
        """This stream and others of its schema as one: what `flow.union` makes of them."""
        return self.flow.union(self, *others, in_order=in_order, name=name)

    def duplicate(self, copies: int = 2, *, name: str | None = None) -> list[FlowStream]:
        """The same stream several times."""
        node = DuplicateNode(
            self.flow.fresh("duplicate", name), (self.ref,), (self.stream,), copies
        )
        self.flow.add(node)
        return [FlowStream(self.flow, Ref(node.name, port)) for port in range(copies)]

    def split(self, *conditions: Source, name: str | None = None) -> list[FlowStream]:
        """One stream per condition, and one of the tuples that meet none."""
        name = self.flow.fresh("split", name)
        tests = tuple(predicate(c, self.schema, f"split {name!r}") for c in conditions)
        self.flow.add(SplitNode(name, (self.ref,), (self.stream,), tests))
        return [FlowStream(self.flow, Ref(name, port)) for port in range(len(tests) + 1)]

    def sort(self, *, name: str | None = None) -> FlowStream:
        """In time order, as far as heartbeats allow."""
        return self._then(SortNode(self.flow.fresh("sort", name), (self.ref,), (self.stream,)))

    def in_order(self, reason: str) -> FlowStream:
        """This stream if it is ordered, else sorted: for operators that need order."""
        if self.stream.properties.ordered:
            return self
        return self.sort(name=self.flow.fresh(f"sort_for_{reason.lower()}", None))

    def punctuate(self, *, every: Length, delay: Length, name: str | None = None) -> FlowStream:
        """A punctuation each `every`: what is older than `delay` is late from then on."""
        name = self.flow.fresh("punctuate", name)
        period, offset = duration(every, name), duration(delay, name)
        timer = TimerNode(self.flow.fresh(f"{name}_timer", None), (), (), period, offset)
        self.flow.add(timer)
        inputs = (self.ref, Ref(timer.name))
        return self._then(PunctuateNode(name, inputs, (self.stream, timer.outputs[0])))

    def slack(self, tuples: int, *, window: Length, name: str | None = None) -> FlowStream:
        """Aurora's slack: close a window `tuples` tuples after the first one of a later window."""
        name = self.flow.fresh("slack", name)
        length = duration(window, name)
        return self._then(SlackNode(name, (self.ref,), (self.stream,), length, tuples))

    def pace(
        self,
        *others: FlowStream,
        within: Length,
        on: FlowStream | Sequence[FlowStream] | None = None,
        feedback: bool = True,
        name: str | None = None,
    ) -> FlowStream:
        """One stream from several, as they arrive, none further behind than `within`.

        What is too late is in `.late`; streams that have fallen behind are told not to make more of
        it (unless `feedback` is False). `on` are the streams whose time sets the pace, else all.
        """
        name = self.flow.fresh("pace", name)
        streams = (self, *others)
        refs, inputs = self.flow.inputs(f"pace {name!r}", streams)
        leaders = (on,) if isinstance(on, FlowStream) else on
        ports = None if leaders is None else tuple(_port(name, s.ref, refs) for s in leaders)
        tolerance = duration(within, f"pace {name!r}")
        return self._then(PaceNode(name, refs, inputs, tolerance, ports, feedback))

    def impute(
        self,
        *fills: str,
        archive: str | Path | Archive,
        query: str | None = None,
        batch: int = 1,
        budget: Length | None = None,
        overwrite: bool = False,
        name: str | None = None,
    ) -> FlowStream:
        """Nulls of these attributes filled from an archive: ``dirty.impute("speed",
        archive="speeds.db", query="select avg(speed) as speed from r where segment = :segment")``.

        `archive` is a path or a URL with a `query`, or an object with `look_up`. `batch` tuples are
        looked up at once, for at most `budget` in each batch of a query on Spark. With `overwrite`
        values are replaced that are there.
        """
        name = self.flow.fresh("impute", name)
        where = f"impute {name!r}"
        if isinstance(archive, str | Path) == (query is None):
            raise FlowError(
                where, "an address with query=…, or an archive", f"{archive!r}, query={query!r}",
                "An address needs a query; an object that looks up has its own.",
            )  # fmt: skip
        found = archive if isinstance(archive, Archive) else open_archive(archive, str(query))
        ration = None if budget is None else duration(budget, where)
        return self._then(
            ImputeNode(name, (self.ref,), (self.stream,), fills, found, batch, ration, overwrite)
        )

    def poll(self, *, keep: Length, name: str | None = None) -> FlowStream:
        """Nothing until demanded feedback asks for it; what is older than `keep` is forgotten."""
        name = self.flow.fresh("poll", name)
        return self._then(PollNode(name, (self.ref,), (self.stream,), duration(keep, name)))

    def events(self, *, lasting: Length = 1, name: str | None = None) -> FlowStream:
        """Each tuple as an event that begins at its time, for `flow.lmerge`."""
        name = self.flow.fresh("events", name)
        return self._then(
            EventsNode(name, (self.ref,), (self.stream,), duration(lasting, f"events {name!r}"))
        )

    def cleanse(self, *, name: str | None = None) -> FlowStream:
        """A revisable stream in order and without revisions: events come when they are final."""
        name = self.flow.fresh("cleanse", name)
        return self._then(CleanseNode(name, (self.ref,), (self.stream,)))

    def declare(self, *, name: str | None = None, **known: bool) -> FlowStream:
        """Say what is known of a stream: ordered, strict, insert_only, keyed, deterministic."""
        name = self.flow.fresh("declare", name)
        flags = vars(self.stream.properties)
        unknown = sorted(known.keys() - flags.keys())
        if unknown:
            raise FlowError(
                f"declare {name!r}", f"properties among {', '.join(flags)}", ", ".join(unknown),
                "Check the spelling.",
            )  # fmt: skip
        properties = replace(self.stream.properties, **known)
        return self._then(DeclareNode(name, (self.ref,), (self.stream,), properties))

    if not TYPE_CHECKING:  # for type checkers, what is not there is to stay an error

        def __getattr__(self, word: str) -> Any:
            """Asked only for what is not there: a word of PySpark is answered with ours."""
            if word.startswith("_") or hasattr(type(self), word):
                return self.__getattribute__(word)  # raises what it raised before
            where = f"stream {str(self.ref)!r}"
            if word in self.schema:
                raise WordError(where, "a word of streams", f"its column {word!r}", BY_NAME)
            if word not in MEANT:
                return self.__getattribute__(word)
            raise WordError(
                where, "a word of streams", repr(word), f"Write {meant(word, self.schema)}."
            )

    def __getitem__(self, column: object) -> FlowStream:
        raise FlowError(f"stream {str(self.ref)!r}", "a word of streams", f"[{column!r}]", BY_NAME)

    def _then(self, node: Node) -> FlowStream:
        self.flow.add(node)
        return FlowStream(self.flow, Ref(node.name))


def _port(name: str, ref: Ref, inputs: Sequence[Ref]) -> int:
    if ref not in inputs:
        raise FlowError(
            f"pace {name!r}", f"on=… among its streams, {', '.join(map(str, inputs))}", str(ref),
            "Pace by streams that are united.",
        )  # fmt: skip
    return inputs.index(ref)
