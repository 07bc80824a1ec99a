"""Fast-forward (section V-D): slower inputs leave out what is past, and the output is the same."""

from __future__ import annotations

from random import Random

import polars as pl
import pytest
from hypothesis import given, settings
from merging import Merging, plain
from test_random import as_stream, reference, seeds, told

import interpunct as ip
from interpunct.model.elements import Row, adjust, elements, insert, stable
from interpunct.model.feedback import Feedback, Intent
from interpunct.model.pattern import Pattern
from interpunct.model.tdb import equivalent, tdb, violations
from interpunct.operators.contract import Emission
from interpunct.operators.lmerge_fast_forward import passed
from interpunct.testing.compatibility import Watch
from interpunct.testing.revisable import SCHEMA, Event, mixed

VARIANTS = ("R0", "R1", "R2", "R3", "R3-", "R4")


class Obedient:
    """A merge whose inputs do what they are told: they send nothing that is past."""

    def __init__(self, variant: str, inputs: int) -> None:
        self.merging = Merging(variant, inputs)
        self.merging.merge.fast_forward = True
        self.told: list[list[Pattern]] = [[] for _ in range(inputs)]
        self.spared = 0

    def arrive(self, port: int, row: Row) -> list[Row]:
        frame = elements(SCHEMA, [row])
        for pattern in self.told[port]:
            frame = frame.filter(~pattern.mask(frame))
        self.spared += 1 - frame.height
        if not frame.height:
            return []
        emission = self.merging.merge.accept(port, ip.Page(SCHEMA, frame))
        for slower, feedback in emission.relays:
            self.told[slower].append(feedback.pattern)
        self.merging.log += [page.frame for _, page in emission.pages]
        return [r for _, page in emission.pages for r in page.frame.rows()]


@pytest.mark.parametrize("variant", VARIANTS)
@given(seed=seeds)
@settings(max_examples=6)
def test_the_output_stays_compatible_with_inputs_that_leave_out_the_past(
    variant: str, seed: int
) -> None:
    random = Random(seed)
    events = reference(variant, random)
    streams = [told(variant, events, random) for _ in range(random.choice([2, 3]))]
    run = Obedient(variant, len(streams))
    keyed = variant not in ("R1", "R4")
    watch = Watch(len(streams), keyed=keyed)
    for port, row in mixed(streams, random, [random.choice([0, 3, 20]) for _ in streams]):
        watch.arrives(port, plain(row))  # what the input would have said
        for emitted in run.arrive(port, row):
            watch.emits(emitted)
        assert not watch.faults(), (watch.faults(), row)
    out = run.merging.output
    assert not run.merging.merge.reports()
    assert not violations(SCHEMA, out, keyed=keyed)
    assert equivalent(SCHEMA, out, as_stream(events))


@pytest.mark.parametrize("variant", VARIANTS)
@given(seed=seeds)
@settings(max_examples=6)
def test_inputs_that_were_told_can_take_over_from_the_leader(variant: str, seed: int) -> None:
    """They must retain enough to produce what comes after (section V-D)."""
    random = Random(seed)
    events = reference(variant, random)
    streams = [told(variant, events, random) for _ in range(3)]
    run = Obedient(variant, len(streams))
    watch = Watch(len(streams), keyed=variant not in ("R1", "R4"))
    arrivals = mixed(streams, random, [0, 3, 20])
    fails, gone = random.randrange(len(arrivals)), None
    for number, (port, row) in enumerate(arrivals):
        if number == fails:
            gone = run.merging.merge.leader
            run.merging.merge.detach(gone or 0)
        if port == gone:
            continue
        watch.arrives(port, plain(row))
        for emitted in run.arrive(port, row):
            watch.emits(emitted)
        if variant not in ("R1", "R4"):  # there compatibility is with the furthest, which is gone
            assert not watch.faults(), (watch.faults(), row)
    assert not run.merging.merge.reports()
    assert equivalent(SCHEMA, run.merging.output, as_stream(events))


@pytest.mark.parametrize("variant", VARIANTS)
def test_only_slower_inputs_are_told_and_only_when_the_output_moves(variant: str) -> None:
    run = Merging(variant, 3)
    run.merge.fast_forward = True

    def relays(port: int, *rows: Row) -> list[int]:
        emission = run.merge.accept(port, ip.Page(SCHEMA, elements(SCHEMA, rows)))
        return sorted({p for p, _ in emission.relays})

    assert relays(0, insert("A", 6, 12), stable(20)) == [1, 2]
    assert relays(1, insert("A", 6, 12), stable(20)) == []
    assert relays(1, stable(30)) == [0, 2]


