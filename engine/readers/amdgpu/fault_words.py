"""What the page faults of a GPU show, in words."""

from __future__ import annotations

from typing import Any

from engine.model import Finding, Severity
from engine.readers.amdgpu.device import Device
from engine.readers.amdgpu.fault import Fault

_SOURCE = "Linux Documentation/gpu/amdgpu/debugging.rst; drivers/gpu/drm/amd/amdgpu/gmc_v9_0.c"


def fault_finding(device: Device) -> Finding | None:
    """Say who faulted, where and why; the first fault stands for those that follow."""
    if not device.faults:
        return None
    first = next((f for f in device.faults if not f.of_kernel), device.faults[0])
    kernel = first.of_kernel
    return Finding(
        kind="amdgpu_page_fault",
        id="page_fault",
        severity=Severity.HIGH,
        says=_says(device, first, kernel=kernel),
        action=_action(first, kernel=kernel),
        entity=device.entity,
        line=first.line,
        cause="driver_or_firmware_xid" if kernel else "app_fault_xid",
        data=_data(device, first),
        sources=(_SOURCE,),
    )


def _says(device: Device, fault: Fault, *, kernel: bool) -> str:
    who = (
        "the driver's own work (address space 0, no process)"
        if kernel
        else f"process {fault.process} (pid {fault.pid})"
        if fault.process and fault.pid
        else f"pid {fault.pid}"
        if fault.pid
        else f"address space {fault.pasid}"
        if fault.pasid
        else "a process"
    )
    where = f" at address {fault.address}" if fault.address else ""
    unit = f", seen by unit {fault.unit}" if fault.unit else ""
    access = f" on a {fault.access}" if fault.access else ""
    why = f": {fault.why}" if fault.why else ""
    times = f" {device.faults_total} faults in all." if device.faults_total > 1 else ""
    says = (
        f"GPU page fault on {device.name}: {who} touched memory that it may not use{where}"
        f"{access}{unit}{why}.{times}"
    )
    if kernel:
        return f"{says} That points at driver or firmware, not at a program."
    return (
        f"{says} It is nearly always a bug of the program or of a library (an index out of range, "
        "memory freed too early), not a hardware fault; the process is killed or hangs."
    )


def _action(fault: Fault, *, kernel: bool) -> str:
    if kernel:
        return (
            "Update driver and firmware together and reboot; if it stays, report it to the vendor "
            "with the whole kernel log."
        )
    name = fault.process or "the program"
    return (
        f"Debug {name}: run it with AMD_SERIALIZE_KERNEL=3 HIP_LAUNCH_BLOCKING=1 to find the "
        "kernel, then under rocgdb or with address sanitizer (hipcc -fsanitize=address). Suspect "
        "hardware only if a program that is known to be good faults on this GPU and on no other, "
        "or if RAS errors stand beside it."
    )


def _data(device: Device, fault: Fault) -> dict[str, Any]:
    values: dict[str, Any] = {
        "pci": device.pci,
        "hub": fault.hub,
        "vmid": fault.vmid,
        "pasid": fault.pasid,
        "process": fault.process,
        "pid": fault.pid,
        "address": fault.address,
        "client": fault.unit,
        "access": fault.access,
        "retry": fault.retry,
    }
    return {k: v for k, v in values.items() if v is not None} | {"count": device.faults_total}
