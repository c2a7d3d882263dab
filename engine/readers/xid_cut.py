"""Xid lines that end before their code, as a terminal or a screenshot cuts them."""

from __future__ import annotations

import re
from functools import partial

from engine.model import Entity, Finding, Kind, Severity
from engine.readers.logline import LogLine

# A digit of another script is no part of a number.
_re = partial(re.compile, flags=re.ASCII)

# A code that is cut in its middle cannot be told from a shorter one: only its absence is sure.
_CUT = _re(
    r"\bXid \((?:PCI:)?(?P<pci>[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2})?)(?:\.[0-7])?"
    r"(?P<end>[^)\d]{0,2}\)? ?:?(?: ?\.{2,3}| ?…)?\s*)$"
)
_MOST = 64


class CutXids:
    """Collects them, one for each GPU."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str | None, str], int] = {}

    def feed(self, line: LogLine) -> bool:
        """Take a record; return whether it is such a line."""
        found = _CUT.search(line.text)
        if found is None:
            return False
        key = (line.host, found["pci"].lower())
        if key in self._seen or len(self._seen) < _MOST:
            self._seen.setdefault(key, line.number)
        return True

    def findings(self) -> list[Finding]:
        """Say which lines are cut, and that nothing is known of their codes."""
        return [_finding(host, pci, line) for (host, pci), line in self._seen.items()]


def _finding(host: str | None, pci: str, line: int) -> Finding:
    gpu = f"GPU {pci}"
    of = f" of {host}" if host else ""
    name = f"{host} {gpu}" if host else gpu
    return Finding(
        kind="xid",
        id="cut",
        severity=Severity.LOW,
        says=(
            f"The line of an Xid on {gpu}{of} is cut off before its code, so what happened there "
            "is not known."
        ),
        action='Get the full line: dmesg -T | grep "NVRM: Xid", or journalctl -k -b.',
        entity=Entity(Kind.GPU, name, host=host, pci=pci),
        line=line,
        cause=None,
        data={"pci": pci},
    )
