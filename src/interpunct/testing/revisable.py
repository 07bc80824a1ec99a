"""Mutually consistent streams: one table, told in as many ways as there are inputs.

    table        A [6,12)   B [8,10)
    one way      ins(B,8,∞)  ins(A,6,12)  adj(B,8,∞,10)  stable(11)  stable(∞)
    another      ins(A,6,7)  stable(3)  ins(B,8,15)  adj(A,6,7,12)  adj(B,8,15,10)  stable(∞)

Each event becomes a chain of elements that ends with its true lifetime; events that are not in the
table may be inserted and removed again. The chains are mixed with as much disorder as asked for,
and stables go wherever everything after them allows it. So each stream reconstitutes the table, and
any prefixes of them are mutually consistent (LMerge section III-A).

Randomness is a `random.Random`: a seed from hypothesis makes one.

>>> from random import Random
>>> rows = retold([("A", 6, 12)], Random(1), Telling(revisions=0, spurious=0, stables=0))
>>> rows
[('insert', 6, None, 12, 'A'), ('stable', '∞', None, None)]
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from random import Random
from typing import Any

import polars as pl

from interpunct.model.elements import FOREVER, Row, adjust, element_schema, elements, insert, stable
from interpunct.model.schema import END_OF_TIME, Schema

Event = tuple[Any, int, int]  # payload, Vs, Ve

SCHEMA = element_schema(Schema.of("p string"))
PAYLOADS = "ABCDE"


@dataclass(frozen=True)
class Telling:
    """How a stream tells its table: chances of a revision, of an event that is not there, of a
    stable after an element; how far out of order (in ticks) elements may come."""

    revisions: float = 0.4
    spurious: float = 0.2
    stables: float = 0.3
    disorder: int = 6


def table(
    random: Random, events: int = 8, *, duplicates: bool = False, distinct_starts: bool = False
) -> list[Event]:
    """Some events; by default (Vs, payload) is a key."""
    found: list[Event] = []
    taken: set[Any] = set()
    for _ in range(events):
        payload, vs = random.choice(PAYLOADS), random.randint(0, 20)
        ve = END_OF_TIME if random.random() < 0.1 else vs + random.randint(1, 12)
        key = vs if distinct_starts else (payload, vs)
        if duplicates or key not in taken:
            found.append((payload, vs, ve))
            taken.add(key)
    return found


def retold(events: Sequence[Event], random: Random, telling: Telling) -> list[Row]:
    """A stream with this table: revisions, disorder, events that come and go."""
    chains = [_chain(event, random, telling) for event in events]
    keys = {(p, vs) for p, vs, _ in events}
    for _ in range(len(events)):
        if random.random() < telling.spurious:
            payload, vs = random.choice(PAYLOADS), random.randint(0, 20)
            if (payload, vs) not in keys:
                keys.add((payload, vs))
                end = vs + random.randint(1, 12)
                chains.append([insert(payload, vs, end), adjust(payload, vs, end, vs)])
    return with_stables(_mixed(chains, random, telling.disorder), random, telling.stables)


def in_order(
    events: Sequence[Event], random: Random, stables: float = 0.3, *, shuffled_ties: bool = False
) -> list[Row]:
    """A stream of inserts in the order of Vs; ties as the table has them, or in any order."""
    ties = {id(e): random.random() if shuffled_ties else n for n, e in enumerate(events)}
    ordered = sorted(events, key=lambda e: (e[1], ties[id(e)]))
    return with_stables([insert(*e) for e in ordered], random, stables)


def from_time(events: Sequence[Event], start: int) -> list[Event]:
    """What an input must show that is guaranteed from this time: events that end at it or later."""
    return [e for e in events if e[2] >= start]


def with_stables(rows: Sequence[Row], random: Random, chance: float) -> list[Row]:
    """Stables where what follows allows them, and the end of time."""
    bounds = [END_OF_TIME]
    for row in reversed(rows):
        bounds.append(min(bounds[-1], _earliest(row)))
    bounds.reverse()
    told: list[Row] = []
    given = -1
    for row, bound in zip(rows, bounds[1:], strict=True):
        told.append(row)
        most = min(bound, 40)
        if random.random() < chance and most > given:
            given = random.randint(max(given + 1, most - 4), most)
            told.append(stable(given))
    return [*told, stable(FOREVER)]


def mixed(
    streams: Sequence[Sequence[Row]], random: Random, lag: Sequence[float] | None = None
) -> list[tuple[int, Row]]:
    """The rows of all inputs in one order of arrival; an input with more lag comes later."""
    weights = [1.0 / (1.0 + (lag[p] if lag else 0.0)) for p in range(len(streams))]
    places = [0] * len(streams)
    arrived: list[tuple[int, Row]] = []
    while left := [p for p, s in enumerate(streams) if places[p] < len(s)]:
        port = random.choices(left, [weights[p] for p in left])[0]
        arrived.append((port, streams[port][places[port]]))
        places[port] += 1
    return arrived


def paged(
    arrived: Iterable[tuple[int, Row]], random: Random, schema: Schema = SCHEMA
) -> list[tuple[int, pl.DataFrame]]:
    """Arrivals as frames: rows of one input that come together are cut anywhere."""
    frames: list[tuple[int, list[Row]]] = []
    for port, row in arrived:
        if frames and frames[-1][0] == port and random.random() < 0.7:
            frames[-1][1].append(row)
        else:
            frames.append((port, [row]))
    return [(port, elements(schema, rows)) for port, rows in frames]


def _chain(event: Event, random: Random, telling: Telling) -> list[Row]:
    """Elements that end with the event's true lifetime."""
    payload, vs, ve = event
    ends = [ve]
    while random.random() < telling.revisions and len(ends) < 4:
        guess = random.choice([END_OF_TIME, vs + random.randint(1, 14)])
        if guess != ends[0]:
            ends.insert(0, guess)
    chain = [insert(payload, vs, ends[0])]
    return chain + [adjust(payload, vs, a, b) for a, b in pairwise(ends)]


def _mixed(chains: list[list[Row]], random: Random, disorder: int) -> list[Row]:
    """All chains in one stream, roughly in the order of the times their elements bear upon."""
    placed: list[tuple[float, int, Row]] = []
    for number, chain in enumerate(chains):
        at = float("-inf")
        for step, row in enumerate(chain):
            due = min(_earliest(row), 60) + random.uniform(0, disorder)
            at = max(at + 1e-6, due)
            placed.append((at, number * 10 + step, row))
    return [row for _, _, row in sorted(placed, key=lambda p: p[:2])]


def _earliest(row: Row) -> int:
    """The greatest stable that may stand before this element."""
    kind, vs, vold, ve, *_ = row
    return int(vs) if kind == "insert" else int(min(vold, ve))
