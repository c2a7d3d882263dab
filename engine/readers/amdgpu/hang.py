"""Hung queues and the resets that follow, as one story: what hung, what was done, how it ended.

Rings time out (graphics, copies, video), compute queues refuse preemption (amdkfd), or the queue
scheduler in firmware (MES) stops answering; the driver then resets the ring, or the whole GPU.
"""

from __future__ import annotations

from typing import Any

from engine.model import Finding, Severity
from engine.readers.amdgpu.device import Device
from engine.readers.amdgpu.hang_actions import action

SOURCE = (
    "Linux drivers/gpu/drm/amd (amdgpu_job.c, amdgpu_device.c, kfd_device_queue_manager.c, "
    "amdgpu_mes.c)"
)
_PREEMPT = ("preempt_timeout",)
_MES = ("mes_timeout", "mes_stuck")
_RING = ("ring_timeout", "ring_soft", "block_hung", "kiq_timeout", "ring_test")
_HUNG = (*_PREEMPT, *_MES, *_RING, "mes_queue", "evict_failed")
_BEGIN = ("reset_begin", "reset_kind")
_FAILED = ("reset_failed", "reset_end", "recovery_disabled", "wedged")
_DONE = ("reset_done", "reset_resume")
HANG_EVENTS = (
    *_HUNG, *_BEGIN, *_FAILED, *_DONE, "ring_reset_done", "wedged_recovered", "vram_lost"
)  # fmt: skip

# What works behind a ring, by the start of its name.
_RINGS = {
    "gfx": "graphics",
    "comp": "compute",
    "sdma": "copy engine",
    "page": "copy engine",
    "vcn": "video",
    "uvd": "video",
    "vce": "video",
    "jpeg": "JPEG",
    "kiq": "the driver's own queue",
    "mes": "queue scheduler",
}


def hang_finding(device: Device, *, because: str | None) -> Finding | None:
    """Say how a hang went.

    Args:
        device: a GPU's events.
        because: words for a fault of the same GPU that explains the hang, if there is one.
    """
    first = device.any(HANG_EVENTS)
    if first is None or not _tells(device):
        return None
    outcome = _outcome(device)
    severity = {
        "failed": Severity.CRITICAL,
        "reset": Severity.HIGH,
        "begun": Severity.HIGH,
        "none": Severity.HIGH,
        "ring": Severity.MEDIUM,
        "soft": Severity.MEDIUM,
    }[outcome]
    return Finding(
        kind="amdgpu_hang",
        id="queue_hang",
        severity=severity,
        says=_says(device, outcome, because),
        action=action(outcome, because),
        entity=device.entity,
        line=first.first,
        cause="queue_hang_reset" if because is None else None,
        data=_data(device, outcome),
        sources=(SOURCE,),
    )


def _tells(device: Device) -> bool:
    """Whether there is more than a driver's note about a process that would not be suspended."""
    return device.any(e for e in HANG_EVENTS if e != "evict_failed") is not None


def _outcome(device: Device) -> str:
    """Return failed, reset, begun, ring, soft or none; of several endings the last counts."""
    ends = [
        (device.seen[event].last, name)
        for name, events in (
            ("failed", _FAILED),
            ("reset", _DONE),
            ("ring", ("ring_reset_done", "wedged_recovered")),
            ("soft", ("ring_soft",)),
            ("begun", _BEGIN),
        )
        for event in events
        if event in device.seen
    ]
    if not ends:
        return "none"
    names = {name for _, name in ends}
    if "failed" in names and max(ends)[1] in ("failed", "begun"):
        return "failed"
    return "reset" if "reset" in names else max(ends)[1]


