"""Rows of Python as a frame; of those that do not fit, which value of which row it is.

>>> framed([(7, 31.0), (7, "fast")], Schema.of("segment bigint, speed double"), "cars")
Traceback (most recent call last):
interpunct.model.errors.PageError: cars, row 1: expected double in 'speed', got 'fast' (str). \
Correct the value, or declare the attribute with the type it has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from interpunct.model.errors import PageError, SchemaError
from interpunct.model.schema import Attribute, Schema

Row = Mapping[str, Any] | Sequence[Any]
_UNFIT = (pl.exceptions.PolarsError, TypeError, ValueError, OverflowError)
_FIX = "Correct the value, or declare the attribute with the type it has."


def framed(rows: Sequence[Row], schema: Schema, where: str, first: int = 0) -> pl.DataFrame:
    """The rows, mappings by name or sequences in the order of the schema, which errors count from
    `first`. What a mapping does not name is null, unless it seems misspelt."""
    numbered = _Numbered(schema, where, first)
    if rows and isinstance(rows[0], Mapping):
        numbered.refuse_misspelt(rows)
    try:
        frame = _framed(rows, schema)
    except _UNFIT as error:
        for found in numbered.misfits(rows):
            raise found from None
        reason = str(error).splitlines()[0]
        raise PageError(where, f"rows of ({schema.ddl})", reason, _FIX) from None
    numbered.refuse_fractions(rows)
    return frame


@dataclass(frozen=True)
class _Numbered:
    """Looks at rows one by one: where something is wrong, or would be lost."""

    schema: Schema
    where: str
    first: int

    def refuse_misspelt(self, rows: Iterable[Row]) -> None:
        """Names that are not there, beside others that are not known."""
        names = set(self.schema.names)
        if set[Any]().union(*rows) <= names:
            return
        for number, row in enumerate(rows):
            missing = [name for name in self.schema.names if name not in row]
            if missing and not names.issuperset(row):
                raise SchemaError.missing_column(self._row(number), missing[0], map(str, row))

    def refuse_fractions(self, rows: Sequence[Row]) -> None:
        """Polars would cut them off."""
        for place, attribute in enumerate(self.schema.attributes):
            values = _values(rows, place, attribute) if attribute.dtype.is_integer() else []
            if float in set(map(type, values)):
                for number, value in enumerate(values):
                    if type(value) is float and not value.is_integer():
                        raise self._misfit(number, attribute, value)

    def misfits(self, rows: Iterable[Row]) -> Iterator[PageError]:
        """What does not fit, in the order of the rows."""
        ddl, width = self.schema.ddl, len(self.schema.attributes)
        for number, row in enumerate(rows):
            if isinstance(row, str | bytes) or not isinstance(row, Mapping | Sequence):
                fix = "Give each row as a tuple, or as a dict by name."
                yield PageError(self._row(number), f"a row of ({ddl})", _shown(row), fix)
            elif isinstance(row, Sequence) and len(row) != width:
                got = f"{len(row)}: {row!r}"
                fix = "Give every attribute, None where there is no value."
                yield PageError(self._row(number), f"{width} values, ({ddl})", got, fix)
            else:
                for place, attribute in enumerate(self.schema.attributes):
                    (value,) = _values([row], place, attribute)
                    try:
                        _framed([(value,)], Schema((attribute,)))
                    except _UNFIT:
                        yield self._misfit(number, attribute, value)

    def _misfit(self, number: int, attribute: Attribute, value: object) -> PageError:
        expected = f"{attribute.type} in {attribute.name!r}"
        dated = isinstance(value, str) and attribute.dtype.is_temporal()
        fix = f"Give a value of datetime: datetime.fromisoformat({value!r})." if dated else _FIX
        return PageError(self._row(number), expected, _shown(value), fix)

    def _row(self, number: int) -> str:
        return f"{self.where}, row {self.first + number}"


def _shown(value: object) -> str:
    return f"{value!r} ({type(value).__name__})"


def _framed(rows: Sequence[Row], schema: Schema) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=schema.polars, orient="row", strict=True)


def _values(rows: Sequence[Any], place: int, attribute: Attribute) -> list[Any]:
    """What the rows, all of the kind of the first, have for an attribute."""
    if rows and isinstance(rows[0], Mapping):
        return [row.get(attribute.name) for row in rows]
    return [row[place] for row in rows] if rows and isinstance(rows[0], Sequence) else []
