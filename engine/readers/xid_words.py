"""Sentences about what an Xid says: where, what, and what its message adds."""

from __future__ import annotations

from engine.readers.bursts import XidBurst
from engine.readers.facts import Facts
from engine.readers.xid_message import message_says
from engine.readers.xid_names import SAME_ERROR, label, reference, where


def xid_says(burst: XidBurst, facts: Facts) -> str:
    """Say what an Xid shows: code, place, meaning, details, repetition and its reason."""
    entry = facts.xid(burst.code)
    head = f"Xid {burst.code} on {where(burst)}{_process(burst)}"
    if entry is None:
        return (
            f"{head}: not a documented Xid code, so its meaning is unknown and none is guessed."
            f"{_message(burst)}{_repeats(burst)}"
        )
    if list(burst.sources) == ["lost"]:
        head = f"GPU fallen off the bus: {where(burst)}, printed without a code, equals Xid 79"
    parts = [f"{head}: {entry['title']}."]
    if burst.code != 45 or burst.parent is None:
        parts.append(_sentence(entry["meaning"]))
    if burst.first.source == "named":
        parts.insert(1, "Only named as the reason of another Xid; its own line is not in the text.")
    parts += message_says(burst, facts)
    if "device_unhealthy" in burst.detail:
        parts.append(
            "Reported by the Kubernetes device plugin, which marked the GPU unhealthy; it stays so "
            "until the plugin is restarted."
        )
    elif "plugin" in burst.sources:
        parts.append("Reported by the Kubernetes device plugin.")
    if _may_be_cut(burst):
        parts.append("The line ends behind the code: if it is cut there, the code has more digits.")
    text = " ".join(p for p in parts if p) + _repeats(burst)
    return text + _relation(burst)


def _relation(burst: XidBurst) -> str:
    if burst.parent is None:
        return ""
    if burst.code == 154:
        return f" The fault is {reference(burst.parent)}."
    if burst.code in SAME_ERROR:
        return f" {label(burst)} follows from {reference(burst.parent)}."
    return (
        f" {label(burst)} here is a consequence of {reference(burst.parent)}, no fault of its own."
    )


def _may_be_cut(burst: XidBurst) -> bool:
    """Return whether a line ends behind a code that a longer one could begin with."""
    event = burst.first
    bare = not event.message and event.pid is None and not burst.caused_by
    return bare and event.source == "kernel" and burst.code < 20


def _sentence(text: str) -> str:
    text = str(text).strip()
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _process(burst: XidBurst) -> str:
    names = ", ".join(burst.processes)
    pids = ", ".join(map(str, list(burst.pids)[:4]))
    if names and pids:
        return f" (process {names}, pid {pids})"
    return f" (process {names})" if names else f" (pid {pids})" if pids else ""


def _repeats(burst: XidBurst) -> str:
    times = burst.period.says(burst.count)
    times = f" {times}" if times else ""
    if burst.count < 2:
        return times
    return f" Printed {burst.count} times (lines {burst.first.line} to {burst.last.line}).{times}"


def _message(burst: XidBurst) -> str:
    return f' The line says: "{burst.first.message[:120]}".' if burst.first.message else ""
