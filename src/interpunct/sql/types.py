"""Types of attributes in CREATE STREAM: a word that is none is pointed at."""

from __future__ import annotations

from interpunct.model.errors import SchemaError
from interpunct.model.schema import Schema
from interpunct.model.type_words import unknown_type
from interpunct.sql.errors import Spot


def declared(attribute: Spot) -> Schema:
    """The schema of one attribute, written with its type."""
    try:
        return Schema.of(attribute.said)
    except SchemaError as error:
        word = unknown_type(attribute.said)
        if word is None:
            raise
        start = attribute.start + word.start
        spot = Spot(attribute.text, start, start + len(word.text))
        raise spot.error(error.expected, error.got, error.fix) from None