class Tree:
    """Two merges of two inputs each below one merge; the four inputs do what they are told."""

    def __init__(self, below: str, above: str) -> None:
        self.inner = [Merging(below, 2) for _ in range(2)]
        self.outer = Merging(above, 2)
        self.outer.merge.fast_forward = True
        for run in self.inner:
            run.merge.fast_forward = True
        self.told: list[list[Pattern]] = [[] for _ in range(4)]
        self.spared = 0

    def arrive(self, leaf: int, row: Row) -> None:
        frame = elements(SCHEMA, [row])
        for pattern in self.told[leaf]:
            frame = frame.filter(~pattern.mask(frame))
        self.spared += 1 - frame.height
        if not frame.height:
            return
        side, port = divmod(leaf, 2)
        emission = self.inner[side].merge.accept(port, ip.Page(SCHEMA, frame))
        self._tell(side, emission)
        for _, page in emission.pages:
            above = self.outer.merge.accept(side, page)
            self.outer.log += [out.frame for _, out in above.pages]
            for slower, feedback in above.relays:
                self._tell(slower, self.inner[slower].merge.on_feedback(feedback))

    def _tell(self, side: int, emission: Emission) -> None:
        for port, feedback in emission.relays:
            self.told[2 * side + port].append(feedback.pattern)


TREES = [("R3", "R3"), ("R3-", "R3"), ("R2", "R2"), ("R2", "R3"), ("R0", "R0"), ("R1", "R1"),
         ("R4", "R4"), ("R3", "R4")]  # fmt: skip
REVISED = [("R3", "R3"), ("R3-", "R3"), ("R4", "R4"), ("R3", "R4"), ("R3-", "R4")]


@pytest.mark.parametrize(("below", "above"), TREES)
@given(seed=seeds)
@settings(max_examples=8)
def test_a_merge_beneath_a_merge_tells_its_own_inputs(below: str, above: str, seed: int) -> None:
    random = Random(seed)
    events = reference(below, random)
    streams = [told(below, events, random) for _ in range(4)]
    tree = Tree(below, above)
    for leaf, row in mixed(streams, random, [random.choice([0, 3, 20]) for _ in streams]):
        tree.arrive(leaf, row)
    for run in (tree.outer, *tree.inner):
        assert not run.merge.reports(), run.merge.reports()
    assert not violations(SCHEMA, tree.outer.output, keyed=above not in ("R1", "R4"))
    assert equivalent(SCHEMA, tree.outer.output, as_stream(events))


@pytest.mark.parametrize(("below", "above"), TREES)
def test_what_a_merge_relays_reaches_inputs_that_its_own_stable_would_not_have(
    below: str, above: str
) -> None:
    tree = Tree(below, above)
    for leaf, row in ((0, insert("A", 6, 9)), (0, stable(20)), (2, insert("A", 6, 9))):
        tree.arrive(leaf, row)
    assert tree.told[2]
    tree.arrive(2, insert("B", 7, 9))  # a liar's, or late: nobody wants it
    tree.arrive(3, stable(30))
    assert not tree.inner[1].merge.reports(), "input 3 has left out A as it was told"
    assert tdb(SCHEMA, tree.outer.output).rows() == [(6, 9, "A")]


@pytest.mark.parametrize(("below", "above"), REVISED)
@given(seed=seeds)
@settings(max_examples=8)
def test_the_slower_of_two_merges_takes_over_with_all_that_is_not_past(
    below: str, above: str, seed: int
) -> None:
    """The faster one fails at any moment; the other's inputs have left out what was past by then,
    among it the beginnings of events that end later."""
    random = Random(seed)
    events = [e for n, e in enumerate(crowded(random)) if below == "R4" or n % 3 == 0]
    streams = [told(below, events, random) for _ in range(4)]
    tree = Tree(below, above)
    arrivals = mixed(streams, random, [0, 0, 20, 20])
    fails = random.randrange(len(arrivals))
    for number, (leaf, row) in enumerate(arrivals):
        if number == fails:
            tree.outer.merge.detach(0)
        if number < fails or leaf >= 2:
            tree.arrive(leaf, row)
    for run in (tree.outer, *tree.inner):
        assert not run.merge.reports(), run.merge.reports()
    assert not violations(SCHEMA, tree.outer.output, keyed=above != "R4")
    assert equivalent(SCHEMA, tree.outer.output, as_stream(events))


def crowded(random: Random) -> list[Event]:
    """Three events for each of a few (Vs, payload)."""
    keys = random.sample([(p, vs) for p in "AB" for vs in (2, 5, 9, 12)], 4)
    return [(p, vs, vs + random.randint(1, 20)) for p, vs in keys for _ in range(3)]


@pytest.mark.parametrize(("below", "above"), REVISED)
def test_an_event_that_comes_forth_from_the_past_is_there(below: str, above: str) -> None:
    """Its beginning was left out, and so the adjust is all that a merge below hears of it."""
    tree = Tree(below, above)
    said = [insert("A", 9, 10), adjust("A", 9, 10, 40), stable(30)]
    for leaf, row in ((0, insert("A", 9, 40)), (0, stable(20)), *((2, row) for row in said)):
        tree.arrive(leaf, row)
    assert tree.spared == 1
    tree.outer.merge.detach(0)
    tree.arrive(2, stable(50))
    assert not tree.outer.merge.reports()
    assert tdb(SCHEMA, tree.outer.output).rows() == [(9, 40, "A")]


