"""A program: what the driver ships to every worker, and what a checkpoint remembers of it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from interpunct.engine.lane import Lane, exports_of
from interpunct.flow.graph import Graph
from interpunct.flow.lane_key import LaneKey
from interpunct.flow.nodes import Ref
from interpunct.flow.planner import Stage, stages
from interpunct.flow.pushdown import Prefix, prefix_of
from interpunct.model.errors import FlowError
from interpunct.model.schema import Schema
from interpunct.operators.state import State
from interpunct.spark.channel import Channel
from interpunct.spark.hints import Hints
from interpunct.spark.ingest import Target
from interpunct.spark.lanes import check_lanes, lane_ids
from interpunct.spark.packed import UnpackedOnce
from interpunct.spark.wire import SINK, Note

LONG, AROUND = 160, 2  # letters of two descriptions that are cut, words left around what differs


@dataclass(frozen=True)
class Program(UnpackedOnce):
    """A flow cut into stages for a number of lanes."""

    graph: Graph
    stages: tuple[Stage, ...]
    exports: Mapping[int, list[Ref]]
    lanes: int
    hints: Hints | None = None
    channel: Channel | None = None
    run: str = field(default_factory=lambda: uuid.uuid4().hex)  # tells warm caches apart

    @classmethod
    def of(
        cls,
        graph: Graph,
        lanes: int,
        hints: Hints | None = None,
        channel: Channel | None = None,
    ) -> Self:
        check_lanes(lanes)
        cut = stages(graph)
        return cls(graph, tuple(cut), exports_of(graph, cut), lanes, hints, channel)

    @property
    def where(self) -> str:
        """What errors call it."""
        return f"flow {self.graph.name!r}"

    @property
    def lane_ids(self) -> tuple[int, ...]:
        return lane_ids(self.lanes)

    @property
    def direct(self) -> tuple[str, Schema] | None:
        """The output whose tuples leave as rows, with its schema: the only sink, if its values are
        plain and it is in the last stage. Pages would take one more pass through Python."""
        if len(self.graph.sinks) != 1:
            return None
        (sink,) = self.graph.sinks
        schema = sink.streams[0].schema
        plain = not any(a.dtype.is_nested() or a.dtype.is_decimal() for a in schema.attributes)
        last = sink.name in self.stages[-1].nodes
        return (f"{SINK}{sink.name}", schema) if plain and last else None

    def lane(self, stage: int, state: State) -> Lane:
        """A lane of a stage; a source that enters several stages is reported late by the first."""
        earlier = {n for s in self.stages if s.number < stage for n in s.nodes}
        return Lane(
            self.graph, self.stages[stage], self.lanes, state,
            exports=self.exports[stage], silent=earlier, readers=self._readers(stage),
        )  # fmt: skip

    def _readers(self, stage: int) -> dict[Ref, int]:
        """How many lanes of later stages read each stream that goes on."""
        return {ref: len(self.readers_of(ref)) * self.lanes for ref in self.exports[stage]}

    def reader(self, ref: Ref, stage: int, lane: int) -> int:
        """The number of a lane among those that read a stream."""
        stages = [number for number, _ in self.readers_of(ref)]
        return stages.index(stage) * self.lanes + self.lane_ids.index(lane)

    @property
    def homes(self) -> dict[str, int]:
        """The stage in which feedback for each sink, and for each stream that goes on, is heard."""
        sinks = {
            n.name: s.number for s in self.stages for n in self.graph.sinks if n.name in s.nodes
        }
        onward = {f"{r.node}:{r.port}": stage for stage, refs in self.exports.items() for r in refs}
        return sinks | onward

    def targets(self, source: str) -> tuple[Target, ...]:
        """The stages a source enters, and how its tuples find their lanes."""
        ref = Ref(source)
        entered = [s for s in self.stages if ref in s.keys]
        return tuple(self._target(stage, source, stage.keys[ref]) for stage in entered)

    def listeners(self, source: str) -> tuple[int, ...]:
        """The stages a source does not enter but whose sources' times it tells."""
        skew = self.graph.skew
        if skew is None or source not in skew.bounds.names:
            return ()
        entered = {t.stage for t in self.targets(source)}
        related = {t.stage for name in skew.bounds.names for t in self.targets(name)}
        return tuple(sorted(related - entered))

    def _target(self, stage: Stage, source: str, keys: tuple[LaneKey, ...]) -> Target:
        prefix = prefix_of(self.graph, stage, source)
        entry_keys = tuple(self._behind(prefix, key) for key in keys)
        return Target(stage.number, keys, prefix, entry_keys)

    def _behind(self, prefix: Prefix, key: LaneKey) -> LaneKey:
        """A key of a source's tuples as those have it that come out of the prefix."""
        left, name = list(key.through), key.name
        for node in prefix.nodes:
            if node in left:
                left.remove(node)
            elif not left:
                name = str(self.graph.nodes[node].prototype.attributes.output_of(0, name))
        return LaneKey(name, tuple(left))

    def heard(self, note: Note) -> Note:
        """What a note says to the lanes of this program."""
        return note

    def readers_of(self, ref: Ref) -> list[tuple[int, tuple[str, ...]]]:
        """The stages a stream of an earlier stage enters, with the lane's attributes."""
        return [
            (s.number, tuple(key.name for key in s.keys[ref]))
            for s in self.stages
            if ref in s.keys and ref.node not in s.nodes
        ]

    def described(self, stage: int) -> dict[str, str]:
        """What must not change on a checkpoint: lanes, keys, and what each operator does."""
        nodes = {n: self.graph.nodes[n] for n in self.stages[stage].nodes}
        described = {
            f"operator {name}": f"{node.kind} ← {', '.join(map(str, node.inputs))} "
            f"[{node.essence()}] → {'; '.join(o.schema.ddl for o in node.outputs)}"
            for name, node in nodes.items()
        }
        keys = self.stages[stage].keys
        described["lane keys"] = "; ".join(
            f"{r}: {', '.join(map(str, k))}" for r, k in keys.items()
        )
        described["lanes"] = str(self.lanes)
        if self.graph.skew is not None:
            described["skew"] = str(self.graph.skew)
        return described

    def check(self, stage: int, stored: bytes | None) -> bytes:
        """The description to store; an error when the stored one is another flow's."""
        mine = self.described(stage) if stage < len(self.stages) else {}
        if stored is None:
            return json.dumps(mine).encode()
        theirs: dict[str, str] = json.loads(stored)
        changed = [
            "{}: was {!r}, is {!r}".format(name, *_differing(theirs.get(name), mine.get(name)))
            for name in sorted({*mine, *theirs})
            if mine.get(name) != theirs.get(name)
        ]
        if changed:
            raise FlowError(
                self.where, "what its checkpoint was made with", "; ".join(changed),
                "Put back what was, or start with a new checkpoint and new paths.",
            )  # fmt: skip
        return stored

    def check_start(self) -> None:
        """Refuse another flow's checkpoint before the query starts, if beside it is written what
        it was made with. The lanes check what is in their state, in any case."""
        for stage, stored in [] if self.hints is None else self.hints.made_with():
            self.check(stage, stored)


def _differing(old: str | None, new: str | None) -> tuple[str, str]:
    """Two descriptions; of long ones the part in which they differ, with a few words around it."""
    if old is None or new is None or len(old) + len(new) < LONG:
        return old or "absent", new or "absent"
    one, other = old.split(), new.split()
    both = min(len(one), len(other))
    same = next((n for n in range(both) if one[n] != other[n]), both)
    tail = next((n for n in range(both - same) if one[-1 - n] != other[-1 - n]), both - same)
    begin, end = max(same - AROUND, 0), max(tail - AROUND, 0)
    cut = (" ".join(words[begin : len(words) - end]) for words in (one, other))
    short = [f"{'… ' if begin else ''}{text}{' …' if end else ''}" for text in cut]
    return short[0], short[1]
