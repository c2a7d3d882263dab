"""Reader of amdgpu and amdkfd kernel lines: the root on each GPU, and what follows from it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from engine.model import Finding, Severity
from engine.readers.amdgpu.aca import AcaDump, aca_entry
from engine.readers.amdgpu.aca_words import Places, aca_finding
from engine.readers.amdgpu.device import Device, Devices
from engine.readers.amdgpu.fault import Fault, fault_detail, fault_head
from engine.readers.amdgpu.fault_words import fault_finding
from engine.readers.amdgpu.forms import forms_of
from engine.readers.amdgpu.hang import HANG_EVENTS, hang_finding
from engine.readers.amdgpu.line import Message, bare_messages, message_of
from engine.readers.amdgpu.ras import RasCount, RasLine, ras_line
from engine.readers.amdgpu.ras_words import garbage_findings, ras_findings, serious_ras
from engine.readers.amdgpu.trouble import trouble_findings
from engine.readers.base import Context, Result
from engine.readers.logline import LogLine, records

_SEVERITIES = tuple(Severity)
# Lines of one fault follow each other, with others between them in a busy log.
_REACH = 24


class AmdgpuReader:
    """Reads what the kernel says about AMD GPUs."""

    triggers: ClassVar[tuple[bytes, ...]] = (
        b"amdgpu",
        b"amdkfd",
        b"psp gfx command",
        b"VRAM is lost",
        b"qcm fence wait",
        b"cp might be in an unrecoverable",
        b"GPU reset ",
        b"GPU reset(",
        b"MODE1 reset",
        b"MODE2 reset",
        b"BACO reset",
        b"Process information: process",
        b":cs0 pid ",
        b" timeout, signaled",
        b" timeout, but soft",
        b"MES failed to respon",
        b"MES might be in",
        b"Failed to evict process queues",
        b"Runlist is getting",
        b"No more SDMA queue",
        b"SMU: I'm not done",
        b"SMU: No response",
        b"hardware error(ERREVENT",
        b"hardware errors detected in",
        b"oison is consumed by",
        b"Saved bad pages ",
        b"page fault (src_id",
        b"WARN: GPU is throttled",
    )

    def __init__(self, context: Context) -> None:
        del context  # knows its messages itself
        self.open = False
        self._devices = Devices()
        self._fault: tuple[Device, Fault] | None = None
        self._lines = 0

    def feed(self, number: int, text: str) -> bool:
        """Take one line; driver lines that tell of no fault are known, and only counted."""
        return self.feed_records(records(number, text))

    def feed_records(self, lines: Iterable[LogLine]) -> bool:
        """Take records that are unwrapped already; return whether one is of the driver."""
        taken = False
        for record in lines:
            message = message_of(record)
            messages = bare_messages(record) if message is None else (message,)
            for one in messages:
                self._lines += 1
                self._take(one)
                taken = True
        return taken

    def finish(self) -> Result:
        """Say what each GPU reported, root causes first."""
        result = Result(kinds=["amdgpu"] if self._lines else [])
        ranked: list[tuple[int, int, Finding]] = []
        devices = self._devices.all()
        places = Places(devices)
        for device in devices:
            for place, finding in enumerate(places.told(device, _of_device(device))):
                ranked.append((_SEVERITIES.index(finding.severity), place, finding))
        # A fault that explains others stands before them even where it is less severe.
        ranked.sort(key=lambda r: (r[2].cause is None, r[0], r[2].line or 0))
        result.findings = [finding for *_, finding in ranked]
        result.kinds += [k for f in result.findings if (k := f.kind) not in result.kinds]
        result.causes = list(dict.fromkeys(f.cause for f in result.findings if f.cause))
        if self._lines and not result.findings:
            result.notes.append(
                f"{self._lines} amdgpu line(s) read; none of them tells of a fault."
            )
        if self._devices.overflow:
            result.notes.append(
                f"Only the first {Devices.LIMIT} GPUs were read; {self._devices.overflow} lines "
                "are about others."
            )
        return result

    def _take(self, message: Message) -> None:
        text = message.text
        counts = ras_line(text)
        if counts is not None:
            self._count(message, counts)
            return
        fault = fault_head(text, message.number)
        if fault is not None:
            device = self._devices.of(message)
            if device is not None:
                device.add_fault(fault)
                self._fault = (device, fault)
            return
        if self._fault_line(message) or self._aca(message):
            return
        for form in forms_of(text):
            found = form.pattern.match(text)
            if found is not None:
                device = self._devices.of(message)
                if device is not None:
                    device.add(form.id, message.number, found.groupdict())
                    self._mark(device, message)
                return

    def _aca(self, message: Message) -> bool:
        entry = aca_entry(message.text)
        if entry is None:
            return False
        device = self._devices.of(message)
        if device is not None:
            if device.aca is None:
                device.aca = AcaDump(message.number)
            device.aca.add(*entry)
            self._mark(device, message)
        return True

    def _count(self, message: Message, counts: RasLine) -> None:
        device = self._devices.of(message)
        if device is None:
            return
        key = (counts.kind, counts.block)
        device.ras.setdefault(key, RasCount(message.number)).add(counts)
        self._mark(device, message)
        if counts.deferred_too:
            also = device.ras.setdefault(("deferred", counts.block), RasCount(message.number))
            also.new += counts.deferred_too

    def _fault_line(self, message: Message) -> bool:
        """Add a line to the page fault that it belongs to."""
        if self._fault is None:
            return False
        device, fault = self._fault
        near = message.number - max(device.last_line, fault.line) <= _REACH
        if not near or message.pci not in (None, device.pci):
            return False
        if not fault_detail(message.text, fault):
            return False
        device.last_line = message.number
        return True

    @staticmethod
    def _mark(device: Device, message: Message) -> None:
        if device.event is None:
            device.event = message.event


def _of_device(device: Device) -> list[Finding]:
    """All findings of one GPU, each after what explains it."""
    findings = list(ras_findings(device))
    findings += garbage_findings(device)
    record = aca_finding(device)
    if record is not None:
        findings.append(record)
    troubles = list(trouble_findings(device))
    fault = fault_finding(device)
    hang = hang_finding(device, because=_because(device, troubles, fault))
    findings += troubles
    if fault is not None:
        findings.append(fault)
    if hang is not None:
        findings.append(hang)
    return findings


def _because(device: Device, troubles: list[Finding], fault: Finding | None) -> str | None:
    """Return words for what made the GPU hang: a fault of its own that was there before."""
    hung = device.any(HANG_EVENTS)
    if hung is None:
        return None
    words = serious_ras(device)
    if words is not None:
        return words
    for trouble in troubles:
        earlier = trouble.line is not None and trouble.line <= hung.first
        if trouble.id == "off_bus" or (earlier and trouble.id in ("smu", "xgmi", "heat")):
            return {
                "off_bus": "the loss of the PCIe link",
                "smu": "the hung power-management firmware (SMU)",
                "xgmi": "the XGMI errors",
                "heat": "the overheating",
            }[trouble.id]
    if fault is not None and fault.line is not None and fault.line <= hung.first:
        return "the page fault"
    return None
