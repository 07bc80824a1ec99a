"""Project (map): each output attribute is an expression over the input's.

A punctuation goes on when every attribute it speaks of is carried through, under its old name or
a new one. When one was dropped or computed away the punctuation stops here: without that
condition it would promise too much.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from interpunct.model.attribute_map import AttributeMap, Origin
from interpunct.model.errors import FlowError
from interpunct.model.expression import Expression
from interpunct.model.page import Page
from interpunct.model.pattern import Pattern
from interpunct.model.schema import Attribute, Schema, ddl_type
from interpunct.operators.contract import Emission, Operator, Stream
from interpunct.operators.responses import Response, at_input, at_output
from interpunct.operators.state import State


class Project(Operator):
    """Stateless, one tuple out for each tuple in."""

    def __init__(
        self,
        name: str,
        stream: Stream,
        columns: Mapping[str, Expression],
        state: State | None = None,
    ) -> None:
        schema = projected_schema(name, stream.schema, columns)
        whole = {e.attribute for e in columns.values()} >= set(stream.schema.names)
        properties = replace(stream.properties, keyed=stream.properties.keyed and whole)
        super().__init__(
            name, [stream], [Stream(schema, properties)], projected_map(columns), state
        )
        self._columns = [e.polars.alias(out) for out, e in columns.items()]

    def on_page(self, port: int, page: Page) -> Emission:
        del port
        return self.tuples(page.frame.select(self._columns))

    def characterise(self, pattern: Pattern, port: int) -> Response:
        """What is carried through can be avoided before it is computed, what is computed only
        afterwards."""
        del port
        carried = self.attributes.backward(pattern, 0, self.inputs[0].schema)
        if carried is None:
            return at_output("¬[computed]", pattern)
        return at_input("¬[carried]", {0: carried})


def projected_schema(name: str, schema: Schema, columns: Mapping[str, Expression]) -> Schema:
    """The output schema; a stream that has a time attribute must carry it through."""
    attributes = tuple(Attribute(out, ddl_type(e.dtype), e.dtype) for out, e in columns.items())
    if schema.time is None:
        return Schema(attributes, kind=schema.kind)
    carried = [out for out, e in columns.items() if e.attribute == schema.time]
    if not carried:
        raise FlowError(
            f"project {name!r}", f"the time attribute {schema.time!r} among its columns",
            ", ".join(columns),
            f"Add {schema.time}, or name it anew: t={schema.time!r}, in SQL {schema.time} AS t.",
        )  # fmt: skip
    return Schema(attributes, time=carried[0], kind=schema.kind)


def projected_map(columns: Mapping[str, Expression]) -> AttributeMap:
    carried = {o: (Origin(0, e.attribute),) for o, e in columns.items() if e.attribute is not None}
    derived = {
        o: frozenset(Origin(0, i) for i in e.inputs)
        for o, e in columns.items()
        if e.attribute is None
    }
    return AttributeMap(carried, derived)
