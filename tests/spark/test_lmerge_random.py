"""Replicas that come and go, lag and lack elements, merged on Spark: whatever they do, the output
is compatible with them after every batch, and at last it has their table (LMerge III to V).

The scripts are those of `tests/lmerge/test_random.py`, a round of which is a batch here: played to
lanes by themselves for every algorithm with every policy, and to queries, where each algorithm has
every value of a policy at least once. Queries of their own take half as long as one with all merges
in it, whose many stages keep Python's workers from being warm.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

import interpunct as ip
from interpunct.model.elements import STABLE, Row, elements, insert
from interpunct.model.schema import END_OF_TIME, START_OF_TIME, Schema
from interpunct.model.tdb import equivalent, tdb, violations
from interpunct.operators.lmerge_policy import MergePolicy
from interpunct.operators.state import DictState
from interpunct.spark.lanes import lane_of
from interpunct.spark.lmerge_batches import ATTACH, DETACH, comes_or_goes, is_mark
from interpunct.spark.lmerge_lane import LaneMerge, Merger
from interpunct.testing.attendance import FATES, Turn, fates, script
from interpunct.testing.compatibility import Watch
from interpunct.testing.revisable import SCHEMA, Event
from tests.lmerge import merging
from tests.spark.streams import read, run, write

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")

ROUNDS = 5
SEED = 5
NAMES = "abc"
ORDERED = ("R0", "R1", "R2")


@dataclass(frozen=True)
class Case:
    """A merge; `apart` where every input is a DataFrame of its own, else a column has its name."""

    variant: str
    policy: MergePolicy = field(default_factory=MergePolicy)
    apart: bool = False

    @property
    def order(self) -> str | None:
        return "seq" if self.variant == "R1" else None

    @property
    def keyed(self) -> bool:
        return self.variant not in ("R1", "R4")


CASES = {
    "R0": Case("R0"),
    "R0 lag": Case("R0", MergePolicy(stable_lag=2), apart=True),
    "R1": Case("R1", apart=True),
    "R1 lag": Case("R1", MergePolicy(stable_lag=2)),
    "R2": Case("R2"),
    "R2 lag": Case("R2", MergePolicy(stable_lag=2)),
    "R3": Case("R3"),
    "R3 every": Case("R3", MergePolicy("every", stable_lag=2)),
    "R3 half-frozen": Case("R3", MergePolicy(inserts="half-frozen"), apart=True),
    "R3 leader": Case("R3", MergePolicy("leader", "leader", stable_lag=2)),
    "R3 quorum": Case("R3", MergePolicy(inserts=0.5)),
    "R3-": Case("R3-"),
    "R3- lag": Case("R3-", MergePolicy(stable_lag=2)),
    "R4": Case("R4"),
    "R4 every": Case("R4", MergePolicy("every"), apart=True),
    "R4 half-frozen": Case("R4", MergePolicy("leader", "half-frozen", stable_lag=2)),
    "R4 leader": Case("R4", MergePolicy("leader", "leader")),
    "R4 quorum": Case("R4", MergePolicy(inserts=0.5, stable_lag=2)),
}


@dataclass
class Played:
    """A script, and what a merge put out in each of its rounds, stables last; the script's seed is
    in what every failed assertion says."""

    case: Case
    seed: int
    events: list[Event]
    turns: list[Turn]
    out: dict[int, list[Row]] = field(default_factory=dict)

    @classmethod
    def of(cls, case: Case, seed: int, needed: Set[str] = frozenset()) -> Played:
        """The first script from this seed on in which all happens that is needed."""
        while True:
            random = Random(seed)
            events = merging.reference(case.variant, random, 12)
            turns = script(
                events, lambda part, random: merging.told(case.variant, part, random), random,
                ordered=case.variant in ORDERED, lag=case.policy.stable_lag,
                names=NAMES, rounds=ROUNDS,
            )  # fmt: skip
            if needed <= fates(turns):
                return cls(case, seed, events, turns)
            seed += 1

    @property
    def where(self) -> str:
        return f"{self.case}, seed {self.seed}"

    def in_round(self, number: int) -> list[Turn]:
        return [turn for turn in self.turns if turn.round == number]

    def batches(self) -> list[pl.DataFrame]:
        """A batch for each round, its elements in any order; those of R1 with their places."""
        shuffling, place, frames = Random(self.seed), 0, []
        for number in range(ROUNDS):
            said = [_said(turn) for turn in self.in_round(number)]
            frame = pl.concat([elements(SCHEMA, ()).with_columns(replica=pl.lit("a")), *said])
            if self.case.order is not None:
                frame = frame.with_row_index(self.case.order, place).cast({"seq": pl.Int64})
                place += frame.height
            frames.append(frame.sample(fraction=1, shuffle=True, seed=shuffling.randint(0, 999)))
        return frames

    def check(self) -> None:
        """C1 to C3 after every batch, by the public checker; within one nothing has an order."""
        watch, streams, stable = Watch(0, keyed=self.case.keyed), {}, START_OF_TIME
        for number in range(ROUNDS):
            for turn in self.in_round(number):
                if turn.attach is not None or turn.name not in streams:
                    start = START_OF_TIME if turn.attach is None else turn.attach
                    streams[turn.name] = watch.attaches(start, turn.lacks)
                for row in turn.rows:
                    watch.arrives(streams[turn.name], row)
                stable = turn.stable
            for row in self.out.get(number, ()):
                watch.emits(row)
            assert not watch.faults(), (self.where, number, watch.faults())
            assert watch.output.stable == stable, (self.where, number)
        self._check_all()

    def _check_all(self) -> None:
        found = elements(SCHEMA, [row for rows in self.out.values() for row in rows])
        expected = elements(SCHEMA, [insert(*event) for event in self.events])
        assert equivalent(SCHEMA, found, expected), (self.where, tdb(SCHEMA, found).rows())
        assert not violations(SCHEMA, found, keyed=self.case.keyed), self.where


def _said(turn: Turn) -> pl.DataFrame:
    attach = [(ATTACH, turn.attach, None, None)] if turn.attach is not None else []
    detach = [(DETACH, None, None, None)] if turn.detach else []
    rows = elements(SCHEMA, [*attach, *turn.rows, *detach])
    return rows.with_columns(replica=pl.lit(turn.name))


# In lanes by themselves -------------------------------------------------------------------------


def in_lanes(played: Played, lanes: int = 2) -> set[str]:
    """Play a script to lanes that are restarted from their state before every batch; returns the
    inputs that were not believed."""
    case, lies = played.case, set()
    order = None if case.order is None else Schema.of(f"{case.order} bigint")[case.order]
    names = tuple(NAMES) if case.apart else ()
    merger = Merger(
        SCHEMA, names, case.variant, merging.KNOWN[case.variant], case.policy, "run", order=order
    )
    states, stable = [DictState() for _ in range(lanes)], START_OF_TIME
    for number, frame in enumerate(played.batches()):
        out, reached = [], []
        for index, state in enumerate(states):
            lane = LaneMerge(merger, state)
            for name in sorted(frame.get_column("replica").unique()):
                said = frame.filter(pl.col("replica") == name).select(merger.entering.names)
                speaks = bool(said.select((~comes_or_goes()).any()).item())
                pages, found = lane.take(name, _share(said, index, lanes), speaks=speaks)
                lies |= set(found)
                out += [row for page in pages for row in page.rows()]
            lane.save()
            reached.append(lane.merge.max_stable)
        if min(reached) > stable:
            stable = min(reached)
            out.append((STABLE, stable, None, None, None))
        played.out[number] = out
    return lies


def _share(frame: pl.DataFrame, lane: int, lanes: int) -> pl.DataFrame:
    """What a lane hears of an input in a batch: its payloads' elements, and every mark."""
    mine = (lane_of(frame, ["p"], lanes) == lane).alias("mine")
    return frame.filter(mine | frame.select(is_mark()).to_series())


