"""PCIe Advanced Error Reporting: what a port or device says about the link, corrected or not.

Lines: Linux drivers/pci/pcie/aer.c since 4.x (``AER: Corrected error received: …``, ``PCIe Bus
Error: severity=…``, ``device [10de:2330] error status/mask=…``, ``[ 6] BadTLP``) and what firmware
reports through ACPI (``[Hardware Error]: … PCIe error``, drivers/firmware/efi/cper.c).
"""

from __future__ import annotations

import re
from typing import Any, ClassVar

from engine.model import Finding
from engine.readers.base import Result
from engine.readers.host.aer_words import LinkErrors, action, judged, says
from engine.readers.host.devices import ADDRESS, Devices, bdf
from engine.readers.host.part import MOST_EVENTS, entity_of
from engine.readers.host.pcie_bits import NAMES, bits_of
from engine.readers.logline import LogLine
from engine.readers.period import Boots

_RECEIVED = re.compile(
    r"(?:AER: )?(?P<many>Multiple )?(?P<severity>Corrected|Correctable|Uncorrected \(Fatal\)"
    r"|Uncorrected \(Non-Fatal\)|Uncorrectable \(Fatal\)|Uncorrectable \(Non-Fatal\)|Correctable) "
    rf"error (?:message )?received(?::| from) (?:id=(?P<id>[0-9a-f]{{4}})|(?P<pci>{ADDRESS}))"
)
_PORT = re.compile(rf"\bpcieport (?P<pci>{ADDRESS}): ")
_BUS_ERROR = re.compile(
    rf"(?P<pci>{ADDRESS}): (?:AER: )?PCIe Bus Error: severity=(?P<severity>[A-Za-z() -]{{4,28}}?), "
    r"type=(?P<type>[A-Za-z ]{4,24})(?:, (?:id=(?P<id>[0-9a-f]{4}))?\(?(?P<agent>[A-Za-z ]{4,24}))?"
)
_STATUS = re.compile(
    rf"(?P<pci>{ADDRESS}): (?:AER: )?\s{{0,4}}device \[[0-9a-f]{{4}}:[0-9a-f]{{4}}\] error "
    r"status/mask=(?P<status>[0-9a-f]{8})/(?P<mask>[0-9a-f]{8})"
)
_RAW = re.compile(
    rf"(?P<pci>{ADDRESS}): (?:AER: )?aer_status: 0x(?P<status>[0-9a-f]{{8}}), "
    r"aer_mask: 0x(?P<mask>[0-9a-f]{8})"
)
_BIT = re.compile(
    rf"(?P<pci>{ADDRESS}): (?:AER: )?\s{{0,6}}\[ ?(?P<bit>\d{{1,2}})"
    rf"\] ?(?P<name>[A-Z][A-Za-z]{{2,20}})\b"
)
_RECOVERY = re.compile(
    rf"(?P<pci>{ADDRESS}): (?:AER: )?(?:device recovery (?P<how>failed|successful)|"
    r"can't recover \((?P<why>[a-z_ ]{4,40})\))"
)
_CPER = re.compile(r"\{(?P<n>\d{1,9})\}\[Hardware Error\]: {1,8}(?P<rest>.*)")
_CPER_FIELD = re.compile(
    rf"(?P<key>event severity|section_type|device_id|aer_cor_status|aer_uncor_status): "
    rf"(?P<value>{ADDRESS}|0x[0-9a-f]{{8}}|[A-Za-z ]{{4,30}})"
)
_BIT_NAMES = "|".join(sorted(NAMES))
_SOURCE = "Linux drivers/pci/pcie/aer.c, PCI Express Base Specification (AER)"


