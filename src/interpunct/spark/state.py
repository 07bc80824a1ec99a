"""State on Spark's state store, behind the operators' own protocol."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from interpunct.model.page import Page
from interpunct.operators.state import Value

# Schemas as objects: a DDL text would cost a call to the JVM's parser in every batch.
KEY = StructType([StructField("key", StringType())])
VALUE = StructType([StructField("value", BinaryType())])

_BYTES, _PAGE = b"b", b"p"


class SparkState:
    """A MapState of one lane. It is bound anew each batch; what was decoded stays with the
    operators that decoded it."""

    def __init__(self, entries: Any) -> None:
        self._entries = entries

    def bind(self, entries: Any) -> None:
        self._entries = entries

    def get(self, key: str) -> Value | None:
        found = self._entries.getValue((key,))
        return None if found is None else _decoded(bytes(found[0]))

    def put(self, key: str, value: Value) -> None:
        data = _PAGE + value.to_ipc() if isinstance(value, Page) else _BYTES + value
        self._entries.updateValue((key,), (data,))

    def remove(self, key: str) -> None:
        self._entries.removeKey((key,))

    def scan(self, prefix: str) -> Iterator[tuple[str, Value]]:
        for (key,), (value,) in sorted(self._entries.iterator()):
            if key.startswith(prefix):
                yield key, _decoded(bytes(value))


def _decoded(data: bytes) -> Value:
    return Page.from_ipc(data[1:]) if data[:1] == _PAGE else data[1:]
