"""Reader of kernel logs and of what is shipped with them: one part for each kind of line.

A line is unwrapped once (`engine.readers.logline`), then offered to the parts whose words stand in
it: the NVIDIA driver's Xids and SXids first, then PCIe, memory, network, storage and the rest of
`engine.readers.host`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import ClassVar

from engine.readers.base import Context, Result
from engine.readers.facts import SEVERITIES
from engine.readers.host.devices import Devices
from engine.readers.host.part import Part
from engine.readers.host.table import PARTS
from engine.readers.joins import join
from engine.readers.logline import LogLine, Records
from engine.readers.nvrm import NvrmPart
from engine.readers.period import Boots

KIND = "kernel_log"
# A kernel record is at most 1 KiB, a record of a shipper a little more; the rest is not looked at.
_RECORD = 2_048
# Fields of the journal's export format; a message has the words of its part.
_EXPORT = ("__REALTIME_TIMESTAMP=", "_HOSTNAME=")


class KernelReader:
    """Reads kernel log lines, in every form that they are printed, shipped or stored in."""

    triggers: ClassVar[tuple[bytes, ...]] = tuple(
        mark.encode()
        for mark in dict.fromkeys(
            (*NvrmPart.marks, *(m for p in PARTS for m in p.marks), Devices.MARK, *_EXPORT)
        )
    )
    pattern: ClassVar[bytes] = b"|".join(p.pattern for p in PARTS if p.pattern)

    def __init__(self, context: Context) -> None:
        self.open = False
        boots = Boots()
        self._records = Records()
        self._devices = Devices()
        self._nvrm = NvrmPart(context, boots)
        self._parts: list[Part] = [make(self._devices, boots) for make in PARTS]
        self._known = False

    def feed(self, number: int, text: str) -> bool:
        """Take one line; those that are known and harmless are taken, and say nothing."""
        lines, field = self._records.feed(number, text)
        taken = self._take(lines)
        self.open = any(part.open for part in self._parts)
        return field or taken

    def feed_records(self, lines: Iterable[LogLine]) -> None:
        """Take records that are unwrapped already."""
        self._take(lines)

    def finish(self) -> Result:
        """Say what all lines together show, the NVIDIA driver's first."""
        self._take(self._records.flush())
        for pci in self._nvrm.gpus:
            self._devices.is_gpu(pci)
        result = self._nvrm.finish()
        others = [part.finish() for part in self._parts]
        found = [f for other in others for f in other.findings]
        found.sort(key=lambda f: (SEVERITIES.index(f.severity), f.line or 0))
        result.kinds = list(dict.fromkeys([*result.kinds, *(f.kind for f in found)]))
        result.findings += join(result, found)
        result.causes += [f.cause for f in found if f.cause and f.cause not in result.causes]
        result.notes += [note for other in others for note in other.notes]
        if self._known and not result.kinds:
            result.kinds.append(KIND)
            result.notes.append(
                "Lines of a kernel log that are known, none of which reports a fault. That says "
                "nothing about what is not in this text."
            )
        return result

    def _take(self, lines: Iterable[LogLine]) -> bool:
        taken = False
        for line in lines:
            taken |= self._one(line)
        self._known |= taken
        return taken

    def _one(self, line: LogLine) -> bool:
        text = line.text
        if any(mark in text for mark in NvrmPart.marks) and self._nvrm.take(line):
            return True
        if len(text) > _RECORD:
            line = replace(line, text=text[:_RECORD])
        if self._devices.learn(line.text):
            return True
        return any(part.wants(line.text) and part.take(line) for part in self._parts)
