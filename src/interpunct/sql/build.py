"""Building: statements become nodes of a flow, the same that the Python builder makes.

    CREATE VIEW fast AS SELECT * FROM cars WHERE mph > 50     cars.where("mph > 50", name="fast")

The last operator of a view bears the view's name, so that `explain`, metrics and feedback speak of
it by that name; the operators before it get names such as `where_1`.
"""

from __future__ import annotations

from collections.abc import Callable

from interpunct.flow.builder import FlowBuilder
from interpunct.flow.merge_nodes import SpeculativeNode
from interpunct.flow.nodes import AggregateNode, ProjectNode, Ref, TupleWindowNode
from interpunct.flow.stream import FlowStream
from interpunct.model.durations import refuse_bare
from interpunct.model.expression import Expression, aggregate, scalar
from interpunct.model.schema import Attribute, Schema
from interpunct.operators.windows import Windows
from interpunct.sql.errors import Spot
from interpunct.sql.grammar import (
    Declared,
    Defined,
    Delivered,
    Item,
    Query,
    Scoped,
    Select,
    Statement,
)
from interpunct.sql.groups import Groups, calls, column_name
from interpunct.sql.names import Known
from interpunct.sql.sources import Sources
from interpunct.sql.statements import RESULT, read
from interpunct.sql.tokens import Name, Piece, quoted
from interpunct.sql.types import declared

Step = Callable[[Known, str | None], FlowStream]


def build(text: str, flow: FlowBuilder) -> bool:
    """Add what the statements say to a flow, and tell whether one of them is an EXPLAIN."""
    statements, builder = read(text), Builder(flow)
    fresh = not flow.nodes
    for statement in statements:
        builder.add(statement)
    if fresh and any(isinstance(s, Delivered) for s in statements):
        builder.check_all_read()
    return any(isinstance(s, Delivered) and s.explained for s in statements)


