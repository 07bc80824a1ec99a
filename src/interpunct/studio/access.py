"""Who may act on a query from the page, and not only look at it.

>>> here = Access.at("127.0.0.1")
>>> here.allows(None)  # whoever is on this machine
True
>>> abroad = Access.at("0.0.0.0", token="opensesame")
>>> abroad.allows(None), abroad.allows("guess"), abroad.allows("opensesame")
(False, False, True)
"""

from __future__ import annotations

import ipaddress
import secrets
from dataclasses import dataclass


@dataclass(frozen=True)
class Access:
    """The token that control actions need; None: they need none."""

    token: str | None

    @classmethod
    def at(cls, address: str, token: str | None = None) -> Access:
        """For a page at this address. One that others can reach always has a token: the one that
        is given, or a new one."""
        if token is None and not is_loopback(address):
            token = secrets.token_urlsafe(16)
        return cls(token)

    def allows(self, given: str | None) -> bool:
        if self.token is None:
            return True
        return given is not None and secrets.compare_digest(given.encode(), self.token.encode())

    def refuses(self, given: str | None) -> bool:
        """Whether a token was given and is the wrong one. Without one, people may look."""
        return given is not None and not self.allows(given)


def is_loopback(address: str) -> bool:
    """Whether only this machine can reach the address."""
    if address == "localhost":
        return True
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False
