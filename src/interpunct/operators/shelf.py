"""Shelves: frames by integer key, kept as pages in a state.

A frame is a list of parts. Appending adds a part and touches no other, in memory as in the state;
parts are put together when there are many of them and they have doubled what they follow, so that
ten thousand appends of one tuple cost about as much as one append of ten thousand. Nothing is ever
scanned, and what is not touched is neither read nor written: which parts a key has is in an index,
of which a record has the last changes and, once the keys are many, a page has the rest.

>>> import polars as pl
>>> from interpunct.operators.state import DictState
>>> state, schema = DictState(), Schema.of("v bigint")
>>> shelf = Shelf(state, "window", schema)
>>> shelf.append(3, pl.DataFrame({"v": [1, 2]}))
>>> shelf.save()
>>> Shelf(state, "window", schema).get(3)["v"].to_list()
[1, 2]
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from interpunct.model.frames import stacked
from interpunct.model.page import Page
from interpunct.model.schema import Schema
from interpunct.operators.state import Record, State

MANY = 16  # parts of a frame before they are put together
FEW = 32  # keys that the index's record has room for
INDEX = Schema.of("key bigint, number bigint, rows bigint")


@dataclass
class _Part:
    """Some rows: decoded in `frame`, or still in the state under `number`, or both."""

    rows: int
    frame: pl.DataFrame | None = None
    number: int | None = None  # None: not written yet


class Shelf:
    """Frames of one schema by integer key."""

    def __init__(self, state: State, name: str, schema: Schema) -> None:
        self._state, self._name, self._schema = state, name, schema
        self._index = Record(state, f"{name}#", {"parts": {}, "next": 0, "paged": False})
        self._next: int = self._index["next"]
        self._parts = self._indexed()
        self.rows = {key: sum(p.rows for p in parts) for key, parts in self._parts.items()}
        self._dirty: set[int] = set()
        self._obsolete: list[int] = []

    def __contains__(self, key: int) -> bool:
        return key in self._parts

    def __iter__(self) -> Iterator[int]:
        return iter(self._parts)

    @property
    def height(self) -> int:
        return sum(self.rows.values())

    def nbytes(self) -> int:
        """Bytes of what is decoded in memory (what was not touched costs nothing here)."""
        frames = (p.frame for parts in self._parts.values() for p in parts)
        return int(sum(f.estimated_size() for f in frames if f is not None))

    def get(self, key: int) -> pl.DataFrame:
        """The frame under this key; an empty one when there is none."""
        parts = self._parts.get(key)
        if not parts:
            return self._schema.empty()
        if len(parts) > MANY:
            self._put_together(key, parts)
        return stacked([self._loaded(p) for p in parts])

    def append(self, key: int, frame: pl.DataFrame) -> None:
        parts = self._parts.setdefault(key, [])
        parts.append(_Part(frame.height, frame))
        self.rows[key] = self.rows.get(key, 0) + frame.height
        self._dirty.add(key)
        if len(parts) > MANY:
            self._put_together(key, parts)

    def put(self, key: int, frame: pl.DataFrame) -> None:
        self.drop(key)
        if frame.height:
            self.append(key, frame)

    def drop(self, key: int) -> None:
        for part in self._parts.pop(key, []):
            self._forget(part)
        self.rows.pop(key, None)
        self._dirty.add(key)

    def save(self) -> None:
        """Write the parts that are new, remove those that are gone."""
        if not self._dirty and not self._obsolete:
            return
        for number in self._obsolete:
            self._state.remove(self._at(number))
        for key in self._dirty:
            self._write(self._parts.get(key, []))
        self._index["next"] = self._next
        self._index_changes()
        self._index.save()
        self._dirty.clear()
        self._obsolete.clear()

    # The index ----------------------------------------------------------------------------------

    def _indexed(self) -> dict[int, list[_Part]]:
        """Every key's parts: what the page has, but for the keys that changed since."""
        found: dict[int, list[_Part]] = {}
        if self._index["paged"]:
            for key, number, rows in self._page(f"{self._name}#rest").iter_rows():
                found.setdefault(key, []).append(_Part(rows, number=number))
        for key, parts in self._index["parts"].items():
            found[int(key)] = [_Part(rows, number=number) for number, rows in parts]
        return {key: parts for key, parts in found.items() if parts}

    def _index_changes(self) -> None:
        """Note the keys that changed. When the record is full everything goes to the page, so that
        a save costs what changed and not what there is."""
        changed = self._index["parts"]
        for key in self._dirty:
            changed[str(key)] = [[p.number, p.rows] for p in self._parts.get(key, [])]
            if not changed[str(key)] and not self._index["paged"]:
                del changed[str(key)]
        if len(changed) > FEW:
            rows = [(k, p.number, p.rows) for k, parts in self._parts.items() for p in parts]
            page = Page(INDEX, pl.DataFrame(rows, INDEX.polars, orient="row"))
            self._state.put(f"{self._name}#rest", page)
            self._index.update({"parts": {}, "paged": True})

    # Parts --------------------------------------------------------------------------------------

    def _write(self, parts: list[_Part]) -> None:
        """The unwritten parts, which are the last ones, become one page."""
        fresh = [p for p in parts if p.number is None]
        if not fresh:
            return
        whole = _Part(sum(p.rows for p in fresh), stacked([self._loaded(p) for p in fresh]))
        whole.number = self._next
        self._next += 1
        page = Page(self._schema, self._loaded(whole))
        self._state.put(self._at(whole.number), page, fresh=True)  # no number is used twice
        parts[:] = [p for p in parts if p.number is not None] + [whole]

    def _put_together(self, key: int, parts: list[_Part]) -> None:
        """Join the last parts, and as many before them as they have caught up with in size."""
        start, rows = len(parts) - 1, parts[-1].rows
        while start > 0 and (parts[start - 1].rows <= 2 * rows or start >= MANY):
            start -= 1
            rows += parts[start].rows
        joined = stacked([self._loaded(p) for p in parts[start:]]).rechunk()
        for part in parts[start:]:
            self._forget(part)
        parts[start:] = [_Part(rows, joined)]
        self._dirty.add(key)

    def _forget(self, part: _Part) -> None:
        if part.number is not None:
            self._obsolete.append(part.number)

    def _loaded(self, part: _Part) -> pl.DataFrame:
        if part.frame is None:
            assert part.number is not None
            part.frame = self._page(self._at(part.number))
        return part.frame

    def _page(self, at: str) -> pl.DataFrame:
        stored = self._state.get(at)
        if not isinstance(stored, Page):
            raise LookupError(f"the state has no page {at!r} though its index names it")
        return stored.frame

    def _at(self, number: int) -> str:
        return f"{self._name}@{number}"
