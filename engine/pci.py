"""PCI addresses as different tools write them, made comparable."""

from __future__ import annotations

import re

_ADDRESS = re.compile(
    r"(?:PCI:)?(?:(?P<domain>[0-9a-f]{4,8}):)?(?P<bus>[0-9a-f]{2}):(?P<device>[0-9a-f]{2})"
    r"(?:\.[0-7])?",
    re.IGNORECASE | re.ASCII,
)


def board(address: str | None) -> str | None:
    """Return domain:bus:device in lower case, without the function.

    ``00000000:3B:00.0`` (nvidia-smi, DCGM), ``0000:3b:00`` (the driver's Xid lines) and ``3b:00.0``
    (lspci) are ``0000:3b:00``. None for what is no PCI address.
    """
    found = _ADDRESS.fullmatch((address or "").strip())
    if found is None:
        return None
    domain = (found["domain"] or "0").lower().lstrip("0").rjust(4, "0")
    return f"{domain}:{found['bus'].lower()}:{found['device'].lower()}"
