"""Kernel log lines about a GPU: Xid in every printed form, and a GPU lost without one.

Forms: ``NVRM: Xid (PCI:0000:05:00): 79, …``, the oldest without ``PCI:``, with a MIG instance
(``GPU-I:05 GPU-CI:00``), with or without ``pid=`` and ``name=``, the kernel trace point without
``NVRM:``, any log prefix before it (`engine.readers.logline` unwraps records), and the Kubernetes
device plugin's ``Xid=69 on Device=GPU-…``. Source of the forms: NVIDIA open-gpu-kernel-modules
(kernel_rc.c, osinit.c) and NVIDIA/k8s-device-plugin (internal/rm/health.go).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from engine.readers.denied import denied
from engine.readers.stamp import Stamp

# A digit of another script is no part of a number.
_re = partial(re.compile, flags=re.ASCII)

_ADDRESS = r"[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2})?"
# SXid lines are told apart by the word boundary: "SXid (" has no boundary before "Xid".
_HEAD = _re(
    rf"\bXid \((?:PCI:)?(?P<pci>{_ADDRESS})(?:\.[0-7])?"
    r"(?: GPU-I:(?P<gi>\d{1,4}))?(?: GPU-CI:(?P<ci>\d{1,4}))?\): (?P<xid>\d{1,6})(?!\d)(?:, ?|$|\s)"
)
_PID = _re(r"pid=(?:'?<?(?P<pid>[A-Za-z0-9]+)>?'?)(?:, name=(?P<name>[^,]*))?(?:, |,?$)")
# The kernel's process numbers are below 2^22; the digits of other text have no end.
_NUMBER = _re(r"[0-9]{1,10}$")
_CAUSED = _re(r" caused by previous Xid (\d{1,6})$")
_NEXT_RECORD = _re(r"(?:\[ {0,12}\d{1,9}\.\d{1,9}\] {0,8})?(?:kernel: )?NVRM: *$")
_PLUGIN = _re(r"\bXid=(?P<xid>\d{1,6}) on Device=(?P<device>(?:GPU|MIG)-[0-9A-Za-z-]{4,60})")
# Event type 8 is an Xid; the plugin prints those that it takes for errors of the application.
_SKIPPED = _re(
    r"(?P<what>Skipping|Processing) event \{.{0,200}?\bEventType:8 EventData:(?P<xid>\d{1,6})\b"
)
_LOST = _re(
    rf"NVRM: GPU (?:at )?(?:PCI:)?(?P<pci>{_ADDRESS})(?:\.[0-7])?(?:: GPU)? has fallen off the bus"
)
_LOST_START = _re(rf"NVRM: The NVIDIA GPU (?P<pci>{_ADDRESS})(?:\.[0-7])?")
_LOST_END = "fallen off the bus"
_UUID = _re(
    rf"NVRM: GPU at (?:PCI:)?(?P<pci>{_ADDRESS})(?:\.[0-7])?: (?P<uuid>GPU-[0-9a-f-]{{36}})"
)
_SERIAL = _re(r"NVRM: GPU Board Serial Number: (?P<serial>\S{1,40})")
_PREFIX_UUID = _re(r"\bGPU-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")


@dataclass(slots=True)
class XidEvent:
    """One Xid as printed. ``detail`` holds what the message says beyond the code.

    Attributes:
        xid: the code; 79 for a GPU lost without a printed code (then ``source`` is ``lost``).
        source: ``kernel``, ``plugin`` (Kubernetes device plugin), ``lost``, or ``named`` (the
            code stands only in another event's "caused by previous Xid").
        pci: address as printed, domain:bus:device in lower case.
        stamp: when, where the log says it; ``boot`` counts the boots in the log from 0.
    """

    xid: int
    line: int
    source: str = "kernel"
    host: str | None = None
    pci: str | None = None
    uuid: str | None = None
    gpu_instance: int | None = None
    compute_instance: int | None = None
    pid: int | None = None
    process: str | None = None
    message: str = ""
    caused_by: int | None = None
    detail: dict[str, Any] = field(default_factory=dict)
    stamp: Stamp | None = None
    boot: int | None = None


def xid_events(text: str, line: int) -> Iterator[XidEvent]:
    """Yield every Xid that a line holds; several when a paste lost its line breaks."""
    heads = list(_HEAD.finditer(text))
    if not heads:
        yield from _plugin_events(text, line)
        return
    if denied(text, heads[0].start(), heads[0].end()):
        return
    marked = _PREFIX_UUID.search(text, 0, heads[0].start())
    for i, head in enumerate(heads):
        end = heads[i + 1].start() if i + 1 < len(heads) else len(text)
        rest = text[head.end() : end]
        if i + 1 < len(heads):
            rest = _NEXT_RECORD.sub("", rest)
        event = XidEvent(
            xid=int(head["xid"]),
            line=line,
            pci=head["pci"].lower(),
            uuid=marked[0] if marked else None,
            gpu_instance=int(head["gi"]) if head["gi"] else None,
            compute_instance=int(head["ci"]) if head["ci"] else None,
        )
        _read_rest(event, rest.strip())
        yield event


class LostGpu:
    """Finds the messages of a GPU lost without an Xid; one form is spread over three lines."""

    # The driver's three lines follow each other; others may come between in a busy log.
    REACH = 6

    def __init__(self) -> None:
        self._pci: str | None = None
        self._line = 0

    def feed(self, line: int, text: str) -> XidEvent | None:
        """Return an event when the words about the bus are complete."""
        match = _LOST.search(text)
        if match and not denied(text, *match.span()):
            self._pci = None
            return _lost(match["pci"], line)
        start = _LOST_START.search(text)
        if start:
            self._pci, self._line = start["pci"], line
        if self._pci and line - self._line > self.REACH:
            self._pci = None
        if self._pci and _LOST_END in text:
            event = _lost(self._pci, self._line)
            self._pci = None
            return event
        return None


def uuid_of(text: str) -> tuple[str, str] | None:
    """Return (PCI address, UUID) from the line that the driver prints before a first Xid."""
    match = _UUID.search(text)
    return (match["pci"].lower(), match["uuid"]) if match else None


def serial_of(text: str) -> str | None:
    """Return the board serial number that follows the UUID line."""
    match = _SERIAL.search(text)
    return match["serial"] if match else None


def short(pci: str) -> str:
    """Return a PCI address without function, and without its domain where that is 0000."""
    domain, _, rest = pci.partition(":")
    return rest if rest.count(":") == 1 and int(domain, 16) == 0 else pci


def _lost(pci: str, line: int) -> XidEvent:
    return XidEvent(79, line, "lost", pci=pci.lower(), message=_LOST_END)


def _read_rest(event: XidEvent, rest: str) -> None:
    match = _PID.match(rest)
    if match:
        rest = rest[match.end() :]
        event.pid = int(match["pid"]) if _NUMBER.match(match["pid"]) else None
        name = (match["name"] or "").strip()
        event.process = name if name and name != "<unknown>" else None
    caused = _CAUSED.search(rest)
    if caused:
        event.caused_by = int(caused[1])
        rest = rest[: caused.start()]
    event.message = rest.strip()


def _plugin_events(text: str, line: int) -> Iterator[XidEvent]:
    for match in _PLUGIN.finditer(text):
        unhealthy = "unhealthy" in text
        yield XidEvent(
            xid=int(match["xid"]),
            line=line,
            source="plugin",
            uuid=match["device"],
            detail={"device_unhealthy": True} if unhealthy else {},
        )
    skipped = _SKIPPED.search(text)
    if skipped:
        yield XidEvent(xid=int(skipped["xid"]), line=line, source="plugin")
