"""The papers' notation for patterns, both ways.

By position, one entry per attribute, ``[*, 3, ≤ '2008-12-08 09:00']``; or by name, where an
attribute that is not named is ``*``: ``[segment=3, ts≤'2008-12-08 09:00']``. An entry is a value,
a comparison, a set ``{1, 2}`` or ``∉ {1, 2}``, a range ``[5, 10)`` or ``[, 5567]``, or several of
these joined by ``∧``. ASCII spellings (``<=``, ``!=``, ``in``, ``not in``, ``and``) are read too.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any, NamedTuple, NoReturn

import polars as pl

from interpunct.model.comparisons import COMPARISONS, comparison
from interpunct.model.condition import ANY, NOT_NULL, Condition, NoneOf, OneOf, Range, Wildcard
from interpunct.model.errors import PatternError, SchemaError
from interpunct.model.schema import Attribute, Schema, coerce
from interpunct.model.values import in_order, quoted

_TOKEN = re.compile(
    r"""(?P<space>\s+)
    |(?P<binary>[xX]'[0-9a-fA-F]*')
    |(?P<string>'(?:[^']|'')*'|[‘’](?:[^’]|’’)*’)
    |(?P<quoted>`(?:[^`]|``)+`)
    |(?P<number>[-+]?(?:inf(?:inity)?\b|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?))
    |(?P<word>[^\W\d]\w*)
    |(?P<op><=|>=|!=|<>|==|[=<>≤≥≠∈∉∧&])
    |(?P<mark>[][(){},*])""",
    re.VERBOSE,
)
_WORDS = {"null", "true", "false", "nan", "inf", "infinity", "in", "not", "and"}
_CLOCK = re.compile(r"(\S+)[ T](\d{1,2}):(\d{2})(?::(\d{2}(?:\.\d+)?))?\s*([AaPp][Mm])?")


class _Token(NamedTuple):
    kind: str
    text: str
    at: int


def parse(text: str, schema: Schema, start: int = 0) -> dict[str, Condition]:
    """The conditions of a pattern text from this character on, by attribute name."""
    return _Parser(text, schema, start).pattern()


class _Parser:
    def __init__(self, text: str, schema: Schema, start: int) -> None:
        self.text, self.schema, self.next = text, schema, 0
        self.tokens = self._tokens(start)

    def _tokens(self, at: int) -> list[_Token]:
        tokens = []
        while at < len(self.text):
            found = _TOKEN.match(self.text, at)
            if found is None:
                rest = self.text[at:]
                unclosed = rest[0] in "'‘’`"
                self._fail("a closing quote" if unclosed else "a pattern", repr(rest[:12]), at)
            kind, word = str(found.lastgroup), found.group()
            if kind == "word" and word.lower() in _WORDS:
                kind, word = "keyword", word.lower()
            if kind != "space":
                tokens.append(_Token(kind, word, at))
            at = found.end()
        return [*tokens, _Token("end", "", len(self.text))]

    def _fail(self, expected: str, got: str, at: int) -> NoReturn:
        caret = f"\n    {self.text}\n    {' ' * at}^"
        raise PatternError(f"pattern text, column {at + 1}", expected, got, f"It stands at:{caret}")

    @property
    def token(self) -> _Token:
        return self.tokens[self.next]

    def _unexpected(self, expected: str) -> NoReturn:
        got = repr(self.token.text) if self.token.kind != "end" else "the end of the text"
        self._fail(expected, got, self.token.at)

    def _take(self, *texts: str) -> str | None:
        """The next token, if it is an operator, mark or keyword with one of these texts."""
        token = self.token
        if token.kind in ("op", "mark", "keyword") and token.text in texts:
            self.next += 1
            return token.text
        return None

    def _expect(self, *texts: str) -> str:
        return self._take(*texts) or self._unexpected(" or ".join(map(repr, texts)))

    def pattern(self) -> dict[str, Condition]:
        self._expect("[")
        if self._take("]"):
            conditions: dict[str, Condition] = {}
        elif self.token.kind in ("word", "quoted"):
            conditions = self._by_name()
        else:
            conditions = self._by_position()
        if self.token.kind != "end":
            self._unexpected("nothing after the pattern")
        return conditions

    def _by_position(self) -> dict[str, Condition]:
        conditions = {}
        for place, attribute in enumerate(self.schema.attributes):
            if place and not self._take(","):
                self._unexpected(
                    f"',' and {len(self.schema.names)} entries, one for each attribute"
                )
            conditions[attribute.name] = self._condition(attribute)
        if not self._take("]"):
            self._unexpected(f"']' after {len(self.schema.names)} entries, one for each attribute")
        return conditions

    def _by_name(self) -> dict[str, Condition]:
        conditions: dict[str, Condition] = {}
        while True:
            token = self.token
            if token.kind not in ("word", "quoted"):
                self._unexpected("an attribute name")
            self.next += 1
            quote = token.kind == "quoted"
            name = token.text[1:-1].replace("``", "`") if quote else token.text
            if name not in self.schema:
                known = ", ".join(self.schema.names)
                self._fail(f"one of the attributes {known}", repr(name), token.at)
            if self.token.text not in (*COMPARISONS, "∈", "∉", "in", "not"):
                self._unexpected(f"an operator after {name!r}")
            condition = self._condition(self.schema[name])
            conditions[name] = conditions.get(name, ANY).intersect(condition)
            if self._expect(",", "]") == "]":
                return conditions

    def _condition(self, attribute: Attribute) -> Condition:
        condition = self._term(attribute)
        while self._take("∧", "&", "and"):
            condition = condition.intersect(self._term(attribute))
        return condition

    def _term(self, attribute: Attribute) -> Condition:
        if op := self._take(*COMPARISONS):
            if op in ("=", "==") and self._take("*"):
                return ANY
            at = self.token.at
            value = self._value(attribute)
            if value is None and op not in ("=", "==", "≠", "!=", "<>"):
                self._fail(f"a value after {op}, since nothing is above or below null", "null", at)
            return comparison(op, value)
        if self._take("not"):
            self._expect("in")
            return NoneOf(self._set(attribute)).tidy()
        if self._take("∉"):
            return NoneOf(self._set(attribute)).tidy()
        if self._take("∈", "in") and self.token.text not in ("{", "[", "("):
            self._unexpected("a set {…} or a range [low, high]")
        if self._take("*"):
            return ANY
        if self.token.kind == "mark" and self.token.text == "{":
            return OneOf(self._set(attribute))
        if bracket := self._take("[", "("):
            return self._range(attribute, bracket == "[")
        return OneOf((self._value(attribute),))

    def _set(self, attribute: Attribute) -> list[Any]:
        self._expect("{")
        values: list[Any] = []
        if self._take("}"):
            return values
        while True:
            values.append(self._value(attribute))
            if self._expect(",", "}") == "}":
                return values

    def _range(self, attribute: Attribute, low_closed: bool) -> Condition:
        low = high = None
        if not self._take(","):
            low = self._bound(attribute)
            self._expect(",")
        if self.token.text not in ("]", ")"):
            high = self._bound(attribute)
        return Range(low, low_closed, high, self._expect("]", ")") == "]").tidy()

    def _bound(self, attribute: Attribute) -> Any:
        if self.token.text == "null":
            self._unexpected("a bound, or nothing for no bound")
        return self._value(attribute)

    def _value(self, attribute: Attribute) -> Any:
        token = self.token
        value: Any
        match token.kind, token.text:
            case "number", text:
                value = _number(text, attribute.dtype)
            case "string", text:
                value = text[1:-1].replace(text[-1] * 2, text[-1])
                if isinstance(attribute.dtype, pl.Datetime):
                    value = _with_clock(value)
            case "binary", text:
                value = bytes.fromhex(text[2:-1])
            case "keyword", ("null" | "true" | "false" | "nan" | "inf" | "infinity") as word:
                value = {"null": None, "true": True, "false": False, "nan": math.nan}.get(
                    word, math.inf
                )
            case _:
                self._unexpected(f"a value for attribute {attribute.name!r}")
        try:
            value = canonical(value, attribute)
        except SchemaError:
            expected = f"{attribute.type} for attribute {attribute.name!r}"
            try:
                self._fail(expected, token.text, token.at)
            except PatternError as located:
                raise located from None
        self.next += 1
        return value


