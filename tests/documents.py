"""The documents as a reader takes them: blocks of code in order, what they print, and commands."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"`(interpunct\s[^`]*)`")
_SAVED = re.compile(r"# ([\w-]+\.(?:py|sql))\n")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, and the line of the page on which that begins."""

    kind: str
    text: str
    line: int

    @property
    def padded(self) -> str:
        """The text at the lines where it stands, so that errors point there."""
        return "\n" * (self.line - 1) + self.text

    @property
    def file(self) -> str | None:
        """The file it is, where its first line says so."""
        found = _SAVED.match(self.text)
        return None if found is None else found[1]

    def commands(self) -> Iterator[tuple[list[str], str]]:
        """The commands of a console block, each with what it prints as far as that is shown."""
        for part in re.split(r"^\$ ", self.text, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            yield shlex.split(command, comments=True), output


def blocks(page: Path) -> list[Block]:
    text = page.read_text()
    return [
        Block(found[1], found[2], text[: found.start(2)].count("\n") + 1)
        for found in _BLOCK.finditer(text)
    ]


def prompted(page: Path) -> list[list[str]]:
    """The commands at the prompts of a page."""
    return [words for b in blocks(page) if b.kind == "console" for words, _ in b.commands()]


def commands(page: Path) -> list[list[str]]:
    """Every command a page names: at a prompt, or in passing."""
    prose = _BLOCK.sub("", page.read_text())
    in_passing = [shlex.split(" ".join(span.split())) for span in _SPAN.findall(prose)]
    return prompted(page) + in_passing


def is_a_test(name: str) -> bool:
    """Whether there is a file `tests/x.py`, and in it the test of `tests/x.py::test_y`."""
    file, _, function = name.partition("::")
    path = ROOT / file
    return path.is_file() and (not function or f"def {function}(" in path.read_text())
