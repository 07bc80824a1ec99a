"""Building what queries read from: names, unions, joins, and the papers' operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta

from sqlglot import exp

from interpunct.flow.builder import FlowBuilder
from interpunct.flow.nodes import Ref
from interpunct.flow.stream import FlowStream
from interpunct.model.durations import refuse_bare
from interpunct.sql.errors import Spot
from interpunct.sql.grammar import (
    Applied,
    Derived,
    Imputed,
    Joined,
    Merged,
    Named,
    Pace,
    Punctuated,
    Query,
    Relation,
    United,
)
from interpunct.sql.names import Known, place_of
from interpunct.sql.tokens import Name, Piece


class Sources:
    """Relations as streams of a flow; the operator that makes one gets the name asked for."""

    def __init__(
        self,
        flow: FlowBuilder,
        views: Mapping[str, FlowStream],
        query: Callable[[Query, str | None], FlowStream],
    ) -> None:
        self.flow, self.views, self.query = flow, views, query

    def known(self, relation: Relation, name: str | None) -> Known:
        if isinstance(relation, Named):
            return Known.under(self._named(relation.name), relation.alias)
        if isinstance(relation, Derived):
            return Known.under(self.query(relation.query, name), relation.alias)
        if isinstance(relation, Joined):
            return self._joined(relation, name)
        if isinstance(relation, United):
            return Known(self._united(relation, name))
        with relation.spot.blamed():
            if isinstance(relation, Applied):
                stream = self._applied(relation, name)
            elif isinstance(relation, Merged):
                stream = self.flow.lmerge(
                    *map(self._stream, relation.streams), policy=relation.policy,
                    variant=relation.variant, feedback=relation.feedback, name=name,
                )  # fmt: skip
            elif isinstance(relation, Punctuated):
                stream = self._stream(relation.stream).punctuate(
                    every=relation.every, delay=relation.delay, name=name
                )
            else:
                stream = self._imputed(relation, name)
        return Known.under(stream, relation.alias)

    def _stream(self, relation: Relation) -> FlowStream:
        return self.known(relation, None).stream

    def _named(self, name: Name) -> FlowStream:
        """A view, or any node of the flow that has an output."""
        view = self.views.get(name.text)
        if view is not None:
            return view
        node = self.flow.nodes.get(name.text)
        if node is None or not node.outputs:
            known = [n.name for n in self.flow.nodes.values() if n.outputs]
            listed = ", ".join(dict.fromkeys([*known, *self.views])) or "none is declared yet"
            raise name.spot.error(
                f"a stream or a view: {listed}", repr(name.text),
                "Check the spelling, or declare it with CREATE STREAM.",
            )  # fmt: skip
        return FlowStream(self.flow, Ref(name.text))

    # Operators -------------------------------------------------------------------------------

    def _applied(self, applied: Applied, name: str | None) -> FlowStream:
        streams = [self._stream(s) for s in applied.streams]
        first = streams[0]
        match applied.function:
            case "SORT":
                return first.sort(name=name)
            case "MERGE":
                return self.flow.merge(*streams, name=name)
            case "SLACK":
                return first.slack(applied.count, window=applied.length, name=name)
            case "POLL":
                return first.poll(keep=applied.length, name=name)
            case "EVENTS":
                return first.events(lasting=applied.length, name=name)
            case "DECLARE":
                return first.declare(name=name, **{n.text: true for n, true in applied.flags})
            case "LATE":
                return first.late
            case _:
                return first.partial

    def _imputed(self, imputed: Imputed, name: str | None) -> FlowStream:
        stream = self._stream(imputed.stream)
        return stream.impute(
            *(f.text for f in imputed.fills), archive=imputed.archive, query=imputed.query,
            batch=imputed.batch, budget=imputed.budget, overwrite=imputed.overwrite, name=name,
        )  # fmt: skip

    # Unions ----------------------------------------------------------------------------------

    def _united(self, union: United, name: str | None) -> FlowStream:
        parts = [self.known(s, None) for s in union.streams]
        streams = [part.stream for part in parts]
        if union.pace is None:
            with union.spot.blamed():
                return self.flow.union(*streams, in_order=union.in_order, name=name)
        leaders = self._leaders(union.pace, parts)
        every = {s.ref for s in leaders} == {s.ref for s in streams}
        with union.spot.blamed():
            return streams[0].pace(
                *streams[1:], within=union.pace.within, on=None if every else leaders,
                feedback=union.pace.feedback, name=name,
            )  # fmt: skip

    @staticmethod
    def _leaders(pace: Pace, parts: list[Known]) -> list[FlowStream]:
        """The streams whose time sets the pace: those named in MAX."""
        streams = {alias: part.stream for part in parts for alias, _ in part.tables}
        leaders = []
        for table, attribute in pace.on:
            stream = streams.get(table.text)
            if stream is None:
                known = ", ".join(streams)
                raise table.spot.error(
                    f"one of the united streams {known}", repr(table.text), "Name one of them."
                )
            if attribute.text != stream.schema.time:
                raise attribute.spot.error(
                    f"the time attribute of {table.text}, {stream.schema.time}",
                    repr(attribute.text), "PACE compares the times of tuples.",
                )  # fmt: skip
            leaders.append(stream)
        return leaders

    # Joins -----------------------------------------------------------------------------------

    def _joined(self, join: Joined, name: str | None) -> Known:
        parts = [self.known(s, None) for s in join.streams]
        keys = [key.text for key in join.using]
        if join.on is not None:
            keys = [_key(tree, join.on.spot, parts) for tree in _conjuncts(join.on.tree)]
        first, *others = (part.stream for part in parts)
        lengths = [timedelta(microseconds=ticks) for ticks in join.windows]
        within = lengths[0] if len(lengths) == 1 else lengths
        with join.spot.blamed():
            for ticks in join.windows:
                refuse_bare(ticks, first.schema, "WITHIN")
            stream = first.join(
                *others, on=keys, within=within, how=join.how,
                thrifty=join.thrifty, impatient=join.impatient, name=name,
            )  # fmt: skip
        tables = [t for port, part in enumerate(parts) for t in part.carried(port, stream)]
        return Known(stream, tuple(tables))


def _conjuncts(tree: exp.Expr) -> list[exp.Expr]:
    inner = tree.unnest() if isinstance(tree, exp.Paren) else tree
    if isinstance(inner, exp.And):
        return [*_conjuncts(inner.this), *_conjuncts(inner.expression)]
    return [inner]


def _key(tree: exp.Expr, on: Spot, parts: list[Known]) -> str:
    """The attribute that `a.k = b.k` equates: one name in two streams."""
    spot = place_of(tree, on)
    sides = (tree.this, tree.expression) if isinstance(tree, exp.EQ) else ()
    if not sides or not all(isinstance(s, exp.Column) and s.table for s in sides):
        raise spot.error(
            "equal attributes: a.k = b.k AND …", repr(tree.sql("spark")),
            "Other conditions belong in WHERE; how far apart, in WITHIN.",
        )  # fmt: skip
    (left, name), (right, other) = (_attribute(side, on, parts) for side in sides)
    if name != other or left == right:
        raise spot.error(
            "one attribute of two streams, by one name", repr(tree.sql("spark")),
            "Rename it first: SELECT m AS k, … in a view.",
        )  # fmt: skip
    return name


def _attribute(column: exp.Expr, on: Spot, parts: list[Known]) -> tuple[int, str]:
    """Which input a column is of, and how it is called there."""
    table = str(column.args["table"].name).lower()
    owners = {n for n, p in enumerate(parts) for alias, _ in p.tables if alias.lower() == table}
    if len(owners) == 1:
        owner = owners.pop()
        known = parts[owner]
    else:  # unknown, or twice the same: an error that lists them all
        owner, known = 0, Known(parts[0].stream, tuple(t for p in parts for t in p.tables))
    name = known.attribute(Piece(on, (), column))
    assert name is not None
    return owner, name