def _what(device: Device, *, explained: bool) -> str:
    seen = device.seen
    ring = _ring(device)
    if "mes_timeout" in seen or "mes_stuck" in seen:
        command = seen["mes_timeout"].value("command") if "mes_timeout" in seen else None
        asked = f" {command.strip()}" if command else ""
        says = (
            f"The queue scheduler firmware (MES) of {device.name} did not answer the driver's "
            f"command{asked}, so a compute or graphics queue hung"
        )
    elif device.any((*_PREEMPT, "mes_queue")) is not None:
        says = (
            f"A compute queue of {device.name} could not be preempted: the driver waited for it "
            "to stop (queue preemption time-out) and it did not"
        )
    elif ring is not None:
        how = (
            "hung: its job did not finish in time"
            if device.any(("ring_timeout", "ring_soft", "ring_reset", "ring_reset_failed"))
            else "does not work: it did not answer the driver's test"
        )
        says = f"Ring {ring} ({_ring_is(ring)}) of {device.name} {how}"
    elif device.any(_HUNG) is not None:
        says = f"A queue of {device.name} hung"
    elif explained:
        return f"The driver set out to reset {device.name}"
    else:
        return (
            f"The driver reset {device.name}; why stands in earlier lines, which are not in this "
            "text"
        )
    if ring is not None and not says.startswith("Ring"):
        says += f"; ring {ring} ({_ring_is(ring)}) timed out as well"
    return says + _culprit(device)


def _says(device: Device, outcome: str, because: str | None) -> str:
    kinds = _kinds(device)
    how = f" by {kinds[-1]} reset" if kinds else ""
    end = {
        "failed": f"The GPU reset{how} failed: the GPU is unusable until the node is restarted.",
        "reset": f"The driver reset the GPU{how}; the reset succeeded and the GPU came back.",
        "begun": f"The driver began a GPU reset{how}; its end is not in this text.",
        "none": "No reset is seen in this text.",
        "ring": "The driver reset that ring alone, with success; other queues went on.",
        "soft": "The driver got it going again without a reset (soft recovery).",
    }[outcome]
    if outcome == "failed" and "recovery_disabled" in device.seen and not _tried(device):
        end = (
            "The driver did not reset the GPU: recovery is disabled (module parameter "
            "amdgpu.gpu_recovery=0). The GPU is unusable until it is reset by hand or the node is "
            "restarted."
        )
    says = f"{_what(device, explained=because is not None)}. {end}"
    if because is not None:
        says += f" It follows from {because} on the same GPU."
    if "vram_lost" in device.seen:
        says += (
            " VRAM contents are lost: every process that had data on this GPU is lost and must be "
            "restarted."
        )
    elif outcome in ("reset", "begun", "failed"):
        says += " Jobs that ran on this GPU are lost and must be restarted."
    count = device.seen["reset_begin"].count if "reset_begin" in device.seen else 1
    if count > 1:
        says += f" {count} resets stand in this text."
    return says


def _data(device: Device, outcome: str) -> dict[str, Any]:
    data: dict[str, Any] = {"outcome": outcome}
    if device.pci:
        data["pci"] = device.pci
    ring = _ring(device)
    if ring is not None:
        data["ring"] = ring
    process, pid = _process(device)
    if process:
        data["process"] = process
    if pid is not None:
        data["pid"] = pid
    kinds = _kinds(device)
    if kinds:
        data["reset"] = kinds[-1]
    elif outcome in ("ring", "soft"):
        data["reset"] = {"ring": "ring", "soft": "soft recovery"}[outcome]
    if "vram_lost" in device.seen:
        data["vram_lost"] = True
    if "reset_begin" in device.seen:
        data["resets"] = device.seen["reset_begin"].count
    return data


def _tried(device: Device) -> bool:
    """Whether a reset was tried, and failed."""
    return device.any(("reset_failed", "reset_end")) is not None


def _ring(device: Device) -> str | None:
    for event in ("ring_timeout", "ring_soft", "ring_reset", "ring_reset_failed", "ring_test"):
        if event in device.seen:
            return device.seen[event].value("ring")
    return None


def _ring_is(ring: str) -> str:
    return next((is_ for start, is_ in _RINGS.items() if ring.startswith(start)), "engine")


def _kinds(device: Device) -> list[str]:
    """The kinds of full reset, as printed first (``MODE2``, ``BACO`` …)."""
    kinds = device.seen["reset_kind"].values.get("reset", []) if "reset_kind" in device.seen else []
    return list(dict.fromkeys(k.upper() for k in kinds))


def _process(device: Device) -> tuple[str | None, int | None]:
    seen = device.seen.get("process")
    if seen is None:
        return None, None
    process, pid = seen.value("process"), seen.value("pid")
    number = int(pid) if pid and pid.isdecimal() else 0
    return (process.strip() or None if process else None), number or None


def _culprit(device: Device) -> str:
    process, pid = _process(device)
    if process and pid:
        return f"; the job was of {process} (pid {pid})"
    return ""
