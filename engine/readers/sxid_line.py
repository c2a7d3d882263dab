"""NVSwitch errors (SXid) as the kernel and as Fabric Manager print them.

Kernel: ``nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 12028, Non-fatal, Link 32 …``; lines with the
same number that start ``Severity`` or ``Data {`` are detail of that event. Fabric Manager:
``detected NVSwitch non-fatal error 12028 on fid 0 on NVSwitch pci bus id … physical id 3 port 61``.
Source: NVIDIA open-gpu-kernel-modules (common_nvswitch.h), Fabric Manager user guide.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial

from engine.readers.denied import denied
from engine.readers.stamp import Stamp

# A digit of another script is no part of a number.
_re = partial(re.compile, flags=re.ASCII)

_ADDRESS = r"[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]"
_KERNEL = _re(
    rf"\bnvidia-nvswitch(?P<switch>\d{{1,4}}): SXid \(PCI:(?P<pci>{_ADDRESS})\): "
    r"(?P<sxid>\d{5})(?!\d),? ?(?P<rest>.*)"
)
_REST = _re(r"(?:(?P<severity>Fatal|Non-fatal|Correctable), )?(?:Link (?P<port>\d{1,4}) )?")
_DETAIL = ("Severity ", "Data {")
_FABRIC_MANAGER = _re(
    r"detected NVSwitch (?P<severity>fatal|non-fatal) error (?P<sxid>\d{5})(?!\d)"
    rf"(?: on fid \d{{1,6}})?(?: on NVSwitch pci bus id (?P<pci>{_ADDRESS}))?"
    r"(?: physical id (?P<physical>\d{1,4}))?(?: port (?P<port>\d{1,4}))?"
)


@dataclass(slots=True)
class SxidEvent:
    """One SXid as printed. ``is_detail``: the line only adds words to an event before it."""

    sxid: int
    line: int
    source: str = "kernel"
    host: str | None = None
    pci: str | None = None
    switch: int | None = None
    physical_id: int | None = None
    port: int | None = None
    severity: str | None = None
    message: str = ""
    is_detail: bool = False
    stamp: Stamp | None = None
    boot: int | None = None


def sxid_event(text: str, line: int) -> SxidEvent | None:
    """Return the switch error that a line holds, if any."""
    match = _KERNEL.search(text)
    if match and denied(text, match.start(), match.start("rest")):
        return None
    if match:
        rest = match["rest"]
        parts = _REST.match(rest)
        assert parts is not None  # every part of the pattern is optional
        return SxidEvent(
            sxid=int(match["sxid"]),
            line=line,
            pci=match["pci"].lower(),
            switch=int(match["switch"]),
            port=int(parts["port"]) if parts["port"] else None,
            severity=parts["severity"],
            message=rest[parts.end() :].strip(),
            is_detail=rest.startswith(_DETAIL),
        )
    match = _FABRIC_MANAGER.search(text)
    if match is None:
        return None
    return SxidEvent(
        sxid=int(match["sxid"]),
        line=line,
        source="fabric_manager",
        pci=match["pci"].lower() if match["pci"] else None,
        physical_id=int(match["physical"]) if match["physical"] else None,
        port=int(match["port"]) if match["port"] else None,
        severity=match["severity"],
    )
