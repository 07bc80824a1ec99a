"""Reading what a query reads from: streams, and the operators of the papers over them.

FROM stream1 UNION stream2 WITH PACE ON MAX(stream1.time, stream2.time) 1 MINUTE
FROM sensors LEFT JOIN probes USING (segment) WITHIN INTERVAL 20 SECONDS THRIFTY
FROM dirty IMPUTE speed FROM 'speeds.db' USING 'select … where segment = :segment'
FROM PUNCTUATE vehicles EVERY INTERVAL 1 MINUTE DELAY INTERVAL 10 SECONDS
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot.tokenizer_core import TokenType

from interpunct.model.nearest import nearest
from interpunct.operators.lmerge_policy import MergePolicy
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
from interpunct.sql.tokens import RESERVED, Cursor, Name

FUNCTIONS = (
    "SORT", "MERGE", "LMERGE", "SLACK", "POLL", "LATE", "PARTIAL", "EVENTS", "DECLARE",
)  # fmt: skip
_JOIN_ENDS = ("WITHIN", "JOIN", "LEFT", "INNER", "WHERE", "GROUP BY", "UNION")


class RelationReader:
    """Relations; queries in parentheses are read by `query`."""

    def __init__(self, cursor: Cursor, query: Callable[[], Query]) -> None:
        self.cursor, self.query = cursor, query

    def operator_follows(self) -> bool:
        """Whether an operator comes next, which needs no SELECT * FROM before it."""
        if self.cursor.word() in FUNCTIONS:
            return self.cursor.word(1) == "("
        return self.cursor.word() == "PUNCTUATE" and self.cursor.word(1) not in ("", ";")

    def relation(self) -> Relation:
        """Joins bind closer than unions."""
        cursor, spot = self.cursor, self.cursor.spot
        parts = [self._joined()]
        orders = set[bool]()
        while cursor.sees("UNION") and not self._query_follows():
            cursor.accept("UNION")
            orders.add(not cursor.accept("ALL"))
            if len(orders) > 1:
                raise cursor.since(spot).error(
                    "one kind of UNION", "UNION and UNION ALL", "Unite some in parentheses first."
                )
            parts.append(self._joined())
        if len(parts) == 1:
            if (cursor.word(), cursor.word(1)) == ("WITH", "PACE"):
                cursor.refuse("streams to unite before WITH PACE", "Write a UNION b WITH PACE …")
            return parts[0]
        in_order = orders.pop()
        pace = self._pace() if cursor.accept("WITH") else None
        if pace is not None and not in_order:
            raise spot.error("UNION before WITH PACE", "UNION ALL", "Drop ALL.")
        return United(tuple(parts), in_order, pace, spot)

    def _query_follows(self) -> bool:
        """Whether this UNION unites queries, and not streams in a FROM: a SELECT comes after it,
        or one in parentheses that is given no name."""
        ahead = 2 if self.cursor.word(1) == "ALL" else 1
        if self.cursor.word(ahead) != "(":
            return self.cursor.word(ahead) == "SELECT"
        if self.cursor.word(ahead + 1) not in ("SELECT", "WITH", "("):
            return False
        behind = self.cursor.closing(ahead) + 1
        named = self.cursor.word(behind) not in RESERVED | {"", ";", ")"}
        return not named and self.cursor.word(behind) != "AS"

    def _pace(self) -> Pace:
        cursor = self.cursor
        cursor.expect("PACE", "ON", fix="Write WITH PACE ON MAX(a.ts, b.ts) 1 MINUTE.")
        if cursor.accept("MAX"):
            cursor.expect("(")
            on = [self._time_of()]
            while cursor.accept(","):
                on.append(self._time_of())
            cursor.expect(")", fix="Close MAX.")
        else:
            on = [self._time_of()]
        within = cursor.length("how far behind a tuple may be")
        return Pace(tuple(on), within, not cursor.accept("WITHOUT", "FEEDBACK"))

    def _time_of(self) -> tuple[Name, Name]:
        stream = self.cursor.name("a stream of the union")
        self.cursor.expect(".", fix="Write stream.attribute.")
        return stream, self.cursor.name("its time attribute")

    # Joins -----------------------------------------------------------------------------------

    def _joined(self) -> Relation:
        """`a JOIN b … WITHIN …` joins two; with several JOINs before one WITHIN, it is one
        operator over all of them."""
        cursor, spot = self.cursor, self.cursor.spot
        left = self._stream()
        while self._join_follows():
            streams, hows = [left], set[str]()
            while self._join_follows():
                hows.add("left" if cursor.accept("LEFT") else "inner")
                cursor.accept("OUTER") or cursor.accept("INNER")
                cursor.expect("JOIN")
                streams.append(self._stream())
            if len(hows) > 1:
                raise cursor.since(spot).error(
                    "one kind of join before WITHIN", "JOIN and LEFT JOIN",
                    "Give each its own ON … WITHIN …",
                )  # fmt: skip
            left = self._conditions(tuple(streams), hows.pop(), spot)
        return left

    def _join_follows(self) -> bool:
        self.cursor.consider("JOIN")
        self.cursor.consider("LEFT", shown="LEFT JOIN")
        words = [self.cursor.word(i) for i in range(3)]
        return "JOIN" in words[: {"LEFT": 3, "INNER": 2}.get(words[0], 1)]

    def _conditions(self, streams: tuple[Relation, ...], how: str, spot: Spot) -> Joined:
        cursor, on, using = self.cursor, None, list[Name]()
        if cursor.accept("ON"):
            on = cursor.piece(*_JOIN_ENDS)
        elif cursor.accept("USING"):
            cursor.expect("(")
            using = cursor.names("an attribute of both streams")
            cursor.expect(")")
        cursor.expect(
            "WITHIN", fix="Streams have no end: say how far apart tuples may be, WITHIN INTERVAL …"
        )
        windows = self._windows()
        thrifty, impatient = cursor.accept("THRIFTY"), cursor.accept("IMPATIENT")
        thrifty = thrifty or cursor.accept("THRIFTY")
        return Joined(
            streams, on, tuple(using), windows, how, thrifty, impatient, cursor.since(spot)
        )

    def _windows(self) -> tuple[int, ...]:
        """One for all, or `(one, for, each)`."""
        cursor = self.cursor
        if not cursor.accept("("):
            return (cursor.length("how far apart"),)
        found = [cursor.length("how far apart")]
        while cursor.accept(","):
            found.append(cursor.length("how far apart"))
        cursor.expect(")", fix="Close the windows.")
        return tuple(found)

    # Single streams --------------------------------------------------------------------------

    def _stream(self) -> Relation:
        cursor, spot = self.cursor, self.cursor.spot
        found: Relation
        if cursor.accept("("):
            if cursor.word() in ("SELECT", "WITH", "("):
                inner: Query = self.query()
            else:
                inner = self.relation()
            cursor.expect(")", fix="Close the query.")
            found = Derived(inner, self._alias())
        elif self.operator_follows():
            found = self._operator(spot)
        else:
            self._check_function()
            name = cursor.name("a stream or a view")
            found = Named(name, self._alias() or name.text)
        while cursor.sees("IMPUTE"):
            found = self._imputed(found, spot)
        return found

    def _check_function(self) -> None:
        """An error if a misspelt operator comes next: a parenthesis follows no stream's name."""
        cursor = self.cursor
        if cursor.word(1) == "(" and nearest(cursor.word(), FUNCTIONS) is not None:
            cursor.consider(*FUNCTIONS)
            cursor.fail("a stream or a view", "")

    def _alias(self) -> str | None:
        cursor = self.cursor
        if cursor.accept("AS"):
            return cursor.name("another name for the stream").text
        token = cursor.token()
        if token is None or not (cursor.word() or token.token_type is TokenType.IDENTIFIER):
            return None
        follows = cursor.word().isidentifier() and cursor.word() not in RESERVED
        return cursor.bare_name("another name").text if follows or not cursor.word() else None

    def _operator(self, spot: Spot) -> Relation:
        cursor = self.cursor
        if cursor.accept("PUNCTUATE"):
            stream = Named(name := cursor.name("a stream"), name.text)
            cursor.expect("EVERY")
            every = cursor.length("how often")
            cursor.expect("DELAY", fix="Say how late tuples may be: DELAY INTERVAL …")
            delay = cursor.length("how late")
            return Punctuated(stream, every, delay, cursor.since(spot), self._alias())
        function = cursor.word()
        cursor.accept(function, "(")
        streams = [self._stream()]
        while function in ("MERGE", "LMERGE") and cursor.accept(","):
            streams.append(self._stream())
        count = length = 0
        if function == "SLACK":
            cursor.expect(",", fix="Write SLACK(stream, tuples, window).")
            count = cursor.whole("how many tuples")
        if function in ("SLACK", "POLL", "EVENTS"):
            cursor.expect(",", fix=f"Give {function} a length of time.")
            length = cursor.length("how long")
        flags = self._flags() if function == "DECLARE" else ()
        cursor.expect(")", fix=f"Close {function}.")
        if function == "LMERGE":
            return self._merged(tuple(streams), spot)
        return Applied(
            function, tuple(streams), count, length, flags, cursor.since(spot), self._alias()
        )

    def _flags(self) -> tuple[tuple[Name, bool], ...]:
        """DECLARE(stream, keyed, NOT ordered)."""
        flags = []
        while self.cursor.accept(","):
            true = not self.cursor.accept("NOT")
            flags.append((self.cursor.name("a property of streams"), true))
        return tuple(flags)

    def _merged(self, streams: tuple[Relation, ...], spot: Spot) -> Merged:
        """LMERGE(a, b) [VARIANT 'R3'] [INSERTS …] [ADJUSTS …] [LAG …] [WITHOUT FEEDBACK]."""
        cursor, variant, feedback = self.cursor, None, True
        policy: dict[str, Any] = {}
        while True:
            if cursor.accept("VARIANT"):
                variant = cursor.string("a variant")
            elif cursor.accept("INSERTS"):
                policy["inserts"] = self._inserts()
            elif cursor.accept("ADJUSTS"):
                policy["adjusts"] = cursor.name("stable, every or leader").text.lower()
            elif cursor.accept("LAG"):
                policy["stable_lag"] = cursor.length("how far behind")
            elif cursor.accept("WITHOUT", "FEEDBACK"):
                feedback = False
            else:
                break
        told = cursor.since(spot)
        with told.blamed():
            chosen = MergePolicy(**policy)
        return Merged(streams, variant, chosen, feedback, told, self._alias())

    def _inserts(self) -> str | float:
        token = self.cursor.token()
        if token is not None and token.token_type is TokenType.NUMBER:
            return self.cursor.number("a quorum")
        if token is not None and token.token_type is TokenType.STRING:
            return self.cursor.string("a policy")
        return self.cursor.name("first, leader, 'half-frozen' or a quorum").text.lower()

    def _imputed(self, stream: Relation, spot: Spot) -> Imputed:
        cursor = self.cursor
        cursor.expect("IMPUTE")
        fills = cursor.names("an attribute to fill")
        cursor.expect("FROM", fix="Name the archive: FROM 'speeds.db'.")
        archive = cursor.string("the archive's path or address")
        cursor.expect("USING", fix="Say what is asked: USING 'select … = :attribute'.")
        query = cursor.string("a query")
        batch = cursor.whole("how many at once") if cursor.accept("BATCH") else 1
        budget = cursor.length("how long in a batch") if cursor.accept("BUDGET") else None
        overwrite = cursor.accept("OVERWRITE")
        return Imputed(
            stream, tuple(fills), archive, query, batch, budget, overwrite,
            cursor.since(spot), self._alias(),
        )  # fmt: skip
