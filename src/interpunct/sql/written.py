"""Writing: a flow as SQL that builds it again, one statement for each operator.

>>> from interpunct.flow.builder import FlowBuilder
>>> from interpunct.progress.timestamps import external
>>> flow = FlowBuilder("speeds")
>>> cars = flow.source("cars", "ts bigint, mph double", time=external("ts", ordered=True))
>>> flow.sink("fast", cars.where("mph > 50"))
>>> print(to_sql(flow))
CREATE STREAM cars (ts bigint, mph double) TIMESTAMP BY ts ORDERED;
CREATE VIEW where_1 AS SELECT * FROM cars WHERE mph > 50;
INSERT INTO fast SELECT * FROM where_1;
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from sqlglot import exp

from interpunct.flow.builder import FlowBuilder
from interpunct.flow.feedback_nodes import ImputeNode, PaceNode, PollNode
from interpunct.flow.merge_nodes import (
    DeclareNode,
    EventsNode,
    LMergeNode,
    SpeculativeNode,
    revisable,
    select_events,
)
from interpunct.flow.nodes import (
    AggregateNode,
    JoinNode,
    MergeNode,
    Node,
    ProjectNode,
    PunctuateNode,
    Ref,
    SelectNode,
    SinkNode,
    SlackNode,
    SortNode,
    SourceNode,
    TimerNode,
    TupleWindowNode,
    UnionNode,
)
from interpunct.model.errors import FlowError, InterpunctError
from interpunct.model.expression import Aggregate, Expression, aggregate, predicate, scalar
from interpunct.model.schema import Schema
from interpunct.operators.archive import SqlArchive
from interpunct.operators.databases import DuckDb, Sqlite, open_archive
from interpunct.operators.tuple_window import WINDOW
from interpunct.sql.spelling import length, time_clause
from interpunct.sql.tokens import quoted

Grouped = AggregateNode | SpeculativeNode | TupleWindowNode


def to_sql(flow: FlowBuilder) -> str:
    """The statements that build this flow; an error names the first node that SQL cannot say."""
    _check_settings(flow)
    return "\n".join(f"{text};" for text in _Writer(flow).statements())


def _check_settings(flow: FlowBuilder) -> None:
    mode = flow.heartbeats.mode
    if flow.skew is not None or mode != "operator":
        got = "skew=…" if flow.skew is not None else f"heartbeats={mode!r}"
        raise FlowError(
            f"to_sql of flow {flow.name!r}", "a flow without settings of its own", got,
            "SQL says what streams are, not how their sources are related: keep it in Python.",
        )  # fmt: skip


class _Writer:
    """One method for each kind of node."""

    def __init__(self, flow: FlowBuilder) -> None:
        self.flow = flow

    def statements(self) -> Iterable[str]:
        for node in self.flow.nodes.values():
            name = quoted(node.name)
            if isinstance(node, SourceNode):
                listed = ", ".join(f"{quoted(a.name)} {a.type}" for a in node.raw.attributes)
                yield f"CREATE STREAM {name} ({listed}){time_clause(node.raw, node.time)}"
            elif isinstance(node, SinkNode):
                yield f"INSERT INTO {name} SELECT * FROM {self._read(node.inputs[0])}"
            elif isinstance(node, TimerNode):
                self._check_timer(node)
            else:
                yield f"CREATE VIEW {name} AS {self._query(node)}"

    def _query(self, node: Node) -> str:
        write = self._writers.get(type(node))
        if write is None:
            raise self._unsaid(node, node.kind, "Build this part in Python.")
        return write(self, node)

    def _unsaid(self, node: Node, got: str, fix: str) -> FlowError:
        return FlowError(f"to_sql, {node.kind} {node.name!r}", "what SQL can say", got, fix)

    def _read(self, ref: Ref) -> str:
        """An output as SQL reads it: the second one of a node is what was late, or is partial."""
        if ref.port == 0:
            return quoted(ref.node)
        node = self.flow.nodes[ref.node]
        if ref.port > 1 or node.kind not in ("source", "punctuate", "slack", "pace", "aggregate"):
            raise self._unsaid(node, f"its output {ref.port}", "Build this part in Python.")
        return f"{'PARTIAL' if node.kind == 'aggregate' else 'LATE'}({quoted(ref.node)})"

    def _inputs(self, node: Node) -> list[str]:
        return [self._read(ref) for ref in node.inputs]

    # Expressions -----------------------------------------------------------------------------

    def _said(
        self,
        node: Node,
        said: Expression | Aggregate,
        read: Callable[[str, Schema, str], Expression | Aggregate],
    ) -> str:
        """The text of an expression, if reading it gives the same; a Polars one may not."""
        where = f"to_sql, {node.kind} {node.name!r}"
        try:
            again = read(said.text, node.streams[0].schema, where)
        except InterpunctError as error:
            raise self._unsaid(node, said.text, "Write the expression as SQL text.") from error
        if not again.polars.meta.eq(said.polars):
            raise self._unsaid(node, said.text, "Write the expression as SQL text.")
        return said.text

    def _column(self, node: Node, out: str, value: Expression) -> str:
        if value.attribute == out:
            return quoted(out)
        carried = value.attribute
        text = quoted(carried) if carried is not None else self._said(node, value, scalar)
        return f"{text} AS {quoted(out)}"

    def _aggregates(self, node: Grouped) -> list[str]:
        return [
            f"{self._said(node, value, aggregate)} AS {quoted(out)}"
            for out, value in node.aggregates.items()
        ]

    # Operators -------------------------------------------------------------------------------

    def _select(self, node: SelectNode) -> str:
        read = select_events if revisable(node.streams[0].schema) else predicate
        condition = self._said(node, node.condition, read)
        return f"SELECT * FROM {self._inputs(node)[0]} WHERE {condition}"

    def _project(self, node: ProjectNode) -> str:
        columns = ", ".join(self._column(node, out, value) for out, value in node.columns.items())
        return f"SELECT {columns} FROM {self._inputs(node)[0]}"

    def _union(self, node: UnionNode) -> str:
        word = " UNION " if node.in_order else " UNION ALL "
        return f"SELECT * FROM {word.join(self._inputs(node))}"

    def _aggregate(self, node: AggregateNode | SpeculativeNode) -> str:
        schema, windows = node.streams[0].schema, node.windows
        size, slide = (length(t, schema) for t in (windows.size, windows.slide))
        time = quoted(schema.ordered_by)
        window = f"TUMBLE({time}, {size})" if windows.tumbling else f"HOP({time}, {slide}, {size})"
        return self._grouped(node, [time], window)

    def _speculative(self, node: SpeculativeNode) -> str:
        return f"{self._aggregate(node)} SPECULATIVE"

    def _tuple_window(self, node: TupleWindowNode) -> str:
        time = quoted(node.streams[0].schema.ordered_by)
        return self._grouped(node, [WINDOW, time], f"ROWS({node.rows}, {node.slide})")

    def _grouped(self, node: Grouped, between: list[str], window: str) -> str:
        keys = [quoted(key) for key in node.by]
        items = ", ".join([*keys, *between, *self._aggregates(node)])
        groups = ", ".join([*keys, window])
        return f"SELECT {items} FROM {self._inputs(node)[0]} GROUP BY {groups}"

    def _join(self, node: JoinNode) -> str:
        spec, schema = node.spec, node.streams[0].schema
        word = " LEFT JOIN " if spec.how == "left" else " JOIN "
        keys = f" USING ({', '.join(map(quoted, spec.keys))})" if spec.keys else ""
        windows = [length(w, schema) for w in spec.windows]
        within = windows[0] if len(set(windows)) == 1 else f"({', '.join(windows)})"
        manner = " THRIFTY" * node.thrifty + " IMPATIENT" * node.impatient
        return f"SELECT * FROM {word.join(self._inputs(node))}{keys} WITHIN {within}{manner}"

    def _pace(self, node: PaceNode) -> str:
        reads, schemas = self._inputs(node), [s.schema for s in node.streams]
        names = [f"s{n}" for n in range(1, len(reads) + 1)]
        united = " UNION ".join(f"{r} AS {n}" for r, n in zip(reads, names, strict=True))
        leaders = range(len(reads)) if node.on is None else node.on
        times = ", ".join(f"{names[p]}.{quoted(schemas[p].ordered_by)}" for p in leaders)
        told = "" if node.feedback else " WITHOUT FEEDBACK"
        within = length(node.tolerance, schemas[0])
        return f"SELECT * FROM {united} WITH PACE ON MAX({times}) {within}{told}"

    def _impute(self, node: ImputeNode) -> str:
        if not isinstance(node.archive, SqlArchive):
            raise self._unsaid(node, repr(node.archive), "Give it an address and a query.")
        fills = ", ".join(map(quoted, node.fills))
        query = exp.Literal.string(node.archive.query.text).sql("spark")
        more = f" BATCH {node.batch}" if node.batch != 1 else ""
        if node.budget is not None:
            more += f" BUDGET {length(node.budget)}"
        more += " OVERWRITE" * node.overwrite
        address = exp.Literal.string(self._address(node, node.archive)).sql("spark")
        stream = self._inputs(node)[0]
        return f"SELECT * FROM {stream} IMPUTE {fills} FROM {address} USING {query}{more}"

    def _address(self, node: ImputeNode, archive: SqlArchive) -> str:
        text = archive.address
        if ":" in text.partition("://")[2].rpartition("@")[0]:
            raise self._unsaid(
                node, "an address with a password", "Keep it in PGPASSWORD or a password file."
            )
        if type(open_archive(text, archive.query.text)) is type(archive):
            return text
        schemes = {DuckDb: "duckdb", Sqlite: "sqlite"}
        return f"{schemes[type(archive)]}:///{text}"

    def _check_timer(self, node: TimerNode) -> None:
        """A timer is part of the PUNCTUATE that reads it."""
        readers = [
            n for n in self.flow.nodes.values() if any(r.node == node.name for r in n.inputs)
        ]
        expected = [f"{n.name}_timer_1" for n in readers if isinstance(n, PunctuateNode)]
        if expected != [node.name]:
            raise self._unsaid(node, "a timer by itself", "Use stream.punctuate(…).")

    def _punctuate(self, node: PunctuateNode) -> str:
        timer = self.flow.nodes[node.inputs[1].node]
        if not isinstance(timer, TimerNode):
            raise self._unsaid(node, f"punctuation by {timer.name!r}", "Use stream.punctuate(…).")
        every, delay = length(timer.every), length(timer.offset)
        return f"PUNCTUATE {self._inputs(node)[0]} EVERY {every} DELAY {delay}"

    def _slack(self, node: SlackNode) -> str:
        window = length(node.window, node.streams[0].schema)
        return f"SLACK({self._inputs(node)[0]}, {node.slack}, {window})"

    def _poll(self, node: PollNode) -> str:
        return f"POLL({self._inputs(node)[0]}, {length(node.keep, node.streams[0].schema)})"

    def _lmerge(self, node: LMergeNode) -> str:
        policy, told = node.policy, [f"LMERGE({', '.join(self._inputs(node))})"]
        if node.variant is not None:
            told.append(f"VARIANT '{node.variant}'")
        inserts = f"'{policy.inserts}'" if isinstance(policy.inserts, str) else policy.inserts
        if policy.inserts != "first":
            told.append(f"INSERTS {inserts}")
        if policy.adjusts != "stable":
            told.append(f"ADJUSTS {policy.adjusts}")
        if policy.stable_lag:
            told.append(f"LAG {policy.stable_lag}")
        return " ".join(told if node.feedback else [*told, "WITHOUT FEEDBACK"])

    def _events(self, node: EventsNode) -> str:
        return f"EVENTS({self._inputs(node)[0]}, {length(node.lasting, node.streams[0].schema)})"

    def _declare(self, node: DeclareNode) -> str:
        before, now = vars(node.streams[0].properties), vars(node.properties)
        flags = [f"{'' if now[n] else 'NOT '}{n}" for n in now if now[n] != before[n]]
        return f"DECLARE({', '.join([self._inputs(node)[0], *flags])})"

    def _function(self, node: MergeNode | SortNode) -> str:
        return f"{node.kind.upper()}({', '.join(self._inputs(node))})"

    _writers: ClassVar[dict[type[Node], Callable[[_Writer, Any], str]]] = {
        SelectNode: _select,
        ProjectNode: _project,
        UnionNode: _union,
        MergeNode: _function,
        SortNode: _function,
        AggregateNode: _aggregate,
        SpeculativeNode: _speculative,
        TupleWindowNode: _tuple_window,
        JoinNode: _join,
        PunctuateNode: _punctuate,
        SlackNode: _slack,
        PaceNode: _pace,
        ImputeNode: _impute,
        PollNode: _poll,
        LMergeNode: _lmerge,
        EventsNode: _events,
        DeclareNode: _declare,
    }
