"""State on Spark's state store, behind the operators' own protocol."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from interpunct.model.page import Page
from interpunct.operators.state import Value

# Schemas as objects: a DDL text would cost a call to the JVM's parser in every batch.
KEY = StructType([StructField("key", StringType())])
VALUE = StructType([StructField("value", BinaryType())])

RECORDS = "records"  # the entry that holds every small value
SMALL, ROOM = 4_096, 16_384  # bytes of a page among them, and of all such pages together


class SparkState:
    """A MapState of one lane: an entry per page, and one for all that is small together, since a
    call to the state store costs more than what it would hold. That one is read once, and written
    once a batch, with a nonce that no other batch has.

    It is bound anew each batch; what was decoded stays with the operators that decoded it.
    """

    def __init__(self, entries: Any) -> None:
        self._entries = entries
        self._stored = self._read()
        held = json.loads(self._stored) if self._stored else {}
        self._records = _decoded(held.get("values", {}))
        self._pages = _decoded(held.get("pages", {}))  # small ones, as they are written

    def still_current(self, entries: Any) -> bool:
        """Bind to a batch's entries; False when another worker has had the lane in between."""
        self._entries = entries
        return self._stored is not None and self._read() == self._stored

    def flush(self) -> None:
        """Write the records."""
        held = {
            "nonce": os.urandom(16).hex(),
            "values": _encoded(self._records),
            "pages": _encoded(self._pages),
        }
        self._stored = json.dumps(held).encode()
        self._entries.updateValue((RECORDS,), (self._stored,))

    def get(self, key: str) -> Value | None:
        if key in self._records:
            return self._records[key]
        if key in self._pages:
            return Page.from_ipc(self._pages[key])
        found = self._entries.getValue((key,))
        return None if found is None else Page.from_ipc(bytes(found[0]))

    def put(self, key: str, value: Value, *, fresh: bool = False) -> None:
        """A small page that is fresh goes with the records while there is room; of another there
        may be an entry already, which would have to be removed by a call of its own."""
        if not isinstance(value, Page):
            self._records[key] = value
            return
        data = value.to_ipc()
        if fresh and len(data) <= SMALL and len(data) + self._used <= ROOM:
            self._pages[key] = data
        else:
            self._pages.pop(key, None)
            self._entries.updateValue((key,), (data,))

    @property
    def _used(self) -> int:
        return sum(map(len, self._pages.values()))

    def remove(self, key: str) -> None:
        if key in self._pages:
            del self._pages[key]
        elif self._records.pop(key, None) is None:
            self._entries.removeKey((key,))

    def scan(self, prefix: str) -> Iterator[tuple[str, Value]]:
        found = {k: bytes(v) for (k,), (v,) in self._entries.iterator() if k != RECORDS}
        pages = {**found, **self._pages}
        values: dict[str, Value] = {k: Page.from_ipc(v) for k, v in pages.items()}
        for key, value in sorted({**values, **self._records}.items()):
            if key.startswith(prefix):
                yield key, value

    def _read(self) -> bytes | None:
        found = self._entries.getValue((RECORDS,))
        return None if found is None else bytes(found[0])


def _encoded(values: Mapping[str, bytes]) -> dict[str, str]:
    return {k: base64.b64encode(v).decode() for k, v in values.items()}


def _decoded(texts: Mapping[str, str]) -> dict[str, bytes]:
    return {k: base64.b64decode(v) for k, v in texts.items()}
