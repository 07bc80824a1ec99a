"""Every Python example in the documents runs, block after block, as a reader would run them."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import interpunct

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
KERNEL = ("model", "progress", "operators", "flow", "engine", "sql", "testing", "api")


def blocks(document: Path) -> str:
    """The document's Python, at the lines where it stands, so that errors point there."""
    text = document.read_text()
    lines = [""] * text.count("\n")
    for found in BLOCK.finditer(text):
        first = text[: found.start(1)].count("\n")
        code = found[1].splitlines()
        lines[first : first + len(code)] = code
    return "\n".join(lines)


@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda d: d.name)
def test_examples_run(document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(blocks(document), str(document), "exec"), {"__name__": "__main__"})


def modules() -> list[str]:
    found = pkgutil.walk_packages(interpunct.__path__, "interpunct.")
    return [m.name for m in found if m.name.split(".")[1] in KERNEL]


@pytest.mark.parametrize("name", modules())
def test_docstring_examples_hold(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0