class Builder:
    """A flow under construction, and the views that stand for its streams."""

    def __init__(self, flow: FlowBuilder) -> None:
        self.flow = flow
        self.views: dict[str, FlowStream] = {}
        self.named: list[Name] = []  # every stream and view, and where it was given its name
        self.sources = Sources(flow, self.views, self.query)

    def add(self, statement: Statement) -> None:
        if isinstance(statement, Declared):
            self._declare(statement)
        elif isinstance(statement, Defined):
            self._define(statement)
        else:
            self._deliver(statement)

    def _declare(self, stream: Declared) -> None:
        attributes: list[Attribute] = []
        for spot in stream.attributes:
            with spot.blamed():
                attributes += declared(spot).attributes
                Schema(tuple(attributes))
        self._claim(stream.name)
        with stream.time_spot.blamed():
            self.flow.source(stream.name.text, Schema(tuple(attributes)), stream.time)

    def _define(self, view: Defined) -> None:
        self._claim(view.name)
        with view.name.spot.blamed():
            self.views[view.name.text] = self.query(view.query, view.name.text)

    def _deliver(self, delivered: Delivered) -> None:
        stream = self.query(delivered.query, None)
        sink = delivered.sink
        if sink.text == RESULT and RESULT in self.flow.nodes:
            raise sink.spot.error(
                "one query without a name", "another", "Begin with INSERT INTO and a sink's name."
            )
        with sink.spot.blamed():
            self.flow.sink(sink.text, stream)

    def _claim(self, name: Name) -> None:
        if name.text in self.flow.nodes or name.text in self.views:
            raise name.spot.error("a new name", f"{name.text!r} again", "Choose another.")
        self.named.append(name)

    def check_all_read(self) -> None:
        """Every stream and view leads somewhere: what nobody reads is a slip of the pen."""
        read = {ref.node for node in self.flow.nodes.values() for ref in node.inputs}
        for name in self.named:
            if name.text in self.flow.nodes and name.text not in read:
                raise name.spot.error("a query that reads this", "none", "Read it, or remove it.")

    # Queries ---------------------------------------------------------------------------------

    def query(self, query: Query, name: str | None) -> FlowStream:
        """The stream that a query is; its last operator gets the name."""
        if isinstance(query, Scoped):
            outside = dict(self.views)
            for view in query.views:
                self._define(view)
            stream = self.query(query.query, name)
            self.views.clear()
            self.views.update(outside)
            return stream
        if isinstance(query, Select):
            return self._select(query, name)
        return self.sources.known(query, name).stream

    def _select(self, query: Select, name: str | None) -> FlowStream:
        steps = self._steps(query)
        known = self.sources.known(query.source, None if steps else name)
        for number, step in enumerate(steps, start=1):
            stream = step(known, name if number == len(steps) else None)
            known = Known(stream, known.tables if stream.schema == known.stream.schema else ())
        return known.stream

    def _steps(self, query: Select) -> list[Step]:
        """The operators of a query, in the order data takes."""
        steps: list[Step] = []
        if query.where is not None:
            steps.append(self._filter(query.where))
        if query.group is not None:
            return [*steps, self._grouped(query)]
        if query.having is not None:
            raise query.having.spot.error("GROUP BY before HAVING", "none", "Write WHERE.")
        for item in query.items:
            if item.piece is not None and calls(item.piece):
                raise item.spot.error(
                    "GROUP BY with an aggregate", "none",
                    "A stream has no end: add GROUP BY TUMBLE(ts, INTERVAL 20 SECONDS).",
                )  # fmt: skip
        if any(item.piece is not None for item in query.items) or len(query.items) > 1:
            steps.append(lambda known, name: self._listed(query.items, known, name))
        return steps

    def _filter(self, condition: Piece) -> Step:
        def step(known: Known, name: str | None) -> FlowStream:
            text = known.text(condition)
            with condition.spot.blamed():
                return known.stream.where(text, name=name)

        return step

    def _listed(self, items: tuple[Item, ...], known: Known, name: str | None) -> FlowStream:
        """SELECT of attributes and expressions; `*` stands for all attributes there are."""
        columns: dict[str, Expression] = {}
        for item in items:
            every = known.stream.schema.names if item.piece is None else known.all_of(item.piece)
            if every is not None:
                told = {n: quoted(n) for n in every}
            elif item.piece is not None:
                told = {column_name(item).text: known.text(item.piece)}
            for out, text in told.items():
                if out in columns:
                    raise item.spot.error("each name once", f"{out!r} again", "Rename one.")
                with item.spot.blamed():
                    columns[out] = scalar(text, known.stream.schema, "select")
        return self._projected(known.stream, columns, _span(items), name)

    def _projected(
        self, stream: FlowStream, columns: dict[str, Expression], spot: Spot, name: str | None
    ) -> FlowStream:
        called = self.flow.fresh("select", name)
        with spot.blamed():
            self.flow.add(ProjectNode(called, (stream.ref,), (stream.stream,), columns))
        return FlowStream(self.flow, Ref(called))

    # GROUP BY --------------------------------------------------------------------------------

    def _grouped(self, query: Select) -> Step:
        def step(known: Known, name: str | None) -> FlowStream:
            assert query.group is not None
            groups = Groups.of(known, query.group)
            columns = [groups.column(item) for item in query.items]
            having = None if query.having is None else groups.text(query.having, having=True)
            listed = [(out.text, text) for out, text in columns]
            plain = listed == [(n, quoted(n)) for n in groups.names()]
            early = query.group.speculative
            if early is not None and (having is not None or not plain):
                raise early.error(
                    "groups, the time and aggregates alone, without HAVING", "more than that",
                    "A result that may be revised is left whole: go on with it in a view.",
                )  # fmt: skip
            stream = self._aggregated(query, groups, name if plain and having is None else None)
            if having is not None and query.having is not None:
                with query.having.spot.blamed():
                    stream = stream.where(having, name=name if plain else None)
            if plain:
                return stream
            made: dict[str, Expression] = {}
            for out, text in columns:
                if out.text in made:
                    raise out.spot.error("each name once", f"{out.text!r} again", "Rename one.")
                with out.spot.blamed():
                    made[out.text] = scalar(text, stream.schema, "select")
            return self._projected(stream, made, _span(query.items), name)

        return step

    def _aggregated(self, query: Select, groups: Groups, name: str | None) -> FlowStream:
        assert query.group is not None
        window, stream = query.group.window, groups.known.stream
        called = self.flow.fresh("aggregate", name)
        built = {}
        for out, (text, spot) in groups.asked.items():
            with spot.blamed():
                built[out] = aggregate(text, stream.schema, f"aggregate {called!r}")
        if not built:
            raise query.spot.error("at least one aggregate", "none", "Add count(*) AS n.")
        early, size, slide = query.group.speculative, window.size, window.slide
        with window.spot.blamed():
            if groups.counted and early is not None:
                raise early.error("TUMBLE or HOP with SPECULATIVE", "ROWS", "Window by time.")
            if groups.counted:
                stream = stream.in_order("TupleWindow")
            inputs = (stream.ref,), (stream.stream,)
            if groups.counted:
                self.flow.add(TupleWindowNode(called, *inputs, size, slide, groups.keys, built))
            else:
                for ticks in (size, slide):
                    refuse_bare(ticks, stream.schema, "the length of a window")
                kind = AggregateNode if early is None else SpeculativeNode
                self.flow.add(kind(called, *inputs, Windows(size, slide), groups.keys, built))
        return FlowStream(self.flow, Ref(called))


def _span(items: tuple[Item, ...]) -> Spot:
    return items[0].spot.to(items[-1].spot)
