"""PCIe errors of one device in words: how bad they are, what they mean, what to do."""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.model import Severity
from engine.readers.host.pcie_bits import NAMES, SIGNAL
from engine.readers.period import Period

# So many corrected errors are more than the odd one that every link has.
_MANY = 10
_NOTED = {"GPU", "NIC", "NVSwitch", "NVIDIA device"}
_WORDS = {
    "fatal": "an uncorrected, fatal PCIe error: the link has to be reset and what was under way on "
    "the device is lost",
    "uncorrected": "an uncorrected PCIe error",
    "nonfatal": "an uncorrected, non-fatal PCIe error: a transfer was lost, the link itself holds",
    "corrected": "corrected PCIe errors: the link sent the data again, so nothing is lost but time",
}


@dataclass(slots=True)
class LinkErrors:
    """All errors of one severity that one device reported."""

    pci: str
    severity: str
    host: str | None
    line: int
    count: int = 0
    received: int = 0
    multiple: bool = False
    reporter: str | None = None
    bits: dict[str, int] = field(default_factory=dict)
    layers: dict[str, None] = field(default_factory=dict)
    agents: dict[str, None] = field(default_factory=dict)
    status: str | None = None
    recovery: str | None = None
    firmware: bool = False
    period: Period = field(default_factory=Period)

    @property
    def times(self) -> int:
        """How many errors the log reports; each is told by the port and by the device."""
        return max(self.count, self.received)


def judged(link: LinkErrors, kind: str | None) -> tuple[Severity, str | None]:
    """Return how bad errors are, and the cause; ``kind`` is what the device is."""
    if link.severity == "fatal":
        return Severity.CRITICAL, "pcie_errors"
    if link.severity != "corrected":
        quiet = bool(link.bits) and set(link.bits) <= {"UnsupReq", "ACSViol", "AtomicOpBlocked"}
        return (Severity.LOW, None) if quiet else (Severity.HIGH, "pcie_errors")
    many = link.times >= _MANY or link.multiple
    if kind in _NOTED or many:
        return (Severity.MEDIUM if many else Severity.LOW), "pcie_errors"
    return Severity.LOW, "pcie_errors" if link.times > 1 else None


def says(link: LinkErrors, device: str) -> str:
    """Say what a device reports."""
    where = f"{device} of {link.host}" if link.host else device
    parts = [f"{where} reports {_WORDS[link.severity]}."]
    if link.bits:
        named = "; ".join(f"{name} ({NAMES[name]})" for name in link.bits)
        parts.append(f"Status bits: {named}.")
    if link.layers and not link.bits:
        parts.append(f"Layer: {', '.join(link.layers)}.")
    if link.bits and link.severity == "corrected" and set(link.bits) <= SIGNAL:
        parts.append("These bits say that the signal on this link is poor.")
    if link.firmware:
        parts.append("Reported by the firmware (ACPI).")
    if link.recovery:
        parts.append(f"Recovery: {link.recovery}.")
    if link.times > 1 or link.multiple:
        several = " (the port says that several came at once)" if link.multiple else ""
        reports = "1 report" if link.times == 1 else f"{link.times} reports"
        parts.append(f"{reports}{several}.")
    if times := link.period.says(link.times):
        parts.append(times)
    return " ".join(parts)


def action(link: LinkErrors, kind: str | None, *, amd: bool) -> str:
    """Say what to do about it; ``amd`` tells whose GPU it is."""
    look = f"lspci -vvv -s {link.pci}"
    if link.severity == "corrected":
        text = (
            f"Compare LnkSta with LnkCap ({look}): a link that is also narrower or slower than it "
            "can be needs reseating, another riser or slot, or a replacement. A few in a day are "
            "harmless; a rate that rises, or one device among its siblings, is not."
        )
    else:
        text = (
            f"See what became of the device ({look}): power-cycle the machine if it is gone; check "
            "seating, riser, slot and power, and the firmware of board and switch."
        )
    if kind == "GPU" and amd:
        text += " On an AMD GPU, compare the replay counters: amd-smi metric --pcie."
    elif kind in {"GPU", "NVIDIA device"}:
        text += (
            " On a GPU, look for Xid 79 beside it, and at the replay counter: nvidia-smi "
            "--query-gpu=index,pci.bus_id,pcie.link.gen.current,pcie.link.width.current "
            "--format=csv"
        )
    return text
