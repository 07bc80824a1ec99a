"""Punctuations other than heartbeats, on their way through an operator that holds tuples.

A punctuation is true of the output only when every input has promised it and no tuple the
operator still holds matches it. Until then it waits here. Forgetting a promise is always safe,
so the book is bounded.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import polars as pl

from interpunct.model.pattern import Pattern
from interpunct.model.punctuation import Punctuation
from interpunct.model.schema import Schema
from interpunct.operators.state import Record, State

MOST_PROMISES = 256  # remembered per input, the oldest forgotten first


class PromiseBook:
    """Patterns in output terms, by the input that promised them."""

    def __init__(self, state: State, schema: Schema, ports: int, key: str = "promises") -> None:
        self._schema = schema
        self._record = Record(state, key, {"made": [[] for _ in range(ports)], "ready": []})
        self._made = [[self._parsed(t) for t in texts] for texts in self._record["made"]]
        self._ready = [self._parsed(t) for t in self._record["ready"]]

    def __len__(self) -> int:
        return sum(len(made) for made in self._made) + len(self._ready)

    def __bool__(self) -> bool:
        return bool(self._ready) or any(self._made)

    def add(self, port: int, pattern: Pattern) -> None:
        """An input promises that no later tuple of its own matches the pattern."""
        agreed = [pattern]
        for other, made in enumerate(self._made):
            if other != port:
                both = (a.intersect(m) for a in agreed for m in made)
                agreed = _strongest(p for p in both if not p.is_empty)
        if len(self._made) > 1:
            self._made[port] = _strongest([*self._made[port], pattern])
        self._ready = _strongest([*self._ready, *agreed])

    def settle(self, held: Sequence[pl.DataFrame], heartbeat: int) -> tuple[Punctuation, ...]:
        """The punctuations that have become true, given what is still held."""
        if not self:
            return ()
        clear = [p for p in self._ready if not any(p.matches_any(f) for f in held if f.height)]
        self._ready = [p for p in self._ready if p not in clear]
        if self._schema.time is not None:
            bound = Punctuation.heartbeat(self._schema, heartbeat).pattern
            self._made = [[p for p in made if not p.implies(bound)] for made in self._made]
            self._ready = [p for p in self._ready if not p.implies(bound)]
            clear = [p for p in clear if not p.implies(bound)]
        return tuple(map(Punctuation, clear))

    def save(self) -> None:
        self._record["made"] = [[p.by_name() for p in made] for made in self._made]
        self._record["ready"] = [p.by_name() for p in self._ready]
        self._record.save()

    def _parsed(self, text: str) -> Pattern:
        return Pattern.parse(text, self._schema)


def _strongest(patterns: Iterable[Pattern]) -> list[Pattern]:
    """Without those that another one covers; the newest when there are too many."""
    kept: list[Pattern] = []
    for pattern in patterns:
        if not any(pattern.implies(k) for k in kept):
            kept = [k for k in kept if not k.implies(pattern)] + [pattern]
    return kept[-MOST_PROMISES:]
