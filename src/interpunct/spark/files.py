"""Files that others read while they are written: small JSON files on any file system that Arrow
and Spark both reach, and Parquet files in folders that a query watches.

A file is replaced as a whole: who reads it finds what was there before, or what is there now.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyarrow import fs


@dataclass(frozen=True)
class JsonFolder:
    """Files by their names below a folder."""

    path: str

    def read(self, name: str) -> Any:
        """What a file holds, or None where there is none."""
        files, folder = self._open()
        try:
            with files.open_input_stream(f"{folder}/{name}") as stream:
                return json.loads(stream.read())
        except FileNotFoundError:
            return None

    def lines(self, name: str) -> list[str]:
        """The lines of a file that is no JSON as a whole; none where there is none."""
        files, folder = self._open()
        try:
            with files.open_input_stream(f"{folder}/{name}") as stream:
                return bytes(stream.read()).decode().splitlines()
        except FileNotFoundError:
            return []

    def write(self, name: str, content: object) -> None:
        files, folder = self._open()
        parent, _, last = f"{folder}/{name}".rpartition("/")
        part, data = f"{parent}/.{last}", json.dumps(content).encode()
        try:
            stream = files.open_output_stream(part)
        except FileNotFoundError:  # only then: to make a folder takes as long as to write
            files.create_dir(parent, recursive=True)
            stream = files.open_output_stream(part)
        with stream as out:
            out.write(data)
        files.move(part, f"{parent}/{last}")

    def rewrite(self, name: str, content: object) -> None:
        """Write what is not there already."""
        if self.read(name) != json.loads(json.dumps(content)):
            self.write(name, content)

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        files, folder = self._open()
        if files.get_file_info(f"{folder}/{name}").type is fs.FileType.File:
            files.delete_file(f"{folder}/{name}")

    def names(self, under: str) -> list[str]:
        """The names of all files below a folder of this one, in order."""
        files, folder = self._open()
        select = fs.FileSelector(f"{folder}/{under}", allow_not_found=True, recursive=True)
        found = [i for i in files.get_file_info(select) if i.type is fs.FileType.File]
        kept = (i.path.removeprefix(f"{folder}/") for i in found if i.base_name[0] != ".")
        return sorted(kept)

    def begins(self, prefix: str) -> bool:
        """Whether there is anything in this folder whose name begins so."""
        files, folder = self._open()
        found = files.get_file_info(fs.FileSelector(folder, allow_not_found=True))
        return any(info.base_name.startswith(prefix) for info in found)

    def make(self) -> None:
        """Make sure that there is such a folder, or say why not."""
        files, folder = self._open()
        files.create_dir(folder, recursive=True)

    def _open(self) -> tuple[fs.FileSystem, str]:
        files, folder = fs.FileSystem.from_uri(absolute(self.path).replace("file:///", "/"))
        return files, folder


def put(path: Path, write: Callable[[Path], object], *, moment: float | None = None) -> None:
    """A file that appears whole, or not at all, by default with the moment of its writing.

    Spark does not read a name that begins with a dot. Of a file that it lists while nothing is in
    it yet it would read nothing, and never look at it again.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    write(part)
    if moment is not None:
        os.utime(part, (moment, moment))
    part.replace(path)


def absolute(path: str) -> str:
    """The path as it is here: a worker need not be in the folder in which the driver is."""
    return path if "://" in path else os.path.abspath(path)
