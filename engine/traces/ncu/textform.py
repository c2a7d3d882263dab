"""Nsight Compute's text output: a line for each launch, then sections with tables of metrics."""

from __future__ import annotations

import re
from typing import Final

from engine.traces.ncu.numbers import number
from engine.traces.ncu.profile import Kernel, Profile

LAUNCH_PATTERN: Final = rb"\), Context \d+, Stream \d+, Device \d+, CC \d"
_LAUNCH: Final = re.compile(
    r"^\s*(?P<name>\S.{0,8000}?) (?P<grid>\(\d+, \d+, \d+\))x(?P<block>\(\d+, \d+, \d+\)), "
    r"Context \d+, Stream \d+, Device (?P<device>\d+), CC [\d.]+"
)
_ROW: Final = re.compile(
    r"^\s+(?P<name>\S(?:\S| (?! ))*)(?:\s{2,}(?P<unit>[%A-Za-z][\w/%]*))?"
    r"\s{1,}(?P<value>-?[\d.,]+)$"
)
_KEPT: Final = ("Section:", "----", "Metric Name", "OPT", "INF", "WRN", "Table Name", "Est.")


class TextForm:
    """The launches of one text, in their order."""

    def __init__(self) -> None:
        self._kernel: Kernel | None = None
        self._launch = 0

    def launch(self, text: str, number_: int, profile: Profile) -> bool:
        """Take the line of a launch; return whether it is one."""
        hit = _LAUNCH.match(text)
        if hit is None:
            return False
        self._launch += 1
        self._kernel = profile.kernel(hit["name"], f"text {self._launch}", number_)
        if self._kernel is not None:
            self._kernel.launched(hit["grid"], hit["block"])
        return True

    def row(self, text: str, profile: Profile) -> bool:
        """Take a line of a section; return whether it belongs to the output."""
        if text[:1] not in (" ", "\t"):
            return False
        hit = _ROW.match(text)
        if hit is None:
            return text.strip().startswith(_KEPT) or len(text) - len(text.lstrip()) >= 8
        value = number(hit["value"])
        if self._kernel is not None and value is not None:
            profile.put(self._kernel, f"text {self._launch}", hit["name"], hit["unit"] or "", value)
        return True
