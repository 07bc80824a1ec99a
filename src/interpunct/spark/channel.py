"""The feedback channel: messages to a running query, as small files on any path Spark reaches.

    sender ─ inbox/<what it says> ─ clock source takes it ─ taken/<number> ─ every lane ─ deleted

A message is durable: it is there until a batch that carried it to every lane has been committed.
It is idempotent: the same words to the same sink are the same file, and an operator that knows
them already does nothing. It expires: once the sink has passed the time it speaks of, nobody takes
it. And the inbox is bounded: a sender that nobody listens to is told so. What a sink assumes stays
in said/ until it is over, so that nobody, in whichever program, wishes for it.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any

from interpunct.flow.feedback import Length, Voice, judged, voice_of
from interpunct.model.errors import FeedbackError, InterpunctError
from interpunct.model.feedback import Feedback, Intent
from interpunct.model.schema import START_OF_TIME, Schema
from interpunct.model.ticks import stretch
from interpunct.spark.files import JsonFolder

FOLDER = "/interpunct/feedback"  # below the checkpoint
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
        return cls(f"{checkpoint}{FOLDER}")

    @property
    def checkpoint(self) -> str:
        """The folder that was given to start."""
        return self.path.removesuffix(FOLDER)

    # Senders ----------------------------------------------------------------------------------

    def send(self, message: Message) -> None:
        name, waiting = f"inbox/{message.name}", self._files.names("inbox")
        if name in waiting:
            return
        if len(waiting) >= MOST_MESSAGES:
            raise self._full("waiting", len(waiting))
        self._files.write(name, asdict(message))

    def waiting(self) -> int:
        """How many messages nobody has taken, or not for good."""
        return sum(len(self._files.names(kind)) for kind in ("inbox", "taken"))

    def announce(self, sinks: Mapping[str, Schema | Voice]) -> None:
        """Tell senders in other programs which sinks there are, and what is known of them."""
        known = {n: v if isinstance(v, Voice) else Voice(v) for n, v in sinks.items()}
        self._files.write("sinks", {name: _told(voice) for name, voice in known.items()})

    def sinks(self) -> list[str]:
        """The sinks that were announced; none as long as the query was never started."""
        return sorted(self._files.read("sinks") or ())

    def parse(self, sink: str, text: str) -> Feedback:
        """Feedback for a sink of the query, judged without regard to what was said before."""
        return judged(self._voice(sink), sink, text)

    def hand_in(
        self,
        sink: str,
        feedback: str | Feedback,
        *,
        lasting: Length | None = None,
        undelimited: bool = False,
    ) -> Feedback:
        """Send feedback for a sink of the query, if it is accepted, and remember what it assumes;
        see `judged`. Returns what was accepted."""
        voice, reached = self._voice(sink), self.reached()
        before = self._in_force(sink, voice.schema, reached)
        if len(before) >= MOST_MESSAGES:
            raise self._full("in force", len(before))
        accepted = judged(
            voice, sink, feedback, before, reached=reached.get(sink, START_OF_TIME),
            lasting=lasting, undelimited=undelimited,
        )  # fmt: skip
        message = Message.of(sink, accepted)
        self.send(message)
        if accepted.intent is Intent.ASSUMED:
            self._files.write(f"said/{message.name}", asdict(message))
        return accepted

    def in_force(self) -> dict[str, list[Feedback]]:
        """By sink, what it assumes, whoever said so."""
        known, reached = self._files.read("sinks") or {}, self.reached()
        voices = {name: _heard(told) for name, told in known.items()}
        return {n: self._in_force(n, voice.schema, reached) for n, voice in voices.items()}

    def _full(self, which: str, messages: int) -> FeedbackError:
        return FeedbackError(
            f"feedback for {self.checkpoint}", f"fewer than {MOST_MESSAGES} messages {which}",
            f"{messages}", "Is the query running? It takes them at its next batch.",
        )  # fmt: skip

    def _voice(self, sink: str) -> Voice:
        """What was announced of a sink, or an error."""
        known = self._files.read("sinks")
        if known is None:
            raise FeedbackError(
                "feedback", "the checkpoint of a query that has been started", self.checkpoint,
                "Start the flow first, with flow.start(checkpoint=…), or name the folder that was "
                "given to it.",
            )  # fmt: skip
        return voice_of({name: _heard(told) for name, told in known.items()}, sink)

    def _in_force(self, sink: str, schema: Schema, reached: Mapping[str, int]) -> list[Feedback]:
        """What a sink assumes; what is over is forgotten."""
        found = []
        for name in self._files.names("said"):
            content = self._files.read(name)
            if content is None:  # someone else has just forgotten it
                continue
            message = Message(**content)
            if _over(message, reached):
                with suppress(FileNotFoundError):  # someone else was faster
                    self._files.remove(name)
            elif message.target == sink:
                with suppress(InterpunctError):  # the sink had other attributes then
                    found.append(Feedback.parse(message.text, schema))
        return found

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


def _told(voice: Voice) -> dict[str, str | bool | None]:
    return {"ddl": voice.schema.ddl, "time": voice.schema.time, "answered": voice.answered}


def _heard(told: Mapping[str, Any]) -> Voice:
    """Earlier versions did not tell whether demands are answered."""
    return Voice(Schema.of(told["ddl"], time=told["time"]), told.get("answered"))


def _over(message: Message, reached: Mapping[str, int]) -> bool:
    """Whether its sink has passed everything that it speaks of."""
    return message.until is not None and message.until <= reached.get(message.target, START_OF_TIME)
