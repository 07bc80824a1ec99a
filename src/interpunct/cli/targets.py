"""Flows by name: `speeds.py:flow` or `package.module:flow`, a Flow or a function that makes one."""

from __future__ import annotations

import importlib
import runpy
import sys
from pathlib import Path
from typing import Any

from interpunct.api import Flow
from interpunct.model.errors import FlowError


def load_flow(target: str) -> Flow:
    """The flow a target names, or an error that says what is there instead."""
    place, _, name = target.partition(":")
    found = _names(place, target)
    if not name:
        flows = [n for n, value in found.items() if isinstance(value, Flow)]
        if len(flows) != 1:
            raise FlowError(target, "a target with one flow, or its name", f"{flows or 'none'}",
                            f"Write {place}:name.")  # fmt: skip
        name = flows[0]
    value = found.get(name)
    made = value() if callable(value) and not isinstance(value, Flow) else value
    if not isinstance(made, Flow):
        raise FlowError(
            target, "a Flow, or a function without arguments that returns one",
            "nothing of that name" if value is None else type(made).__name__, "Check the name.",
        )  # fmt: skip
    return made


def _names(place: str, target: str) -> dict[str, Any]:
    if place.endswith(".sql"):
        raise FlowError(
            target, "a module or a file.py", "a file of SQL statements",
            f"interpunct sql {place} --feeds source=path runs it, "
            f"interpunct sql {place} --explain explains it.",
        )  # fmt: skip
    if place.endswith(".py"):
        if not Path(place).is_file():
            raise FlowError(target, "a Python file", f"no file {place}", "Check the path.")
        return runpy.run_path(place)
    sys.path.insert(0, str(Path.cwd()))
    try:
        return vars(importlib.import_module(place))
    except ModuleNotFoundError as error:
        raise FlowError(target, "a module or a file.py", str(error), "Check the name.") from error
    finally:
        sys.path.pop(0)
