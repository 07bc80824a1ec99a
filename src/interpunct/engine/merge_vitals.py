"""What can be seen of a logical merge from outside: its inputs, and which of them leads.

    input   status        stable     leads
    a       joined        12:00:07   ✓              out: 12:00:07
    b       quarantined   12:00:05        insert(…) contradicts its own stable

>>> one = MergeVitals("R3", 7, "a", {"a": InputVitals("joined", 7), "b": InputVitals("joined", 5)})
>>> two = MergeVitals("R3", 6, "a", {"a": InputVitals("joined", 6), "b": InputVitals("detached")})
>>> both = together("R3", True, [one, two])
>>> both.stable, both.leader, both.inputs["a"].stable, both.inputs["b"].status
(6, 'a', 6, 'detached')

An input that has stopped is not told apart from one that is slow: it falls behind, and the other
leads (LMerge section I).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from interpunct.model.schema import START_OF_TIME
from interpunct.operators.lmerge_base import DETACHED, JOINED, JOINING, QUARANTINED

WORST = (QUARANTINED, DETACHED, JOINING, JOINED)  # the first that any lane says is shown


@dataclass(frozen=True)
class InputVitals:
    """What a merge thinks of an input, and how far that is stable, in ticks."""

    status: str
    stable: int = START_OF_TIME
    why: str = ""  # it is in quarantine

    def beside(self, other: InputVitals) -> InputVitals:
        """Two lanes of one merge: it has come as far as the lane that has heard least of it."""
        status = min(self.status, other.status, key=WORST.index)
        return InputVitals(status, min(self.stable, other.stable), self.why or other.why)


@dataclass(frozen=True)
class MergeVitals:
    """Of one lane, or of a whole merge."""

    variant: str
    stable: int = START_OF_TIME  # of what comes out, in ticks
    leader: str | None = None
    inputs: Mapping[str, InputVitals] = field(default_factory=dict)
    clocked: bool = True  # whether ticks are microseconds

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of_json(cls, said: Mapping[str, Any]) -> MergeVitals:
        inputs = {name: InputVitals(**seen) for name, seen in said["inputs"].items()}
        return cls(**{**said, "inputs": inputs})

    def because(self, why: Mapping[str, str]) -> MergeVitals:
        """With what inputs in quarantine did."""
        told = {
            name: replace(seen, why=why.get(name, "")) if seen.status == QUARANTINED else seen
            for name, seen in self.inputs.items()
        }
        return replace(self, inputs=told)


def together(variant: str, clocked: bool, lanes: Sequence[MergeVitals]) -> MergeVitals:
    """The lanes of a merge as one. Every lane hears every stable, so they agree on who leads but
    while a batch runs, or where one does not believe an input yet; then the one that has come
    furthest is right, if all lanes count on whom it names."""
    inputs: dict[str, InputVitals] = {}
    for lane in lanes:
        for name, seen in lane.inputs.items():
            inputs[name] = seen.beside(inputs[name]) if name in inputs else seen
    named = (lane.leader for lane in sorted(lanes, key=lambda lane: -lane.stable))
    leader = next((n for n in named if n is not None and inputs[n].status == JOINED), None)
    stable = min((lane.stable for lane in lanes), default=START_OF_TIME)
    return MergeVitals(variant, stable, leader, dict(sorted(inputs.items())), clocked)
