"""What a merge leaves beside its checkpoint, and tells the queries that feed it."""

from __future__ import annotations

from pathlib import Path

import pytest

import interpunct as ip
from interpunct.model.elements import elements, insert, stable
from interpunct.model.errors import FeedbackError
from interpunct.model.feedback import Feedback, Intent
from interpunct.model.properties import Properties
from interpunct.operators.lmerge_fast_forward import passed
from interpunct.operators.lmerge_policy import MergePolicy
from interpunct.operators.state import DictState
from interpunct.spark.channel import Channel, Message
from interpunct.spark.lmerge_lane import LaneMerge, Merger
from interpunct.spark.lmerge_notes import MERGED, MOST_REPORTS, MergeNotes, Quarantine
from interpunct.spark.lmerge_relay import MOST_WAITING, Feeder, Relay
from interpunct.testing.revisable import SCHEMA

ROWS = ip.Schema.of("ts bigint, n bigint", time="ts")


def lie(batch: int, lane: int = 0) -> Quarantine:
    return Quarantine("b", "stable(9)", "the half-frozen event A", 7, batch, lane)


def test_a_batch_hears_of_earlier_batches_only_so_that_it_may_run_again(tmp_path: Path) -> None:
    notes = MergeNotes(str(tmp_path))
    notes.report(3, 0, [lie(3)])
    notes.report(4, 1, [lie(4, 1)])
    notes.report(5, 0, [])
    assert notes.quarantined(before=4) == [lie(3)]
    assert notes.quarantined(after=3, before=5) == [lie(4, 1)]
    assert notes.quarantined() == ip.quarantined(str(tmp_path)) == [lie(3), lie(4, 1)]
    for batch in range(10, 10 + MOST_REPORTS):
        notes.report(batch, 0, [lie(batch)])
    assert [q.batch for q in notes.quarantined()][:1] == [10], "the oldest have gone"


def told(checkpoint: Path) -> list[str]:
    channel = Channel.of(str(checkpoint))
    return [m.text for m in channel.messages(0, channel.take(0))]


@pytest.mark.parametrize(
    ("variant", "last"), [("R0", 19), ("R2", 19), ("R3", 14), ("R4", 14), ("R3-", 14)]
)
def test_a_flow_is_told_which_rows_are_past(tmp_path: Path, variant: str, last: int) -> None:
    """Rows that last 5 as events; where events have ends, the last of them must be past."""
    Channel.of(str(tmp_path / "b")).announce({"out": ROWS})
    relay = Relay(SCHEMA, variant, None, {"b": Feeder(str(tmp_path / "b"), "out", 5)})
    relay.hurry(20, {"a": 20, "b": 3})
    relay.hurry(None, {"b": 3})
    assert told(tmp_path / "b") == [f"¬[ts≤{last}]"]


def test_only_slower_inputs_are_told_and_none_that_does_not_listen(tmp_path: Path) -> None:
    feeders = {n: Feeder(str(tmp_path / n), "out", 1) for n in ("fast", "slow", "unknown")}
    for name in ("fast", "slow"):
        Channel.of(str(tmp_path / name)).announce({"out": ROWS})
    relay = Relay(SCHEMA, "R3", None, feeders)
    for at in range(10, 10 + 2 * MOST_WAITING):
        relay.hurry(at, {"fast": at, "slow": 2, "unknown": 2, "nobody's": 2})
    assert Channel.of(str(tmp_path / "fast")).waiting() == 0
    assert Channel.of(str(tmp_path / "slow")).waiting() == MOST_WAITING
    assert not (tmp_path / "unknown").exists()


def test_a_merge_passes_on_what_its_readers_say_once(tmp_path: Path) -> None:
    notes = MergeNotes(str(tmp_path / "merge"))
    notes.announce(SCHEMA, "R3")
    Channel.of(str(tmp_path / "b")).announce({"out": ROWS})
    above = Feeder(str(tmp_path / "merge"), MERGED)
    relay = Relay(SCHEMA, "R3", notes, {"b": Feeder(str(tmp_path / "b"), "out", 1)})
    above.tell(passed(SCHEMA, 20, "R3"))
    relay.hurry(None, {"b": 3})
    above.tell(passed(SCHEMA, 15, "R3"))  # nothing new
    relay.hurry(None, {"b": 3})
    assert told(tmp_path / "b") == ["¬[ts≤18]"]
    (past,) = passed(SCHEMA, 20, "R3")
    assert notes.past(SCHEMA) == Feedback(Intent.ASSUMED, past)
    assert Channel.of(str(tmp_path / "merge")).waiting() == 0


