"""A folder that a demonstration may empty, because an earlier one made it and not its user.

out/studio/.interpunct      whoever finds this mark made the folder, and may empty it
mine/thesis.tex             whoever does not, refuses, and deletes nothing
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from interpunct.model.errors import InterpunctError

MARK = ".interpunct"
_SAID = "Interpunct made this folder, and empties it when the same is run again.\n"


def fresh(folder: Path, known: Collection[str] = ()) -> None:
    """An empty folder with our mark, or an error that leaves everything as it is. `known` is all
    that was put into a folder before there were marks, Spark's log among it."""
    if folder.exists() and not _ours(folder, known):
        raise InterpunctError(
            f"folder {folder}", "one that is empty, new, or made by an earlier run",
            "one that has files of others" if folder.is_dir() else "a file",
            "Name another, or empty it yourself; nothing was deleted.",
        )  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARK).write_text(_SAID)  # first: a folder that is half emptied is still ours
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path.name != MARK:
            path.unlink()


@contextmanager
def passing() -> Iterator[Path]:
    """A folder for the checkpoint of a query, gone after it. Spark's state store looks after its
    files in a thread of its own, and may leave one more while they are being deleted."""
    with TemporaryDirectory(prefix="interpunct-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def _ours(folder: Path, known: Collection[str]) -> bool:
    if not folder.is_dir():
        return False
    names = {path.name for path in folder.iterdir()}
    return not names or MARK in names or ("spark.log" in names and names <= set(known))
