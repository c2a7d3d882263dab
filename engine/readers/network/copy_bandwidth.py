"""Readers of copy tests: nvbandwidth, and two CUDA samples.

The samples are p2pBandwidthLatencyTest and bandwidthTest.

Sources: NVIDIA/nvbandwidth output.cpp; NVIDIA/cuda-samples p2pBandwidthLatencyTest.cu,
bandwidthTest.cu.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar, Final

from engine.readers.base import Result
from engine.readers.listing import Listing, result_of
from engine.readers.network.copy_verdict import Copy, judge_copies
from engine.readers.network.matrix import Matrix
from engine.readers.quantities import decimal, short

_RUNNING: Final = re.compile(r"^\s{0,4}Running ([a-z][a-z0-9_]{3,63})\.\s*$")
_NV_TITLE: Final = re.compile(
    r"^\s{0,4}(memcpy [A-Z]{2} .{1,60}|.{1,60}\(row\).{1,40}) bandwidth \(GB/s\)\s*$"
)
_NV_SUM: Final = re.compile(r"^\s{0,4}SUM ([a-z][a-z0-9_]{3,63}) ([0-9.]{1,16})\s*$")
_WAIVED: Final = re.compile(
    r"^\s{0,4}(?:WAIVED: )?([a-z][a-z0-9_]{3,63}) (?:is waived|WAIVED)|^\s{0,4}WAIVED:\s*$"
)
_DEVICE: Final = re.compile(
    r"^\s{0,4}Device:? {0,2}([0-9]{1,3})[:,] {1,2}(NVIDIA [\w .-]{2,60}?)(?:,| \(|\s*$)"
)
_P2P: Final = re.compile(
    r"^\s{0,4}(P2P Connectivity Matrix|(?:Unidirectional|Bidirectional) P2P=(?:Dis|"
    r"En)abled Bandwidth"
    r"(?: \(P2P Writes\))? Matrix \(GB/s\)|P2P=(?:Dis|En)abled Latency"
    r"(?: \(P2P Writes\))? Matrix \(us\))\s*$"
)
_SAMPLE: Final = re.compile(
    r"^\s{0,4}(Host to Device|Device to Host|"
    r"Device to Device) Bandwidth, [0-9]{1,3} Device\(s\)\s*$"
)
_MEMORY: Final = re.compile(r"^\s{0,4}(PINNED|PAGEABLE) Memory Transfers\s*$")
_SAMPLE_ROW: Final = re.compile(r"^\s{1,8}([0-9]{3,15})\s{1,12}([0-9]{1,6}\.[0-9]{1,3})\s*$")


class CopyBandwidthReader(Listing[Copy]):
    """Reads matrices and tables of copy tests."""

    triggers: ClassVar[tuple[bytes, ...]] = (
        b"bandwidth (GB/s)",
        b"P2P Connectivity Matrix",
        b"directional P2P=",
        b"Matrix (us)",
        b"Device Bandwidth, ",
        b"Host Bandwidth, ",
    )
    PATIENCE = 6

    _copy: Copy | None = None
    _name = ""
    _memory: str | None = None

    def take(self, number: int, text: str) -> bool:
        """Take a line of a copy test."""
        start = self._start(number, text)
        if start or not self.inside:
            return start
        running = _RUNNING.match(text)
        if running:
            self._name = running[1]
            return True
        device = _DEVICE.match(text)
        if device and self._copy is not None:
            self._copy.models[int(device[1])] = short(device[2])
            return True
        memory = _MEMORY.match(text)
        if memory:
            self._memory = memory[1]
            return True
        copy = self._copy
        if copy is None:
            return False
        total = _NV_SUM.match(text)
        if total:
            copy.test = copy.test or total[1]
            return True
        row = _SAMPLE_ROW.match(text) if copy.sample else None
        if row:
            copy.largest = max(copy.largest, (int(row[1]), decimal(row[2]) or 0.0))
            copy.pinned = self._memory != "PAGEABLE"
            return True
        return (
            copy.matrix.header(text)
            or copy.matrix.row(text)
            or bool(_WAIVED.match(text))
            or "Transfer Size (Bytes)" in text
        )

    def judge(self, records: Sequence[Copy]) -> Result:
        """Say which device or pair stands out."""
        return result_of(["copy_bandwidth"], judge_copies(records))

    def _start(self, number: int, text: str) -> bool:
        nvbandwidth, p2p, sample = _NV_TITLE.match(text), _P2P.match(text), _SAMPLE.match(text)
        title = nvbandwidth or p2p or sample
        if title is None:
            return False
        self._copy = Copy(
            number, self.host, Matrix(number, title[1]), test=self._name, sample=bool(sample)
        )
        self._name = ""
        self.kept.add(self._copy)
        self.inside = True
        return True