def _number(text: str, dtype: pl.DataType) -> int | float | Decimal:
    if text.lstrip("+-").isdigit():
        return int(text)
    return Decimal(text) if isinstance(dtype, pl.Decimal) else float(text)


def _with_clock(text: str) -> str:
    """A timestamp as the papers write it (``2008-12-08 9:00 AM``) in ISO form."""
    found = _CLOCK.fullmatch(text.strip())
    if found is None:
        return text
    day, hour, minute, second, half = found.groups()
    hours = int(hour)
    if half:
        if not 1 <= hours <= 12:
            return text
        hours = hours % 12 + (12 if half.lower() == "pm" else 0)
    return f"{day} {hours:02}:{minute}" + (f":{second}" if second else "")


def canonical(value: Any, attribute: Attribute) -> Any:
    """A literal as the value the attribute's column would hold, or an error naming it."""
    value = coerce(value, attribute, "pattern")
    if isinstance(value, float) and isinstance(attribute.dtype, pl.Float32):
        # A float column holds the rounded value, and Spark would compare it as a double.
        return pl.Series([value], dtype=pl.Float32).item()
    if isinstance(value, Decimal) and not value.is_finite():
        raise SchemaError.wrong_type("pattern", attribute.name, attribute.type, str(value))
    return value


def by_position(schema: Schema, conditions: Mapping[str, Condition]) -> str:
    """``[*, 3, ≤ '2008-12-08 09:00']``"""
    return "[" + ", ".join(show(conditions.get(name, ANY)) for name in schema.names) + "]"


