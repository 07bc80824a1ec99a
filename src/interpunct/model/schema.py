"""Schemas: named, typed attributes, one of which may carry time.

Time is compared as *ticks*: microseconds since the epoch for a timestamp attribute, the value
itself for an integer one (a sequence number is a time domain too, Heartbeats section 1).

>>> s = Schema.of("segment bigint, ts timestamp, speed double", time="ts")
>>> s.names
('segment', 'ts', 'speed')
>>> s.time_type
'timestamp'
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from functools import cached_property, lru_cache
from typing import Any

import polars as pl
import sqlglot
from sqlglot import exp

from interpunct.model.errors import SchemaError
from interpunct.model.nearest import advice
from interpunct.model.type_words import unknown_type

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_NTZ = datetime(1970, 1, 1)  # a timestamp_ntz has no zone by definition
_MICROSECOND = timedelta(microseconds=1)

# The greatest and least tick: "the end of time" and "before all time". They stay two steps inside
# 64 bits so that adding or subtracting a window to a heartbeat cannot overflow.
END_OF_TIME = 2**62
START_OF_TIME = -(2**62)
FIRST_YEAR = -62_135_596_800_000_000  # 0001-01-01, in microseconds
LAST_YEAR = 253_402_300_799_999_999  # the end of 9999-12-31


class TimeKind(Enum):
    """How a stream's tuples get their timestamps (ETS section 5)."""

    EXTERNAL = "external"  # stamped by the application that made them
    INTERNAL = "internal"  # stamped by the system when they enter it
    LATENT = "latent"  # not stamped until an operator needs it


@dataclass(frozen=True)
class Attribute:
    """One column: its name, its Spark type as DDL text, and the Polars type that carries it."""

    name: str
    type: str
    dtype: pl.DataType


@dataclass(frozen=True)
class Schema:
    """Attributes in order, the name of the time attribute (or none), and the kind of time."""

    attributes: tuple[Attribute, ...]
    time: str | None = None
    kind: TimeKind = TimeKind.EXTERNAL

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for name in self.names:
            if name in seen:
                raise SchemaError(
                    "schema", "each attribute once", f"{name!r} twice",
                    _ADDED.get(name, "Rename one of them."),
                )  # fmt: skip
            seen.add(name)
        if self.time is None:
            return
        if self.time not in seen:
            raise SchemaError.unknown_attribute("time attribute", self.time, self.names)
        dtype = self[self.time].dtype
        if not (dtype.is_integer() or isinstance(dtype, pl.Datetime)):
            raise SchemaError.wrong_type(
                "time attribute", self.time, "timestamp, timestamp_ntz or an integer type",
                self[self.time].type,
            )  # fmt: skip

    @classmethod
    def of(
        cls,
        ddl: str,
        *,
        time: str | None = None,
        kind: TimeKind = TimeKind.EXTERNAL,
        where: str = "",
    ) -> Schema:
        """The schema a Spark DDL text describes, e.g. ``"id bigint, ts timestamp"``.

        `where` is what errors call the place it stands in.
        """
        within = f"{where}, " if where else ""
        try:
            tree = sqlglot.parse_one(f"CREATE TABLE t ({ddl})", read="spark")
        except sqlglot.errors.SqlglotError as error:
            word = unknown_type(ddl)
            if word is not None:
                raise SchemaError(
                    f"{within}attribute {word.attribute!r}", f"one of the types {', '.join(TYPES)}",
                    repr(word.text), advice(word.text, TYPES, "Write one of them."),
                ) from None  # fmt: skip
            raise SchemaError(
                where or "schema", "Spark DDL such as 'id bigint, ts timestamp'", repr(ddl),
                "Names of other than letters and digits go in backticks, `user id` int; check the "
                f"types. The parser said: {str(error).partition(' Line ')[0]}",
            ) from None  # fmt: skip
        columns = tree.this.expressions if isinstance(tree.this, exp.Schema) else []
        if not columns:
            raise SchemaError(where or "schema", "at least one attribute", repr(ddl), "Name one.")
        return cls(tuple(_attribute(c, within) for c in columns), time=time, kind=kind)

    @classmethod
    def of_frame(
        cls, frame: pl.DataFrame, *, time: str | None = None, kind: TimeKind = TimeKind.EXTERNAL
    ) -> Schema:
        """The schema a Polars frame has."""
        attributes = tuple(Attribute(n, ddl_type(t), t) for n, t in frame.schema.items())
        return cls(attributes, time=time, kind=kind)

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(a.name for a in self.attributes)

    @cached_property
    def _by_name(self) -> dict[str, Attribute]:
        return {a.name: a for a in self.attributes}

    @cached_property
    def polars(self) -> dict[str, pl.DataType]:
        return {a.name: a.dtype for a in self.attributes}

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    def __getitem__(self, name: str) -> Attribute:
        try:
            return self._by_name[name]
        except KeyError:
            raise SchemaError.unknown_attribute("schema", name, self.names) from None

    @property
    def ddl(self) -> str:
        return ", ".join(f"{_quoted(a.name)} {a.type}" for a in self.attributes)

    @property
    def time_type(self) -> str | None:
        return None if self.time is None else self[self.time].type

    @property
    def ordered_by(self) -> str:
        """The time attribute; asking for it on a stream without one is an error."""
        if self.time is None:
            raise SchemaError(
                "schema", "a time attribute", f"none among {', '.join(self.names)}",
                "Declare one with time=external(...) or time=internal(...).",
            )  # fmt: skip
        return self.time

    def with_time(self, time: str | None, kind: TimeKind | None = None) -> Schema:
        return replace(self, time=time, kind=self.kind if kind is None else kind)

    @cached_property
    def _empty(self) -> pl.DataFrame:
        return pl.DataFrame(schema=self.polars)

    def empty(self) -> pl.DataFrame:
        """A frame without tuples; one per schema, since frames are never changed in place."""
        return self._empty

    def ticks(self, frame: pl.DataFrame) -> pl.Series:
        """The time column of a frame as ticks, without copying."""
        return frame.get_column(self.ordered_by).cast(pl.Int64)

    def ticks_expr(self) -> pl.Expr:
        return pl.col(self.ordered_by).cast(pl.Int64)

    @cached_property
    def time_range(self) -> tuple[int, int]:
        """The least and greatest tick a tuple can honestly be stamped with."""
        if self[self.ordered_by].dtype.is_integer():
            return START_OF_TIME + 1, END_OF_TIME - 1
        return FIRST_YEAR, LAST_YEAR

    def value_of(self, ticks: int) -> Any:
        """The value of the time attribute that stands at this tick."""
        dtype = self[self.ordered_by].dtype
        if isinstance(dtype, pl.Datetime):
            return to_datetime(ticks, aware=dtype.time_zone is not None)
        return ticks


