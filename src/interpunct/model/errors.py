"""One base error; every constructor says where, what was expected, what came, what to do."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from difflib import get_close_matches


class InterpunctError(Exception):
    """Base of every error this project raises on purpose."""

    def __init__(self, where: str, expected: str, got: str, fix: str) -> None:
        self.where, self.expected, self.got, self.fix = where, expected, got, fix
        super().__init__(f"{where}: expected {expected}, got {got}. {fix}")

    def __reduce__(self) -> tuple[type[InterpunctError], tuple[str, str, str, str]]:
        return type(self), (self.where, self.expected, self.got, self.fix)


class SchemaError(InterpunctError):
    """A schema, or data that does not fit one."""

    @classmethod
    def unknown_attribute(cls, where: str, name: str, known: Iterable[str]) -> SchemaError:
        names = list(known)
        near = get_close_matches(name.lower(), {n.lower(): n for n in names}, n=1)
        meant = next((n for n in names if n.lower() in near), None)
        fix = "Check the spelling." if meant is None else f"Did you mean {meant!r}?"
        return cls(where, f"one of the attributes {', '.join(names)}", repr(name), fix)

    @classmethod
    def missing_column(cls, where: str, name: str, columns: Iterable[str]) -> SchemaError:
        return cls(
            where, f"a column {name!r}", f"columns {', '.join(columns)}",
            "Rename or add the column.",
        )  # fmt: skip

    @classmethod
    def wrong_type(cls, where: str, name: str, expected: str, got: str) -> SchemaError:
        return cls(
            where,
            f"{expected} in attribute {name!r}",
            got,
            "Cast the column, or declare the attribute with the type it has.",
        )


class PatternError(InterpunctError):
    """A malformed pattern text, or a pattern that does not fit its schema."""


class PageError(InterpunctError):
    """Bytes or a frame that are not a page of the expected schema."""


class FlowError(InterpunctError):
    """A query graph that cannot be built or run."""


class WordError(FlowError, AttributeError):
    """A word that a stream has under another name; `hasattr` says that it has none."""


class FeedbackError(InterpunctError):
    """Feedback that cannot be accepted from its sender."""


class FeedError(InterpunctError):
    """A feed that does not fit the source it is given to."""


class StreamError(InterpunctError):
    """A running stream that breaks its own declaration and has nowhere to put the evidence."""


class ArchiveError(InterpunctError):
    """A database for look-ups that cannot be opened, or not asked what it is asked."""


class ExpressionError(InterpunctError):
    """An expression or a duration that cannot be understood."""

    @classmethod
    def unsupported(
        cls, where: str, what: str, column: str, meant: str | None = None
    ) -> ExpressionError:
        asked = "" if meant is None else f"Did you mean {meant}? "
        return cls(
            where,
            "SQL that this system evaluates itself",
            what,
            f"{asked}docs/sql.md lists its functions; from Python a Polars expression may be given "
            f"instead, one that begins with pl.col({column!r}).",
        )


def levels_to_the_user() -> int:
    """How many calls there are from the one that warns to the first that is not this package's."""
    package = __name__.partition(".")[0] + "."
    levels, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(package):
        levels, frame = levels + 1, frame.f_back
    return levels