@pytest.mark.parametrize(("below", "above"), REVISED)
def test_what_is_half_frozen_and_then_left_out_ends_where_it_can(below: str, above: str) -> None:
    """The merge below has A half frozen without an end when its input may leave out that it ends
    at 12; what it then says of A is something that its own stable allows."""
    tree = Tree(below, above)
    before = [(2, insert("A", 6, 40)), (2, stable(8)), (0, insert("A", 6, 12)), (0, stable(20))]
    after = [(3, insert("A", 6, 12)), (3, insert("B", 21, 23)), (3, stable(30))]
    for leaf, row in before + after:
        tree.arrive(leaf, row)
    assert not tree.inner[1].merge.reports()
    assert tree.inner[1].merge.max_stable == 30
    assert tdb(SCHEMA, tree.outer.output).rows() == [(6, 12, "A"), (21, 23, "B")]


@pytest.mark.parametrize("variant", ["R3", "R3-", "R4"])
def test_a_merge_that_stays_behind_holds_no_more_for_it(variant: str) -> None:
    """Its readers are always further than its inputs: it waits with its stables, and what it would
    have let go because of them it lets go because nobody needs it."""
    run = Merging(variant, 2)
    for at in range(0, 3000, 10):
        for pattern in passed(SCHEMA, at, variant):
            run.merge.on_feedback(Feedback(Intent.ASSUMED, pattern))
        run.rows(0, insert("A", at - 10, at - 1), insert("A", at, at + 5), stable(at - 10))
        assert run.merge.held().tuples <= 4
    run.rows(1, stable(5000))
    assert run.merge.held().tuples == 0


def test_what_began_in_the_past_and_ends_later_is_still_awaited() -> None:
    run = Obedient("R3", 2)
    run.arrive(0, insert("A", 6, 40))
    run.arrive(0, stable(20))
    assert not run.arrive(1, insert("B", 3, 9))
    assert run.spared == 1
    run.arrive(1, insert("A", 6, 40))
    run.merging.merge.detach(0)
    assert run.arrive(1, stable(50))[-1][:2] == ("stable", 50)  # A did not have to be removed
    assert tdb(SCHEMA, run.merging.output).rows() == [(6, 40, "A")]


# In a flow --------------------------------------------------------------------------------------


def doubled(feedback: bool) -> ip.Flow:
    """Two replicas of a speculative count behind a select, merged."""
    flow = ip.Flow("replicas")
    counts = [
        flow.source(n, "ts bigint, g string", time=ip.external("ts", bounds=ip.bounds(skew=5)))
        .where("g <> 'z'", name=f"{n}_where")
        .aggregate(by="g", every=10, n="count(*)", speculative=True, name=f"{n}_count")
        for n in ("fast", "slow")
    ]
    flow.sink("out", flow.lmerge(*counts, feedback=feedback, name="merge"))
    return flow


def rows(count: int) -> list[tuple[int, str]]:
    random = Random(7)
    return [(max(0, t - random.randint(0, 4)), random.choice("abz")) for t in range(count)]


def merged(feedback: bool, count: int = 120) -> tuple[pl.DataFrame, dict[str, dict[str, int]]]:
    """The slow replica gets a tuple for each four of the fast one."""
    flow = doubled(feedback)
    live, data = flow.live(), rows(count)
    places = {"fast": 0, "slow": 0}
    while min(places.values()) < count:
        for name, step in (("fast", 4), ("slow", 1)):
            live.feed(name, data[places[name] : places[name] + step])
            places[name] = min(count, places[name] + step)
    live.finish()
    assert live.held()["slow_count"].tuples == 0
    schema = flow.nodes["merge"].outputs[0].schema
    return tdb(schema, live.take("out")), live.skipped()


def test_a_flow_gives_the_same_table_with_and_without_feedback() -> None:
    alone, nothing = merged(feedback=False)
    table, skipped = merged(feedback=True)
    assert not nothing
    assert sorted(map(repr, table.rows())) == sorted(map(repr, alone.rows()))
    assert sum(skipped["slow"].values()) > 60  # of 120 tuples, at the source already
    assert "fast" not in skipped


def test_the_way_of_the_feedback_is_shown_before_anything_runs() -> None:
    from interpunct.flow.feedback import follow

    flow = doubled(feedback=True)
    schema = flow.nodes["slow_count"].outputs[0].schema
    steps = list(follow(flow.graph, "slow_count", Pattern.parse("[vs≤24, ve≤24]", schema)))
    assert [(s.node, s.response and s.response.case) for s in steps[:2]] == [
        ("slow_count", "¬[past]"), ("slow_where", "¬[…]"),
    ]  # fmt: skip
    assert str(steps[1].pattern) == "[≤ 19, *]"
