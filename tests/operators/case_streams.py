"""The streams that operators are tried on: with and without order, with a clock, with none."""

from __future__ import annotations

from interpunct.model.properties import Properties
from interpunct.model.schema import Schema
from interpunct.operators.contract import Stream

SCHEMA = Schema.of("k bigint, ts bigint, v double", time="ts")
CLOCKED = Schema.of("k bigint, ts timestamp, v double", time="ts")
UNTIMED = Schema.of("k bigint, v double")
ORDERED = Stream(SCHEMA, Properties(ordered=True))
STRICT = Stream(SCHEMA, Properties(ordered=True, strict=True))
DISORDERED = Stream(SCHEMA)
TIMED = Stream(CLOCKED, Properties(ordered=True))
LATENT = Stream(UNTIMED)
SIDE = Stream(Schema.of("k bigint, at bigint, w bigint", time="at"), Properties(ordered=True))
THIRD = Stream(Schema.of("k bigint, v double, ts bigint", time="ts"))
