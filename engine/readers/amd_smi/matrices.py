"""Links between AMD GPUs: ``amd-smi topology``, ``amd-smi xgmi``, ``rocm-smi --showtopo``.

Only what tells of a fault or of slower traffic is kept: the type of the link and whether peer
access is enabled for each pair, and state and speed of each GPU's XGMI links. Source: ROCm/amdsmi
amdsmi_cli/amdsmi_commands.py and CHANGELOG.md 24.6 to 26.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from engine.readers.amd_smi.state import AmdGpu

_TITLE: Final = re.compile(
    r"^\s{0,12}(?:(?P<amd>ACCESS|WEIGHT|HOPS|LINK TYPE|NUMA BW|CACHE COHERE?A?NCY|ATOMICS|DMA"
    r"|BI-DIRECTIONAL) TABLE:|={2,80} {0,4}(?P<rocm>Link Type|Weight|Hops) between two GPUs {0,4}"
    r"={2,80})\s*$"
)
_BDF: Final = r"(?:[0-9a-fA-F]{4}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.\d"
_NAME: Final = rf"(?:{_BDF}|GPU\d{{1,4}})"
_HEADING: Final = re.compile(rf"^\s{{1,24}}{_NAME}(?:\s{{1,16}}{_NAME}){{0,63}}\s{{0,16}}$")
_ROW: Final = re.compile(
    rf"^\s{{0,12}}(?P<name>{_NAME})"
    r"(?P<cells>\s{1,16}[\w/-]{1,16}(?:\s{1,16}[\w/-]{1,16}){0,63})\s{0,16}$"
)
_XGMI: Final = re.compile(r"^\s{0,12}(?:LINK METRIC TABLE|XGMI LINK STATUS|XGMI LINK PORT STATUS):")
_STATES: Final = re.compile(
    rf"^\s{{0,12}}GPU(?P<gpu>\d{{1,4}})\s{{1,8}}(?P<pci>{_BDF})\s{{1,8}}"
    r"(?P<states>[UDX](?:\s{1,4}[UDX]){0,63})\s*$"
)
_SPEED: Final = re.compile(
    rf"^\s{{0,12}}GPU(?P<gpu>\d{{1,4}})\s{{1,8}}(?P<pci>{_BDF})\s{{1,8}}"
    r"(?P<rate>N/A|\d{1,6} Gb/s)"
    r"\s{0,8}(?P<most>N/A|\d{1,10} Gb/s)\s{0,8}(?P<type>\w{1,8}|N/A)"
)
_REST: Final = re.compile(
    r"^\s{0,12}(?:Read|Write)\s|^\s{0,24}(?:gpu\s{1,12})?bdf\s|^\s{0,12}\* U:Up|^\s{0,12}Legend:"
    r"|^\s{1,12}(?:SELF|ENABLED / DISABLED|N/A|T/F|C/NC|64,32|<BW from>)\s?[=-]"
)
_SENTINEL_GBS: Final = 65_535


@dataclass(slots=True)
class Matrix:
    """One table of pairs: how often each word stands in it, and the first few odd pairs.

    Attributes:
        what: ``LINK TYPE`` or ``ACCESS``.
        words: cell: count, the diagonal left out.
        pairs: cell: the first pairs (of names) that have it.
    """

    line: int
    host: str | None
    what: str
    size: int = 0
    words: Counter[str] = field(default_factory=Counter)
    pairs: dict[str, list[tuple[str, str]]] = field(default_factory=dict)


class MatrixForm:
    """Reads the tables of pairs."""

    def __init__(self, emit: Callable[[Matrix], None], host: str | None) -> None:
        self._emit = emit
        self._host = host
        self._names: list[str] = []
        self._matrix: Matrix | None = None

    def starts(self, number: int, text: str) -> bool:
        """Return whether a line is the title of a table."""
        title = _TITLE.match(text)
        if title is None:
            return False
        what = (title["amd"] or title["rocm"]).upper()
        self._names, self._matrix = [], None
        if what in ("LINK TYPE", "ACCESS"):
            self._matrix = Matrix(number, self._host, what)
            self._emit(self._matrix)
        return True

    def take(self, number: int, text: str) -> bool:
        """Take a line of a table."""
        if self.starts(number, text):
            return True
        if _HEADING.match(text):
            self._names = text.split()[:64]
            return True
        row = _ROW.match(text)
        if row is None:
            return bool(_REST.match(text))
        matrix = self._matrix
        if matrix is not None and self._names:
            matrix.size = max(matrix.size, len(self._names))
            for name, cell in zip(self._names, row["cells"].split(), strict=False):
                word = cell.upper()
                if name == row["name"] or word in ("0", "SELF"):
                    continue
                matrix.words[word] += 1
                pairs = matrix.pairs.setdefault(word, [])
                if len(pairs) < 8 and len(matrix.pairs) <= 16:
                    pairs.append((row["name"], name))
        return True


class XgmiForm:
    """Reads state and speed of each GPU's XGMI links."""

    def __init__(self, emit: Callable[[AmdGpu], None], host: str | None) -> None:
        self._emit = emit
        self._host = host

    def starts(self, number: int, text: str) -> bool:
        """Return whether a line is the title of a table."""
        del number
        return bool(_XGMI.match(text))

    def take(self, number: int, text: str) -> bool:
        """Take a line of a table."""
        states = _STATES.match(text)
        if states is not None:
            gpu = self._gpu(number, states)
            letters = states["states"].split()
            gpu.links_down = [i for i, one in enumerate(letters) if one == "D"]
            gpu.numbers["xgmi_links_up"] = float(letters.count("U"))
            self._emit(gpu)
            return True
        speed = _SPEED.match(text)
        if speed is not None:
            gpu = self._gpu(number, speed)
            for name, cell in (("rate", "xgmi_rate_gbits"), ("most", "xgmi_bandwidth_gbits")):
                value = speed[name].partition(" ")[0]
                if value.isdecimal() and int(value) < _SENTINEL_GBS:
                    gpu.numbers[cell] = float(value)
            self._emit(gpu)
            return True
        return bool(_XGMI.match(text) or _REST.match(text)) or bool(_HEADING.match(text))

    def _gpu(self, number: int, found: re.Match[str]) -> AmdGpu:
        return AmdGpu(number, int(found["gpu"]), self._host, found["pci"].lower())
