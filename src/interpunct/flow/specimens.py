"""One of each operator, small enough to print: what the reference is written from.

    entry = Entry("join", FlowStream.join, _join, holds="…", passes="…", asked=("[segment=3]", …))

An entry builds its operator with the builder, so that whatever the builder would refuse cannot be
documented, and names the patterns whose rows of the feedback table are shown. The tables themselves
are the operators' own (`characterise`); what is written here in words is what an operator keeps and
what it does with a punctuation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import polars as pl

from interpunct.flow.builder import FlowBuilder
from interpunct.flow.nodes import GateNode, Ref
from interpunct.flow.stream import FlowStream
from interpunct.progress.timestamps import bounds, external

DDL = "segment bigint, ts bigint, speed double"


@dataclass(frozen=True)
class Entry:
    """`call` is what a user writes, `build` an example of it; `asked` are patterns over an output,
    with the output's number where it is not the first."""

    name: str
    call: Callable[..., Any]
    build: Callable[[FlowBuilder], str]
    holds: str
    passes: str
    asked: tuple[str | tuple[str, int], ...] = ()
    note: str = ""


class Nowhere:
    """An archive that knows nothing."""

    parameters = ("segment",)

    def look_up(self, keys: pl.DataFrame) -> pl.DataFrame:
        return keys.select(pl.lit(None, pl.Float64).alias("speed"))


def _ordered(flow: FlowBuilder, name: str = "sensors") -> FlowStream:
    return flow.source(name, DDL, time=external("ts", ordered=True))


def _disordered(flow: FlowBuilder, name: str = "vehicles") -> FlowStream:
    return flow.source(name, DDL, time=external("ts", bounds=bounds(skew=30)))


def _revisable(flow: FlowBuilder, name: str) -> FlowStream:
    return _disordered(flow, name).aggregate(by="segment", every=20, n="count(*)", speculative=True)


def _gate(flow: FlowBuilder) -> str:
    a, b = _ordered(flow, "data"), _ordered(flow, "pacer")
    return flow.add(GateNode("gate", (a.ref, b.ref), (a.stream, b.stream))).name


def _sink(flow: FlowBuilder) -> str:
    flow.sink("map", _ordered(flow))
    return "map"


def _timer(flow: FlowBuilder) -> str:
    made = _disordered(flow).punctuate(every="1m", delay="5m", name="punctuate")
    return flow.nodes[made.ref.node].inputs[1].node


def _named(make: Callable[[FlowBuilder], FlowStream | list[FlowStream]]) -> Any:
    """The name of the node at the end of what is made."""

    def build(flow: FlowBuilder) -> str:
        made = make(flow)
        ref: Ref = (made[0] if isinstance(made, list) else made).ref
        return ref.node

    return build


ALL = "[segment=3, ts ≤ 40]"
NOTHING = "nothing"

