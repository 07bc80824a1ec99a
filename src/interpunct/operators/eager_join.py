"""A join that is thrifty and impatient at once."""

from __future__ import annotations

from interpunct.operators.impatient_join import ImpatientJoin
from interpunct.operators.thrifty_join import ThriftyJoin


class EagerJoin(ThriftyJoin, ImpatientJoin):
    """Sends assumed feedback for what meets nothing and desired feedback for what would."""
