"""What to do about an Xid: NVIDIA's resolution, the message's own flags, the events around it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.readers.bursts import XidBurst
from engine.readers.facts import Facts
from engine.readers.xid_message import in_memory
from engine.readers.xid_names import label, reference

# NVIDIA's most usual resolutions, as what a person does with the GPU; for the others the words of
# the knowledge serve.
_RESOLUTIONS = {
    "RESTART_APP": "Restart the application; this code alone asks for no GPU reset and no RMA.",
    "IGNORE": "No immediate action is needed on the GPU; keep the record.",
    "RESET_GPU": "Drain the GPU and reset it.",
    "RESTART_BM": (
        "Restart the machine, best with a power cycle; a GPU reset from the host is not enough."
    ),
    "CHECK_UVM": "Reset the GPU if UVM or vGPU is in use; otherwise no action is needed.",
    "XID_154_EVAL": "Obey the Xid 154 printed with it; if there is none, restart the application.",
}
# Buckets that only point at a table or at other Xids, which the findings have looked up already.
_POINTERS = ("WORKFLOW_", "XID_137", "XID_154", "IGNORE", "Solo")
# The step of a resolution, and what is left to say where an entry names that step itself.
_VERBS = {"RESTART_APP": "restart", "RESET_GPU": "reset", "RESTART_BM": "power-cycle"}
_REMAINS = {
    "restart": "This code alone asks for no GPU reset and no RMA.",
    "power-cycle": "A GPU reset from the host is not enough.",
}
# Classes of entries in which hardware is the exception.
_PROGRAM_FIRST = ("user-app-first",)
# Error pairs to look for beside an uncorrectable memory error, and what they decide.
_MEMORY_COMPANIONS = (
    "Look beside it for Xid 171 or 172 (DRAM or on-chip), 63 or 64 (the repair was recorded, or "
    "failed) and 94 or 95 (contained to one process, or not): they decide between a reset and "
    "field diagnostics with an RMA."
)
_BY_154 = (
    "Look for the Xid 154 on this GPU and obey it; a Fatal line calls for a GPU reset, a non-fatal "
    "one usually for a restart of the application at most."
)
_OBEY = 'Obey the action that the message names after "to".'
_UNKNOWN = (
    "Keep the kernel log (dmesg) around the line, note the driver version, run "
    "nvidia-bug-report.sh and ask NVIDIA support what this driver means by the code."
)


def xid_action(burst: XidBurst, facts: Facts, beside: Mapping[int, XidBurst]) -> str:
    """Say what to do.

    Args:
        burst: the event.
        facts: knowledge.
        beside: all events of the same GPU by code.
    """
    entry = facts.xid(burst.code)
    if entry is None:
        return _UNKNOWN
    if burst.code == 154:
        return facts.recovery(burst.detail.get("recovery_code")) or _OBEY
    if burst.parent is not None and burst.code in (43, 45, 74, 119, 120):
        return f"Act on {reference(burst.parent)}; {label(burst)} itself calls for nothing."
    if burst.code == 63 and burst.parent is not None:
        return f"It takes effect at the next GPU reset; {reference(burst.parent)} decides when."
    row = burst.detail.get("table_row")
    if row is not None:
        parts = [_resolve(row["resolution"], facts), _investigate(row["investigate"], facts)]
    elif "unit" in burst.detail:
        parts = [_BY_154]
    else:
        parts = _by_entry(burst, entry, facts)
    parts += _extra(burst, entry.get("class"), beside)
    recovery = beside.get(154)
    if recovery is not None and "recovery_action" in recovery.detail:
        parts.append(
            f"The driver itself asks for {recovery.detail['recovery_action']} "
            f"(Xid 154, line {recovery.last.line})."
        )
    return " ".join(part for part in parts if part)


def _by_entry(burst: XidBurst, entry: Mapping[str, Any], facts: Facts) -> list[str]:
    d, action = burst.detail, str(entry["action"])
    if d.get("rst"):
        parts = [_RESOLUTIONS["RESET_GPU"], action]
    elif burst.code == 94 and d.get("drain_rst"):
        parts = ["Restart the affected application; drain the GPU at the next window and reset it."]
    elif burst.code == 94 and "rst" in d and not in_memory(burst):
        parts = ["Restart the affected application; the others go on, the GPU stays in service."]
    else:
        # The entry's own words come first where they name the same step.
        lead = _resolve(entry.get("resolution"), facts)
        verb = _VERBS.get(str(entry.get("resolution")))
        named = verb is not None and verb in action.lower()
        parts = [action, _REMAINS.get(verb or "", "")] if named else [lead, action]
    return [*parts, _investigate(entry.get("investigate"), facts)]


def _resolve(bucket: str | None, facts: Facts) -> str:
    if not bucket or (bucket not in _RESOLUTIONS and bucket.startswith(_POINTERS)):
        return ""
    return _RESOLUTIONS.get(bucket) or facts.bucket(bucket)


def _investigate(bucket: str | None, facts: Facts) -> str:
    if not bucket or bucket.startswith(_POINTERS):
        return ""
    if bucket == "CONTACT_SUPPORT":
        return "Contact support if it comes back."
    return facts.bucket(bucket.split(" ")[0])


def _extra(burst: XidBurst, class_: str | None, beside: Mapping[int, XidBurst]) -> list[str]:
    parts: list[str] = []
    if class_ in _PROGRAM_FIRST:
        parts.append(
            "Suspect the hardware only if it repeats on this GPU with different, known-good "
            "applications."
        )
    if burst.code in (48, 171, 172):
        parts += _memory_verdict(beside)
    if burst.code == 64:
        parts.append(
            "Take the GPU out of service until it has passed diagnostics; in a cloud, have the "
            "instance replaced."
        )
    if burst.code in (79, 167):
        parts.append("Check power, seating, riser and slot of this PCIe device.")
    if burst.code == 45 and burst.caused_by:
        causes = ", ".join(map(str, burst.caused_by))
        parts.append(f"The driver names its cause: Xid {causes}.")
    if "device_unhealthy" in burst.detail:
        parts.append("Restart the device plugin to have the GPU scheduled again.")
    return parts


def _memory_verdict(beside: Mapping[int, XidBurst]) -> list[str]:
    """What the companions of an uncorrectable memory error decide, or which to look for."""
    means = {
        64: "the repair failed, so run field diagnostics: they are the gate for an RMA",
        63: "the repair is recorded and waits for the GPU reset",
        95: "it was not contained, so stop all work on the GPU first",
        94: "it was contained to the process that was hit",
        172: "it lies on the chip, where rows cannot be remapped",
    }
    found = [f"Xid {code} beside it: {text}." for code, text in means.items() if code in beside]
    return found if {63, 64, 94, 95} & set(beside) else [*found, _MEMORY_COMPANIONS]
