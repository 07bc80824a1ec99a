"""What a logical merge may put out and when, within what is compatible (LMerge section V-A).

    inserts   first        as soon as any input shows the event             fastest, may be removed
              leader       as soon as the leading input shows it
              half-frozen  once a stable says that it will stay             never removed again
              0.5          once half of the inputs show it                  a quorum
    adjusts   stable       only where a stable would make a wrong end final  fewest elements
              every        each adjust of each input, as it comes            most elements
              leader       those of the leading input

The leading input is the one whose stable is greatest. `stable_lag` keeps the output's stable that
many ticks behind it, which leaves revisions time to come before they need an adjust.

>>> MergePolicy(inserts=0.5)
MergePolicy(adjusts='stable', inserts=0.5, stable_lag=0)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from interpunct.model.errors import FlowError

ADJUSTS = ("stable", "every", "leader")
INSERTS = ("first", "leader", "half-frozen")


@dataclass(frozen=True)
class MergePolicy:
    """The paper's own choice is the default: first inserts, adjusts at stable, no lag."""

    adjusts: Literal["stable", "every", "leader"] = "stable"
    inserts: Literal["first", "leader", "half-frozen"] | float = "first"
    stable_lag: int = 0

    def __post_init__(self) -> None:
        if self.adjusts not in ADJUSTS:
            raise _invalid(f"adjusts among {', '.join(ADJUSTS)}", repr(self.adjusts))
        if isinstance(self.inserts, str):
            if self.inserts not in INSERTS:
                expected = f"inserts among {', '.join(INSERTS)} or a fraction"
                raise _invalid(expected, repr(self.inserts))
        elif not 0 < self.inserts <= 1:
            raise _invalid("a quorum above 0 and at most 1", repr(self.inserts))
        if self.stable_lag < 0:
            raise _invalid("a stable lag of at least 0", str(self.stable_lag))
        if self.adjusts == "leader" and self.quorum:
            raise _invalid(
                "one input to follow, or a share of them to wait for", str(self),
                "Take inserts='leader' with adjusts='leader', or adjusts='stable' with a quorum.",
            )  # fmt: skip
        if self.adjusts == "every" and self.inserts == "leader":
            raise _invalid(
                "adjusts from no more inputs than inserts", str(self),
                "Take adjusts='leader' with inserts='leader'.",
            )  # fmt: skip

    @property
    def quorum(self) -> bool:
        return not isinstance(self.inserts, str)

    def needed(self, inputs: int) -> int:
        """How many of so many inputs must show an event before it comes out."""
        if isinstance(self.inserts, str):
            return 1
        return max(1, math.ceil(self.inserts * inputs))

    @property
    def stateless(self) -> bool:
        """Whether it can be kept without knowing what each input has shown."""
        return self.inserts == "first"


def _invalid(expected: str, got: Any, fix: str = "Correct the policy.") -> FlowError:
    return FlowError("merge policy", expected, got, fix)
