"""Reading queries: what is selected, from what, under which conditions.

SELECT segment, ts, avg(speed) AS speed FROM vehicles
WHERE speed BETWEEN 0 AND 120
GROUP BY segment, TUMBLE(ts, INTERVAL 20 SECONDS)
"""

from __future__ import annotations

from interpunct.sql.grammar import (
    Defined,
    Derived,
    Grouping,
    Item,
    Query,
    Relation,
    Scoped,
    Select,
    United,
    Window,
)
from interpunct.sql.relations import RelationReader
from interpunct.sql.tokens import Cursor, Piece

# What Spark has and a stream has not, and what to write instead.
REFUSED = {
    "DISTINCT": "Aggregate instead: GROUP BY the attributes and a window.",
    "ORDER BY": "A stream has no end after which to sort it; SORT(stream) is its time order.",
    "SORT BY": "A stream has no end after which to sort it; SORT(stream) is its time order.",
    "LIMIT": "A stream goes on; let its reader stop, or select by a condition.",
    "OFFSET": "A stream goes on; let its reader stop, or select by a condition.",
    "WINDOW": "Windows stand in GROUP BY: TUMBLE, HOP or ROWS.",
    "QUALIFY": "Windows stand in GROUP BY: TUMBLE, HOP or ROWS.",
    "LATERAL": "Explode arrays with PySpark, before or after the flow.",
    "INTERSECT": "Join the streams: JOIN … USING (…) WITHIN …",
    "EXCEPT": "Join the streams with LEFT JOIN … WITHIN … and keep what met nobody.",
    "MINUS": "Join the streams with LEFT JOIN … WITHIN … and keep what met nobody.",
    "RIGHT": "Write the streams the other way round, with LEFT JOIN.",
    "FULL": "LEFT JOIN the streams both ways, and unite the results.",
    "CROSS": "Every stream join has a window: JOIN … WITHIN …",
}
_STOPS = (
    "GROUP BY", "HAVING", "UNION", "WITH", "ORDER BY", "SORT BY", "LIMIT", "QUALIFY", "INTERSECT",
    "EXCEPT",
)  # fmt: skip
_WINDOWS = ("TUMBLE", "HOP", "ROWS")


class QueryReader:
    """Queries; what they read from is read by a `RelationReader`."""

    def __init__(self, cursor: Cursor) -> None:
        self.cursor = cursor
        self.relations = RelationReader(cursor, self.query)

    def begins(self) -> bool:
        """Whether a query comes next."""
        opened = any(self.cursor.sees(word) for word in ("SELECT", "WITH", "("))
        return opened or self.relations.operator_follows()

    def refuse(self) -> None:
        """An error if a word comes next that has no meaning for streams."""
        fix = REFUSED.get(self.cursor.word())
        if fix is not None:
            self.cursor.refuse("a clause that streams have", fix)

    def query(self) -> Query:
        if self.cursor.sees("WITH"):
            return self._scoped()
        first = self._single()
        while self.cursor.sees("UNION"):
            first = self._united(first)
        return first

    def _scoped(self) -> Scoped:
        cursor, views = self.cursor, list[Defined]()
        cursor.expect("WITH")
        while True:
            name = cursor.name("a name for the query")
            cursor.expect("AS")
            cursor.expect("(")
            views.append(Defined(name, self.query()))
            cursor.expect(")", fix="Close the query.")
            if not cursor.accept(","):
                return Scoped(tuple(views), self.query())

    def _united(self, first: Query) -> Query:
        """Queries united by one kind of UNION; another kind unites the result of these."""
        cursor, spot = self.cursor, self.cursor.spot
        kind = ("UNION", "ALL") if cursor.sees("UNION", "ALL") else ("UNION",)
        parts: list[Relation] = [Derived(first, None)]
        while cursor.sees(*kind) and cursor.sees("UNION", "ALL") == (len(kind) == 2):
            cursor.accept(*kind)
            parts.append(Derived(self._single(), None))
        return United(tuple(parts), len(kind) == 1, None, spot)

    def _single(self) -> Query:
        if self.relations.operator_follows():
            return self.relations.relation()
        if self.cursor.accept("("):
            inner = self.query()
            self.cursor.expect(")", fix="Close the query.")
            return inner
        return self._select()

    def _select(self) -> Select:
        cursor, spot = self.cursor, self.cursor.spot
        cursor.expect("SELECT", fix="A query begins with SELECT.")
        self.refuse()
        items = [self._item()]
        while cursor.accept(","):
            items.append(self._item())
        cursor.expect("FROM", fix="Say which stream is read: FROM name.")
        source = self.relations.relation()
        where = self._condition("WHERE")
        group = self._grouping() if cursor.accept("GROUP BY") else None
        having = self._condition("HAVING")
        self.refuse()
        return Select(tuple(items), source, where, group, having, spot)

    def _condition(self, word: str) -> Piece | None:
        self.refuse()
        return self.cursor.piece(*_STOPS) if self.cursor.accept(word) else None

    def _item(self) -> Item:
        spot = self.cursor.spot
        if self.cursor.accept("*"):
            return Item(None, None, spot)
        piece, alias = self.cursor.item("FROM")
        return Item(piece, alias, piece.spot)

    # GROUP BY --------------------------------------------------------------------------------

    def _grouping(self) -> Grouping:
        cursor, start = self.cursor, self.cursor.spot
        keys, windows = list[Piece](), list[Window]()
        while True:
            spot = cursor.spot
            window = self._window()
            if window is None:
                keys.append(cursor.piece(*_STOPS, "SPECULATIVE"))
            elif windows:
                raise spot.error("one window", "another", "Aggregate the aggregate in a view.")
            else:
                windows.append(window)
            if not cursor.accept(","):
                break
        if not windows:
            raise cursor.since(start).error(
                "a window among the groups", "none",
                "A stream has no end: add TUMBLE(ts, INTERVAL 20 SECONDS), HOP or ROWS.",
            )  # fmt: skip
        early = cursor.spot if cursor.accept("SPECULATIVE") else None
        return Grouping(tuple(keys), windows[0], early)

    def _window(self) -> Window | None:
        cursor, spot = self.cursor, self.cursor.spot
        kind = cursor.word()
        if kind == "WINDOW":
            cursor.fail("TUMBLE, HOP or ROWS", "Write TUMBLE(ts, size) or HOP(ts, slide, size).")
        if not kind.isidentifier() or cursor.word(1) != "(":
            return None
        if kind not in _WINDOWS:
            cursor.consider(*_WINDOWS)
            cursor.fail("an attribute, TUMBLE, HOP or ROWS", "Compute it in a view first.")
        cursor.accept(kind, "(")
        if kind == "ROWS":
            time, size = None, cursor.whole("how many tuples")
            slide = cursor.whole("after how many the next begins") if cursor.accept(",") else 1
        else:
            time = cursor.name("the time attribute")
            cursor.expect(",", fix="Write the length after the attribute.")
            slide = size = cursor.length("the length of a window")
            if kind == "HOP":
                cursor.expect(",", fix="Write HOP(ts, slide, size).")
                size = cursor.length("the size of a window")
        cursor.expect(")", fix="Close the window.")
        return Window(time, size, slide, cursor.since(spot))
