"""Aggregation: which aggregates a query asks for, and what it makes of them afterwards.

    SELECT segment, sum(speed) / count(*) AS mean … HAVING count(*) > 3
                    ╰── _1 ──╯   ╰── _2 ─╯
    aggregate: _1 = sum(speed), _2 = count(*)     where: _2 > 3     select: segment, mean = _1 / _2

Where the list is the groups, the time and plain aggregates in this order, there is nothing left to
do afterwards, and the flow is that of `stream.aggregate(…)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from interpunct.model.aggregates import AGGREGATES
from interpunct.model.errors import InterpunctError
from interpunct.model.expression import scalar
from interpunct.model.nearest import advice
from interpunct.operators.tuple_window import WINDOW
from interpunct.sql.errors import Spot
from interpunct.sql.grammar import Grouping, Item
from interpunct.sql.names import Known, Use
from interpunct.sql.tokens import RESERVED, Name, Piece, parsed, quoted

_ANONYMOUS = ("mean", "every", "some")  # aggregates that sqlglot keeps by name
# What an unknown function may be meant to be.
AGGREGATE_NAMES = (
    *_ANONYMOUS, "count", "count_if", "sum", "avg", "min", "max", "first", "last", "first_value",
    "last_value", "any_value", "bool_and", "bool_or", "any", "stddev", "stddev_samp", "stddev_pop",
    "variance", "var_samp", "var_pop", "median", "percentile", "percentile_approx",
    "collect_list", "collect_set", "approx_count_distinct",
)  # fmt: skip


@dataclass
class Groups:
    """The aggregates of one query, by name; what else it says is said in terms of these."""

    known: Known
    keys: tuple[str, ...]
    time: str
    counted: bool  # whether windows count tuples, and so have a number
    asked: dict[str, tuple[str, Spot]] = field(default_factory=dict)

    @classmethod
    def of(cls, known: Known, grouping: Grouping) -> Groups:
        keys = tuple(_key(known, piece) for piece in grouping.keys)
        window, schema = grouping.window, known.stream.schema
        with window.spot.blamed():
            time = schema.ordered_by
        if window.time is not None and window.time.text.lower() != time.lower():
            raise window.time.spot.error(
                f"the stream's time attribute {time}", repr(window.time.text),
                "Windows are over the time of a stream.",
            )  # fmt: skip
        return cls(known, keys, time, window.time is None)

    def names(self) -> list[str]:
        """What the result of the aggregation has, in its order."""
        window = [WINDOW] if self.counted else []
        return [*self.keys, *window, self.time, *self.asked]

    def column(self, item: Item) -> tuple[Name, str]:
        """The name of an item of the list and its expression over the result."""
        if item.piece is None:
            raise item.spot.error(
                "groups, the time and aggregates", "'*'", "Name what the windows shall give."
            )
        whole = self._whole(item.piece)
        if whole is not None:
            if item.alias is None:
                raise item.spot.error("a name for the aggregate", "none", "Add AS and a name.")
            return item.alias, quoted(self._called(item.alias.text, whole, item.spot))
        return column_name(item), self.text(item.piece)

    def text(self, piece: Piece, *, having: bool = False) -> str:
        """An expression, with a name for each aggregate in it; HAVING may use the list's names."""
        instead: dict[int, tuple[int, str]] = {}
        aggregates = calls(piece)
        self._check_functions(piece, aggregates)
        for found in aggregates:
            text = self.known.text(found)
            same = next((n for n, (t, _) in self.asked.items() if t == text), None)
            name = same or self._called(f"_{len(self.asked) + 1}", text, found.spot)
            instead[found.spot.start] = found.spot.end, quoted(name)
        own = [WINDOW] * self.counted + [*self.asked] * having
        if having:
            self._check_names(piece, own)
        for column in piece.tree.find_all(exp.Column):
            if not column.table and column.name in own:
                place = column.this.meta
                instead[place["start"]] = place["end"] + 1, quoted(column.name)
        spans = [range(start, end) for start, (end, _) in instead.items()]
        for use in self.known.uses(piece, skip=spans):
            self._check_grouped(use)
            instead[use.spot.start] = use.spot.end, use.said
        return piece.written(instead)

    def _check_names(self, piece: Piece, own: Sequence[str]) -> None:
        """An error at the first name in HAVING that neither the list nor the stream has."""
        known = [*dict.fromkeys([*self.names(), *own])]
        there = {name.lower() for name in (*known, *self.known.stream.schema.names)}
        for column in piece.tree.find_all(exp.Column):
            name, place = column.name, column.this.meta
            if column.table or name.lower() in there:
                continue
            raise Spot(piece.spot.text, place["start"], place["end"] + 1).error(
                f"one of {', '.join(known)}, or an aggregate", repr(name),
                advice(name, known, "Name it in the list first, with AS."),
            )  # fmt: skip

    def _whole(self, piece: Piece) -> str | None:
        """The text of an expression that is one aggregate and nothing else."""
        found = calls(piece)
        alone = len(found) == 1 and found[0].spot == piece.spot
        return self.known.text(piece) if alone else None

    def _called(self, name: str, text: str, spot: Spot) -> str:
        if name in self.names():
            raise spot.error("each name once", f"{name!r} again", "Give it another name.")
        self.asked[name] = text, spot
        return name

    def _check_functions(self, piece: Piece, aggregates: list[Piece]) -> None:
        """An error at the first function outside the aggregates that is not known."""
        inside = {token.start for found in aggregates for token in found.tokens}
        named = {call.name for call in piece.tree.find_all(exp.Anonymous)}
        unknown = {name for name in named if not self._evaluated(name)}
        for at, token in enumerate(piece.tokens):
            called = token.text in unknown and _call_end(piece.tokens, at) > at
            if called and token.start not in inside:
                raise Spot(piece.spot.text, token.start, token.end + 1).error(
                    "a function, or an aggregate such as count, sum, avg, min or max",
                    f"{token.text!r}, which is not known",
                    advice(token.text, AGGREGATE_NAMES, "Write one that is."),
                )

    def _evaluated(self, function: str) -> bool:
        """Whether a function that sqlglot keeps by name has a value for one tuple."""
        try:
            return bool(scalar(f"{function}(NULL)", self.known.stream.schema, "select"))
        except InterpunctError:
            return False

    def _check_grouped(self, use: Use) -> None:
        allowed = (*self.keys, self.time)
        if use.attribute not in allowed:
            raise use.spot.error(
                f"one of {', '.join(allowed)}, or an aggregate", repr(use.said),
                f"Aggregate it, max({use.said}), or add it to GROUP BY.",
            )  # fmt: skip


