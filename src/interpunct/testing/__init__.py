"""The law suite every operator passes, shipped for operators written elsewhere too.

    from interpunct.testing import Case, arrivals, check

    case = Case("select", lambda c: Select("s", stream, condition, c.state), arrivals([stream]))
    check(case)                     # every law, on inputs hypothesis makes up

`cases` describes what is tested and runs it, `strategies` makes inputs that keep their promises,
`laws` has one function per law, `reference` the papers' rules tuple by tuple in plain Python.
"""

from __future__ import annotations

from importlib.util import find_spec

if find_spec("hypothesis") is None:
    raise ImportError(
        "interpunct.testing: expected hypothesis to be installed, got no such package. "
        "Install it with: pip install 'interpunct[dev]'"
    )

from interpunct.testing.cases import Arrival, Ask, Case, Event, Running, Wait
from interpunct.testing.laws import LAWS, Law, check
from interpunct.testing.strategies import arrivals, columns, splits, streams

__all__ = [
    "LAWS",
    "Arrival",
    "Ask",
    "Case",
    "Event",
    "Law",
    "Running",
    "Wait",
    "arrivals",
    "check",
    "columns",
    "splits",
    "streams",
]
