"""What is known of a stream before it runs (LMerge sections III and IV-D)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Properties:
    """Each flag is a promise about every run of the stream; False means "not known".

    `ordered`: times never decrease. `strict`: they always increase. `insert_only`: tuples are
    never revised. `keyed`: (time, payload) is unique. `deterministic`: tuples with equal times
    always come in the same order.
    """

    ordered: bool = False
    strict: bool = False
    insert_only: bool = True
    keyed: bool = False
    deterministic: bool = False

    def __str__(self) -> str:
        names = [n.replace("_", "-") for n, on in vars(self).items() if on]
        return ", ".join(names) or "nothing known"
