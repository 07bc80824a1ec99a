"""Which word was meant by one that is not known.

>>> nearest("WERE", ["WHERE", "GROUP BY"]), nearest("gruop", ["WHERE", "GROUP BY"])
('WHERE', 'GROUP BY')
>>> nearest("cars", ["WHERE", "GROUP BY"]) is None
True
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

_SHORTEST = 3  # shorter words are near to too many


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The nearest of these words, if one is near; a phrase is known by its first word."""
    by_first = {phrase.split()[0].lower(): phrase for phrase in known}
    if len(word) < _SHORTEST:
        return None
    found = get_close_matches(word.lower(), by_first, n=1)
    meant = by_first[found[0]] if found else None
    return None if meant is None or meant.lower() == word.lower() else meant


def advice(word: str, known: Iterable[str], otherwise: str) -> str:
    """What to do about a word: write the one that was meant, or else something else."""
    meant = nearest(word, known)
    return otherwise if meant is None else f"Did you mean {meant}?"


def listed(words: Iterable[str], expected: str) -> str:
    """What was expected, with those words before it that it does not name yet."""
    more = [w for w in dict.fromkeys(words) if not re.search(rf"\b{re.escape(w)}\b", expected)]
    if not more:
        return expected
    return ", ".join(more) + (", " if " or " in expected else " or ") + expected
