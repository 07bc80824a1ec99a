"""What names mean in a query: `b.speed` after a join may be the attribute `speed_right`.

FROM sensors s JOIN probes p USING (segment) WITHIN …
s.speed → speed      p.speed → speed_right      segment → segment      speed → which one?
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from sqlglot import exp

from interpunct.flow.stream import FlowStream
from interpunct.model.nearest import advice
from interpunct.sql.errors import Spot
from interpunct.sql.tokens import Name, Piece, quoted

Attributes = Mapping[str, str]  # as it is called in its own stream → as it is called now


@dataclass(frozen=True)
class Use:
    """Where an expression names an attribute, which one that is, and how to write it."""

    spot: Spot
    attribute: str
    said: str


@dataclass(frozen=True)
class Known:
    """A stream, and for each name it goes under how its attributes are called in it."""

    stream: FlowStream
    tables: tuple[tuple[str, Attributes], ...] = ()

    @classmethod
    def under(cls, stream: FlowStream, alias: str | None) -> Known:
        own = {name: name for name in stream.schema.names}
        return cls(stream, () if alias is None else ((alias, own),))

    def carried(self, port: int, into: FlowStream) -> Iterator[tuple[str, Attributes]]:
        """The same names in the output of an operator that this is an input of."""
        moved = into.flow.nodes[into.ref.node].prototype.attributes
        for alias, attributes in self.tables:
            pairs = ((own, moved.output_of(port, now)) for own, now in attributes.items())
            yield alias, {own: now for own, now in pairs if now is not None}

    def text(self, piece: Piece) -> str:
        """The expression, with every attribute under the name it has in the stream."""
        return piece.written({use.spot.start: (use.spot.end, use.said) for use in self.uses(piece)})

    def uses(self, piece: Piece, skip: Iterable[range] = ()) -> Iterator[Use]:
        """The attributes that an expression names, but for those in places to skip; one that keeps
        its name is left as it was written, in backticks or not."""
        for column in piece.tree.find_all(exp.Column):
            parts = [_name(part, piece.spot.text) for part in column.parts]
            spot = parts[0].spot.to(parts[-1].spot)
            if any(spot.start in places for places in skip):
                continue
            attribute, last = self._resolved(parts), parts[-1]
            as_written = last.spot.text[last.spot.start : last.spot.end]
            yield Use(spot, attribute, as_written if attribute == last.text else quoted(attribute))

    def all_of(self, piece: Piece) -> list[str] | None:
        """The attributes that `a.*` stands for; None if the expression is something else."""
        tree = piece.tree
        if not isinstance(tree, exp.Column) or not isinstance(tree.this, exp.Star):
            return None
        table = _name(tree.args["table"], piece.spot.text)
        return list(self._table(table).values())

    def attribute(self, piece: Piece) -> str | None:
        """The attribute that an expression is, if it is one and nothing more."""
        if not isinstance(piece.tree, exp.Column):
            return None
        return self._resolved([_name(part, piece.spot.text) for part in piece.tree.parts])

    def _resolved(self, parts: list[Name]) -> str:
        if len(parts) > 2:
            raise parts[0].spot.to(parts[-1].spot).error(
                "attribute or stream.attribute", f"{len(parts)} names",
                "For a field of a struct use pl.col(…).struct.field(…) in Python.",
            )  # fmt: skip
        return self._of_table(*parts) if len(parts) == 2 else self._alone(parts[0])

    def _of_table(self, table: Name, name: Name) -> str:
        attributes = self._table(table)
        own = _found(name.text, attributes)
        if own is None:
            raise _unknown(name, attributes)
        return attributes[own]

    def _table(self, table: Name) -> Attributes:
        found = [attributes for alias, attributes in self.tables if _same(alias, table.text)]
        if len(found) != 1:
            known = ", ".join(alias for alias, _ in self.tables) or "none here: write no prefix"
            got = f"{table.text!r}" + (" twice" if found else "")
            raise table.spot.error(f"one of the streams {known}", got, "Name one with AS.")
        return found[0]

    def _alone(self, name: Name) -> str:
        named = {
            attributes[own]: alias
            for alias, attributes in self.tables
            if (own := _found(name.text, attributes)) is not None
        }
        if len(named) > 1:
            which = " or ".join(f"{alias}.{name.text}" for alias in named.values())
            raise name.spot.error("the stream of the attribute", repr(name.text), f"Write {which}.")
        if named:
            return next(iter(named))
        own = _found(name.text, self.stream.schema.names)
        if own is None:
            raise _unknown(name, self.stream.schema.names)
        return own


def _name(part: exp.Expr, text: str) -> Name:
    """A part of a name; sqlglot remembers where it stood."""
    place = part.meta
    return Name(part.name, Spot(text, place.get("start", 0), place.get("end", 0) + 1))


def place_of(tree: exp.Expr, around: Spot) -> Spot:
    """Where the names of an expression stand, from the first to the last."""
    places = [i.meta for i in tree.find_all(exp.Identifier) if "start" in i.meta]
    if not places:
        return around
    ends = min(p["start"] for p in places), max(p["end"] for p in places) + 1
    return Spot(around.text, *ends)


def _unknown(name: Name, known: Iterable[str]) -> Exception:
    names = list(known)
    what = f"one of the attributes {', '.join(names)}"
    return name.spot.error(what, repr(name.text), advice(name.text, names, "Check the name."))


def _found(name: str, known: Iterable[str]) -> str | None:
    """The name as it is written there; letters in another case if only one is meant."""
    names = list(known)
    if name in names:
        return name
    near = [n for n in names if _same(n, name)]
    return near[0] if len(near) == 1 else None


def _same(one: str, other: str) -> bool:
    return one.lower() == other.lower()