def to_datetime(ticks: int, *, aware: bool = True) -> datetime:
    return (EPOCH if aware else _EPOCH_NTZ) + timedelta(microseconds=ticks)


def to_ticks(value: Any) -> int:
    """Ticks of a time value: an integer is its own tick, a datetime counts microseconds."""
    if isinstance(value, datetime):
        return (value - (_EPOCH_NTZ if value.tzinfo is None else EPOCH)) // _MICROSECOND
    return int(value)


_SIMPLE: dict[Any, tuple[str, pl.DataType]] = {
    exp.DataType.Type.TINYINT: ("tinyint", pl.Int8()),
    exp.DataType.Type.SMALLINT: ("smallint", pl.Int16()),
    exp.DataType.Type.INT: ("int", pl.Int32()),
    exp.DataType.Type.BIGINT: ("bigint", pl.Int64()),
    exp.DataType.Type.FLOAT: ("float", pl.Float32()),
    exp.DataType.Type.DOUBLE: ("double", pl.Float64()),
    exp.DataType.Type.BOOLEAN: ("boolean", pl.Boolean()),
    exp.DataType.Type.TEXT: ("string", pl.String()),
    exp.DataType.Type.VARCHAR: ("string", pl.String()),
    exp.DataType.Type.CHAR: ("string", pl.String()),
    exp.DataType.Type.BINARY: ("binary", pl.Binary()),
    exp.DataType.Type.DATE: ("date", pl.Date()),
    exp.DataType.Type.TIMESTAMP: ("timestamp", pl.Datetime("us", "UTC")),
    exp.DataType.Type.TIMESTAMPTZ: ("timestamp", pl.Datetime("us", "UTC")),
    exp.DataType.Type.TIMESTAMPLTZ: ("timestamp", pl.Datetime("us", "UTC")),
    exp.DataType.Type.TIMESTAMPNTZ: ("timestamp_ntz", pl.Datetime("us")),
}

TYPES = (*dict.fromkeys(text for text, _ in _SIMPLE.values()), "decimal", "array", "struct")

CARRIED = (
    "a Spark type this system carries (numbers, string, binary, boolean, date, timestamp, "
    "timestamp_ntz, decimal, array, struct)"
)

_ADDED = {  # names that operators give
    **dict.fromkeys(
        ("_source", "_reason", "_lateness", "_heartbeat"),
        "Rename yours: late tuples get an attribute of this name.",
    ),
    "joined_at": "Rename yours: results of a join get an attribute of this name.",
    "as_of": "Rename yours: what an aggregate tells of open windows has an attribute of this name.",
}


