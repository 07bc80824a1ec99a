"""Errors that point at the words they speak of.

line 1, column 15: expected a stream or a view: cars, got 'carz'. Check the spelling.
    SELECT * FROM carz
                  ^^^^
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from interpunct.model.errors import InterpunctError


class SqlError(InterpunctError):
    """SQL that cannot be read, or that asks for what streams do not have."""

    def __init__(
        self, where: str, expected: str, got: str, fix: str, shown: str, line: int, column: int
    ) -> None:
        super().__init__(where, expected, got, fix)
        self.shown, self.line, self.column = shown, line, column

    def __str__(self) -> str:
        return f"{super().__str__()}\n{self.shown}"

    def __reduce__(self) -> tuple[type[SqlError], tuple[str, str, str, str, str, int, int]]:  # type: ignore[override]
        parts = (self.where, self.expected, self.got, self.fix, self.shown, self.line, self.column)
        return type(self), parts


@dataclass(frozen=True)
class Spot:
    """Some characters of a text: from `start` up to `end`, which is not included."""

    text: str
    start: int
    end: int

    @property
    def line(self) -> int:
        return self.text.count("\n", 0, self.start) + 1

    @property
    def column(self) -> int:
        return self.start - self._line_start + 1

    @property
    def said(self) -> str:
        return self.text[self.start : self.end]

    @property
    def _line_start(self) -> int:
        return self.text.rfind("\n", 0, self.start) + 1

    def to(self, other: Spot) -> Spot:
        """From the beginning of this to the end of the other."""
        return Spot(self.text, self.start, other.end)

    def error(self, expected: str, got: str, fix: str) -> SqlError:
        where = f"line {self.line}, column {self.column}"
        return SqlError(where, expected, got, fix, self._shown(), self.line, self.column)

    def _shown(self) -> str:
        """The line, and carets below; tabs stay tabs, so that both are indented alike."""
        stop = self.text.find("\n", self._line_start)
        line = self.text[self._line_start : None if stop < 0 else stop]
        before = "".join("\t" if c == "\t" else " " for c in line[: self.column - 1])
        marked = min(self.end - self.start, len(line) - self.column + 1)
        return f"    {line}\n    {before}{'^' * max(marked, 1)}"

    @contextmanager
    def blamed(self) -> Iterator[None]:
        """What goes wrong inside is the fault of these characters."""
        try:
            yield
        except SqlError:
            raise
        except InterpunctError as error:
            raise self.error(error.expected, error.got, error.fix) from None
