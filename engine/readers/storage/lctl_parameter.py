"""One parameter as ``lctl get_param`` prints it, and where its meaning is documented."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

SOURCES: Final = ("Lustre Operations Manual, Lustre Parameters", "lustre/lustre-release 2.17.57")


@dataclass(slots=True)
class Parameter:
    """One parameter: device, name, value or the lines under it (at most `MAX_LINES`)."""

    line: int
    host: str | None
    group: str
    device: str
    name: str
    value: str
    lines: list[str] = field(default_factory=list)

    MAX_LINES = 512

    def add(self, text: str) -> None:
        """Keep a line of the value."""
        if len(self.lines) < self.MAX_LINES:
            self.lines.append(text[:400])

    @property
    def target(self) -> str:
        """The server's target, or the device."""
        return re.split(r"-(?:osc|mdc|osp)", self.device)[0] or self.device

    def pair(self, key: str) -> str | None:
        """Return the value of ``key: value`` among the lines."""
        for text in self.lines:
            name, colon, value = text.partition(":")
            if colon and name.strip() == key:
                return value.strip()
        return None