def parse_type(kind: exp.DataType, where: str) -> tuple[str, pl.DataType]:
    """Spark type text and Polars type of a parsed SQL type."""
    if kind.this in _SIMPLE:
        return _SIMPLE[kind.this]
    arguments = kind.expressions
    if kind.this == exp.DataType.Type.DECIMAL:
        given = [int(a.name) for a in arguments] or [10]
        precision, scale = (*given, 0)[:2]
        return f"decimal({precision},{scale})", pl.Decimal(precision, scale)
    if kind.this == exp.DataType.Type.ARRAY and arguments:
        text, inner = parse_type(arguments[0], where)
        return f"array<{text}>", pl.List(inner)
    if kind.this == exp.DataType.Type.STRUCT and arguments:
        fields = [(f.name, *parse_type(f.args["kind"], where)) for f in arguments]
        text = ",".join(f"{_quoted(n)}:{t}" for n, t, _ in fields)
        return f"struct<{text}>", pl.Struct({n: d for n, _, d in fields})
    said = kind.sql("spark") if arguments else kind.this.name  # which Spark may call otherwise
    raise SchemaError(where, CARRIED, said, "Cast the column to one of them first.")


def _attribute(column: exp.Expr, within: str) -> Attribute:
    said = column.sql("spark")
    if not isinstance(column, exp.ColumnDef) or column.args.get("kind") is None:
        raise SchemaError(
            f"{within}attribute {column.name or said!r}", "a name, a space and a Spark type",
            repr(said), "Write it as in 'id bigint, ts timestamp'.",
        )  # fmt: skip
    if not column.name:
        word = column.this.sql("spark")
        raise SchemaError(f"{within}schema", "the name of an attribute",
                          f"{word}, which is a function",
                          f"Put it in backticks: `{word.lower()}`.")  # fmt: skip
    text, dtype = parse_type(column.args["kind"], f"{within}attribute {column.name!r}")
    return Attribute(column.name, text, dtype)


def ddl_type(dtype: pl.DataType) -> str:
    """The Spark type text of a Polars type."""
    for text, known in _SIMPLE.values():
        if known == dtype:
            return text
    if isinstance(dtype, pl.Datetime):
        return "timestamp" if dtype.time_zone is not None else "timestamp_ntz"
    if isinstance(dtype, pl.Decimal):
        return f"decimal({dtype.precision},{dtype.scale})"
    if isinstance(dtype, pl.List):
        return f"array<{ddl_type(dtype.inner)}>"  # type: ignore[arg-type]
    if isinstance(dtype, pl.Struct):
        inner = ",".join(f"{_quoted(f.name)}:{ddl_type(f.dtype)}" for f in dtype.fields)  # type: ignore[arg-type]
        return f"struct<{inner}>"
    if isinstance(dtype, pl.Null):
        return "string"
    if dtype.is_unsigned_integer():
        small: dict[type[pl.DataType], str] = {pl.UInt8: "smallint", pl.UInt16: "int"}
        return small.get(type(dtype), "bigint")
    raise SchemaError(
        "frame", "columns of types Spark has", str(dtype), "Cast the column before feeding it."
    )


def coerce(value: Any, attribute: Attribute, where: str) -> Any:
    """A literal as a value of this attribute, or an error naming both types."""
    if value is None:
        return None
    try:
        return _converted(value, attribute.dtype)
    except (ValueError, OverflowError, TypeError):
        raise SchemaError.wrong_type(where, attribute.name, attribute.type, repr(value)) from None


def _converted(value: Any, dtype: pl.DataType) -> Any:
    if isinstance(dtype, pl.Datetime):
        return _coerce_datetime(value, aware=dtype.time_zone is not None)
    number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    if isinstance(dtype, pl.Date) and isinstance(value, str):
        return date.fromisoformat(value)
    if dtype.is_integer() and number and value == int(value):
        return int(value)
    if dtype.is_float() and number:
        return float(value)
    if isinstance(dtype, pl.Decimal) and number:
        return Decimal(str(value))
    plain = {pl.Boolean: bool, pl.String: str, pl.Binary: bytes, pl.Date: date}
    if type(value) is plain.get(type(dtype)):
        return value
    raise TypeError(value)


def _coerce_datetime(value: Any, *, aware: bool) -> datetime:
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    elif isinstance(value, int) and not isinstance(value, bool):
        return to_datetime(value, aware=aware)
    if not isinstance(value, datetime):
        raise ValueError(value)
    if aware:
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    return value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo is not None else value


@lru_cache(maxsize=4096)
def _quoted(name: str) -> str:
    """A name as DDL reads it back: in backticks if it would be read as something else."""
    if name.isascii() and name.isidentifier():
        try:
            column = sqlglot.parse_one(f"CREATE TABLE t ({name} int)", read="spark").this
        except sqlglot.errors.SqlglotError:
            column = None
        if column is not None and [c.name for c in column.expressions] == [name]:
            return name
    return "`" + name.replace("`", "``") + "`"
