"""Pages: a columnar batch of tuples, and the punctuations that hold once they are read.

The page is NiagaraST's unit between operators (Feedback section 5). On the wire and in state it is
an Arrow IPC stream whose schema metadata carries everything else, so that a page describes itself.

>>> from interpunct.model.schema import Schema
>>> s = Schema.of("ts bigint, bid double", time="ts")
>>> page = Page.of_rows(s, [(1, 10.0), (2, 12.5)])
>>> Page.from_ipc(page.to_ipc("bids")).frame.equals(page.frame)
True
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import polars as pl
import pyarrow as pa

from interpunct.model.errors import PageError, SchemaError
from interpunct.model.narrow import narrowed, widened
from interpunct.model.punctuation import Punctuation
from interpunct.model.rows import Row, framed
from interpunct.model.schema import Schema, TimeKind, ddl_type

_METADATA = b"interpunct"


@dataclass(frozen=True)
class Page:
    """Tuples of one schema, then punctuations; `stream` says what it is a page of, and `sender`
    which of those who send that stream has made it.

    `stamp` is the tick that all its tuples share, where the maker knew: it spares looking.
    """

    schema: Schema
    frame: pl.DataFrame
    punctuations: tuple[Punctuation, ...] = ()
    stream: str = ""
    sender: int = 0
    stamp: int | None = None
    height: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "height", self.frame.height)

    @classmethod
    def of_rows(
        cls,
        schema: Schema,
        rows: Sequence[Row],
        punctuations: Iterable[Punctuation] = (),
        where: str = "page",
        first: int = 0,
    ) -> Page:
        """A page from Python rows (mappings by name, or sequences in schema order), which errors
        count from `first`."""
        return cls(schema, framed(rows, schema, where, first), tuple(punctuations))

    @classmethod
    def checked(cls, schema: Schema, frame: pl.DataFrame, where: str = "page") -> Page:
        """A page from a frame, whose columns must be those of the schema (extra ones are cut)."""
        for attribute in schema.attributes:
            if attribute.name not in frame.columns:
                raise SchemaError.missing_column(where, attribute.name, frame.columns)
            got = frame.schema[attribute.name]
            if got != attribute.dtype and not _widens(got, attribute.dtype):
                told = _told(got, attribute.type)
                raise SchemaError.wrong_type(where, attribute.name, attribute.type, told)
        return cls(schema, frame.select(schema.names).cast(schema.polars))  # type: ignore[arg-type]

    def __len__(self) -> int:
        """Tuples and punctuations together: what the page occupies in a buffer."""
        return self.height + len(self.punctuations)

    def to_ipc(self, stream: str | None = None, sender: int | None = None) -> bytes:
        """The page as an Arrow IPC stream of narrow columns. Of a heartbeat the tick is written,
        since there is one on nearly every page, and to parse its pattern takes longer than to read
        a small page."""
        whole = dict(self.frame.schema) == self.schema.polars  # or else it is cast when it is read
        frame, least = narrowed(self.frame) if whole else (self.frame, {})
        head = {
            "ddl": self.schema.ddl,
            "time": self.schema.time,
            "time_kind": self.schema.kind.value,
            "stream": self.stream if stream is None else stream,
            "sender": self.sender if sender is None else sender,
            "rows": self.height,  # a stream that is cut off between two batches still seems whole
            "punctuations": [
                str(p) if p.heartbeat_ticks is None else p.heartbeat_ticks
                for p in self.punctuations
            ],
            **({"least": least} if least else {}),
        }
        table = frame.to_arrow().replace_schema_metadata({_METADATA: json.dumps(head)})
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        data: bytes = sink.getvalue().to_pybytes()
        return data

    @classmethod
    def from_ipc(cls, data: bytes | memoryview) -> Page:
        """The page these bytes describe, or a PageError saying what is wrong with them."""
        try:
            table = pa.ipc.open_stream(data).read_all()
            head = json.loads((table.schema.metadata or {})[_METADATA])
            schema = _schema(head["ddl"], head["time"], head["time_kind"])
            frame = pl.from_arrow(table)
            assert isinstance(frame, pl.DataFrame)
            frame = widened(frame, head.get("least", {}), schema.polars)
            if frame.height != head["rows"]:
                raise ValueError(f"{frame.height} of {head['rows']} tuples")
            punctuations = tuple(_punctuation(p, schema) for p in head["punctuations"])
        except (pa.ArrowInvalid, KeyError, ValueError, OSError) as error:
            got = f"{len(data)} bytes ({type(error).__name__}: {str(error).splitlines()[0]})"
            raise PageError(
                "page", "an Arrow IPC stream with interpunct metadata", got,
                "The writer and the reader must both use Page.to_ipc and Page.from_ipc.",
            ) from error  # fmt: skip
        if dict(frame.schema) != schema.polars:
            frame = frame.cast(schema.polars)  # type: ignore[arg-type]
        return cls(schema, frame, punctuations, head["stream"], head["sender"])

    @staticmethod
    def stream_of(data: bytes | memoryview) -> str:
        """What these bytes are a page of, without its tuples being read."""
        stream: str = json.loads(pa.ipc.open_stream(data).schema.metadata[_METADATA])["stream"]
        return stream


@lru_cache(maxsize=256)
def _schema(ddl: str, time: str | None, kind: str) -> Schema:
    return Schema.of(ddl, time=time, kind=TimeKind(kind))


def _punctuation(said: str | int, schema: Schema) -> Punctuation:
    if isinstance(said, int):
        return Punctuation.heartbeat(schema, said)
    return Punctuation.parse(said, schema)


def _told(got: pl.DataType, wanted: str) -> str:
    """A type as Spark calls it, or as Polars does where Spark has none, or calls it as wanted."""
    try:
        found = ddl_type(got)
    except SchemaError:
        return str(got)
    return str(got) if found == wanted else found


def _widens(got: pl.DataType, wanted: pl.DataType) -> bool:
    """Whether a cast loses nothing: integers into wider ones, datetimes into microseconds."""
    if got.is_integer() and wanted.is_integer():
        return _bits(got) < _bits(wanted)
    if got.is_numeric() and isinstance(wanted, pl.Float64):
        return True
    if isinstance(got, pl.Datetime) and isinstance(wanted, pl.Datetime):
        return (got.time_zone is None) == (wanted.time_zone is None)
    return isinstance(got, pl.Null)


def _bits(dtype: pl.DataType) -> float:
    name = str(dtype)
    return float(name.lstrip("UInt")) + (0.5 if name.startswith("U") else 0.0)
