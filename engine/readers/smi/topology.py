"""Reader of ``nvidia-smi topo -m`` and ``topo -p2p``: the matrix between GPUs and NICs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final

from engine.readers.base import Context, Result
from engine.readers.listing import Kept, Listing

_DEVICE: Final = re.compile(
    r"^(?:GPU[0-9]{1,3}|NIC[0-9]{1,3}|[a-z][a-z0-9]{1,15}_[0-9]{1,3}\w{0,8})$"
)
_WORD: Final = re.compile(r"\S{1,40}")
_PATH: Final = re.compile(r"^(?:X|NV[0-9]{1,2}|PIX|PXB|PHB|NODE|SYS|SOC|PSB|C2C|N/A)$")
_PEER: Final = re.compile(r"^(?:X|OK|CNS|GNS|TNS|NS|DR|U)$")
_LEGEND: Final = re.compile(
    r"^\s{0,8}(?:(?:X|SYS|NODE|PHB|PXB|PIX|NV#|SOC|PSB|OK|CNS|GNS|TNS|NS|DR|U)\s{1,6}= "
    r"|(?:NIC )?Legend:)"
)
_NIC: Final = re.compile(r"^\s{0,8}(NIC[0-9]{1,3}): (\S{1,40})\s*$")
_AFFINITY: Final = re.compile(r"^[0-9][0-9,-]{0,400}$|^N/A$")
MAX_DEVICES: Final = 256
MAX_MATRICES: Final = 64


@dataclass(slots=True)
class Matrix:
    """One matrix: devices by column, rows of path words, and what stands behind each row.

    Attributes:
        paths: (row device, column device) to the word between them.
        cpus: GPU to its CPU affinity as printed.
        numa: GPU to its NUMA node as printed.
        nics: NIC number of the matrix to the device's name.
        peer: a matrix of peer access (``-p2p``) rather than of paths.
    """

    line: int
    host: str | None
    columns: list[str]
    paths: dict[tuple[str, str], str] = field(default_factory=dict)
    cpus: dict[str, str] = field(default_factory=dict)
    numa: dict[str, str] = field(default_factory=dict)
    nics: dict[str, str] = field(default_factory=dict)
    peer: bool = False

    @property
    def gpus(self) -> list[str]:
        """GPUs in the order of the matrix."""
        return [c for c in self.columns if c.startswith("GPU")]

    @property
    def ports(self) -> list[str]:
        """NICs in the order of the matrix."""
        return [c for c in self.columns if not c.startswith("GPU")]


class SmiTopologyReader(Listing[Matrix]):
    """Reads the header, the rows and the legend of a matrix."""

    triggers: ClassVar[tuple[bytes, ...]] = (
        b"CPU Affinity",
        b"GPU0\tGPU1",
        b"GPU0    GPU1",
        b"GPU0   GPU1",
        b"GPU0  GPU1",
        b"GPU0 GPU1",
    )
    PATIENCE: ClassVar[int] = 2

    def __init__(
        self, context: Context, host: str | None = None, kept: Kept[Matrix] | None = None
    ) -> None:
        super().__init__(context, host, Kept(MAX_MATRICES) if kept is None else kept)
        self._matrix: Matrix | None = None

    def take(self, number: int, text: str) -> bool:
        """Take a header, a row, or a line of the legend."""
        taken = self._header(number, text) or (self.inside and self._row(text))
        if self.inside and not taken:
            nic = _NIC.match(text)
            if nic and self._matrix is not None:
                self._matrix.nics[nic[1]] = nic[2]
            taken = bool(nic) or _LEGEND.match(text) is not None
        self.inside |= taken
        return taken

    def judge(self, records: Sequence[Matrix]) -> Result:
        """Say what the matrices show."""
        from engine.readers.smi.paths import path_result  # noqa: PLC0415 - only if there are any

        return path_result(records)

    def _header(self, number: int, text: str) -> bool:
        words = _WORD.findall(text.replace("|", " "))
        columns = []
        for word in words:
            if not _DEVICE.match(word):
                break
            columns.append(word)
        if not columns or len(columns) > MAX_DEVICES or columns[0] != "GPU0":
            return False
        rest = words[len(columns) :]
        if rest and rest[0] not in ("CPU", "NUMA", "GPU"):
            return False
        if len(columns) < 2 and "Affinity" not in rest:
            return False
        self._matrix = Matrix(number, self.host, columns)
        self.kept.add(self._matrix)
        return True

    def _row(self, text: str) -> bool:
        matrix = self._matrix
        words = _WORD.findall(text.replace("|", " "))
        if matrix is None or not words or not _DEVICE.match(words[0]):
            return False
        width = len(matrix.columns)
        cells = words[1 : 1 + width]
        if len(cells) < width:
            return False
        if all(_PATH.match(cell) for cell in cells):
            pass
        elif all(_PEER.match(cell) for cell in cells):
            matrix.peer = True
        else:
            return False
        for column, cell in zip(matrix.columns, cells, strict=True):
            matrix.paths[words[0], column] = cell
        rest = words[1 + width :]
        if rest and _AFFINITY.match(rest[0]):
            matrix.cpus[words[0]] = rest[0]
            if len(rest) > 1 and _AFFINITY.match(rest[1]):
                matrix.numa[words[0]] = rest[1]
        return True
