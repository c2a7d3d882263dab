"""What ``lspci -vv`` shows of the links of GPUs and network cards: speed, lanes, latched errors.

A link is as good as the worse of device and slot: with the port above it in the listing, that is
known; without it, equal links of equal boards are how the server is built.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from engine.model import Finding, Severity
from engine.pci import board
from engine.readers.base import Result
from engine.readers.listing import finding, node, result_of
from engine.readers.smi.lspci import FEW_LANES, PciDevice
from engine.readers.smi.state import listed
from engine.units import number

_GENERATION: Final = {2.5: 1, 5.0: 2, 8.0: 3, 16.0: 4, 32.0: 5, 64.0: 6}
# Bits of the AER status registers that mean a bad link (PCIe Base Specification, AER); an
# unsupported request or an advisory error is none.
_UNCORRECTED: Final = ("DLP", "SDES", "FCP", "CmpltTO", "MalfTLP", "ECRC", "RxOF")
_CORRECTED: Final = ("RxErr", "BadTLP", "BadDLLP", "Rollover", "Timeout")
_LINK_SOURCES: Final = (
    "lspci manual page",
    "NVIDIA NVML API 13, nvmlDeviceGetCurrPcieLinkGeneration",
)
_AER: Final = ("PCI Express Base Specification, Advanced Error Reporting",)
_CHECK: Final = (
    "Check riser cable, retimer, slot speed in the BIOS and seating; look for AER lines in "
    "dmesg -T."
)
_AGAIN: Final = (
    "Read it again under load (lspci -vv, or nvidia-smi --query-gpu=pcie.link.gen.current,"
    "pcie.link.width.current): if it stays low there, check riser cable, retimer, slot speed in "
    "the BIOS and seating."
)


@dataclass(frozen=True, slots=True)
class _Verdict:
    id: str
    severity: Severity
    meaning: str
    action: str = "Nothing to do."
    cause: str | None = None


_FULL: Final = _Verdict("full", Severity.INFO, "Full speed and width, as it should be: healthy.")
_AS_IT_IS: Final = _Verdict(
    "now",
    Severity.INFO,
    "What device and slot could do is not shown, so this does not tell whether it is all.",
    "Read LnkCap beside it, as root: lspci -vv.",
)
_OF_THE_SLOT: Final = _Verdict(
    "slot",
    Severity.INFO,
    "The device could do more, the slot cannot: that is how the server is built, no fault.",
    "Nothing to do; a slot with more lanes or of a newer generation would be faster.",
)
_ALIKE: Final = _Verdict(
    "alike",
    Severity.INFO,
    "The device could do more, and all of its kind here are alike: most likely how the server is "
    "built, no fault.",
    "Compare with the specification of the server.",
)
_NARROW: Final = _Verdict(
    "narrow",
    Severity.MEDIUM,
    "It has fewer lanes than the device can use. Idling does not explain that: a slot wired "
    "narrower, a riser, dirt or a bad lane does.",
    "Compare with the same device in other slots and servers; reseat board, riser or cable; look "
    "for AER lines in dmesg -T.",
    "pcie_degraded",
)
_NARROWER_THAN_SLOT: Final = _Verdict(
    "narrow",
    Severity.HIGH,
    "It has fewer lanes than device and slot can use: a riser, dirt or a bad lane.",
    "Reseat board, riser or cable; look for AER lines in dmesg -T; compare with other slots.",
    "pcie_degraded",
)
_NARROWER_THAN_OTHERS: Final = _Verdict(
    "narrow",
    Severity.HIGH,
    "Others of its kind in this server have more lanes: a riser, dirt or a bad lane.",
    _NARROWER_THAN_SLOT.action,
    "pcie_degraded",
)
_SLOW: Final = _Verdict(
    "slow",
    Severity.HIGH,
    "It is slower than it can be, under load: a real degradation.",
    _CHECK,
    "pcie_degraded",
)
_SLOW_NIC: Final = _Verdict(
    "slow",
    Severity.MEDIUM,
    "It is slower than the card can be, and a network card does not lower its speed to save "
    "power: the slot is of an older generation or set to it, or the link is degraded.",
    _CHECK,
    "pcie_degraded",
)
_IDLE: Final = _Verdict(
    "idle",
    Severity.INFO,
    "Nothing runs, so the lowered speed is normal power saving and no fault; it is only meaningful "
    "under load. The number of lanes is full.",
    _AGAIN,
    "idle",
)
_SLOW_OR_IDLE: Final = _Verdict(
    "slow_or_idle",
    Severity.INFO,
    "The lowered speed alone says nothing: an idle GPU lowers it to save power, which is normal; "
    "under load it would be a fault. The number of lanes is full.",
    _AGAIN,
)


def pci_result(records: Sequence[PciDevice]) -> Result:
    """Say what the links of the GPUs and network cards of a listing show."""
    ports: dict[tuple[str | None, str | None], PciDevice] = {
        (d.host, d.bus_below): d for d in records if d.bus_below is not None
    }
    judged = list(_judged(records))
    groups: dict[tuple[object, ...], list[PciDevice]] = {}
    verdicts: dict[tuple[object, ...], _Verdict] = {}
    for device in judged:
        if device.gts is None:
            continue
        verdict = _verdict(device, ports.get((device.host, device.bus)), judged)
        key = (verdict.id, verdict.severity, device.host, device.name, *_link(device))
        groups.setdefault(key, []).append(device)
        verdicts[key] = verdict
    found = [_finding(verdicts[key], group) for key, group in groups.items()]
    found += _latched(judged)
    gpus = {board(d.pci): d for d in records if d.graphics and d.pci and "NVIDIA" in d.name}
    if gpus and not judged:
        found.append(_listed(list(gpus.values())))
    return result_of(["lspci"] if found else [], found)


def _judged(records: Sequence[PciDevice]) -> Iterator[PciDevice]:
    """Devices whose link matters, the functions of one board once."""
    seen: set[tuple[str | None, str | None]] = set()
    for device in records:
        if (device.gts is None and not device.errors) or device.width == 0:
            continue  # x0: nothing sits in the slot
        narrow = device.cap_width is not None and device.cap_width < FEW_LANES
        if not (device.gpu or device.network) if device.kind else narrow:
            continue
        place = (device.host, board(device.pci))
        if device.pci is None or place not in seen:
            seen.add(place)
            yield device


def _link(device: PciDevice) -> tuple[object, ...]:
    return (device.gts, device.width, device.cap_gts, device.cap_width)


def _verdict(device: PciDevice, port: PciDevice | None, judged: Sequence[PciDevice]) -> _Verdict:
    narrow = device.width_word == "downgraded" or _below(device.width, device.cap_width)
    slow = device.speed_word == "downgraded" or _below(device.gts, device.cap_gts)
    slot_width = port.cap_width if port is not None else None
    slot_gts = port.cap_gts if port is not None else None
    same = [d for d in judged if d.host == device.host and d.name and d.name == device.name]
    wider = any((d.width or 0) > (device.width or 0) for d in same)
    alike = len(same) > 1 and len({_link(d) for d in same}) == 1
    if narrow and slot_width is not None:
        if device.width != slot_width:
            return _NARROWER_THAN_SLOT
        narrow = False
    elif narrow and not alike:
        return _NARROWER_THAN_OTHERS if wider else _NARROW
    if slow and slot_gts is not None and not _below(device.gts, slot_gts):
        slow = False
    if slow and device.loaded:
        return _SLOW
    if slow and device.network:
        return _ALIKE if alike else _SLOW_NIC
    if slow and not narrow:
        return _IDLE if device.loaded is False else _SLOW_OR_IDLE
    if narrow:
        return _ALIKE
    capped = _below(device.width, device.cap_width) or _below(device.gts, device.cap_gts)
    if capped:
        return _OF_THE_SLOT
    told = device.width_word == "ok" and device.speed_word == "ok"
    return _FULL if told or None not in (device.cap_gts, device.cap_width) else _AS_IT_IS


def _below(now: float | None, most: float | None) -> bool:
    return now is not None and most is not None and now < most


def _finding(verdict: _Verdict, group: Sequence[PciDevice]) -> Finding:
    first = group[0]
    at = f"{number(first.gts or 0)} GT/s{_gen(first.gts)} x{first.width}"
    cap = (
        f" of {number(first.cap_gts)} GT/s{_gen(first.cap_gts)} x{first.cap_width}"
        if first.cap_gts is not None
        else ""
    )
    places = [d.pci for d in group if d.pci is not None]
    if len(group) == 1:
        who = first.label
    elif places:
        who = f"{len(group)} x {first.name or 'device'} ({listed(places, 16)})"
    else:
        who = f"{len(group)} devices"
    return finding(
        "lspci",
        verdict.id,
        verdict.severity,
        f"{who}: PCIe link at {at}{cap}. {verdict.meaning}",
        verdict.action,
        line=first.line,
        cause=verdict.cause,
        data={
            "pci": first.pci if len(group) == 1 else None,
            "devices": places if places and len(group) > 1 else None,
            "pcie_gts": first.gts,
            "pcie_gts_max": first.cap_gts,
            "pcie_width": first.width,
            "pcie_width_max": first.cap_width,
            "pcie_gen": _GENERATION.get(first.gts or 0.0),
            "pcie_gen_max": _GENERATION.get(first.cap_gts or 0.0),
        },
        entity=first.entity if len(group) == 1 else node(first.host),
        sources=_LINK_SOURCES,
    )


def _latched(devices: Sequence[PciDevice]) -> Iterator[Finding]:
    for device in devices:
        uncorrected = _bits(device, "UESta", _UNCORRECTED)
        if not (uncorrected or "FatalErr" in device.errors.get("DevSta", ())):
            continue
        bits = ", ".join(uncorrected) or "FatalErr"
        yield finding(
            "lspci",
            "aer_uncorrected",
            Severity.HIGH,
            f"{device.label}: uncorrectable PCIe errors are latched ({bits}): traffic was lost "
            "since the bits were last cleared.",
            "dmesg -T | grep -i aer for when; reseat board, riser or cable; replace what keeps "
            "reporting it.",
            line=device.line,
            cause="pcie_errors",
            data={"pci": device.pci, "uncorrectable": uncorrected or ["FatalErr"]},
            entity=device.entity,
            sources=_AER,
        )
    corrected = [d for d in devices if _bits(d, "CESta", _CORRECTED)]
    if corrected:
        yield _corrected(corrected, len(devices))


def _corrected(devices: Sequence[PciDevice], of: int) -> Finding:
    """One finding for all: training of a link at boot leaves such bits on most boards."""
    first = devices[0]
    alone = len(devices) == 1
    each = [f"{d.label}: {', '.join(_bits(d, 'CESta', _CORRECTED))}" for d in devices]
    common = not alone and 2 * len(devices) > of
    return finding(
        "lspci",
        "aer_corrected",
        Severity.INFO if common else Severity.LOW,
        f"Corrected PCIe errors are latched ({'; '.join(each[:8])}"
        f"{f'; and {len(each) - 8} more' if len(each) > 8 else ''}). They were repeated without "
        "loss; a bit does not say how many or when"
        + (", and on most boards the start of the link leaves some." if common else "."),
        "Count them: cat /sys/bus/pci/devices/ADDRESS/aer_dev_correctable twice under load, or "
        "nvidia-smi -q (Replays Since Reset). A count that grows is a bad link.",
        line=first.line,
        data={
            "pci": first.pci if alone else None,
            "correctable": _bits(first, "CESta", _CORRECTED) if alone else None,
            "devices": [d.pci for d in devices if d.pci] if not alone else None,
        },
        entity=first.entity if alone else node(first.host),
        sources=_AER,
    )


def _bits(device: PciDevice, register: str, known: Sequence[str]) -> list[str]:
    return [bit for bit in device.errors.get(register, ()) if bit in known]


def _listed(gpus: Sequence[PciDevice]) -> Finding:
    return finding(
        "lspci",
        "gpus",
        Severity.INFO,
        f"{len(gpus)} NVIDIA GPU(s) answer on the PCIe bus. That shows that their configuration "
        "space can be read, not that the driver can use them.",
        "Compare with nvidia-smi -L: a GPU that is here and not there failed to initialise "
        "(dmesg -T | grep NVRM).",
        line=gpus[0].line,
        data={"gpu_count": len(gpus)},
        entity=node(gpus[0].host),
    )


def _gen(gts: float | None) -> str:
    generation: Mapping[float, int] = _GENERATION
    found = generation.get(gts or 0.0)
    return f" (gen {found})" if found else ""
