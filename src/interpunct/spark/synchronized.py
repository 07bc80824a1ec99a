"""What `synchronize` gives: DataFrames in the order given, which may be called by name."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Self

from pyspark.sql import DataFrame

from interpunct.model.errors import FeedError, FlowError


class Frames(tuple[DataFrame, ...]):
    """DataFrames in the order given, and by name: ``late[1]``, ``late["alerts"]``."""

    names: Sequence[str]
    _unpacked = "late[0] is the first's, late[1] the second's, and each goes by its name as well"

    def __getattr__(self, name: str) -> Any:
        if not hasattr(DataFrame, name):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        raise AttributeError(
            f"there is a DataFrame for each that synchronize was given, and {name!r} is a word of "
            f"theirs: {self._unpacked}"
        )

    def __new__(cls, frames: Sequence[DataFrame], names: Sequence[str]) -> Self:
        made = super().__new__(cls, frames)
        made.names = names
        return made

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, str):
            return super().__getitem__(key)
        if key not in self.names:
            known = ", ".join(self.names)
            raise FlowError("synchronize", f"one of {known}", key, "They are called so by names=…")
        return super().__getitem__(self.names.index(key))


class Synchronized(Frames):
    """The synchronized DataFrames; `late` holds as many, with the late rows."""

    late: Frames
    _unpacked = "readings, alerts = ip.synchronize(…), and of one alone (rows,) = …"

    @classmethod
    def of(
        cls, frames: Sequence[DataFrame], late: Sequence[DataFrame], names: Sequence[str]
    ) -> Synchronized:
        for name, frame in zip(names, frames, strict=True):
            # On what is made of it Spark refuses this itself, but says what only Spark understands.
            frame.withWatermark = partial(_refuse_watermark, name)  # type: ignore[method-assign]
        made = cls(frames, names)
        made.late = Frames(late, names)
        return made


def _refuse_watermark(name: str, *said: object, **named: object) -> DataFrame:
    arguments = ", ".join(map(repr, [*said, *named.values()]))
    raise FeedError(
        f"synchronize, {name}", "no other watermark behind it", f"withWatermark({arguments})",
        "Remove that line: its delay is what synchronize(…, bounds=ip.bounds(skew=…)) says.",
    )  # fmt: skip
