"""What the lanes of a merge tell each other, as small files beside the merge's checkpoint.

    …/interpunct/lmerge/quarantine/0000000007-12    lane 12 in batch 7: input b is not believed
    …/interpunct/lmerge/past                        what readers of the merge do without: ¬[vs≤19 …]

An input that contradicts a frozen fact does so in the lane of that event's payload; the others have
seen nothing wrong. So the lane leaves a report, and from the next batch on every lane has the input
in quarantine. A lane in batch n takes the reports of batches before n, and each once: a batch that
is run again finds what it found the first time, though its own reports are there by then, and an
input that attaches anew is not held to what it did before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from interpunct.model.elements import VS
from interpunct.model.feedback import Feedback, Intent
from interpunct.model.pattern import Pattern
from interpunct.model.schema import Schema
from interpunct.operators.lmerge_fast_forward import last_of, relayed
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


@dataclass(frozen=True)
class MergeNotes:
    """The notes of one merge."""

    checkpoint: str

    def announce(self, schema: Schema) -> None:
        """Tell those who read the merge what they can send feedback about."""
        self._channel.announce({MERGED: schema.with_time(VS)})

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

    def hear(self, schema: Schema, variant: str) -> Pattern | None:
        """Take the feedback that has come, and remember what it says of the past; returns what
        the merge's inputs are to be told because of it, if that is something new.

        Other feedback a merge cannot use on Spark; ignoring it is correct (Feedback section 4.1).
        """
        inbox, before = JsonFolder(self._channel.path), self.past(schema)
        for name in inbox.names("inbox"):
            content = inbox.read(name)
            if content is not None:
                self._remember(Feedback.parse(Message(**content).text, schema), variant)
            inbox.remove(name)
        said = self.past(schema)
        return None if said is None or said == before else relayed(schema, said.pattern, variant)

    def _remember(self, heard: Feedback, variant: str) -> None:
        schema = heard.schema
        if heard.intent is not Intent.ASSUMED or relayed(schema, heard.pattern, variant) is None:
            return
        known = self.past(schema)
        if known is None or last_of(known.pattern) < last_of(heard.pattern):
            self._files.write("past", f"{heard.intent.value}{heard.pattern.by_name()}")

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
