"""Heartbeat hints: what the lanes promised in one batch, for the ingest tasks of the next; and
reports, for people.

With it a task can tell which of its tuples are late before it aggregates them. It is a hint in a
file, never the truth, which is in state: a task that finds none sends its tuples as they are, and
the lanes do the rest. Written during a batch, it is there when the next one begins, and a batch
that is run again finds what it found the first time. Of what a task finds, only what its own query
has written counts: a folder may be named for two by mistake.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pyspark import TaskContext

from interpunct.engine.vitals import QueryVitals, Sign, Vitals, lately, together
from interpunct.flow.outline import Outline
from interpunct.model.pattern import Pattern
from interpunct.progress.clock import RealClock
from interpunct.spark.files import JsonFolder

FOLDER = "interpunct"  # below the checkpoint
KEPT = 20  # batches whose hints are kept
TOLD = ("batches", "began", "seconds", "running")  # what a query tells; the rest is judged


@dataclass(frozen=True)
class Hint:
    """The heartbeat a source had given, and the greatest timestamp it had seen."""

    given: int
    greatest: int


@dataclass(frozen=True)
class Hints:
    """A folder beside a checkpoint."""

    path: str

    def write(self, stage: int, batch: int, hints: dict[str, Hint]) -> None:
        """Leave the hints of a stage in this batch, and clear away an old one."""
        content = {name: [h.given, h.greatest] for name, h in hints.items()}
        self._files.write(f"hints/{stage}/{batch}", {"query": current_query(), "sources": content})
        self._files.remove(f"hints/{stage}/{batch - KEPT}")

    def read(self, stage: int, batch: int) -> dict[str, Hint]:
        """The hints a stage left in this batch; none if it left none."""
        content = self._of_this_query(f"hints/{stage}/{batch}")
        return {} if content is None else {n: Hint(*v) for n, v in content["sources"].items()}

    def report(self, stage: int, lane: int, vitals: Vitals) -> None:
        """Leave what can be seen of a lane."""
        self._files.write(f"vitals/{stage}/{lane}", vitals.to_json())

    def reported(self, stage: int, lane: int) -> Vitals:
        """What a lane last left; nothing if it left nothing."""
        left = self._files.read(f"vitals/{stage}/{lane}")
        return Vitals() if left is None else Vitals.of_json(left)

    def vitals(self, now: int | None = None) -> Vitals:
        """What the lanes of all stages last left, taken together; by default as of now."""
        return self.seen(now)[0]

    def query(self, now: int | None = None) -> QueryVitals | None:
        """What is to be thought of what the query last told, by default now."""
        return self.seen(now)[1]

    def seen(self, now: int | None = None) -> tuple[Vitals, QueryVitals | None]:
        """Both, from one look at the files: each is judged by the other."""
        parts: dict[int, list[Vitals]] = {}
        for name in self._files.names("vitals"):
            _, stage, lane = name.split("/")
            parts.setdefault(int(stage), []).append(self.reported(int(stage), int(lane)))
        now = RealClock().now() if now is None else now
        lanes, told, sign = together(parts), self.told(), self.sign()
        query = None if told is None else told.judged(sign, lanes.heard, now)
        return lanes.since(lately(query, sign, now)), query

    def remember(self, stage: int, batch: int, described: bytes) -> None:
        """Leave what the lanes of a stage were made with, in the batch that first writes it."""
        self._files.write(f"program/{stage}", {"batch": batch, "described": described.decode()})

    def made_with(self) -> list[tuple[int, bytes]]:
        """By stage, what the checkpoint was made with, where the batch that wrote it was
        finished: until then there is no state that depends on it."""
        commits = JsonFolder(self.path.removesuffix(f"/{FOLDER}")).names("commits")
        last = max((int(n) for n in map(_last_part, commits) if n.isdigit()), default=-1)
        left = [(_last_part(n), self._files.read(n)) for n in self._files.names("program")]
        return [(int(s), told["described"].encode()) for s, told in left if told["batch"] <= last]

    def announce(self, outline: Outline) -> None:
        """Tell those who only see the metrics what the flow looks like."""
        self._files.rewrite("outline", outline.to_json())

    def outline(self) -> Outline | None:
        said = self._files.read("outline")
        return None if said is None else Outline.of_json(said)

    def tell_query(self, query: QueryVitals) -> None:
        self._files.rewrite("query", {name: getattr(query, name) for name in TOLD})

    def told(self) -> QueryVitals | None:
        """What the query last told of its batches; None where it never did."""
        told = self._files.read("query")
        return None if told is None else QueryVitals(**told)

    def tell_alive(self, sign: Sign) -> None:
        self._files.write("alive", asdict(sign))

    def sign(self) -> Sign | None:
        """The query's last sign of life; None where it gives none, as older versions do not."""
        told = self._files.read("alive")
        return None if told is None else Sign(**told)

    def assume(
        self,
        stage: int,
        lane: int,
        assumed: Mapping[str, Sequence[Pattern]],
        skipped: Mapping[str, Mapping[str, int]],
    ) -> None:
        """Leave what a lane does without, for the ingest tasks of batches to come, and how many
        tuples that has spared it, for people; nothing as long as there is nothing to say."""
        name = f"assumed/{stage}/{lane}"
        said = {n: [[list(p.names), p.by_name()] for p in found] for n, found in assumed.items()}
        if said or skipped or self._files.read(name) is not None:
            content = {"query": current_query(), "assumed": said, "skipped": skipped}
            self._files.rewrite(name, content)

    def assumed(self, stage: int, lanes: Sequence[int]) -> list[Any]:
        """What each lane left; None for one that left nothing."""
        return [self._of_this_query(f"assumed/{stage}/{lane}") for lane in lanes]

    def _of_this_query(self, name: str) -> Any:
        """What a file holds; in a task, only if its own query has written it."""
        content, query = self._files.read(name), current_query()
        return content if content is None or query in (None, content.get("query")) else None

    @classmethod
    def under(cls, checkpoint: str) -> Hints | None:
        """Hints beside a checkpoint, or none where Arrow cannot reach its file system."""
        hints = cls(f"{checkpoint}/{FOLDER}")
        try:
            hints._files.make()
        except (OSError, ValueError, ImportError) as error:
            warnings.warn(
                f"Late tuples are sorted out in the lanes, which is slower: Arrow cannot write to "
                f"{checkpoint} ({error})", stacklevel=3,
            )  # fmt: skip
            return None
        return hints

    @property
    def _files(self) -> JsonFolder:
        return JsonFolder(self.path)


def _last_part(name: str) -> str:
    return name.rpartition("/")[2]


def current_batch() -> int | None:
    """The number of the micro-batch this task belongs to."""
    text = _property("streaming.sql.batchId")
    return None if text is None else int(text)


def current_query() -> str | None:
    """The query this task belongs to, by the name that its checkpoint keeps."""
    return _property("sql.streaming.queryId")


def _property(name: str) -> str | None:
    context = TaskContext.get()
    return None if context is None else context.getLocalProperty(name)
