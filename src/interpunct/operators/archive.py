"""Archives: where values that a stream lacks are looked up (Feedback section 6, Experiment 1).

    segment  minute  speed          select avg(speed) as speed from readings
          3     540   null    ──▶   where segment = :segment and minute = :minute    ──▶   48.5

A query names attributes of the tuple as its parameters, `:segment`, and its columns are the
answer. One tuple is one query; several tuples at once are one query too, which joins the archive
with their keys. An archive travels with its flow, so it is a description that connects when it is
first asked, where it is asked.

>>> query = Query.parse("select name from segments where id = :segment", "sqlite", "example")
>>> query.parameters
('segment',)
>>> query.written(lambda name: f"keys.{name}")
'select name from segments where id = keys.segment'
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol, runtime_checkable

import polars as pl
import sqlglot

from interpunct.model.errors import ArchiveError

ROW = "_row"  # the number of a key, by which answers find their tuples


@runtime_checkable
class Archive(Protocol):
    """Something that knows more about a tuple than the tuple says."""

    @property
    def parameters(self) -> tuple[str, ...]:
        """The attributes of a tuple that a look-up reads."""
        ...

    def look_up(self, keys: pl.DataFrame) -> pl.DataFrame:
        """One row for each row of `keys`, in their order; nulls where nothing is known.

        Columns of `keys` that are no parameters are passed over.
        """
        ...


@dataclass(frozen=True)
class Query:
    """The text of a look-up, and where its parameters stand in it."""

    text: str
    places: tuple[tuple[int, int, str], ...]  # from, to (not included), name

    @classmethod
    def parse(cls, text: str, dialect: str, where: str) -> Query:
        """Tokens tell parameters from casts, strings and comments; nothing else is looked at."""
        text = text.strip().rstrip(";")
        try:
            tokens = sqlglot.tokenize(text, read=dialect)
        except sqlglot.errors.TokenError as error:
            raise ArchiveError(
                where, "a query", repr(text), f"The tokenizer said: {str(error).splitlines()[0]}"
            ) from error
        if not tokens or tokens[0].text.lower() not in ("select", "with", "("):
            raise ArchiveError(
                where, "a query that selects", repr(text),
                "Write select … from … where attribute = :attribute.",
            )  # fmt: skip
        places = tuple(
            (colon.start, name.end + 1, name.text)
            for colon, name in pairwise(tokens)
            if colon.token_type.name == "COLON"
            and name.start == colon.end + 1
            and name.text.isidentifier()
        )
        return cls(text, places)

    @property
    def parameters(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for _, _, name in self.places))

    def written(self, form: Callable[[str], str], escape: Callable[[str], str] = str) -> str:
        """The query with each parameter in this form, and the text between them escaped."""
        parts, done = [], 0
        for start, end, name in self.places:
            parts += [escape(self.text[done:start]), form(name)]
            done = end
        return "".join([*parts, escape(self.text[done:])])


class SqlArchive(ABC):
    """A database and a query; what differs between databases is below in `operators/databases`."""

    dialect: str  # as sqlglot calls it

    def __init__(self, address: str, query: str) -> None:
        self.where = f"archive {_without_password(address)}"
        self.address, self.query = address, Query.parse(query, self.dialect, self.where)
        self._connection: Any = None

    @property
    def parameters(self) -> tuple[str, ...]:
        return self.query.parameters

    def look_up(self, keys: pl.DataFrame) -> pl.DataFrame:
        missing = [name for name in self.parameters if name not in keys.columns]
        if missing:
            raise ArchiveError(
                self.where, f"parameters among the attributes {', '.join(keys.columns)}",
                ", ".join(f":{name}" for name in missing), "Check the spelling.",
            )  # fmt: skip
        if self._connection is None:
            self._connection = self._connected()
        asked = keys.select(*self.parameters, pl.int_range(pl.len()).alias(ROW))
        try:
            if asked.height == 1:
                return self._one(asked)
            return self._many(asked)
        except self._failures() as error:
            self.close()
            reason = str(error).splitlines()[0]
            raise ArchiveError(
                self.where, "a query this database understands", reason,
                f"The query was: {self.query.text}",
            ) from error  # fmt: skip

    def close(self) -> None:
        """Let go of the connection; the next look-up makes a new one."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __getstate__(self) -> dict[str, Any]:
        """A connection stays where it was made."""
        return {**self.__dict__, "_connection": None}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({_without_password(self.address)!r})"

    @abstractmethod
    def _connected(self) -> Any:
        """A connection, or an ArchiveError saying why there is none."""

    @abstractmethod
    def _failures(self) -> tuple[type[Exception], ...]:
        """What the driver raises."""

    @abstractmethod
    def _one(self, key: pl.DataFrame) -> pl.DataFrame:
        """The answer for one key, by parameters."""

    @abstractmethod
    def _many(self, keys: pl.DataFrame) -> pl.DataFrame:
        """The answers for many keys, numbered in the column ROW, by one query."""


def first_answers(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> pl.DataFrame:
    """One row: the first that came, or nulls."""
    return pl.DataFrame(
        [rows[0] if rows else [None] * len(columns)], schema=list(columns), orient="row"
    )


def by_row(answers: pl.DataFrame) -> pl.DataFrame:
    """Numbered answers in the order of their keys, the first of each."""
    return answers.unique(ROW, keep="first", maintain_order=True).sort(ROW).drop(ROW)


def _without_password(address: str) -> str:
    """`postgresql://user:secret@host` as it may be shown."""
    scheme, divider, rest = address.partition("://")
    account, at, host = rest.rpartition("@")
    return f"{scheme}{divider}{account.partition(':')[0]}{at}{host}" if at else address