def by_name(conditions: Mapping[str, Condition]) -> str:
    """``[segment=3, ts≤'2008-12-08 09:00']``"""
    return "[" + ", ".join(_show_named(name, c) for name, c in conditions.items()) + "]"


def show(condition: Condition) -> str:
    """One condition as an entry of a positional pattern."""
    if isinstance(condition, Wildcard):
        return "*"
    if isinstance(condition, OneOf) and len(condition.values) == 1:
        return literal(next(iter(condition.values)))
    if isinstance(condition, OneOf):
        return _show_set(condition)
    return " ∧ ".join(f"{op} {right}".lstrip() for op, right in _comparisons(condition))


def _show_named(name: str, condition: Condition) -> str:
    plain = re.fullmatch(r"[^\W\d]\w*", name) and name.lower() not in _WORDS
    name = name if plain else quoted(name)
    if isinstance(condition, OneOf):
        one = len(condition.values) == 1
        return f"{name}={show(condition)}" if one else f"{name}∈{show(condition)}"
    return ", ".join(f"{name}{op or '∈'}{right}" for op, right in _comparisons(condition))


def _comparisons(condition: Condition) -> list[tuple[str, str]]:
    """A range, with or without exceptions, as operators and right sides; a bare range has none."""
    if isinstance(condition, NoneOf):
        one = len(condition.values) == 1
        right = literal(next(iter(condition.values))) if one else _show_set(condition)
        without = [("≠" if one else "∉", right)]
        return without if condition.within == NOT_NULL else _range(condition.within) + without
    assert isinstance(condition, Range), condition
    return _range(condition)


def _range(r: Range) -> list[tuple[str, str]]:
    if r.low is None and r.high is None:
        return [("≠", "null")]
    if r.low is None:
        return [("≤" if r.high_closed else "<", literal(r.high))]
    if r.high is None:
        return [("≥" if r.low_closed else ">", literal(r.low))]
    left, right = "[" if r.low_closed else "(", "]" if r.high_closed else ")"
    return [("", f"{left}{literal(r.low)}, {literal(r.high)}{right}")]


def _show_set(condition: OneOf | NoneOf) -> str:
    null = [None] if None in condition.values else []
    return "{" + ", ".join(map(literal, [*null, *in_order(condition.values)])) + "}"


def literal(value: Any) -> str:
    """A value as the notation writes it; timestamps in UTC without saying so."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case datetime():
            short = not (value.second or value.microsecond)
            text = value.replace(tzinfo=None).isoformat(" ", "minutes" if short else "auto")
            return f"'{text}'"
        case date():
            return f"'{value.isoformat()}'"
        case bytes():
            return f"x'{value.hex()}'"
        case str():
            return "'" + value.replace("'", "''") + "'"
        case Decimal():
            return f"{value:f}"
    return repr(value)
