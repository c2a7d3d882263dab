"""Firmware of an AMD GPU that hangs or does not start: SMU (power), PSP (security), the driver."""

from __future__ import annotations

from engine.model import Finding, Severity
from engine.readers.amdgpu.device import Device
from engine.readers.amdgpu.finding import KERNEL, finding

_RESET = "amd-smi reset --gpureset --gpu N"
# Commands to the PSP that only load or unload helpers for displays and the like.
_SMALL_COMMANDS = frozenset({"LOAD_TA", "UNLOAD_TA", "INVOKE_CMD", "LOAD_ASD", "UNLOAD_ASD"})
_PROFILING = frozenset({"CONFIG_SQ_PERFMON", "SQ_PERFMON"})
# Blocks of the driver that wait for a firmware of their own: it did not answer where they fail.
_FIRMWARE_BLOCKS = frozenset({"smu", "psp", "powerplay"})


def smu_finding(device: Device) -> Finding | None:
    """Say what it means that the power-management firmware does not answer."""
    hang = device.any(("smu_hang", "smu_init"))
    reading = device.seen.get("smu_reading")
    if hang is None and reading is None:
        return None
    first = hang or reading
    assert first is not None
    how = (
        "has not finished its previous command"
        if "smu_hang" in device.seen
        else "could not be started"
        if "smu_init" in device.seen
        else "did not deliver its metrics table"
    )
    return finding(
        device,
        "smu",
        Severity.HIGH if hang is not None else Severity.MEDIUM,
        f"The power-management firmware (SMU) of {device.name} {how}: it is hung or not "
        "responding. Clocks, power and temperature readings of this GPU are not valid now, and "
        "limits cannot be set.",
        f"Do not trust amd-smi's readings of it. Drain the GPU and reset it ({_RESET}); if the SMU "
        "still does not answer, reboot or power-cycle the node. If it recurs, update driver and "
        "firmware together.",
        "firmware_hang",
        first.first,
        {
            "count": sum(
                device.seen[e].count for e in ("smu_hang", "smu_reading") if e in device.seen
            )
        },
        f"{KERNEL}/pm/swsmu/smu_cmn.c",
    )


def psp_finding(device: Device) -> Finding | None:
    """Say what it means that the security firmware refused something."""
    seen = device.seen.get("psp_command")
    load = device.seen.get("psp_load")
    if seen is None and load is None:
        return None
    if seen is None:
        assert load is not None
        return finding(
            device,
            "psp",
            Severity.HIGH,
            f"The security firmware (PSP) of {device.name} could not load or start firmware; the "
            "GPU cannot be used until it does.",
            "Power the machine off completely and on again (a warm reboot is often not enough). If "
            "it stays, update driver and firmware packages together and check the GPU in another "
            "slot or node.",
            "firmware_hang",
            load.first,
        )
    commands = seen.values.get("command", [])
    status = seen.value("status") or "?"
    if set(commands) <= _SMALL_COMMANDS and load is None:
        return finding(
            device,
            "psp",
            Severity.LOW,
            f"The security firmware (PSP) of {device.name} rejected {', '.join(commands)} (status "
            f"{_hexed(status)}): a helper (display protection, RAS …) was not loaded. By itself "
            "that does not stop compute work.",
            "Nothing, if the GPU works. Otherwise read the lines around it: the reason stands "
            "there.",
            None,
            seen.first,
            {"psp_command": commands[0], "status": _hexed(status)},
        )
    profiling = bool(set(commands) & _PROFILING)
    what = (
        f"The security firmware (PSP) of {device.name} rejected the command {commands[0]} "
        f"({seen.value('number')}, status {_hexed(status)})"
    )
    if profiling:
        return finding(
            device,
            "psp",
            Severity.HIGH,
            f"{what}: it did not set up the performance-monitor counters that a profiler asked "
            "for. This has been seen after PC sampling and can leave the GPU hung.",
            "Stop PC sampling and other counter profiling on this GPU until driver and ROCm are "
            "updated. If rocminfo or a new job hangs, a warm reboot is not enough: power the "
            "machine off completely and on again.",
            "firmware_hang",
            seen.first,
            {"psp_command": commands[0], "status": _hexed(status)},
            "ROCm issue tracker (MI300A, PC sampling)",
        )
    return finding(
        device,
        "psp",
        Severity.HIGH,
        f"{what}: firmware that guards the GPU did not do what the driver needs.",
        f"Reset the GPU ({_RESET}) with its jobs stopped; if the line comes back, power the "
        "machine off completely and on again, and update driver and firmware together.",
        "firmware_hang",
        seen.first,
        {"psp_command": commands[0], "status": _hexed(status)},
    )


def init_finding(device: Device) -> Finding | None:
    """Say why the driver could not start the GPU."""
    missing = device.seen.get("firmware_missing")
    atomics = device.seen.get("no_atomics")
    seen = device.any(("init_failed", "block_failed"))
    if missing is not None:
        file = missing.value("file") or missing.value("file2")
        # Optional files are asked for as well: missing ones matter where the start failed.
        if seen is None:
            return None
        return finding(
            device,
            "init",
            Severity.HIGH,
            f"The driver could not start {device.name}: firmware file {file} is missing.",
            "Install the firmware that belongs to the driver (linux-firmware, or "
            "amdgpu-dkms-firmware with ROCm's driver), rebuild the initramfs (update-initramfs -u "
            "or dracut -f) and reboot.",
            "driver_or_firmware_xid",
            missing.first,
            {"file": file},
        )
    if seen is not None:
        block = device.seen.get("block_failed")
        where = block.value("block") if block else None
        error = block.value("error") if block else None
        code = f" (error {error})" if error else ""
        return finding(
            device,
            "init",
            Severity.CRITICAL if "init_failed" in device.seen else Severity.HIGH,
            f"The driver could not start {device.name}"
            + (f": block {where} failed{code}" if where else "")
            + ". The GPU is missing from rocminfo and amd-smi until this is solved.",
            "Power-cycle the node (full power off and on) first. If it stays: driver, firmware and "
            "kernel must belong together (dkms status, dmesg | grep -i firmware); check slot, "
            "power cables and BIOS (above 4G decoding, large BAR), then the GPU in another node.",
            "firmware_hang" if where in _FIRMWARE_BLOCKS else "driver_or_firmware_xid",
            seen.first,
            {k: v for k, v in (("block", where), ("error", error)) if v},
        )
    if atomics is not None:
        return finding(
            device,
            "init",
            Severity.HIGH,
            f"ROCm does not use the device {atomics.value('device')}: the PCIe path to it does not "
            "route atomic operations.",
            "Put the GPU into a slot wired to the CPU, or below a switch that routes PCIe atomics; "
            "in a virtual machine expose atomics to the guest.",
            "host_misconfigured",
            atomics.first,
            {"device": atomics.value("device")},
        )
    return None


def _hexed(text: str) -> str:
    return text if text.lower().startswith("0x") else f"0x{text}"
