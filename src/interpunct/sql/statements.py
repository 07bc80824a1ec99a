"""Reading statements: streams with their time, views, sinks.

CREATE STREAM vehicles (segment bigint, ts timestamp, speed double)
  TIMESTAMP BY ts WITHIN INTERVAL 30 SECONDS;      -- external time, bounds (t = 0, δ = 30 s)
CREATE STREAM clicks (page string) TIMESTAMP BY at INTERNAL;
INSERT INTO fast SELECT * FROM vehicles WHERE speed > 60;
"""

from __future__ import annotations

from sqlglot.tokenizer_core import TokenType

from interpunct.progress.adaptive import Adaptive, adaptive
from interpunct.progress.timestamps import (
    UNSAID,
    Bounds,
    Ets,
    TimeSpec,
    external,
    internal,
    latent,
)
from interpunct.sql.errors import Spot
from interpunct.sql.grammar import Declared, Defined, Delivered, Statement
from interpunct.sql.queries import QueryReader
from interpunct.sql.tokens import Cursor, Name

RESULT = "result"  # the sink of a query that names none
_STATEMENTS = "CREATE STREAM, CREATE VIEW, INSERT INTO, SELECT or EXPLAIN"
_END = "';' or the end of the statement"


def read(text: str) -> list[Statement]:
    """The statements of a text, in their order."""
    return StatementReader(Cursor(text)).statements()


class StatementReader:
    """One method for each statement; each leaves the cursor behind what it has read."""

    def __init__(self, cursor: Cursor) -> None:
        self.cursor = cursor
        self.queries = QueryReader(cursor)

    def statements(self) -> list[Statement]:
        found: list[Statement] = []
        while not self.cursor.done:
            if self.cursor.accept(";"):
                continue
            found.append(self._statement())
            if not self.cursor.done and not self.cursor.accept(";"):
                self.queries.refuse()
                self.cursor.fail(_END, "Separate statements by ';'.", whole=True)
        if not found:
            self.cursor.fail(_STATEMENTS, "Write a statement.")
        return found

    def _statement(self) -> Statement:
        cursor = self.cursor
        if cursor.accept("CREATE", "STREAM"):
            return self._stream()
        if cursor.accept("CREATE", "VIEW"):
            name = cursor.name("the name of a view")
            cursor.expect("AS")
            return Defined(name, self.queries.query())
        if cursor.accept("CREATE"):
            cursor.fail("STREAM or VIEW", "Streams enter a flow, views name parts of it.")
        explained = cursor.accept("EXPLAIN")
        start = cursor.spot
        if cursor.accept("INSERT"):
            cursor.expect("INTO", fix="Write INSERT INTO sink SELECT …")
            sink = cursor.name("the name of a sink")
            return Delivered(sink, self.queries.query(), explained)
        if not self.queries.begins():
            cursor.fail(_STATEMENTS, "Begin with one of these.")
        query = self.queries.query()
        return Delivered(Name(RESULT, start), query, explained)

    # CREATE STREAM ---------------------------------------------------------------------------

    def _stream(self) -> Declared:
        cursor = self.cursor
        name = cursor.name("the name of a stream")
        attributes = self._attributes()
        start = cursor.spot
        if not cursor.accept("TIMESTAMP"):
            return Declared(name, attributes, latent(), start)
        cursor.expect("BY", fix="Write TIMESTAMP BY and the attribute that carries time.")
        attribute = cursor.name("the attribute that carries time")
        with start.blamed():
            time = self._time(attribute.text)
        return Declared(name, attributes, time, attribute.spot)

    def _attributes(self) -> tuple[Spot, ...]:
        """Each attribute with its type; commas in array<…> and decimal(…) belong to a type."""
        cursor, found = self.cursor, list[Spot]()
        cursor.expect("(", fix="Give the attributes: (segment bigint, ts timestamp).")
        while True:
            start, depth = cursor.spot, 0
            while (token := cursor.token()) is not None and (
                depth > 0 or token.token_type not in (TokenType.COMMA, TokenType.R_PAREN)
            ):
                depth += token.text.count("<") + token.text.count("(")
                depth -= token.text.count(">") + token.text.count(")")
                cursor.take()
            if cursor.spot.start == start.start:
                cursor.fail("an attribute and its type", "Write segment bigint, for example.")
            found.append(cursor.since(start))
            if not cursor.accept(","):
                cursor.expect(")", fix="Close the list of attributes.")
                return tuple(found)

    def _time(self, attribute: str) -> TimeSpec:
        """What follows TIMESTAMP BY; the order of the clauses is free."""
        cursor = self.cursor
        bounds: Bounds | Adaptive | None = None
        ordered = inside = False
        ets, future = Ets(), None
        while True:
            if cursor.accept("INTERNAL"):
                inside = True
            elif cursor.accept("ORDERED"):
                ordered = True
            elif cursor.accept("WITHIN"):
                skew = cursor.length("how far behind")
                delay = cursor.length("how long to wait") if cursor.accept("DELAY") else 0
                bounds = Bounds(delay, skew)
            elif cursor.accept("ADAPTIVE"):
                bounds = self._adaptive()
            elif cursor.accept("FUTURE"):
                future = cursor.length("how far ahead of the clock")
            elif cursor.accept("ETS"):
                ets = self._ets()
            else:
                break
        if not inside:
            return external(attribute, bounds, ets, ordered=ordered, future=future)
        if ordered or bounds is not None or future is not None:
            cursor.fail(
                "INTERNAL without ORDERED, WITHIN, ADAPTIVE or FUTURE",
                "The system's own times are in order: drop the rest.",
            )
        return internal(attribute, ets)

    def _adaptive(self) -> Adaptive:
        """ADAPTIVE [COMPLETENESS 0.99] [METHOD maximum] [WINDOW 2000] [ALPHA …] [SAFETY …]."""
        cursor = self.cursor
        completeness, method, window = UNSAID.completeness, UNSAID.method, None
        alpha, warm_up, safety = UNSAID.alpha, UNSAID.warm_up, UNSAID.safety
        while True:
            if cursor.accept("COMPLETENESS"):
                completeness = cursor.number("such as 0.999")
            elif cursor.accept("METHOD"):
                method = cursor.name("confidence, adaptive or maximum").text
            elif cursor.accept("WINDOW"):
                window = self._window()
            elif cursor.accept("ALPHA"):
                alpha = cursor.number("from 0 to 1")
            elif cursor.accept("WARM", "UP"):
                warm_up = cursor.number("of at least 0")
            elif cursor.accept("SAFETY"):
                safety = cursor.number("of at least 1")
            else:
                break
        return adaptive(
            completeness, method=method, window=window,
            alpha=alpha, warm_up=warm_up, safety=safety,
        )  # fmt: skip

    def _window(self) -> int | str:
        """A number of tuples, or a length of the clock's time."""
        if self.cursor.sees("INTERVAL"):
            return f"{self.cursor.length('what is remembered')} us"
        return self.cursor.whole("how many tuples are remembered")

    def _ets(self) -> Ets:
        cursor = self.cursor
        if cursor.accept("EVERY"):
            return Ets("periodic", cursor.length("how often"))
        if cursor.accept("ON", "DEMAND"):
            return Ets("on-demand")
        said = cursor.word()
        if said not in ("NEVER", "PROVEN"):
            cursor.fail(
                "NEVER, ON DEMAND, PROVEN or EVERY INTERVAL …", "Say when heartbeats are made."
            )
        cursor.take()
        return Ets(said.lower())
