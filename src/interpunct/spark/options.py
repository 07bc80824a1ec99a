"""Options of our data sources, read with an error that names the option."""

from __future__ import annotations

from collections.abc import Mapping

from interpunct.model.errors import FeedError


class Options:
    """A view of Spark's options. They are case-insensitive as Spark gives them: never a copy."""

    def __init__(self, source: str, options: Mapping[str, str]) -> None:
        self._source, self._options = source, options

    def text(self, name: str, default: str | None = None) -> str:
        found = self._options.get(name, default)
        if found is None:
            raise self._error(name, "a value", "none")
        return str(found)

    def flag(self, name: str) -> bool:
        """True or false; false when it is not given."""
        found = str(self._options.get(name, "false")).lower()
        if found not in ("true", "false"):
            raise self._error(name, "true or false", repr(found))
        return found == "true"

    def whole(self, name: str, default: int, least: int = 0) -> int:
        """A whole number."""
        found = self._options.get(name)
        if found is None:
            return default
        if not found.strip().isdecimal() or int(found) < least:
            raise self._error(name, f"a whole number of at least {least}", repr(found))
        return int(found)

    def positive(self, name: str) -> float | None:
        """A number above zero, or None when it is not given."""
        found = self._options.get(name)
        return None if found is None else self.number(name, 1.0, above=0.0)

    def number(
        self, name: str, default: float, *, above: float | None = None, most: float | None = None
    ) -> float:
        """A number of at least zero, or above a bound, and at most another."""
        found = self._options.get(name)
        if found is None:
            return default
        try:
            value = float(found)
        except ValueError:
            value = float("nan")
        low = value > above if above is not None else value >= 0
        if not low or (most is not None and value > most):
            least = f"above {above:g}" if above is not None else "of at least 0"
            limit = "" if most is None else f" and at most {most:g}"
            raise self._error(name, f"a number {least}{limit}", repr(found))
        return value

    def _error(self, name: str, expected: str, got: str) -> FeedError:
        return FeedError(
            f"{self._source} source, option {name!r}", expected, got, f'.option("{name}", …)'
        )
