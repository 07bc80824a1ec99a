"""Spark's tokens, and a cursor over them that knows words, names, lengths of time, expressions.

    SELECT speed * 1.609 AS kmh FROM cars
           ╰── Piece ──╯    ╰Name╯   ╰Name╯

Clauses are read word by word, so that an error stands at the word that is wrong. Expressions are
cut out whole and left to sqlglot; what they mean is decided by `model.expression`, as in Python.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, NoReturn

import sqlglot
from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from interpunct.model.dialect import StreamSql
from interpunct.model.durations import Bare, duration
from interpunct.model.errors import ExpressionError
from interpunct.model.nearest import advice, listed, nearest
from interpunct.sql.errors import Spot, SqlError

_WORD = re.compile(r"[^\W\d]\w*\Z")
_CALENDAR = ("MONTH", "QUARTER", "YEAR")  # read as units, to be refused as such
_UNITS = ("MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK")
_LENGTHS = "Write INTERVAL 20 SECONDS or INTERVAL '1h 30m'."
_OPERATORS = ("AND", "BETWEEN", "LIKE")  # that may be misspelt in an expression
_OPENERS = re.compile(r"['\"`]|/\*")
# Words that begin or end a clause: a name like one of them is written in backticks.
_RESERVED = (
    "SELECT FROM WHERE GROUP HAVING UNION ALL JOIN LEFT RIGHT FULL INNER CROSS OUTER ON USING "
    "WITHIN WITH AS AND OR NOT IN IS NULL BETWEEN CASE WHEN THEN ELSE END INTERVAL ORDER LIMIT "
    "IMPUTE THRIFTY IMPATIENT CREATE INSERT INTO EXPLAIN BY DISTINCT LIKE TRUE FALSE LATERAL "
    "INTERSECT EXCEPT QUALIFY"
)
RESERVED = frozenset(_RESERVED.split())


class Statements(StreamSql):
    """The dialect, in which EXPLAIN does not swallow what follows it as one text."""

    class Tokenizer(StreamSql.Tokenizer):
        COMMANDS: ClassVar[set[TokenType]] = set()


@dataclass(frozen=True)
class Name:
    """A name, and where it stands."""

    text: str
    spot: Spot


@dataclass(frozen=True)
class Piece:
    """An expression: its tokens, and the tree that sqlglot makes of them."""

    spot: Spot
    tokens: tuple[Token, ...]
    tree: exp.Expr

    def written(self, instead: dict[int, tuple[int, str]] | None = None) -> str:
        """Its text on one line; `instead` has, by where they start, other words up to an end."""
        text, done, parts = self.spot.text, self.spot.start, list[str]()
        for token in self.tokens:
            if token.start < done:
                continue  # replaced, or the second token made of the same characters
            gap = " " if token.start > done else ""
            end, said = (instead or {}).get(token.start, (token.end + 1, None))
            parts += [gap, text[token.start : end] if said is None else said]
            done = end
        return "".join(parts)


@lru_cache(maxsize=4096)
def quoted(name: str) -> str:
    """A name as SQL reads it back: in backticks if it would be read as something else."""
    if _WORD.match(name) and name.isascii() and name.upper() not in RESERVED:
        tree = _attempted(name)
        if isinstance(tree, exp.Column) and tree.name == name:
            return name
    return "`" + name.replace("`", "``") + "`"


def _attempted(text: str) -> exp.Expr | None:
    try:
        return sqlglot.parse_one(text, read=StreamSql, into=exp.Condition)
    except sqlglot.errors.ParseError:
        return None


class Cursor:
    """Where reading stands in a text of statements."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._tokens = _tokens(text)
        self._at = 0
        self._tried: dict[int, dict[str, str]] = {}  # by place: a word looked for, as it is shown
        self._bare: int | None = None  # where a name stands that could also be a misspelt word

    # Looking ---------------------------------------------------------------------------------

    def token(self, ahead: int = 0) -> Token | None:
        place = self._at + ahead
        return self._tokens[place] if place < len(self._tokens) else None

    def word(self, ahead: int = 0) -> str:
        """The next token in capitals; nothing for strings, quoted names and the end."""
        token = self.token(ahead)
        if token is None or token.token_type in (TokenType.STRING, TokenType.IDENTIFIER):
            return ""
        return " ".join(token.text.upper().split())

    def sees(self, *words: str) -> bool:
        for ahead, word in enumerate(words):
            if self.word(ahead) != word:
                self.consider(word, shown=" ".join(words[ahead:]), ahead=ahead)
                return False
        return True

    def consider(self, *words: str, shown: str = "", ahead: int = 0) -> None:
        """Remember that these words may stand here, for an error if nothing that may does."""
        tried = self._tried.setdefault(self._at + ahead, {})
        tried.update((word, shown or word) for word in words if word[0].isalpha())

    @property
    def done(self) -> bool:
        return self.token() is None

    @property
    def spot(self) -> Spot:
        """The next token, or the end of the text."""
        token = self.token()
        if token is not None:
            return _spot(self.text, token)
        end = len(self.text.rstrip())
        return Spot(self.text, end, end + 1)

    def since(self, start: Spot) -> Spot:
        """From there up to what was read last."""
        return start.to(_spot(self.text, self._tokens[max(self._at - 1, 0)]))

    def closing(self, ahead: int) -> int:
        """Which token closes the parenthesis that the token so far ahead opens."""
        depth = 0
        while (token := self.token(ahead)) is not None:
            depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(token.token_type, 0)
            if depth == 0:
                return ahead
            ahead += 1
        return ahead

    # Taking ----------------------------------------------------------------------------------

    def take(self) -> Token:
        token = self.token()
        if token is None:
            self.fail("more", "Finish the statement.")
        self._at += 1
        return token

    def accept(self, *words: str) -> bool:
        """Go past these words if they come next."""
        if not self.sees(*words):
            return False
        self._at += len(words)
        return True

    def expect(self, *words: str, fix: str = "") -> None:
        for word in words:
            if not self.accept(word):
                self.fail(word, fix or f"Write {' '.join(words)} here.")

    def fail(self, expected: str, fix: str, *, whole: bool = False) -> NoReturn:
        """An error at the next token, or at the name before it if that is a misspelt word; it
        tells all that may stand here if a word is near, or if the `whole` shall be told."""
        tried = self._tried.get(self._at, {})
        if self._bare == self._at - 1 and nearest(self.word(-1), tried) is not None:
            self._at -= 1
        if whole or nearest(self.word(), tried) is not None:
            expected = listed(tried.values(), expected)
        self.refuse(expected, advice(self.word(), tried, fix))

    def refuse(self, expected: str, fix: str) -> NoReturn:
        """An error at the next token, which is taken for what it is."""
        token = self.token()
        got = "the end" if token is None else repr(self.text[token.start : token.end + 1])
        raise self.spot.error(expected, got, fix)

    def name(self, what: str) -> Name:
        """A name that is no reserved word, or anything in backticks."""
        token = self.token()
        if token is not None and token.token_type is TokenType.IDENTIFIER:
            return Name(self.take().text, _spot(self.text, token))
        if token is None or not _WORD.match(self.word()) or self.word() in RESERVED:
            self.fail(what, "Put a name here; one that is a word of SQL goes in `backticks`.")
        return Name(self.take().text, _spot(self.text, token))

    def bare_name(self, what: str) -> Name:
        """A name where a word of SQL may stand as well."""
        self._bare = self._at
        return self.name(what)

    def names(self, what: str) -> list[Name]:
        found = [self.name(what)]
        while self.accept(","):
            found.append(self.name(what))
        return found

    def string(self, what: str) -> str:
        token = self.token()
        if token is None or token.token_type is not TokenType.STRING:
            self.fail(f"{what} in quotes", "Write it as '…'; a quote inside is \\'.")
        return self.take().text

    def number(self, what: str) -> float:
        token = self.token()
        if token is None or token.token_type is not TokenType.NUMBER:
            self.fail(f"a number, {what}", "Write it in digits.")
        return float(self.take().text)

    def whole(self, what: str) -> int:
        token = self.token()
        if token is None or not token.text.isdigit():
            self.fail(f"a whole number, {what}", "Write it in digits.")
        return int(self.take().text)

    def length(self, what: str) -> int:
        """How long, in ticks: INTERVAL 20 SECONDS, INTERVAL '1h 30m', 1 MINUTE, or 20 alone where
        time is an integer."""
        start, said = self.spot, self.accept("INTERVAL")
        terms: list[str] = []
        while (token := self.token()) is not None:
            if token.token_type is TokenType.STRING:
                terms.append(self.take().text)
            elif token.token_type is TokenType.NUMBER:
                terms.append(self._digits())
            else:
                break
            if _is_unit(self.word()) or self.word().rstrip("S") in _CALENDAR:
                terms.append(self.take().text)
            elif terms[-1].replace(".", "", 1).isdigit():
                self._unit_missing(said)
        if not terms:
            self.fail(f"{what}: a length of time", "Write INTERVAL 20 SECONDS.")
        text = " ".join(terms)
        with self.since(start).blamed():
            return Bare(text) if text.isdigit() and not said else duration(text, what)

    def _unit_missing(self, needed: bool) -> None:
        """A number has no unit: an error if it needs one, and else what an error may tell."""
        for unit in _UNITS:
            self.consider(f"{unit}S", unit, shown=f"{unit}S")
        if needed:
            self.fail(f"a unit of time: {', '.join(f'{u}S' for u in _UNITS)}", _LENGTHS)

    def _digits(self) -> str:
        """A number with the letter that may hang on it, which Spark takes for a type: 20s."""
        token = self.take()
        while (more := self.token()) is not None and more.start == token.start:
            self.take()
        return self.text[token.start : token.end + 1]

    def piece(self, *stops: str) -> Piece:
        """An expression, up to one of these words outside parentheses, or a comma."""
        first, depth = self._at, 0
        while (token := self.token()) is not None:
            kind = token.token_type
            if depth == 0 and (kind is TokenType.R_PAREN or self._stops_at(stops)):
                break
            depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(kind, 0)
            self._at += 1
        if self._at == first:
            self.fail("an expression", "Write an attribute, or a computation over attributes.")
        return parsed(self.text, tuple(self._tokens[first : self._at]), stops)

    def item(self, *stops: str) -> tuple[Piece, Name | None]:
        """An expression and the name it is given, with AS or without."""
        first = self._at
        try:
            piece = self.piece("AS", *stops)
        except SqlError as error:
            last = self._tokens[self._at - 1]
            if self._at - first < 2 or last.token_type not in (TokenType.VAR, TokenType.IDENTIFIER):
                raise
            try:
                piece = parsed(self.text, tuple(self._tokens[first : self._at - 1]))
            except SqlError:
                raise error from None
            return piece, Name(last.text, _spot(self.text, last))
        return piece, self.name("a name for the column") if self.accept("AS") else None

    def _stops_at(self, stops: tuple[str, ...]) -> bool:
        word = self.word()
        if word in (",", ";"):
            return True
        if word == "FROM" and self.word(-1) == "DISTINCT":  # a IS DISTINCT FROM b
            return False
        return word in stops


