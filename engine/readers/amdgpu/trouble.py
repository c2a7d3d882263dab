"""Faults that one or two messages tell by themselves: bus, heat, clocks, XGMI, shared queues."""

from __future__ import annotations

from collections.abc import Iterator

from engine.model import Finding, Severity
from engine.readers.amdgpu.device import Device
from engine.readers.amdgpu.finding import finding
from engine.readers.amdgpu.firmware import init_finding, psp_finding, smu_finding


def trouble_findings(device: Device) -> Iterator[Finding]:
    """Yield what the single messages of a GPU tell, root causes first."""
    for build in (
        _lost,
        smu_finding,
        psp_finding,
        init_finding,
        _heat,
        _throttled,
        _xgmi,
        _oversubscribed,
    ):
        found = build(device)
        if found is not None:
            yield found


def _lost(device: Device) -> Finding | None:
    seen = device.any(("lost", "smu_gone"))
    error = device.seen.get("pci_error")
    dead = error is not None and error.value("state") == "3"
    if seen is None and not dead and "pcie_recovery_failed" not in device.seen:
        return None
    first = seen or error or device.seen["pcie_recovery_failed"]
    how = (
        "the driver reports it lost from the bus"
        if "lost" in device.seen
        else "its registers read as all ones (0xFFFFFFFF)"
        if "smu_gone" in device.seen
        else "PCIe error recovery failed"
    )
    return finding(
        device,
        "off_bus",
        Severity.CRITICAL,
        f"{device.name[0].upper()}{device.name[1:]} is off the PCIe bus: {how}. It does not "
        "answer, and a driver reset cannot reach it.",
        "Drain the node and power-cycle it (a full power off and on; a warm reboot may not be "
        "enough). Then check lspci and the slot, riser and power cables; if the same GPU drops "
        "again, have it replaced.",
        "gpu_off_bus",
        first.first,
    )


def _heat(device: Device) -> Finding | None:
    hard = device.any(("over_temp_hw", "shutdown_heat"))
    seen = hard or device.seen.get("over_temp_sw")
    if seen is None:
        return None
    going_down = "shutdown_heat" in device.seen
    return finding(
        device,
        "heat",
        Severity.CRITICAL,
        f"{device.name[0].upper()}{device.name[1:]} is over its temperature limit "
        + ("(hardware critical temperature fault)" if hard else "(software limit, CTF)")
        + (": the driver is shutting the system down to protect it." if going_down else "."),
        "Take the load off now and check cooling: fans, coolant flow, heat sink, inlet "
        "temperature (amd-smi metric --temperature, ipmitool sdr type Temperature). Limits of "
        "this board: amd-smi static --limit.",
        "thermal_slowdown_hw" if hard else "thermal_slowdown_sw",
        seen.first,
        {"shutdown": True} if going_down else {},
    )


def _throttled(device: Device) -> Finding | None:
    seen = device.seen.get("throttled")
    if seen is None:
        return None
    why = seen.values.get("why", [])
    hbm = any("HBM" in w.upper() or "MEM" in w.upper() for w in why)
    power = any(w.upper().startswith(("PPT", "TDC", "EDC", "FIT")) for w in why)
    reason = f" ({', '.join(why)[:120]})" if why else ""
    cause = "memory_overheat" if hbm else "power_bound" if power else "thermal_slowdown_sw"
    what = (
        "power or current" if power else "the temperature of its memory" if hbm else "temperature"
    )
    return finding(
        device,
        "throttled",
        Severity.MEDIUM if power else Severity.HIGH,
        f"The driver lowers the clocks of {device.name}: it is throttled by {what}{reason}, "
        f"printed {seen.count} time(s). Expect lower performance while that lasts.",
        "See how much time is lost: amd-smi monitor --violation (MI300 and newer) or amd-smi "
        "metric --power. "
        + (
            "Compare the power cap with amd-smi static --limit."
            if power
            else "Check cooling and inlet air, and compare with the other GPUs of the node."
        ),
        cause,
        seen.first,
        {"throttle_reasons": why, "count": seen.count},
    )


def _xgmi(device: Device) -> Finding | None:
    errors, failed = device.seen.get("xgmi_error"), device.seen.get("xgmi_failed")
    seen = errors or failed
    if seen is None:
        return None
    names = errors.values.get("error", []) if errors else []
    return finding(
        device,
        "xgmi",
        Severity.HIGH,
        f"The XGMI links of {device.name} report errors"
        + (f": {', '.join(names)}" if names else " or could not be set up")
        + ". Traffic between GPUs is slowed, or the link is down.",
        "Compare the links: amd-smi xgmi -l (state) and amd-smi metric --xgmi-err. Power-cycle the "
        "node with jobs drained; if the same link reports again, have the GPUs at both ends and "
        "their board checked.",
        "xgmi_errors",
        seen.first,
        {"errors": names, "count": seen.count} if names else {"count": seen.count},
    )


def _oversubscribed(device: Device) -> Finding | None:
    seen = device.seen.get("oversubscribed")
    if seen is None:
        return _no_queue(device)
    why = (seen.value("why") or "").strip(" .")
    reason = f" ({why})" if why else ""
    return finding(
        device,
        "oversubscribed",
        Severity.MEDIUM,
        f"More compute queues or processes share {device.name} than its hardware can hold at "
        f"once{reason}: the scheduler swaps them in turn. Nothing is broken, but everything on "
        "this GPU runs slower.",
        "See who is on it: amd-smi process (or rocm-smi --showpids). Let one process use a GPU, or "
        "lower the queues of each: GPU_MAX_HW_QUEUES=2 for HIP programs. Limits per GPU: 24 "
        "compute queues, 11 processes, one process with cooperative kernels.",
        "gpu_contention",
        seen.first,
        {"reason": why} if why else {},
        "AMD Instinct documentation, GPU oversubscription",
    )


def _no_queue(device: Device) -> Finding | None:
    """A queue was refused, though the driver's warning of too many is not in the text."""
    seen = device.any(("no_sdma_queue", "no_queue"))
    if seen is None:
        return None
    what = "copy-engine (SDMA) queue" if "no_sdma_queue" in device.seen else "queue"
    return finding(
        device,
        "no_queue",
        Severity.MEDIUM,
        f"The driver had no free {what} left on {device.name} and refused one: more programs or "
        "queues share it than the hardware has. Nothing is broken; the program may fail to start, "
        "or copy with kernels, which is slower.",
        "See who is on it: amd-smi process (or rocm-smi --showpids), and stop what is left over. "
        "Let one process use a GPU, or lower the queues of each: GPU_MAX_HW_QUEUES=2; "
        "HSA_ENABLE_SDMA=0 copies without these queues.",
        "gpu_contention",
        seen.first,
        {"count": seen.count},
        "Linux drivers/gpu/drm/amd/amdkfd/kfd_device_queue_manager.c",
    )
