"""How events and devices are called in sentences."""

from __future__ import annotations

from engine.readers.bursts import Burst, SxidBurst

# Memory errors say more about the error before them: who was hit, whether the repair worked.
SAME_ERROR = frozenset({48, 63, 64, 94, 95, 140, 171, 172})


def where(burst: Burst) -> str:
    """Name the device of an event."""
    if isinstance(burst, SxidBurst):
        return _switch(burst)
    event = burst.first
    text = f"GPU {event.pci or event.uuid}" if event.pci or event.uuid else "a GPU"
    if event.pci and event.uuid:
        text += f" ({event.uuid})"
    if event.gpu_instance is not None:
        text += f", MIG instance {event.gpu_instance}"
        if event.compute_instance is not None:
            text += f"/{event.compute_instance}"
    if event.host:
        text += f" of {event.host}"
    return text


def label(burst: Burst) -> str:
    """Return ``Xid 79`` or ``SXid 12028``."""
    return f"{'SXid' if isinstance(burst, SxidBurst) else 'Xid'} {burst.code}"


def reference(burst: Burst) -> str:
    """Name an event from another finding: code, device and line."""
    if isinstance(burst, SxidBurst):
        return f"{label(burst)} (line {burst.line})"
    event = burst.first
    gpu = f" on GPU {event.pci or event.uuid}" if event.pci or event.uuid else ""
    at = "not printed itself" if event.source == "named" else f"line {burst.line}"
    return f"{label(burst)}{gpu} ({at})"


def _switch(burst: SxidBurst) -> str:
    pci = f" ({burst.first.pci})" if burst.first.pci else ""
    if len(burst.switches) > 1:
        text = f"{len(burst.switches)} NVSwitches ({', '.join(map(str, burst.switches))})"
    elif burst.switches:
        text = f"NVSwitch {next(iter(burst.switches))}{pci}"
    elif burst.physical_ids:
        text = f"NVSwitch physical id {', '.join(map(str, burst.physical_ids))}{pci}"
    else:
        text = f"an NVSwitch{pci}"
    if burst.ports:
        text += f", port {', '.join(map(str, burst.ports))}"
    if burst.first.host:
        text += f", of {burst.first.host}"
    return text
