"""How the findings about an AMD GPU are made."""

from __future__ import annotations

from typing import Any

from engine.model import Finding, Severity
from engine.readers.amdgpu.device import Device

KERNEL = "Linux drivers/gpu/drm/amd"
RAS = "Linux drivers/gpu/drm/amd/amdgpu/amdgpu_ras.c, amdgpu_ras_eeprom.c"


def finding(
    device: Device,
    what: str,
    severity: Severity,
    says: str,
    action: str,
    cause: str | None,
    line: int,
    data: dict[str, Any] | None = None,
    source: str = KERNEL,
) -> Finding:
    """Make a finding about a GPU; its address is added to the data."""
    kept: dict[str, Any] = {"pci": device.pci} if device.pci else {}
    return Finding(
        kind=f"amdgpu_{what}",
        id=what,
        severity=severity,
        says=says,
        action=action,
        entity=device.entity,
        line=line,
        cause=cause,
        data=kept | (data or {}),
        sources=(source,),
    )


def ras_finding(
    device: Device,
    id_: str,
    severity: Severity,
    says: str,
    action: str,
    cause: str | None,
    line: int,
    data: dict[str, Any],
) -> Finding:
    """Make a finding about RAS; the address and the number of the event are added to the data."""
    kept: dict[str, Any] = {}
    if device.pci:
        kept["pci"] = device.pci
    if device.event is not None:
        kept["event"] = device.event
    return Finding(
        kind="amdgpu_ras",
        id=id_,
        severity=severity,
        says=says,
        action=action,
        entity=device.entity,
        line=line,
        cause=cause,
        data=kept | data,
        sources=(RAS,),
    )
