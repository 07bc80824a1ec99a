"""The trace: every step the engine takes, for tests and for people.

>>> trace = Trace()
>>> trace.add(0, "execute", "Q1", "2 tuples")
>>> print(trace)
         0  execute    Q1        2 tuples
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple


class Step(NamedTuple):
    """`at` is the clock in microseconds; `rule` is execute, forward, encore, backtrack, ets, …"""

    at: int
    rule: str
    node: str
    detail: str = ""


class Trace:
    """The last `most` steps."""

    def __init__(self, most: int = 100_000) -> None:
        self.steps: deque[Step] = deque(maxlen=most)

    def add(self, at: int, rule: str, node: str, detail: str = "") -> None:
        self.steps.append(Step(at, rule, node, detail))

    def rules(self) -> list[str]:
        """The steps as ``rule node``, without times: what a test compares."""
        return [f"{s.rule} {s.node}" for s in self.steps]

    def __str__(self) -> str:
        lines = (f"{s.at:>10}  {s.rule:<10} {s.node:<9} {s.detail}".rstrip() for s in self.steps)
        return "\n".join(lines)