ENTRIES = (
    Entry(
        "source", FlowBuilder.source, _named(_disordered),
        "what it has promised, and where its bounds are learned a sketch of how late tuples were",
        "makes heartbeats, from tuples and bounds or on demand; keeps its word: what comes behind "
        "a promise leaves by the late output",
        (ALL, ("[segment=3]", 1)),
    ),
    Entry("where", FlowStream.where, _named(lambda f: _ordered(f).where("speed > 50")),
          NOTHING, "passes every punctuation on", (ALL, "[speed > 90]")),
    Entry("select", FlowStream.select,
          _named(lambda f: _ordered(f).select("segment", t="ts", kmh="speed * 1.609")),
          NOTHING, "passes on what speaks of carried attributes only, under their new names",
          ("[segment=3, t ≤ 40]", "[kmh > 90]"),
          "`with_columns` is the same with all attributes kept."),
    Entry(
        "union", FlowBuilder.union, _named(lambda f: f.union(_ordered(f), _disordered(f))),
        "the tuples that another input has not caught up with",
        "the least heartbeat of the inputs; anything else once every input has promised it and "
        "nothing held matches",
        (ALL,),
        "With `in_order=False`, and for streams without time, tuples pass as they come and nothing "
        "is held. `a.union(b, …)` is the same as `flow.union(a, b, …)`.",
    ),
    Entry("merge", FlowBuilder.merge, _named(lambda f: f.merge(_ordered(f, "a"), _ordered(f, "b"))),
          "as `union`", "as `union`", (ALL,)),
    Entry("sort", FlowStream.sort, _named(lambda f: _disordered(f).sort()),
          "the tuples above the heartbeat", "releases what a heartbeat covers, then passes it on",
          (ALL,)),
    Entry(
        "join", FlowStream.join,
        _named(lambda f: _ordered(f).join(_disordered(f), on="segment", within=20)),
        "of each input, the tuples that later ones may still meet, and those that wait for another "
        "input",
        "the least heartbeat of the inputs, in terms of `joined_at`; drops what no later tuple can "
        "meet; a punctuation on the keys once every input has made it",
        ("[segment=3]", "[speed > 90]", "[speed_right > 90]", "[speed > 90, speed_right > 90]",
         "[joined_at ≤ 40]"),
        "`thrifty=True` also sends `¬` for what can meet nothing any more, `impatient=True` sends "
        "`?` for the partners of what it has. Keys are remembered up to 256 for that.",
    ),
    Entry(
        "join, left", FlowStream.join,
        _named(lambda f: _ordered(f).join(_disordered(f), on="segment", within=20, how="left")),
        "as `join`, and which left tuples have met nobody",
        "as `join`; a left tuple that met nobody comes out when its window has passed",
        ("[segment=3]", "[speed > 90]", "[speed_right > 90]"),
    ),
    Entry(
        "aggregate", FlowStream.aggregate,
        _named(lambda f: _disordered(f).aggregate(by="segment", every=20, n="count(*)",
                                                  speed="avg(speed)")),
        "one row for each pane and group where all aggregates can be combined from parts (count, "
        "sum, min, max, avg …), else the tuples of the open panes",
        "a heartbeat closes windows and goes on up to the start of the first open one; a "
        "punctuation on groups goes on",
        ("[segment=3]", "[ts ≤ 40]", "[n ≥ 50]", "[speed > 90]", ("[segment=3]", 1)),
        "`.partial` is where `!` is answered: results so far, with `as_of`.",
    ),
    Entry(
        "aggregate, rows", FlowStream.aggregate,
        _named(lambda f: _ordered(f).aggregate(by="segment", rows=100, slide=10,
                                               speed="avg(speed)")),
        "the last `rows` tuples of each group, until punctuation says the group has ended",
        "passes heartbeats on; a punctuation on groups frees what they held",
        ("[segment=3]", "[window ≤ 4]"),
        "A disordered input is sorted first.",
    ),
    Entry(
        "aggregate, speculative", FlowStream.aggregate, _named(lambda f: _revisable(f, "vehicles")),
        "as `aggregate`, and what was shown of the windows that are open",
        "a heartbeat becomes a `stable` element",
        ("[segment=3]", "[n > 50]"),
        "In process only. Results are elements of a revisable stream.",
    ),
    Entry("duplicate", FlowStream.duplicate, _named(lambda f: _ordered(f).duplicate(2)),
          "what some outputs were told, until all are", "to every output", (ALL,)),
    Entry("split", FlowStream.split, _named(lambda f: _ordered(f).split("speed > 50")),
          "as `duplicate`", "to every output", (ALL,)),
    Entry("punctuate", FlowStream.punctuate,
          _named(lambda f: _disordered(f).punctuate(every="1m", delay="5m")),
          "the last punctuation it made",
          "writes one at each tick of its timer and enforces it: what comes behind is late",
          (ALL, ("[segment=3]", 1))),
    Entry("timer", FlowStream.punctuate, _timer, "when it last fired",
          "makes none; `punctuate` does from its readings", ("[time ≤ '2024-05-01 09:00']",),
          "Made by `punctuate`."),
    Entry("slack", FlowStream.slack, _named(lambda f: _disordered(f).slack(3, window=20)),
          "the greatest timestamps as of the last `tuples` + 1 tuples",
          "makes heartbeats by counting tuples, and passes on those it gets", (ALL,),
          "A baseline to compare with."),
    Entry(
        "pace", FlowStream.pace, _named(lambda f: _ordered(f).pace(_disordered(f), within=60)),
        "no tuple; the high-watermark",
        "promises that nothing is further than `within` behind the high-watermark, whatever the "
        "inputs promise",
        (ALL, ("[segment=3]", 1)),
        "Sends `¬` to inputs that have fallen behind, unless `feedback=False`.",
    ),
    Entry("impute", FlowStream.impute,
          _named(lambda f: _ordered(f).impute("speed", archive=Nowhere())),
          "the tuples that wait for a look-up",
          "waits behind the tuples it speaks of; a heartbeat is held below the oldest that waits",
          (ALL, "[speed > 90]"), "`?` is served first."),
    Entry("poll", FlowStream.poll, _named(lambda f: _ordered(f).poll(keep=600)),
          "the tuples not asked for, for as long as `keep`",
          "a heartbeat goes on, `keep` lower", (ALL,), "`!` releases what matches."),
    Entry("events", FlowStream.events, _named(lambda f: _ordered(f).events(lasting=20)),
          NOTHING, "a heartbeat becomes a `stable` element", ("[segment=3]", "[speed > 90]"),
          "In process only."),
    Entry("declare", FlowStream.declare, _named(lambda f: _disordered(f).declare(keyed=True)),
          NOTHING, "passes every punctuation on", (ALL,)),
    Entry("cleanse", FlowStream.cleanse, _named(lambda f: _revisable(f, "vehicles").cleanse()),
          "elements of events that are not final", "releases what a `stable` makes final",
          ("[segment=3]",), "In process only."),
    Entry(
        "lmerge", FlowBuilder.lmerge,
        _named(lambda f: f.lmerge(_revisable(f, "a"), _revisable(f, "b"))),
        "depends on the variant: two numbers (R0) up to every event that is not final (R3, R4)",
        "puts out a `stable` as soon as one joined input has, less the policy's lag",
        ("[segment=3]",),
        "In process; on Spark it is `ip.lmerge(df, df)`. Slower inputs are sent `¬` for what is "
        "past, unless `feedback=False`.",
    ),
    Entry("gate", FlowBuilder, _gate,
          "the tuples above the least heartbeat of its stream and its pacers",
          "holds a heartbeat back to the least of all", (ALL,),
          "Put in by `Flow(heartbeats=\"query\" | \"memory\")`, never written."),
    Entry("sink", FlowBuilder.sink, _sink, "how far it has come", "ends here", (ALL,)),
)  # fmt: skip
