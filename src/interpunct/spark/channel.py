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
import os
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from pyarrow import fs

from interpunct.flow.feedback import delimited
from interpunct.model.errors import FeedbackError
from interpunct.model.feedback import Feedback, Intent
from interpunct.model.schema import START_OF_TIME, Schema
from interpunct.model.ticks import stretch

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
        files, folder = self._open("inbox")
        waiting = self._names(files, folder)
        if message.name in waiting:
            return
        if len(waiting) >= MOST_MESSAGES:
            raise FeedbackError(
                f"feedback channel {self.path}", f"fewer than {MOST_MESSAGES} messages waiting",
                f"{len(waiting)}", "Is the query running? It takes them at its next batch.",
            )  # fmt: skip
        self._write(files, f"{folder}/{message.name}", asdict(message))

    def waiting(self) -> int:
        """How many messages nobody has taken, or not for good."""
        return sum(len(self._names(*self._open(kind))) for kind in ("inbox", "taken"))

    def announce(self, sinks: Mapping[str, Schema]) -> None:
        """Tell senders in other programs which sinks there are."""
        known = {n: {"ddl": s.ddl, "time": s.time} for n, s in sinks.items()}
        files, folder = self._open("")
        self._write(files, f"{folder}sinks", known)

    def parse(self, sink: str, text: str) -> Feedback:
        """Feedback for a sink of the query, checked as far as its schema allows."""
        files, folder = self._open("")
        known = self._read(files, f"{folder}sinks")
        if known is None:
            raise FeedbackError(
                "feedback", "the checkpoint of a query that has been started", self.path,
                "Name the folder that was given to flow.start(checkpoint=…).",
            )  # fmt: skip
        if sink not in known:
            names = ", ".join(sorted(known))
            raise FeedbackError("feedback", f"one of the sinks {names}", repr(sink), "Name one.")
        feedback = Feedback.parse(text, Schema.of(known[sink]["ddl"], time=known[sink]["time"]))
        if feedback.intent is Intent.ASSUMED and not delimited(feedback.pattern):
            raise FeedbackError(
                f"feedback for sink {sink!r}", "a pattern that ends in time", text,
                f"Bound {known[sink]['time']} from above: its guards would stay for ever.",
            )  # fmt: skip
        return feedback

    # How far the sinks have come --------------------------------------------------------------

    def tell_reached(self, reached: Mapping[str, int]) -> None:
        files, folder = self._open("")
        if self._read(files, f"{folder}reached") != reached:
            self._write(files, f"{folder}reached", dict(reached))

    def reached(self) -> dict[str, int]:
        files, folder = self._open("")
        return self._read(files, f"{folder}reached") or {}

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
        files, inbox = self._open("inbox")
        names = self._names(files, inbox)
        _, taken = self._open("taken")
        number = max([last, *map(int, self._names(files, taken))])
        reached = self.reached() if names else {}
        for name in sorted(names):
            content = self._read(files, f"{inbox}/{name}")
            if content is not None and not _over(Message(**content), reached):
                number += 1
                self._write(files, f"{taken}/{number}", content)
            files.delete_file(f"{inbox}/{name}")
        return number

    def messages(self, after: int, upto: int) -> list[Message]:
        """What was taken under these numbers."""
        files, taken = self._open("taken")
        found = (self._read(files, f"{taken}/{number}") for number in range(after + 1, upto + 1))
        return [Message(**content) for content in found if content is not None]

    def forget(self, upto: int) -> None:
        """A batch with these messages has been committed."""
        files, taken = self._open("taken")
        for name in self._names(files, taken):
            if int(name) <= upto:
                files.delete_file(f"{taken}/{name}")

    # Files ------------------------------------------------------------------------------------

    def _open(self, kind: str) -> tuple[fs.FileSystem, str]:
        path = self.path if "://" in self.path else os.path.abspath(self.path)
        files, folder = fs.FileSystem.from_uri(path.replace("file:///", "/"))
        return files, f"{folder}/{kind}"

    def _names(self, files: fs.FileSystem, folder: str) -> list[str]:
        found = files.get_file_info(fs.FileSelector(folder, allow_not_found=True))
        return [i.base_name for i in found if not i.base_name.startswith(".")]

    def _read(self, files: fs.FileSystem, path: str) -> Any:
        try:
            with files.open_input_stream(path) as stream:
                return json.loads(stream.read())
        except FileNotFoundError:
            return None

    def _write(self, files: fs.FileSystem, path: str, content: object) -> None:
        folder, name = path.rsplit("/", 1)
        files.create_dir(folder, recursive=True)
        with files.open_output_stream(f"{folder}/.{name}") as out:
            out.write(json.dumps(content).encode())
        files.move(f"{folder}/.{name}", path)


def _over(message: Message, reached: Mapping[str, int]) -> bool:
    """Whether its sink has passed everything that it speaks of."""
    return message.until is not None and message.until <= reached.get(message.target, START_OF_TIME)
