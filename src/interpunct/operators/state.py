"""State: what an operator keeps between pages, behind one small protocol.

The same operator runs on a dict in process and on a state store elsewhere. Values are bytes or
pages; an operator reads what it needs when it needs it and writes back only what changed.

>>> state = DictState()
>>> counter = Record(state, "counter", {"n": 0})
>>> counter["n"] += 1
>>> counter.save()
>>> Record(state, "counter", {"n": 0})["n"]
1
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Protocol

import polars as pl

from interpunct.model.frames import stacked
from interpunct.model.page import Page
from interpunct.model.schema import Schema

Value = bytes | Page


class State(Protocol):
    """Keys are text; `scan` yields the entries whose key starts with a prefix, in key order."""

    def get(self, key: str) -> Value | None: ...

    def put(self, key: str, value: Value) -> None: ...

    def remove(self, key: str) -> None: ...

    def scan(self, prefix: str) -> Iterator[tuple[str, Value]]: ...


class DictState:
    """State in a dict: for running in process, and for snapshots of it."""

    def __init__(self, entries: dict[str, Value] | None = None) -> None:
        self.entries = {} if entries is None else entries

    def get(self, key: str) -> Value | None:
        return self.entries.get(key)

    def put(self, key: str, value: Value) -> None:
        self.entries[key] = value

    def remove(self, key: str) -> None:
        self.entries.pop(key, None)

    def scan(self, prefix: str) -> Iterator[tuple[str, Value]]:
        for key in sorted(k for k in self.entries if k.startswith(prefix)):
            yield key, self.entries[key]


class Scoped:
    """The part of a state below a prefix, so that operators cannot meet."""

    def __init__(self, state: State, prefix: str) -> None:
        self._state, self._prefix = state, f"{prefix}/"

    def get(self, key: str) -> Value | None:
        return self._state.get(self._prefix + key)

    def put(self, key: str, value: Value) -> None:
        self._state.put(self._prefix + key, value)

    def remove(self, key: str) -> None:
        self._state.remove(self._prefix + key)

    def scan(self, prefix: str) -> Iterator[tuple[str, Value]]:
        cut = len(self._prefix)
        for key, value in self._state.scan(self._prefix + prefix):
            yield key[cut:], value


class Record:
    """A small JSON record under one key, read once, written back only when it changed."""

    def __init__(self, state: State, key: str, initial: dict[str, Any]) -> None:
        self._state, self._key = state, key
        stored = state.get(key)
        self._values = dict(initial)
        if isinstance(stored, bytes):
            self._values.update(json.loads(stored))
        self._saved = None if stored is None else json.dumps(self._values)

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self._values[name] = value

    def update(self, values: dict[str, Any]) -> None:
        self._values.update(values)

    @property
    def values(self) -> dict[str, Any]:
        return self._values

    def save(self) -> None:
        text = json.dumps(self._values)
        if text != self._saved:
            self._state.put(self._key, text.encode())
            self._saved = text


class Shelf:
    """Frames of one schema by integer key: read when first touched, written back when changed.

    The set of keys is kept in a record of its own, so that nothing is ever scanned. A frame that
    is appended to in small pieces is joined together only when it is read or has doubled, so that
    ten thousand appends of one tuple cost about as much as one append of ten thousand.
    """

    def __init__(self, state: State, name: str, schema: Schema) -> None:
        self._state, self._name, self._schema = state, name, schema
        self._index = Record(state, f"{name}#", {"rows": {}})
        self.rows: dict[int, int] = {int(k): n for k, n in self._index["rows"].items()}
        self._pieces: dict[int, list[pl.DataFrame]] = {}
        self._dirty: set[int] = set()
        self._gone: set[int] = set()

    def __contains__(self, key: int) -> bool:
        return key in self.rows

    def __iter__(self) -> Iterator[int]:
        return iter(self.rows)

    @property
    def height(self) -> int:
        return sum(self.rows.values())

    def nbytes(self) -> int:
        """Bytes of what is decoded in memory (what was not touched costs nothing here)."""
        return int(sum(f.estimated_size() for p in self._pieces.values() for f in p))

    def get(self, key: int) -> pl.DataFrame:
        """The frame under this key; an empty one when there is none."""
        if key not in self.rows:
            return self._schema.empty()
        pieces = self._load(key)
        if len(pieces) > 1:
            frame = stacked(pieces)
            pieces[:] = [frame.rechunk() if frame.n_chunks() > 32 else frame]
        return pieces[0]

    def append(self, key: int, frame: pl.DataFrame) -> None:
        pieces = self._load(key) if key in self.rows else self._pieces.setdefault(key, [])
        pieces.append(frame)
        rows = self.rows.get(key, 0) + frame.height
        if len(pieces) >= 16 and rows >= 2 * pieces[0].height:
            pieces[:] = [stacked(pieces).rechunk()]
        elif len(pieces) >= 256:
            pieces[1:] = [stacked(pieces[1:]).rechunk()]
        self._changed(key, rows)

    def put(self, key: int, frame: pl.DataFrame) -> None:
        if frame.height == 0:
            self.drop(key)
            return
        self._pieces[key] = [frame]
        self._changed(key, frame.height)

    def pop(self, key: int) -> pl.DataFrame:
        frame = self.get(key)
        self.drop(key)
        return frame

    def drop(self, key: int) -> None:
        if self.rows.pop(key, None) is not None:
            self._gone.add(key)
        self._pieces.pop(key, None)
        self._dirty.discard(key)

    def save(self) -> None:
        for key in self._gone:
            self._state.remove(self._at(key))
        for key in self._dirty:
            self._state.put(self._at(key), Page(self._schema, self.get(key)))
        if self._gone or self._dirty:
            self._index["rows"] = {str(k): n for k, n in self.rows.items()}
            self._index.save()
        self._gone.clear()
        self._dirty.clear()

    def _changed(self, key: int, rows: int) -> None:
        self.rows[key] = rows
        self._dirty.add(key)
        self._gone.discard(key)

    def _load(self, key: int) -> list[pl.DataFrame]:
        if key not in self._pieces:
            stored = self._state.get(self._at(key))
            if not isinstance(stored, Page):
                raise LookupError(f"state has no page {self._at(key)!r} though its index names it")
            self._pieces[key] = [stored.frame]
        return self._pieces[key]

    def _at(self, key: int) -> str:
        return f"{self._name}@{key}"
