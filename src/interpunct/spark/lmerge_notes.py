"""What the lanes of a merge tell each other, as small files beside the merge's checkpoint.

    …/interpunct/lmerge/quarantine/0000000007-12    lane 12 in batch 7: input b is not believed
    …/interpunct/lmerge/past                        what readers of the merge do without: ¬[vs≤19 …]
    …/interpunct/lmerge/what                        which variant merges: written once
    …/interpunct/lmerge/lanes/12                    for people: how lane 12 sees the inputs

An input that contradicts a frozen fact does so in the lane of that event's payload; the others have
seen nothing wrong. So the lane leaves a report, and from the next batch on every lane has the input
in quarantine. A lane in batch n takes the reports of batches before n, and each once: a batch that
is run again finds what it found the first time, though its own reports are there by then, and an
input that attaches anew is not held to what it did before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from interpunct.engine.merge_vitals import MergeVitals, together
from interpunct.model.elements import VS
from interpunct.model.feedback import Feedback, Intent
from interpunct.model.pattern import Pattern
from interpunct.model.schema import START_OF_TIME, Schema
from interpunct.operators.lmerge_fast_forward import last_of, of_inserts, relayed
from interpunct.spark.channel import Channel, Message
from interpunct.spark.files import JsonFolder

MOST_REPORTS = 100  # files of them that are kept
MERGED = "merged"  # the sink under which a merge is told feedback


@dataclass(frozen=True)
class Quarantine:
    """An input that a lane stopped believing: what it said, and what that contradicts."""

    input: str
    element: str
    contradicts: str
    max_stable: int
    batch: int
    lane: int

    @property
    def why(self) -> str:
        return f"{self.element} contradicts {self.contradicts}"


@dataclass(frozen=True)
class MergeNotes:
    """The notes of one merge."""

    checkpoint: str

    def announce(self, schema: Schema, variant: str) -> None:
        """Tell readers of the merge what they can send feedback about, and people what it is."""
        self._channel.announce({MERGED: schema.with_time(VS)})
        clocked = not schema[VS].dtype.is_integer()
        self._files.rewrite("what", {"variant": variant, "clocked": clocked})

    # How it is doing --------------------------------------------------------------------------

    def tell(self, lane: int, seen: MergeVitals) -> None:
        """Leave how a lane sees the inputs, unless that is what it left last."""
        self._files.rewrite(f"lanes/{lane}", seen.to_json())

    def vitals(self) -> MergeVitals | None:
        """What all lanes last left, and why inputs are in quarantine; None where nothing merges."""
        what = self._files.read("what")
        if what is None:
            return None
        left = [self._files.read(name) for name in self._files.names("lanes")]
        merge = together(lanes=[MergeVitals.of_json(said) for said in left if said], **what)
        return merge.because({q.input: q.why for q in self.quarantined()})

    # Who is not believed ----------------------------------------------------------------------

    def report(self, batch: int, lane: int, found: Sequence[Quarantine]) -> None:
        if found:
            self._files.write(f"quarantine/{batch:010d}-{lane}", [asdict(q) for q in found])
            for name in self._files.names("quarantine")[:-MOST_REPORTS]:
                self._files.remove(name)

    def quarantined(self, after: int = -1, before: int | None = None) -> list[Quarantine]:
        """What was reported in the batches between these two, neither of them included."""
        found = []
        for name in self._files.names("quarantine"):
            batch = int(name.removeprefix("quarantine/").partition("-")[0])
            if batch > after and (before is None or batch < before):
                found += [Quarantine(**q) for q in self._files.read(name) or ()]
        return found

    # What nobody needs ------------------------------------------------------------------------

    def hear(self, schema: Schema, variant: str) -> list[Pattern]:
        """Take the feedback that has come, and remember what it says of the past; returns what
        the merge's inputs are to be told because of it, of inserts and of adjusts the most.

        Other feedback a merge cannot use on Spark; ignoring it is correct (Feedback section 4.1).
        """
        inbox, found = JsonFolder(self._channel.path), []
        for name in inbox.names("inbox"):
            content = inbox.read(name)
            if content is not None:
                found.append(Feedback.parse(Message(**content).text, schema))
            inbox.remove(name)
        most: dict[bool, Pattern] = {}
        for heard in sorted(found, key=lambda f: not of_inserts(f.pattern)):  # they have no order
            told, kind = self._taken(heard, variant), of_inserts(heard.pattern)
            if told is not None and (kind not in most or last_of(most[kind]) < last_of(told)):
                most[kind] = told
        return list(most.values())

    def _taken(self, heard: Feedback, variant: str) -> Pattern | None:
        """What the inputs are to be told because of this. Remembered is what it says of inserts:
        adjusts of the past mean nothing without them."""
        known, pattern = self.past(heard.schema), heard.pattern
        start = START_OF_TIME if known is None else last_of(known.pattern) + 1
        told = relayed(heard.schema, pattern, variant, start)
        if heard.intent is not Intent.ASSUMED or told is None:
            return None
        if of_inserts(pattern):
            if last_of(pattern) < start:
                return None
            self._files.write("past", f"{heard.intent.value}{pattern.by_name()}")
        return told

    def past(self, schema: Schema) -> Feedback | None:
        """What those who read the merge do without, as far as it is about the past."""
        text = self._files.read("past")
        return None if text is None else Feedback.parse(text, schema)

    @property
    def _files(self) -> JsonFolder:
        return JsonFolder(f"{self.checkpoint}/interpunct/lmerge")

    @property
    def _channel(self) -> Channel:
        return Channel.of(self.checkpoint)