def test_a_merge_with_duplicates_passes_on_what_is_about_the_past_alone(tmp_path: Path) -> None:
    """What R4 says to those below it is about inserts and about adjusts; the same goes on."""
    notes = MergeNotes(str(tmp_path / "merge"))
    merge, b, c = (str(tmp_path / name) for name in ("merge", "b", "c"))
    for place, sink in ((merge, SCHEMA), (b, SCHEMA), (c, ROWS)):
        Channel.of(place).announce({MERGED: sink})
    feeders = {"b": Feeder(b, MERGED), "c": Feeder(c, MERGED, 5)}
    relay = Relay(SCHEMA, "R4", notes, feeders)
    above, said = Feeder(merge, MERGED), passed(SCHEMA, 20, "R4")
    above.tell(said[1:])  # adjusts are left out only where inserts are
    relay.hurry(None, {"b": 3, "c": 3})
    assert told(tmp_path / "b") == []
    above.tell(said)
    relay.hurry(None, {"b": 3, "c": 3, "fast": 20})
    assert told(tmp_path / "b") == [f"¬{p.by_name()}" for p in said]
    assert told(tmp_path / "c") == ["¬[ts≤14]"]
    assert notes.past(SCHEMA) == Feedback(Intent.ASSUMED, said[0])
    above.tell(said[1:])
    relay.hurry(None, {"c": 3})
    assert told(tmp_path / "c") == ["¬[ts≤14]"], "rows do not become adjusts"


@pytest.mark.parametrize("variant", ["R3", "R3-", "R4"])
def test_a_lane_believes_an_input_that_leaves_out_what_is_past(
    tmp_path: Path, variant: str
) -> None:
    """Input a has two events half frozen; b was told that nobody needs them."""
    known = Properties(insert_only=False, keyed=variant != "R4")
    merger = Merger(SCHEMA, ("a", "b"), variant, known, MergePolicy(), "run")
    notes, state = MergeNotes(str(tmp_path)), DictState()
    notes.announce(SCHEMA, variant)
    lane = LaneMerge(merger, state)
    lane.take("a", elements(SCHEMA, [insert("A", 6, 12), insert("B", 7, 15), stable(8)]))
    lane.save()
    Feeder(str(tmp_path), MERGED).tell(passed(SCHEMA, 20, variant))
    assert notes.hear(SCHEMA, variant) == passed(SCHEMA, 20, variant)
    lane = LaneMerge(merger, state)
    lane.listen(notes, 1)
    lane.take("b", elements(SCHEMA, [insert("C", 21, 23), stable(11)]))
    assert lane.merge.max_stable == 8, "a stable of the past may lack what comes forth later"
    _, lies = lane.take("b", elements(SCHEMA, [stable(30)]))
    assert not lies
    assert lane.merge.max_stable == 30


def test_a_merge_passes_on_nothing_of_other_feedback(tmp_path: Path) -> None:
    notes = MergeNotes(str(tmp_path / "merge"))
    notes.announce(SCHEMA, "R3")
    channel = Channel.of(str(tmp_path / "merge"))
    adjusts = "¬[element='adjust', vs≤19, vold≤19, ve≤19]"
    for variant, text in (("R4", adjusts), ("R3", "¬[vs≤19, p='A']"), ("R3", "?[vs≤19]")):
        channel.send(Message(MERGED, text))
        assert notes.hear(SCHEMA, variant) == [], text
    assert notes.past(SCHEMA) is None


def test_a_flow_whose_rows_say_not_how_long_they_last_is_refused(tmp_path: Path) -> None:
    Channel.of(str(tmp_path)).announce({"out": ROWS})
    with pytest.raises(FeedbackError, match="how long its rows last"):
        Feeder.of(ip.upstream(str(tmp_path), sink="out")).sink_schema()
    with pytest.raises(FeedbackError, match="one of the sinks out"):
        Feeder.of(ip.upstream(str(tmp_path), sink="in", lifetime=1)).sink_schema()
    assert Feeder.of(ip.upstream(str(tmp_path), sink="out", lifetime=1)).sink_schema() == ROWS
