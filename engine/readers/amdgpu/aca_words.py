"""What the dumped error records of a GPU show, and which GPU announced what another one holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from engine.model import Finding, Severity
from engine.readers.amdgpu.device import Device
from engine.readers.amdgpu.finding import finding
from engine.readers.quantities import listed

_SOURCE: Final = "Linux drivers/gpu/drm/amd/amdgpu/amdgpu_aca.c, amdgpu_aca.h"
_ANNOUNCES: Final = ("poison_consumed", "poison_created", "fatal_event")
_SEVERITIES: Final = {
    "uncorrectable": Severity.CRITICAL,
    "deferred": Severity.HIGH,
    "corrected": Severity.LOW,
}


def aca_finding(device: Device) -> Finding | None:
    """Say what the worst record of a GPU is, and how many there are."""
    seen = device.seen.get("aca")
    records = device.aca.records() if device.aca else []
    if not records:
        if seen is None and device.aca is None:
            return None
        return finding(
            device,
            "aca",
            Severity.MEDIUM,
            f"{device.name[0].upper()}{device.name[1:]} logged hardware errors (Accelerator Check "
            "Architecture); their records are not in this text.",
            "Read the lines that follow: dmesg | grep -A 40 'Accelerator Check'; and amd-smi ras "
            "--cper, amd-smi metric --ecc-blocks.",
            None,
            seen.first if seen else device.aca.line if device.aca else 0,
            _event(device),
            _SOURCE,
        )
    worst = records[0]
    more = f" {len(records)} records in all." if len(records) > 1 else ""
    what = {
        "uncorrectable": "an uncorrectable error: the work that met it is lost",
        "deferred": (
            "an uncorrectable error that is deferred: the data is poisoned, and whatever reads it "
            "will be stopped"
        )
        if worst.block in (None, "umc") or not worst.poison
        else (
            "poisoned data that it met: an uncorrectable error of memory or of another GPU, marked "
            "before it came here"
        ),
        "corrected": "a corrected error: no data is wrong",
    }[worst.kind]
    overflow = " Others came too fast to be recorded." if worst.overflow else ""
    line = device.aca.line if device.aca else 0
    place = {} if worst.socket is None else {"socket": worst.socket, "die": worst.die}
    at = f" at socket {worst.socket} die {worst.die}" if place else ""
    return finding(
        device,
        "aca",
        _SEVERITIES[worst.kind],
        f"{device.name[0].upper()}{device.name[1:]} holds an error record of {worst.words}{at}, "
        f"{what} (status 0x{worst.status:016x}).{overflow}{more}",
        "Nothing yet; compare the number of records with the node's other GPUs over time."
        if worst.kind == "corrected"
        else "Take the GPU out of service and reset it with jobs stopped (amd-smi reset --gpureset "
        "--gpu N). Decode the record: amd-smi ras --cper --afid; have the GPU replaced if it comes "
        "back.",
        None
        if worst.kind == "corrected"
        else "xgmi_errors"
        if worst.block == "xgmi"
        else "ecc_uncorrectable",
        line,
        {
            "aca_status": f"0x{worst.status:016x}",
            "aca_kind": worst.kind,
            "poison": worst.poison,
            "records": len(records),
        }
        | ({"blocks": [worst.block]} if worst.block else {})
        | place
        | _event(device),
        _SOURCE,
    )


def _event(device: Device) -> dict[str, Any]:
    return {} if device.event is None else {"event": device.event}


def announces(device: Device) -> bool:
    """Whether lines of the GPU announce an error that may have been recorded elsewhere."""
    return device.any(_ANNOUNCES) is not None


def holds(device: Device) -> bool:
    """Whether the GPU holds a record of an error: a dump, a place in memory, a count."""
    if device.aca is not None or device.any(("umc_address", "bad_address")) is not None:
        return True
    return any(counts.count and not counts.garbage for counts in device.ras.values())


class Places:
    """Which GPUs of each machine announced errors, and which hold records of errors."""

    def __init__(self, devices: Sequence[Device]) -> None:
        self._reporters: dict[str | None, list[Device]] = {}
        self._holders: dict[str | None, list[Device]] = {}
        for device in devices:
            if announces(device):
                self._reporters.setdefault(device.host, []).append(device)
            if holds(device):
                self._holders.setdefault(device.host, []).append(device)

    def told(self, device: Device, found: Sequence[Finding]) -> list[Finding]:
        """Add to the first RAS finding of a GPU who announced the error, and who holds it."""
        first = next((f for f in found if f.kind in ("amdgpu_ras", "amdgpu_aca")), None)
        if first is None:
            return list(found)
        data, says = self._of(device)
        changed = replace(first, says=first.says + says, data={**first.data, **data})
        return [changed if f is first else f for f in found]

    def _of(self, device: Device) -> tuple[dict[str, str], str]:
        reporters = self._reporters.get(device.host, [])
        holders = self._holders.get(device.host, [])
        announced, held = announces(device), holds(device)
        if announced and not held and holders:
            others, says = holders, "holds the record of an error: look at that GPU too."
            if len(holders) > 1:
                says = "hold records of errors: look at these GPUs too."
        elif held and not announced and reporters:
            others, says = reporters, "announced an error."
        else:
            others, says = [device], ""
        other, names = others[0], listed((d.name for d in others), 4)
        named = f" {names[0].upper()}{names[1:]} {says}" if says else ""
        data: dict[str, str | None] = {}
        if announced or named:
            data["reporter"] = device.pci if announced else other.pci
        if held or named:
            data["record"] = device.pci if held else other.pci
        return {key: value for key, value in data.items() if value}, named
