"""The words of DDL that stand for types, and the first of them that is none.

>>> unknown_type("k bigint, ts timestmp")
TypeWord(attribute='ts', text='timestmp', start=13)
>>> unknown_type("x array<array<inz>>").text
'inz'
>>> unknown_type("k bigint, s struct<a: int, b: string>") is None
True
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.tokenizer_core import Token, TokenType

_BEHIND_TYPES = (TokenType.LT, TokenType.GT, TokenType.COMMA, TokenType.L_PAREN)
_OPEN, _CLOSE = (TokenType.LT, TokenType.L_PAREN), (TokenType.GT, TokenType.R_PAREN)


@dataclass(frozen=True)
class TypeWord:
    """A word that stands for a type: whose, and where in the text."""

    attribute: str
    text: str
    start: int


def unknown_type(ddl: str) -> TypeWord | None:
    """The first word that stands for a type and is none, or None."""
    try:
        tokens = sqlglot.tokenize(ddl, read=Spark)
    except sqlglot.errors.TokenError:
        return None
    for column in _columns(tokens):
        for at, token in enumerate(column):
            due = token.token_type is TokenType.VAR and _stands_for_type(column, at)
            if due and not _is_type(token.text):
                return TypeWord(column[0].text, token.text, token.start)
    return None


def _is_type(text: str) -> bool:
    try:
        exp.DataType.build(text, dialect="spark")
    except sqlglot.errors.ParseError:
        return False
    return True


def _columns(tokens: list[Token]) -> Iterator[list[Token]]:
    """The tokens of each attribute: commas outside brackets part them."""
    column: list[Token] = []
    depth = 0
    for token in tokens:
        depth += (token.token_type in _OPEN) - (token.token_type in _CLOSE)
        if token.token_type is TokenType.COMMA and depth == 0:
            yield column
            column = []
        else:
            column.append(token)
    yield column


def _stands_for_type(column: list[Token], at: int) -> bool:
    """Whether a type is due: behind the attribute's name, or between < and > at the end of a
    field, whose own name has a type behind it."""
    behind = column[at + 1] if at + 1 < len(column) else None
    if at == 1:  # but in `user id int` the name has two words
        if behind is None or behind.token_type in _BEHIND_TYPES:
            return True
        return behind.token_type is not TokenType.VAR and not _is_type(behind.text)
    inside = any(token.token_type is TokenType.LT for token in column[:at])
    return inside and behind is not None and behind.token_type in _BEHIND_TYPES
