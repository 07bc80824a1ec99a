"""Types of attributes in CREATE STREAM: a word that is none is pointed at."""

from __future__ import annotations

import sqlglot
from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.tokenizer_core import Token, TokenType

from interpunct.model.errors import SchemaError
from interpunct.model.schema import TYPES, Schema
from interpunct.sql.errors import Spot
from interpunct.sql.nearest import advice

_BEHIND_TYPES = (TokenType.LT, TokenType.GT, TokenType.COMMA, TokenType.L_PAREN)


def declared(attribute: Spot) -> Schema:
    """The schema of one attribute, written with its type."""
    try:
        return Schema.of(attribute.said)
    except SchemaError:
        _check_types(attribute)
        raise


def _check_types(attribute: Spot) -> None:
    """An error at the first word of an attribute that stands for a type and is none."""
    tokens = sqlglot.tokenize(attribute.said, read=Spark)
    for at, token in enumerate(tokens):
        if token.token_type is TokenType.VAR and _stands_for_type(tokens, at):
            start = attribute.start + token.start
            spot = Spot(attribute.text, start, start + len(token.text))
            _check(spot)


def _stands_for_type(tokens: list[Token], at: int) -> bool:
    """Whether a type is due: behind the attribute's name, or between < and > at the end of a
    field, whose own name has a type behind it."""
    inside = any(token.token_type is TokenType.LT for token in tokens[:at])
    behind = tokens[at + 1].token_type if at + 1 < len(tokens) else None
    return at == 1 or (inside and behind in _BEHIND_TYPES)


def _check(spot: Spot) -> None:
    try:
        exp.DataType.build(spot.said, dialect="spark")
    except sqlglot.errors.ParseError as error:
        raise spot.error(
            f"one of the types {', '.join(TYPES)}",
            repr(spot.said),
            advice(spot.said, TYPES, "Write one of them."),
        ) from error
