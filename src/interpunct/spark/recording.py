"""Recordings: rows in Parquet, CSV or JSON Lines files, read by ranges of row numbers."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow.parquet as pq

from interpunct.model.errors import FeedError, SchemaError
from interpunct.model.pattern import Pattern
from interpunct.model.schema import Schema
from interpunct.spark.assumed import Unread
from interpunct.spark.row_group import RowGroup

_SUFFIXES = {
    ".parquet": "parquet", ".csv": "csv",
    ".json": "json", ".jsonl": "json", ".ndjson": "json",
}  # fmt: skip
_ISO = r"^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d"
MOST_PARSED = 4  # text files that a worker keeps parsed
_parsed: OrderedDict[tuple[str, int, int], pl.DataFrame] = OrderedDict()


@dataclass(frozen=True)
class Recording:
    """Files of one schema, in the order of their names."""

    path: str
    files: tuple[str, ...]
    kind: str

    @classmethod
    def at(cls, path: str) -> Recording:
        """The recording in this file, or in the files of this folder."""
        place = Path(path)
        if not place.exists():
            raise FeedError(
                f"replay of {path}", "a file or folder", "nothing there",
                "Check the path: wildcards are not read; give the folder. The driver reads it, and "
                "every task.",
            )  # fmt: skip
        files = sorted(p for p in place.iterdir() if p.is_file()) if place.is_dir() else [place]
        files = [p for p in files if not p.name.startswith(("_", "."))]
        kinds = {_SUFFIXES.get(p.suffix) for p in files}
        kind = kinds.pop() if len(kinds) == 1 else None
        if kind is None:
            found = ", ".join(sorted({p.name for p in files})[:3]) or "no file"
            raise FeedError(
                f"replay of {path}", f"files of one kind: {', '.join(_SUFFIXES)}", found,
                "Rename or convert them.",
            )  # fmt: skip
        return cls(path, tuple(str(p) for p in files), kind)

    @cached_property
    def schema(self) -> Schema:
        """Of the first file; naive timestamps are timestamp_ntz, text dates of CSV are parsed."""
        if self.kind == "parquet":
            return Schema.of_frame(pl.DataFrame(schema=pl.read_parquet_schema(self.files[0])))
        return Schema.of_frame(_text_frame(self.files[0], self.kind).clear())

    def only(self, columns: Sequence[str]) -> Schema:
        """The schema of some of the columns."""
        for name in columns:
            self._check_column(name)
        return Schema(tuple(self.schema[name] for name in columns))

    @cached_property
    def _ends(self) -> npt.NDArray[np.int64]:
        """The number of rows up to and including each file."""
        if self.kind == "parquet":
            counts = [int(pq.read_metadata(f).num_rows) for f in self.files]
        else:
            counts = [_text_frame(f, self.kind).height for f in self.files]
        return np.cumsum(counts)

    @property
    def rows(self) -> int:
        return int(self._ends[-1])

    def check_arrival(self, name: str) -> None:
        """An error unless the column exists, tells time, and never decreases."""
        self._check_column(name)
        self.arrivals(name)

    def arrivals(self, name: str) -> npt.NDArray[np.int64]:
        """The arrival of every row, in microseconds."""
        frames = [f for f in self.read(0, self.rows, [name]) if isinstance(f, pl.DataFrame)]
        column = pl.concat(frames).get_column(name)
        dtype = column.dtype
        if dtype.is_numeric():
            column = (column.cast(pl.Float64) * 1e6).round()
        elif not isinstance(dtype, pl.Datetime):
            raise SchemaError.wrong_type(
                f"replay of {self.path}", name, "a timestamp or a number of seconds", str(dtype)
            )
        ticks = column.cast(pl.Int64)
        if ticks.null_count() or not ticks.is_sorted():
            raise FeedError(
                f"replay of {self.path}", f"rows in the order of {name!r}, none of them null",
                "nulls" if ticks.null_count() else "an arrival before that of an earlier row",
                "Sort the recording by that column and write it again.",
            )  # fmt: skip
        return ticks.to_numpy()

    def read(
        self, start: int, end: int, columns: Sequence[str], unwanted: Sequence[Pattern] = ()
    ) -> Iterator[pl.DataFrame | Unread]:
        """The frames of the rows from `start` up to `end`, of the recording's schema; row groups
        that are unwanted as a whole stay unread."""
        schema = self.only(columns)
        begin = 0
        for file, stop in zip(self.files, map(int, self._ends), strict=True):
            low, high = max(start, begin) - begin, min(end, stop) - begin
            if low < high:
                for frame in self._slices(file, low, high, list(columns), unwanted):
                    if isinstance(frame, Unread):
                        yield frame
                        continue
                    same = dict(frame.schema) == schema.polars
                    yield frame if same else frame.cast(schema.polars)  # type: ignore[arg-type]
            begin = stop

    def _slices(
        self, file: str, low: int, high: int, columns: list[str], unwanted: Sequence[Pattern]
    ) -> Iterator[pl.DataFrame | Unread]:
        if self.kind != "parquet":
            yield _text_frame(file, self.kind).select(columns).slice(low, high - low)
            return
        parquet = pq.ParquetFile(file)
        begin = 0
        for group in range(parquet.num_row_groups):  # only those that hold some of the rows
            size = parquet.metadata.row_group(group).num_rows
            first, last = max(low - begin, 0), min(high - begin, size)
            begin += size
            if first < last:
                if unwanted and first == 0 and last == size:
                    group_of = RowGroup(parquet.metadata.row_group(group), self.schema)
                    unread = group_of.unread(unwanted)
                    if unread is not None:
                        yield unread
                        continue
                table = parquet.read_row_group(group, columns=columns, use_threads=False)
                frame = pl.from_arrow(table.select(columns).slice(first, last - first))
                assert isinstance(frame, pl.DataFrame)
                yield frame

    def _check_column(self, name: str) -> None:
        if name not in self.schema:
            raise SchemaError.unknown_attribute(f"replay of {self.path}", name, self.schema.names)


def _text_frame(file: str, kind: str) -> pl.DataFrame:
    """A text file parsed whole; kept, since the tasks of every batch read some of it."""
    status = os.stat(file)
    key = (file, status.st_mtime_ns, status.st_size)
    found = _parsed.pop(key, None)
    if found is None:
        if kind == "csv":
            found = pl.read_csv(file, try_parse_dates=True, infer_schema_length=None)
        else:
            found = _dated(pl.read_ndjson(file, infer_schema_length=None))
    _parsed[key] = found
    while len(_parsed) > MOST_PARSED:
        _parsed.popitem(last=False)
    return found


def _dated(frame: pl.DataFrame) -> pl.DataFrame:
    """JSON has no timestamps: a column of texts that all are ISO timestamps becomes one."""
    texts = [frame.get_column(n) for n, t in frame.schema.items() if isinstance(t, pl.String)]
    found = []
    for column in texts:
        values = column.drop_nulls()
        if values.len() and values.str.contains(_ISO).all():
            found.append(column.str.to_datetime(time_unit="us"))
    return frame.with_columns(found)
