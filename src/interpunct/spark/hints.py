"""Heartbeat hints: what the lanes promised in one batch, for the ingest tasks of the next; and
reports, for people.

With it a task can tell which of its tuples are late before it aggregates them. It is a hint in a
file, never the truth, which is in state: a task that finds none sends its tuples as they are, and
the lanes do the rest. Written during a batch, it is there when the next one begins, and a batch
that is run again finds what it found the first time.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyarrow import fs
from pyspark import TaskContext

from interpunct.engine.blame import Blame
from interpunct.model.pattern import Pattern

_assumed: dict[tuple[int, int], tuple[str, object]] = {}  # what this worker's lanes left last
KEPT = 20  # batches whose hints are kept


@dataclass(frozen=True)
class Hint:
    """The heartbeat a source had given, and the greatest timestamp it had seen."""

    given: int
    greatest: int


@dataclass(frozen=True)
class Hints:
    """A folder on any file system Arrow and Spark both reach."""

    path: str

    def write(self, stage: int, batch: int, hints: dict[str, Hint]) -> None:
        """Leave the hints of a stage in this batch, and clear away an old one."""
        content = {name: [h.given, h.greatest] for name, h in hints.items()}
        files, folder = self._put(stage, "hints", batch, content)
        old = f"{folder}/{batch - KEPT}"
        if files.get_file_info(old).type is fs.FileType.File:
            files.delete_file(old)

    def read(self, stage: int, batch: int) -> dict[str, Hint]:
        """The hints a stage left in this batch; none if it left none."""
        files, folder = self._open(stage, "hints")
        content = _read(files, f"{folder}/{batch}") or {}
        return {name: Hint(*values) for name, values in content.items()}

    def report(self, stage: int, lane: int, lines: list[Blame]) -> None:
        """Leave what a lane knows of who holds whom back, unless that is what it left last."""
        content = [vars(line) for line in lines]
        files, folder = self._open(stage, "blame")
        if _read(files, f"{folder}/{lane}") != content:
            self._put(stage, "blame", lane, content)

    def assume(
        self,
        stage: int,
        lane: int,
        assumed: Mapping[str, Sequence[Pattern]],
        skipped: Mapping[str, Mapping[str, int]],
    ) -> None:
        """Leave what a lane does without, for the ingest tasks of batches to come, and how many
        tuples that has spared it, for people."""
        if not assumed and not skipped and (stage, lane) not in _assumed:
            return
        said = {n: [[list(p.names), p.by_name()] for p in found] for n, found in assumed.items()}
        content = {"assumed": said, "skipped": skipped}
        if _assumed.get((stage, lane)) != (self.path, content):
            self._put(stage, "assumed", lane, content)
            _assumed[stage, lane] = (self.path, content)

    def assumed(self, stage: int, lanes: Sequence[int]) -> list[Any]:
        """What each lane left; None for one that left nothing."""
        files, folder = self._open(stage, "assumed")
        if files.get_file_info(folder).type is fs.FileType.NotFound:
            return [None] * len(lanes)
        return [_read(files, f"{folder}/{lane}") for lane in lanes]

    def reports(self) -> list[Blame]:
        """What the lanes of all stages last left."""
        files, folder = self._open(0, "blame")
        every = fs.FileSelector(os.path.dirname(folder), allow_not_found=True, recursive=True)
        found = []
        for info in sorted(files.get_file_info(every), key=lambda info: info.path):
            if info.type is fs.FileType.File and not info.base_name.startswith("."):
                found += [Blame(**line) for line in _read(files, info.path) or ()]
        return found

    def _put(self, stage: int, kind: str, name: int, content: object) -> tuple[fs.FileSystem, str]:
        """Replace a file as a whole; returns where it is."""
        files, folder = self._open(stage, kind)
        files.create_dir(folder, recursive=True)
        temporary, final = f"{folder}/.{name}", f"{folder}/{name}"
        with files.open_output_stream(temporary) as out:
            out.write(json.dumps(content).encode())
        files.move(temporary, final)
        return files, folder

    @classmethod
    def under(cls, checkpoint: str) -> Hints | None:
        """Hints beside a checkpoint, or none where Arrow cannot reach its file system."""
        hints = cls(f"{checkpoint}/interpunct")
        try:
            files, folder = hints._open(0, "hints")
            files.create_dir(folder, recursive=True)
        except (OSError, ValueError, ImportError) as error:
            warnings.warn(
                f"Late tuples are sorted out in the lanes, which is slower: Arrow cannot write to "
                f"{checkpoint} ({error})", stacklevel=3,
            )  # fmt: skip
            return None
        return hints

    def _open(self, stage: int, kind: str) -> tuple[fs.FileSystem, str]:
        path = self.path if "://" in self.path else os.path.abspath(self.path)
        files, folder = fs.FileSystem.from_uri(path.replace("file:///", "/"))
        return files, f"{folder}/{kind}/{stage}"


def _read(files: fs.FileSystem, path: str) -> Any:
    """What a file holds, or None where there is none."""
    try:
        with files.open_input_stream(path) as stream:
            return json.loads(stream.read())
    except FileNotFoundError:
        return None


def current_batch() -> int | None:
    """The number of the micro-batch this task belongs to."""
    context = TaskContext.get()
    text = None if context is None else context.getLocalProperty("streaming.sql.batchId")
    return None if text is None else int(text)