def _key(known: Known, piece: Piece) -> str:
    attribute = known.attribute(piece)
    if attribute is None:
        raise piece.spot.error(
            "an attribute, TUMBLE, HOP or ROWS", "an expression", "Compute it in a view first."
        )
    return attribute


def column_name(item: Item) -> Name:
    """An item's own name: AS, or that of the attribute it is."""
    if item.alias is not None:
        return item.alias
    if item.piece is None or not isinstance(item.piece.tree, exp.Column):
        raise item.spot.error("a name for the expression", "none", "Add AS and a name.")
    return Name(item.piece.tree.name, item.spot)


def calls(piece: Piece) -> list[Piece]:
    """The outermost calls of aggregates: a word, and what stands in parentheses behind it."""
    found, at = list[Piece](), 0
    while at < len(piece.tokens):
        end = _call_end(piece.tokens, at)
        call = parsed(piece.spot.text, piece.tokens[at:end]) if end > at else None
        if call is not None and _aggregates(call.tree):
            found.append(call)
            at = end
        else:
            at += 1
    return found


def _call_end(tokens: tuple[Token, ...], at: int) -> int:
    """The token behind the call that begins here, with IGNORE NULLS; `at` if none does."""
    opens = at + 1 < len(tokens) and tokens[at + 1].token_type is TokenType.L_PAREN
    word = tokens[at].text
    if not opens or not word.isidentifier() or word.upper() in RESERVED:
        return at
    depth, end = 0, at + 1
    while True:
        depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(tokens[end].token_type, 0)
        end += 1
        if depth == 0:
            break
    behind = [token.text.upper() for token in tokens[end : end + 2]]
    return end + {"IGNORE NULLS": len(behind)}.get(" ".join(behind), 0)


def _aggregates(tree: exp.Expr) -> bool:
    if isinstance(tree, exp.Anonymous):
        return tree.name.lower() in _ANONYMOUS
    return type(tree) in AGGREGATES or isinstance(tree, exp.AggFunc)
