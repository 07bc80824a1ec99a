"""The shape of a join's result: which attribute comes from which input, under which name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from interpunct.model.attribute_map import AttributeMap, Origin
from interpunct.model.errors import FlowError, SchemaError
from interpunct.model.schema import Attribute, Schema

ID = "_id"  # the number of a tuple of input 0, to tell which of them met somebody


@dataclass(frozen=True)
class JoinShape:
    """Keys once, then every other attribute of each input, then the result's timestamp.

    An attribute whose name an earlier input has already gets a suffix: `_right` in a join of two,
    `_2`, `_3`, … in a join of more. While joining, each input carries its time as ticks in `_t<j>`.
    """

    inputs: tuple[Schema, ...]
    keys: tuple[str, ...]
    names: tuple[dict[str, str], ...]  # per input: its attribute → the result's
    output: Schema
    stamp: str

    @classmethod
    def of(cls, name: str, inputs: Sequence[Schema], keys: Sequence[str], stamp: str) -> JoinShape:
        _check_keys(name, inputs, keys)
        _check_times(name, inputs)
        names: list[dict[str, str]] = []
        taken: set[str] = {stamp}
        for port, schema in enumerate(inputs):
            suffix = "_right" if len(inputs) == 2 else f"_{port + 1}"
            mapping = {}
            for attribute in schema.names:
                if attribute in keys:
                    mapping[attribute] = attribute
                    continue
                mapping[attribute] = attribute if attribute not in taken else attribute + suffix
            taken |= set(mapping.values())
            names.append(mapping)
        attributes = [
            Attribute(out, schema[a].type, schema[a].dtype)
            for port, (schema, mapping) in enumerate(zip(inputs, names, strict=True))
            for a, out in mapping.items()
            if port == 0 or a not in keys
        ]
        time = inputs[0][inputs[0].ordered_by]
        attributes.append(Attribute(stamp, time.type, time.dtype))
        output = Schema(tuple(attributes), time=stamp, kind=inputs[0].kind)
        return cls(tuple(inputs), tuple(keys), tuple(names), output, stamp)

    @property
    def attributes(self) -> AttributeMap:
        carried: dict[str, list[Origin]] = {}
        for port, mapping in enumerate(self.names):
            for attribute, out in mapping.items():
                carried.setdefault(out, []).append(Origin(port, attribute))
        times = frozenset(Origin(p, s.ordered_by) for p, s in enumerate(self.inputs))
        return AttributeMap(carried, {self.stamp: times})

    @property
    def stamp_ticks(self) -> str:
        return "_stamp"

    def tick(self, port: int) -> str:
        return f"_t{port}"

    def member_schema(self, port: int) -> Schema:
        schema, mapping = self.inputs[port], self.names[port]
        attributes = [Attribute(out, schema[a].type, schema[a].dtype) for a, out in mapping.items()]
        attributes.append(Attribute(self.tick(port), "bigint", pl.Int64()))
        if port == 0:
            attributes.append(Attribute(ID, "bigint", pl.Int64()))
        return Schema(tuple(attributes), time=self.tick(port))

    def member(self, port: int, frame: pl.DataFrame, first_id: int) -> pl.DataFrame:
        """An input's tuples under the result's names, with ticks, and numbers for input 0."""
        columns = [pl.col(a).alias(out) for a, out in self.names[port].items()]
        columns.append(self.inputs[port].ticks_expr().alias(self.tick(port)))
        if port == 0:
            columns.append(
                pl.int_range(first_id, first_id + frame.height, dtype=pl.Int64).alias(ID)
            )
        return frame.select(columns)

    def combined_names(self) -> list[str]:
        """What a combination carries: the output, its stamp in ticks, and which left tuple."""
        output = (n for n in self.output.names if n != self.stamp)
        return [*output, self.stamp_ticks, self.tick(0), ID]

    def met(self, results: pl.DataFrame) -> pl.DataFrame:
        """The left tuples that are part of a result, once each."""
        return results.select(self.tick(0), ID).unique(subset=ID)

    def alone(self, rows: pl.DataFrame, window: int) -> pl.DataFrame:
        """Tuples of input 0 that met nobody, with nulls for the rest."""
        nulls = [
            pl.lit(None, self.output[n].dtype).alias(n)
            for n in self.output.names
            if n != self.stamp and n not in rows.columns
        ]
        passed = (pl.col(self.tick(0)) + window).alias(self.stamp_ticks)
        return rows.with_columns(*nulls, passed).select(self.combined_names())

    def finished(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Results in time order with their timestamp."""
        stamp = pl.col(self.stamp_ticks).cast(self.output[self.stamp].dtype).alias(self.stamp)
        in_order = frame.sort(self.stamp_ticks, maintain_order=True)
        return in_order.with_columns(stamp).select(self.output.names)

    def padded(self, frame: pl.DataFrame) -> pl.DataFrame:
        """One input's tuples with nulls for everything else, to be matched with patterns."""
        missing = [
            pl.lit(None, self.output[n].dtype).alias(n)
            for n in self.output.names
            if n not in frame.columns
        ]
        return frame.with_columns(missing).select(self.output.names)


def _check_keys(name: str, inputs: Sequence[Schema], keys: Sequence[str]) -> None:
    for port, schema in enumerate(inputs):
        for key in keys:
            where = f"join {name!r}, input {port}"
            if key not in schema:
                raise SchemaError.unknown_attribute(where, key, schema.names)
            if schema[key].dtype != inputs[0][key].dtype:
                raise SchemaError.wrong_type(where, key, inputs[0][key].type, schema[key].type)


def _check_times(name: str, inputs: Sequence[Schema]) -> None:
    first = inputs[0].time_type
    for port, schema in enumerate(inputs):
        if schema.time is None or schema.time_type != first:
            raise FlowError(
                f"join {name!r}, input {port}", f"a time attribute of type {first}",
                str(schema.time_type), "Give the streams of a join one time domain.",
            )  # fmt: skip
