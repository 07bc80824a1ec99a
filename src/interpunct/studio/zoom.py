"""Zooming is feedback: what nobody looks at need not be computed.

    someone looks at segments 3 to 5    ¬[segment ∉ {3, 4, 5}, ts ≤ 12:00:20]
    still looks, as time comes near     ¬[segment ∉ {3, 4, 5}, ts ≤ 12:00:30]
    looks at everything again           nothing more is said, and at 12:00:30 the guards are gone

Feedback speaks of a stretch of stream time that punctuation will cover, so that no guard stays
behind (Feedback section 4.4), and is renewed while someone looks. It must be ahead of what it wants
to spare: a query whose batches take long is told for longer. Of several people who look at one
map each sees what he wants: only what all of them do without is assumed away.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field


@dataclass
class Zoom:
    """What the people in front of one map want to see of one attribute."""

    attribute: str
    ahead: int  # ticks of stream time that feedback speaks of, at least
    looks: dict[str, frozenset[int] | None] = field(default_factory=dict)  # None: everything
    renewed: int | None = None  # when what was said last has to be said again
    said: frozenset[int] | None = None
    until: int = 0  # the time up to which that speaks

    def look(self, who: str, values: Collection[int] | None) -> None:
        """Someone looks at these values, or at everything."""
        self.looks[who] = None if values is None else frozenset(values)

    def leave(self, who: str) -> None:
        self.looks.pop(who, None)

    @property
    def wanted(self) -> frozenset[int] | None:
        """What somebody wants to see; None when that is everything."""
        looks = list(self.looks.values())
        if not looks or any(look is None for look in looks):
            return None
        return frozenset().union(*(look for look in looks if look is not None))

    def due(self, reached: int, batch: int = 0) -> tuple[str, int] | None:
        """What is to be said now that the sink has come this far, and for how long; None for
        nothing. `batch` is what the query's batches take, in ticks: feedback is in the lanes after
        one, and where the source is read after another."""
        wanted = self.wanted
        if wanted is None:
            self.said = None
            return None
        if wanted == self.said and self.renewed is not None and reached < self.renewed:
            return None
        until = reached + self.ahead + 4 * batch
        if wanted == self.said:  # batches take now more, now less: what was promised stays so
            until = max(until, self.until)
        self.said, self.renewed, self.until = wanted, reached + self.ahead // 2, until
        values = ", ".join(map(str, sorted(wanted)))
        return f"¬[{self.attribute} ∉ {{{values}}}]", until - reached