@pytest.mark.parametrize(("variant", "policy"), merging.CASES, ids=merging.named)
@given(seed=st.integers(0, 2**32), apart=st.booleans())
@settings(max_examples=3)
def test_lanes_that_hear_replicas_come_and_go_have_their_table(
    variant: str, policy: MergePolicy, seed: int, apart: bool
) -> None:
    played = Played.of(Case(variant, policy, apart), seed)
    assert not in_lanes(played), played.where
    played.check()


def test_a_lane_knows_of_inputs_that_have_spoken_to_another_lane_only() -> None:
    """The first has said nothing to the second lane when the other attaches, guaranteed from 3:
    what ended before then is still to come there too."""
    payloads = pl.DataFrame({"p": list("ABCDEFGH")})
    here, there = (payloads.filter(lane_of(payloads, ["p"], 2) == n)[0, 0] for n in (0, 1))
    events = [(here, 1, 4), (there, 1, 2), (there, 9, 12)]
    first, over, later = (insert(*event) for event in events)
    end = (STABLE, END_OF_TIME, None, None, None)
    turns = [
        Turn(0, "a", (first,)),
        Turn(1, "b", (first, later, (STABLE, 8, None, None, None)), attach=3),
        Turn(2, "a", (over, later, end), stable=END_OF_TIME),
    ]
    played = Played(Case("R3"), 0, events, turns)
    assert not in_lanes(played)
    played.check()


# In a query -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
def test_a_query_over_replicas_that_come_and_go_is_compatible_after_every_batch_and_has_their_table(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    """Everything that can happen to an input happens to one of the three."""
    played = Played.of(CASES[name], SEED, frozenset(FATES))
    checkpoint = tmp_path / "checkpoint"
    delivered = run(_merge(spark, tmp_path, played, checkpoint), checkpoint)
    for batch, rows in delivered.batches.items():
        played.out[batch] = sorted(map(tuple, rows), key=lambda row: row[0] == STABLE)
    assert ip.quarantined(str(checkpoint)) == [], played.where
    played.check()


def _merge(spark: SparkSession, folder: Path, played: Played, checkpoint: Path) -> DataFrame:
    case, batches = played.case, played.batches()
    if case.apart:
        told = [[b.filter(pl.col("replica") == n).drop("replica") for b in batches] for n in NAMES]
    else:
        told = [batches]
    return ip.lmerge(
        *(read(spark, write(folder / str(n), own)) for n, own in enumerate(told)),
        by=None if case.apart else "replica", order=case.order, variant=case.variant,
        properties=merging.KNOWN[case.variant], policy=case.policy, checkpoint=str(checkpoint),
    )  # fmt: skip
