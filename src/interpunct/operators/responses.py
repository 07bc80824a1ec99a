"""Characterisations: what an operator does about assumed feedback, as a row of a table.

    ¬[g, *]        purge group g, guard input (g)        propagate g, in terms of the input
    ¬[*, ≥ a]      purge and guard the groups that       propagate those groups
                   have reached a, now and later
    ¬[*, a]        guard output

Tables 1 and 2 of Feedback section 4.3 are such tables, for COUNT and JOIN. Every operator has one:
`characterise(pattern, port)` classes a pattern over an output and gives the row, as data, so that
the same table is obeyed by a running operator and printed by `explain`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from interpunct.model.pattern import Pattern

ByPort = Mapping[int, Pattern]


@dataclass(frozen=True)
class Response:
    """One row: the case, the local exploit and the propagation, each in terms of its own side.

    `purge` speaks of held tuples by the input they came from. `closing` is a pattern over results
    that, once true of an open group, stays true of it (MAX ≥ a): such groups are given up when
    they get there.
    """

    case: str
    guard_input: ByPort = field(default_factory=dict)
    guard_output: ByPort = field(default_factory=dict)
    purge: ByPort = field(default_factory=dict)
    propagate: ByPort = field(default_factory=dict)
    closing: Pattern | None = None
    when: str = ""  # what must come true first, if anything

    @property
    def actions(self) -> str:
        """The row in words."""
        said = [
            *(f"purge {p} of input {i}" for i, p in self.purge.items()),
            *(f"guard input {i} with {p}" for i, p in self.guard_input.items()),
            *(f"guard output {i} with {p}" for i, p in self.guard_output.items()),
            *([f"close groups once {self.closing}"] if self.closing is not None else []),
            *(f"propagate {p} to input {i}" for i, p in self.propagate.items()),
        ]
        first = f"{self.when}: " if self.when else ""
        return first + ("; ".join(said) or "nothing")


def at_input(case: str, patterns: ByPort, *, purge: bool = False, when: str = "") -> Response:
    """Guard these inputs, do without what is held of them, and tell those upstream."""
    told = {port: pattern for port, pattern in patterns.items() if not pattern.is_empty}
    return Response(case, told, purge=told if purge else {}, propagate=told, when=when)


def at_output(case: str, pattern: Pattern, port: int = 0) -> Response:
    """Guard the output, which is always correct."""
    return Response(case, guard_output={port: pattern})
