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

from interpunct.model.page import Page

Value = bytes | Page


class State(Protocol):
    """Keys are text; `scan` yields the entries whose key starts with a prefix, in key order. Who
    puts something under a key that has nothing yet, and knows it, says that it is `fresh`."""

    def get(self, key: str) -> Value | None: ...

    def put(self, key: str, value: Value, *, fresh: bool = False) -> None: ...

    def remove(self, key: str) -> None: ...

    def scan(self, prefix: str) -> Iterator[tuple[str, Value]]: ...


class DictState:
    """State in a dict: for running in process, and for snapshots of it."""

    def __init__(self, entries: dict[str, Value] | None = None) -> None:
        self.entries = {} if entries is None else entries

    def get(self, key: str) -> Value | None:
        return self.entries.get(key)

    def put(self, key: str, value: Value, *, fresh: bool = False) -> None:
        del fresh
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

    def put(self, key: str, value: Value, *, fresh: bool = False) -> None:
        self._state.put(self._prefix + key, value, fresh=fresh)

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
