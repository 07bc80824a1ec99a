"""What Spark reports of a source's offsets, and how it reaches the lanes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from interpunct.spark.clock import ClockReader, Offset, Silence, WakeFile, Wanted
from interpunct.spark.silence import after, has_nothing
from interpunct.spark.wire import Note, opened

HOUR = 3_600_000_000


@pytest.mark.parametrize(
    ("start", "end", "latest", "expected"),
    [
        ('{"t":{"0":5}}', '{"t":{"0":9}}', '{"t":{"0":9}}', True),  # Kafka, read to the end
        ('{"t":{"0":5}}', '{"t":{"0":7}}', '{"t":{"0":9}}', False),  # and held up by a limit
        ('{"t":{"0":7}}', '{"t":{"0":7}}', '{"t":{"0":9}}', False),  # and by minOffsetsPerTrigger
        ('{"logOffset":2}', '{"logOffset":2}', None, True),  # files: asked, and there was none
        (
            '{"logOffset":2}',
            '{"logOffset":3}',
            None,
            None,
        ),  # and of more nothing is known
        ('{"logOffset":2}', '{"logOffset":2}', "None", True),
        ("null", '{"logOffset":0}', "null", None),
        (None, None, None, None),
    ],
)
def test_a_source_is_caught_up_by_its_offsets(
    start: str | None, end: str | None, latest: str | None, expected: bool | None
) -> None:
    assert has_nothing(start, end, latest) is expected


@dataclass
class Reported:
    startOffset: str  # noqa: N815
    endOffset: str  # noqa: N815
    latestOffset: str | None = None  # noqa: N815


def test_what_is_known_is_kept_until_something_newer_is() -> None:
    idle, busy, behind = Reported("1", "1"), Reported("1", "2"), Reported("1", "1", "9")
    known = after(Silence(), ["a", "", "b"], [idle, idle, busy], 100)
    assert known == Silence({"a": 100}, {})
    known = after(known, ["a", "", "b"], [behind, idle, idle], 200)
    assert known == Silence({"a": 100, "b": 200}, {"a": 200})
    assert after(known, ["a", "", "b"], [busy, busy, busy], 300) == known


def asked(reader: ClockReader, start: Offset) -> Offset:
    return reader.latestOffset(start, None)  # type: ignore[arg-type]


def test_the_clock_asks_for_a_proof_once_and_hands_it_on_when_it_is_there(tmp_path: Path) -> None:
    wake = WakeFile(tmp_path / "wake")
    reader = ClockReader({"wake": str(wake.path), "lanes": "[[0, 0], [0, 1]]"})
    first = asked(reader, reader.initialOffset())
    wake.write(Wanted(None, {"b": first["tick"] + HOUR}))
    assert asked(reader, first) == first  # the moment has not come
    moment = first["tick"] + 1
    wake.write(Wanted(None, {"b": moment}))
    probe = asked(reader, first)
    assert probe["tick"] > moment
    assert not probe["idle"]
    assert asked(reader, probe) == probe  # nobody polls
    wake.tell(Silence({"b": moment - 1}))
    assert asked(reader, probe) == probe  # a proof of too little
    wake.tell(Silence({"b": moment + 1}, {"c": 5}))
    proof = asked(reader, probe)
    assert (proof["idle"], proof["blocked"]) == ({"b": moment + 1}, {"c": 5})
    assert asked(reader, proof) == proof
    (partition,) = reader.partitions(probe, proof)
    rows = [row for batch in reader.read(partition) for row in batch.to_pylist()]
    told = [Note("clock"), Note("idle:b", greatest=moment + 1), Note("blocked:c", greatest=5)]
    assert [(row["lane"], opened(row["load"])) for row in rows] == [(0, told), (1, told)]


def test_a_source_asked_before_the_moment_proves_nothing_for_it(tmp_path: Path) -> None:
    """A batch that begins before the moment cannot prove it: the clock waits to be asked again."""
    wake = WakeFile(tmp_path / "wake")
    reader = ClockReader({"wake": str(wake.path), "lanes": "[]"})
    first = asked(reader, reader.initialOffset())
    now = reader._clock.now()
    wake.write(Wanted(None, {"b": now}))  # after the clock was last asked
    assert asked(reader, first) == first
    assert asked(reader, first)["tick"] > now
