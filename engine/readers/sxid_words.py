"""Sentences about an NVSwitch error: what it is, where, and what to do."""

from __future__ import annotations

from engine.readers.bursts import SxidBurst
from engine.readers.facts import Facts
from engine.readers.xid_names import reference, where

# How far an error reaches, after the classes of NVIDIA's Fabric Manager user guide.
_REACH = {
    "always_fatal": (
        "Fatal to the whole fabric: restart the host, or reset all its GPUs and NVSwitches."
    ),
    "fatal": (
        "Fatal for the port: the GPU on it sees Xid 74 and its job or VM must restart; on a trunk "
        "port every partition that crosses it is hit."
    ),
}


def sxid_says(burst: SxidBurst, facts: Facts) -> str:
    """Say what an SXid shows."""
    entry = facts.sxid(burst.code)
    printed = f", printed {', '.join(burst.severities)}" if burst.severities else ""
    head = f"SXid {burst.code} on {where(burst)}{printed}"
    if entry is None:
        text = f"{head}: not a documented SXid code, so its meaning is unknown and none is guessed."
    else:
        text = f"{head}: {entry['title']}. {entry['meaning']}"
    if burst.first.message:
        text += f' The line says: "{burst.first.message[:160]}".'
    if burst.first.source == "fabric_manager":
        text += (
            " Reported by Fabric Manager: the same event family as the kernel's nvidia-nvswitch "
            "SXid lines."
        )
    if burst.count > 1:
        text += f" Printed {burst.count} times."
    if times := burst.period.says(burst.count):
        text += f" {times}"
    if burst.parent is not None:
        text += f" It is a consequence of {reference(burst.parent)}, not a fault of the switch."
    return text


def sxid_action(burst: SxidBurst, facts: Facts) -> str:
    """Say what to do about an SXid."""
    entry = facts.sxid(burst.code)
    if burst.parent is not None:
        return f"Act on {reference(burst.parent)}; leave the switch alone."
    if entry is None:
        return (
            "Keep the kernel log (dmesg) and the Fabric Manager log, note the driver version and "
            "ask NVIDIA support."
        )
    action = str(entry["action"]).strip()
    reach = _REACH.get(str(entry.get("fm_class")), "")
    text = f"{action[:1].upper()}{action[1:]}"
    if not text.endswith("."):
        text += "."
    return f"{text} {reach} Map the port to its GPU and look for Xid 74 or 45 there.".replace(
        "  ", " "
    )