class AerPart:
    """Reads AER lines, by device and severity."""

    marks: ClassVar[tuple[str, ...]] = (
        "PCIe Bus Error",
        "error received: ",
        "error message received",
        "error status/mask=",
        "aer_status: 0x",
        "device recovery ",
        "can't recover (",
        "}[Hardware Error]:",
    )
    pattern: ClassVar[bytes] = rb"\[ ?\d{1,2}\] ?(?:" + _BIT_NAMES.encode() + rb")(?: |$|\r|\()"
    _bit = re.compile(pattern.decode())

    def __init__(self, devices: Devices, boots: Boots) -> None:
        self.open = False
        self._devices = devices
        self._boots = boots
        self._links: dict[tuple[str | None, str, str], LinkErrors] = {}
        self._last: dict[tuple[str | None, str], LinkErrors] = {}
        self._newest: dict[str | None, LinkErrors] = {}
        self._cper: dict[str, dict[str, str]] = {}

    def wants(self, text: str) -> bool:
        """Return whether a line may be about AER."""
        return any(mark in text for mark in self.marks) or bool(self._bit.search(text))

    def take(self, line: LogLine) -> bool:
        """Take one record."""
        text = line.text
        if (found := _BUS_ERROR.search(text)) is not None:
            self._bus_error(line, found)
        elif (found := _STATUS.search(text) or _RAW.search(text)) is not None:
            self._status(line, found)
        elif (found := _RECEIVED.search(text)) is not None:
            self._received(line, found)
        elif (found := _BIT.search(text)) is not None and found["name"] in NAMES:
            link = self._last.get((line.host, bdf(found["pci"])))
            if link is not None and link.status is None:
                link.bits[found["name"]] = link.bits.get(found["name"], 0) + 1
            return link is not None
        elif (found := _RECOVERY.search(text)) is not None:
            link = self._last.get((line.host, bdf(found["pci"]))) or self._newest.get(line.host)
            if link is not None:
                link.recovery = found["how"] or f"not possible ({found['why']})"
            return link is not None
        elif (found := _CPER.search(text)) is not None:
            return self._firmware(line, found)
        else:
            return False
        return True

    def finish(self) -> Result:
        """Return a finding for each device and severity, the worst first."""
        links = sorted(self._links.values(), key=lambda x: (_RANK[x.severity], x.line))
        findings = [self._finding(link) for link in links if link.times]
        return Result(kinds=["pcie_aer"] if findings else [], findings=findings)

    def _link(self, line: LogLine, pci: str, severity: str) -> LinkErrors | None:
        key = (line.host, bdf(pci), severity)
        link = self._links.get(key)
        if link is None:
            if len(self._links) >= MOST_EVENTS:
                return None
            link = self._links[key] = LinkErrors(key[1], severity, line.host, line.number)
        self._last[line.host, key[1]] = link
        self._newest[line.host] = link  # the port above it tells how the recovery went
        return link

    def _bus_error(self, line: LogLine, found: re.Match[str]) -> None:
        link = self._link(line, found["pci"], _severity(found["severity"]))
        if link is None:
            return
        link.count += 1
        link.status = None
        link.period.add(line.stamp, self._boots.of(line.host, line.stamp))
        link.layers.setdefault(found["type"].strip())
        if found["agent"]:
            link.agents.setdefault(found["agent"].strip().removesuffix(" ID"))

    def _received(self, line: LogLine, found: re.Match[str]) -> None:
        pci = found["pci"]
        if pci is None:  # id=3b00: bus and device-function, up to Linux 4.x
            number = int(found["id"], 16)
            pci = f"0000:{number >> 8:02x}:{number >> 3 & 31:02x}.{number & 7}"
        link = self._link(line, pci, _severity(found["severity"]))
        if link is not None:
            link.received += 1
            link.multiple |= found["many"] is not None
            port = _PORT.search(line.text)
            if port is not None and link.reporter is None:
                link.reporter = bdf(port["pci"])
            link.period.add(line.stamp, self._boots.of(line.host, line.stamp))

    def _status(self, line: LogLine, found: re.Match[str]) -> None:
        pci = bdf(found["pci"])
        link = self._last.get((line.host, pci))
        if link is None:
            status = int(found["status"], 16)
            corrected = bool(bits_of(status, 0, correctable=True)) and status < 1 << 16
            link = self._link(line, pci, "corrected" if corrected else "uncorrected")
            if link is None:
                return
            link.count += 1
        link.status = found["status"]
        for name in bits_of(
            int(found["status"], 16),
            int(found["mask"], 16),
            correctable=link.severity == "corrected",
        ):
            link.bits[name] = link.bits.get(name, 0) + 1

    def _firmware(self, line: LogLine, found: re.Match[str]) -> bool:
        """Collect the fields of one record of the firmware; those of a PCIe section count."""
        field_ = _CPER_FIELD.search(found["rest"])
        if field_ is None:
            return False
        if found["n"] not in self._cper and len(self._cper) >= 64:
            self._cper.pop(next(iter(self._cper)))
        record = self._cper.setdefault(found["n"], {})
        record[field_["key"]] = field_["value"].strip()
        if "PCIe" not in record.get("section_type", ""):
            return False
        if field_["key"] == "device_id" and ":" in field_["value"]:
            severity = {"corrected": "corrected", "fatal": "fatal", "recoverable": "nonfatal"}.get(
                record.get("event severity", ""), "uncorrected"
            )
            link = self._link(line, field_["value"], severity)
            if link is not None:
                link.count += 1
                link.firmware = True
                link.period.add(line.stamp, self._boots.of(line.host, line.stamp))
        pci = record.get("device_id", "")
        link = self._last.get((line.host, bdf(pci))) if ":" in pci else None
        wanted = "aer_cor_status" if link and link.severity == "corrected" else "aer_uncor_status"
        if link is not None and field_["key"] == wanted:
            link.status = field_["value"].removeprefix("0x")
            for name in bits_of(
                int(field_["value"], 16), 0, correctable=wanted == "aer_cor_status"
            ):
                link.bits[name] = link.bits.get(name, 0) + 1
        return True

    def _finding(self, link: LinkErrors) -> Finding:
        kind = self._devices.kind(link.pci)
        severity, cause = judged(link, kind)
        data: dict[str, Any] = {
            "pci": link.pci,
            "device": kind,
            "device_id": self._devices.id(link.pci),
            "aer_severity": link.severity,
            "aer_bits": list(link.bits) or None,
            "aer_status": f"0x{link.status}" if link.status else None,
            "layer": next(iter(link.layers), None),
            "agent": next(iter(link.agents), None),
            "recovery": link.recovery,
            # The port that announced the error, and the device that holds its record.
            "reporter": link.reporter,
            "record": link.pci if link.reporter else None,
            "count": link.times,
        }
        return Finding(
            kind="pcie_aer",
            id=f"aer_{link.severity}",
            severity=severity,
            says=says(link, self._devices.named(link.pci)),
            action=action(link, kind, amd=(self._devices.id(link.pci) or "").startswith("1002:")),
            entity=entity_of(self._devices, link.host, link.pci),
            line=link.line,
            cause=cause,
            data={k: v for k, v in data.items() if v is not None} | link.period.data(),
            sources=(_SOURCE,),
        )


_RANK = {"fatal": 0, "uncorrected": 1, "nonfatal": 2, "corrected": 3}


def _severity(text: str) -> str:
    text = text.lower()
    if "non-fatal" in text:
        return "nonfatal"
    if "uncorrect" in text:
        return "fatal" if "fatal" in text else "uncorrected"
    return "fatal" if text.strip("() ") == "fatal" else "corrected"
