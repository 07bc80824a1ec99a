"""The feedback channel: messages to a running query, as small files on any path Spark reaches.

    sender ─ inbox/<what it says> ─ clock source takes it ─ taken/<number> ─ every lane ─ deleted

A message is durable: it is there until a batch that carried it to every lane has been committed.
It is idempotent: the same words to the same sink are the same file, and an operator that knows
them already does nothing. It expires: once the sink has passed the time it speaks of, nobody takes
it. And the inbox is bounded: a sender that nobody listens to is told so.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from interpunct.flow.feedback import Length, delimited, ending
from interpunct.model.errors import FeedbackError
from interpunct.model.feedback import Feedback, Intent
from interpunct.model.schema import START_OF_TIME, Schema
from interpunct.model.ticks import stretch
from interpunct.spark.files import JsonFolder

MOST_MESSAGES = 1024  # that wait in an inbox
LOOK_EVERY = 1.0  # seconds between looks into an inbox that is not on this machine


@dataclass(frozen=True)
class Message:
    """Feedback for a sink of a query or, between its stages, for a stream; `sender` is the lane
    that says it, if only one does."""

    target: str
    text: str
    sender: int | None = None
    until: int | None = None  # after this tick it says nothing any more

    @classmethod
    def of(cls, target: str, feedback: Feedback, sender: int | None = None) -> Message:
        schema, text = feedback.schema, f"{feedback.intent.value}{feedback.pattern.by_name()}"
        ticks = None if schema.time is None else stretch(feedback.pattern.condition(schema.time))
        return cls(target, text, sender, None if ticks is None else ticks[1])

    @property
    def name(self) -> str:
        said = json.dumps(asdict(self), sort_keys=True).encode()
        return hashlib.sha256(said).hexdigest()[:32]


@dataclass
class Channel:
    """The folder of one query's messages, beside its checkpoint."""

    path: str
    _looked: float = field(default=0.0, compare=False)

    @classmethod
    def of(cls, checkpoint: str) -> Channel:
        return cls(f"{checkpoint}/interpunct/feedback")

    # Senders ----------------------------------------------------------------------------------

    def send(self, message: Message) -> None:
        name, waiting = f"inbox/{message.name}", self._files.names("inbox")
        if name in waiting:
            return
        if len(waiting) >= MOST_MESSAGES:
            raise FeedbackError(
                f"feedback channel {self.path}", f"fewer than {MOST_MESSAGES} messages waiting",
                f"{len(waiting)}", "Is the query running? It takes them at its next batch.",
            )  # fmt: skip
        self._files.write(name, asdict(message))

    def waiting(self) -> int:
        """How many messages nobody has taken, or not for good."""
        return sum(len(self._files.names(kind)) for kind in ("inbox", "taken"))

    def announce(self, sinks: Mapping[str, Schema]) -> None:
        """Tell senders in other programs which sinks there are."""
        known = {n: {"ddl": s.ddl, "time": s.time} for n, s in sinks.items()}
        self._files.write("sinks", known)

    def sinks(self) -> list[str]:
        """The sinks that were announced; none as long as the query was never started."""
        return sorted(self._files.read("sinks") or ())

    def parse(self, sink: str, text: str, *, lasting: Length | None = None) -> Feedback:
        """Feedback for a sink of the query, checked as far as its schema allows; with `lasting` it
        ends so long after what the sink has reached."""
        known = self._files.read("sinks")
        if known is None:
            raise FeedbackError(
                "feedback", "the checkpoint of a query that has been started", self.path,
                "Name the folder that was given to flow.start(checkpoint=…).",
            )  # fmt: skip
        if sink not in known:
            names = ", ".join(sorted(known))
            raise FeedbackError("feedback", f"one of the sinks {names}", repr(sink), "Name one.")
        feedback = Feedback.parse(text, Schema.of(known[sink]["ddl"], time=known[sink]["time"]))
        if lasting is not None:
            reached = self.reached().get(sink, START_OF_TIME)
            feedback = ending(feedback, sink, reached, lasting)
        if feedback.intent is Intent.ASSUMED and not delimited(feedback.pattern):
            raise FeedbackError(
                f"feedback for sink {sink!r}", "a pattern that ends in time", text,
                f"Bound {known[sink]['time']} from above: its guards would stay for ever.",
            )  # fmt: skip
        return feedback

    # How far the sinks have come --------------------------------------------------------------

    def tell_reached(self, reached: Mapping[str, int]) -> None:
        self._files.rewrite("reached", dict(reached))

    def reached(self) -> dict[str, int]:
        return self._files.read("reached") or {}

    # The query --------------------------------------------------------------------------------

    def take(self, last: int) -> int:
        """Number the messages that have come since; returns the number of the last one.

        A message is written under its number before it leaves the inbox, so that a query which
        dies in between finds it again, at worst twice.
        """
        now = time.monotonic()
        if "://" in self.path and now - self._looked < LOOK_EVERY:
            return last
        self._looked = now
        names = self._files.names("inbox")
        number = max([last, *self._numbers()])
        reached = self.reached() if names else {}
        for name in names:
            content = self._files.read(name)
            if content is not None and not _over(Message(**content), reached):
                number += 1
                self._files.write(f"taken/{number}", content)
            self._files.remove(name)
        return number

    def messages(self, after: int, upto: int) -> list[Message]:
        """What was taken under these numbers."""
        found = (self._files.read(f"taken/{number}") for number in range(after + 1, upto + 1))
        return [Message(**content) for content in found if content is not None]

    def forget(self, upto: int) -> None:
        """A batch with these messages has been committed."""
        for number in self._numbers():
            if number <= upto:
                self._files.remove(f"taken/{number}")

    def _numbers(self) -> list[int]:
        return [int(name.removeprefix("taken/")) for name in self._files.names("taken")]

    @property
    def _files(self) -> JsonFolder:
        return JsonFolder(self.path)


def _over(message: Message, reached: Mapping[str, int]) -> bool:
    """Whether its sink has passed everything that it speaks of."""
    return message.until is not None and message.until <= reached.get(message.target, START_OF_TIME)
