"""State on Spark's state store, behind the operators' own protocol."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator
from typing import Any

from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from interpunct.model.page import Page
from interpunct.operators.state import Value

# Schemas as objects: a DDL text would cost a call to the JVM's parser in every batch.
KEY = StructType([StructField("key", StringType())])
VALUE = StructType([StructField("value", BinaryType())])

RECORDS = "records"  # the entry that holds every small value


class SparkState:
    """A MapState of one lane: an entry per page, and one for all the small records together, since
    a call to the state store costs more than what they hold. The records are read once, and
    written once a batch, with a nonce that no other batch has.

    It is bound anew each batch; what was decoded stays with the operators that decoded it.
    """

    def __init__(self, entries: Any) -> None:
        self._entries = entries
        self._stored = self._read()
        held = json.loads(self._stored) if self._stored else {}
        self._records = {k: base64.b64decode(v) for k, v in held.get("values", {}).items()}

    def still_current(self, entries: Any) -> bool:
        """Bind to a batch's entries; False when another worker has had the lane in between."""
        self._entries = entries
        return self._stored is not None and self._read() == self._stored

    def flush(self) -> None:
        """Write the records."""
        values = {k: base64.b64encode(v).decode() for k, v in self._records.items()}
        self._stored = json.dumps({"nonce": os.urandom(16).hex(), "values": values}).encode()
        self._entries.updateValue((RECORDS,), (self._stored,))

    def get(self, key: str) -> Value | None:
        if key in self._records:
            return self._records[key]
        found = self._entries.getValue((key,))
        return None if found is None else Page.from_ipc(bytes(found[0]))

    def put(self, key: str, value: Value) -> None:
        if isinstance(value, Page):
            self._entries.updateValue((key,), (value.to_ipc(),))
        else:
            self._records[key] = value

    def remove(self, key: str) -> None:
        if self._records.pop(key, None) is None:
            self._entries.removeKey((key,))

    def scan(self, prefix: str) -> Iterator[tuple[str, Value]]:
        found = {k: bytes(v) for (k,), (v,) in self._entries.iterator() if k != RECORDS}
        values: dict[str, Value] = {k: Page.from_ipc(v) for k, v in found.items()}
        for key, value in sorted({**values, **self._records}.items()):
            if key.startswith(prefix):
                yield key, value

    def _read(self) -> bytes | None:
        found = self._entries.getValue((RECORDS,))
        return None if found is None else bytes(found[0])