def parsed(text: str, tokens: tuple[Token, ...], stops: tuple[str, ...] = ()) -> Piece:
    """The tree, read from the text with all else blank, so that its places are the text's; one of
    the words that end it may be misspelt in it."""
    spot = Spot(text, tokens[0].start, tokens[-1].end + 1)
    before = "".join("\n" if c == "\n" else " " for c in text[: spot.start])
    try:
        tree = sqlglot.parse_one(
            before + text[spot.start : spot.end], read=StreamSql, into=exp.Condition
        )
    except sqlglot.errors.ParseError as error:
        raise _unreadable(spot, tokens, error, stops) from None
    return Piece(spot, tokens, tree)


def _unreadable(
    spot: Spot,
    tokens: tuple[Token, ...],
    error: sqlglot.errors.ParseError,
    stops: tuple[str, ...],
) -> SqlError:
    found = error.errors[0] if error.errors else {}
    place = (found.get("line"), found.get("col"))
    token = next((t for t in tokens if (t.line, t.col) == place), tokens[-1])
    said = str(found.get("description", ""))
    missing = re.search(r"missing for <class '[\w.]*\.(\w+)'>|Expect\w+ (\S+)", said)
    at = _spot(spot.text, token)
    if missing is not None:
        what = missing[2] or f"another operand of {missing[1].upper()}"
        return at.error(f"{what} after this", "an unfinished expression", "Complete it.")
    fix = advice(token.text, (*stops, *_OPERATORS), f"The expression is {spot.said!r}.")
    return at.error("an operator, or the end of the expression", repr(at.said), fix)


def _spot(text: str, token: Token) -> Spot:
    return Spot(text, token.start, token.end + 1)


def _is_unit(word: str) -> bool:
    try:
        return bool(duration(f"1 {word}", "unit"))
    except ExpressionError:
        return False


def _tokens(text: str) -> list[Token]:
    try:
        return sqlglot.tokenize(text, read=Statements)
    except sqlglot.errors.TokenError:
        spot = _unclosed(text)
        raise spot.error("a closing quote or comment end", "none", "Close it.") from None


def _unclosed(text: str) -> Spot:
    """The last opening quote before which everything can be read."""
    for found in reversed(list(_OPENERS.finditer(text))):
        try:
            sqlglot.tokenize(text[: found.start()], read=Statements)
        except sqlglot.errors.TokenError:
            continue
        return Spot(text, found.start(), found.end())
    return Spot(text, 0, 1)
