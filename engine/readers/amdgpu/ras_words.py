"""What RAS counts, poison and bad pages of a GPU show, in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from engine.model import Finding, Severity
from engine.readers.amdgpu.bad_pages import bad_address_finding, bad_pages_finding
from engine.readers.amdgpu.device import Device
from engine.readers.amdgpu.finding import ras_finding
from engine.readers.amdgpu.ras import BLOCKS, GARBAGE, RasCount

# Interrupt clients that consume poison (Linux soc15_ih_clientid.h).
_CLIENTS = {
    8: "copy engine SDMA0",
    9: "copy engine SDMA1",
    10: "shader engine 0",
    11: "shader engine 1",
    12: "shader engine 2",
    13: "shader engine 3",
    18: "memory hub",
    20: "command processor",
    27: "address translation of the compute engine",
}
# Correctable errors are harmless one by one: from here on the board deserves a look. A site
# default: AMD publishes no limit.
_MANY_CORRECTABLE = 1_000


def ras_findings(device: Device) -> Iterator[Finding]:
    """Yield what RAS shows, the worst first."""
    pages = bad_pages_finding(device)
    if pages is not None:
        yield pages
    uncorrectable = _uncorrectable(device)
    if uncorrectable is not None:
        yield uncorrectable
    for kind in ("deferred", "correctable"):
        counts = _blocks(device, kind)
        if counts:
            yield from _counted(device, kind, counts)
        elif kind == "deferred" and "poison_created" in device.seen and uncorrectable is None:
            yield _created(device)
    if "bad_address" in device.seen and uncorrectable is None and pages is None:
        yield bad_address_finding(device)
    if not _counts_anything(device) and device.ras:
        yield _clear(device)


def serious_ras(device: Device) -> str | None:
    """Return words for a RAS fault that explains a reset; None if there is none."""
    if "poison_consumed" in device.seen:
        return "the consumed poison (uncorrectable memory error)"
    if _blocks(device, "uncorrectable") or "fatal_event" in device.seen:
        return "the uncorrectable error"
    if device.aca and any(r.kind == "uncorrectable" for r in device.aca.records()):
        return "the uncorrectable error"
    if _blocks(device, "poison"):
        return "the consumed poison (uncorrectable memory error)"
    return None


def _blocks(device: Device, kind: str) -> dict[str, RasCount]:
    return {
        block: counts
        for (k, block), counts in device.ras.items()
        if k == kind and counts.count and not counts.garbage
    }


def _counts_anything(device: Device) -> bool:
    return any(counts.count for counts in device.ras.values())


def _named(counts: dict[str, RasCount]) -> str:
    return ", ".join(
        f"{c.count} in {block}"
        + (f" ({BLOCKS[block]})" if block in BLOCKS else "")
        + (f" at {', '.join(c.dies)}" if c.dies else "")
        for block, c in counts.items()
    )


def _uncorrectable(device: Device) -> Finding | None:
    counts = _blocks(device, "uncorrectable")
    consumed = device.seen.get("poison_consumed")
    poisoned = _blocks(device, "poison")
    fatal = device.seen.get("fatal_event")
    place = device.seen.get("umc_address")
    if not counts and consumed is None and not poisoned and fatal is None and place is None:
        return None
    parts: list[str] = []
    data: dict[str, Any] = {}
    lines = [c.line for c in (*counts.values(), *poisoned.values())]
    lines += [s.first for s in (consumed, fatal, place) if s is not None]
    if counts:
        parts.append(f"{device.name} has uncorrectable hardware errors: {_named(counts)}")
        data |= {
            "uncorrectable": sum(c.count for c in counts.values()),
            "blocks": list(counts),
        }
    if consumed is not None or poisoned:
        by = ""
        client = consumed.value("client") if consumed else None
        if client and client.isdecimal():
            known = _CLIENTS.get(int(client))
            by = f" by client {int(client)}" + (f" ({known})" if known else "")
            data["client"] = int(client)
        elif poisoned:
            by = f" in {', '.join(poisoned)}"
            data["blocks"] = [*data.get("blocks", []), *poisoned]
        parts.append(
            f"poison (data already marked as uncorrectable) was consumed{by} on {device.name}: the "
            "process that used it is lost, and the driver resets the GPU or kills its queues"
        )
    if fatal is not None:
        parts.append(f"{device.name} raised the fatal error event {fatal.value('name')}")
    if place is not None and not counts:
        parts.append(
            f"an uncorrectable memory error was found on {device.name} in memory controller "
            f"{place.value('inst')}, channel {place.value('chan')}"
        )
    says = "; ".join(parts)
    links = set(counts) == {"xgmi_wafl"} and consumed is None
    memory = "umc" in counts or consumed is not None
    return ras_finding(
        device,
        "uncorrectable",
        Severity.CRITICAL,
        f"{says[0].upper()}{says[1:]}.",
        "Take the GPU out of service, restart the jobs that ran on it, and let the driver reset it "
        "(amd-smi reset --gpureset --gpu N, or reboot). Then look at amd-smi bad-pages and amd-smi "
        "metric --ecc-blocks: "
        + (
            "a page was retired; if errors return or pages keep growing, have the GPU replaced."
            if memory
            else "if errors return, have the GPU (and for links its neighbours) replaced."
        ),
        "xgmi_errors" if links else "ecc_uncorrectable",
        min(lines),
        data,
    )


def _counted(device: Device, kind: str, counts: dict[str, RasCount]) -> Iterator[Finding]:
    total = sum(c.count for c in counts.values())
    line = min(c.line for c in counts.values())
    data = {kind: total, "blocks": list(counts)}
    if kind == "deferred":
        yield ras_finding(
            device,
            "deferred",
            Severity.HIGH,
            f"{device.name[0].upper()}{device.name[1:]} has {total} deferred error(s): "
            f"{_named(counts)}. Deferred means uncorrectable but not used yet: the data is marked "
            "as poison, and whatever reads it will be killed.",
            "Watch for 'poison is consumed'. At the next pause take the GPU out of service and "
            "reset it, so that the page is retired (amd-smi bad-pages); if it repeats, have the "
            "GPU replaced.",
            "ecc_uncorrectable",
            line,
            data,
        )
        return
    links = set(counts) == {"xgmi_wafl"}
    many = total >= _MANY_CORRECTABLE
    cause = ("xgmi_errors" if links else "ecc_correctable_storm") if many else None
    yield ras_finding(
        device,
        "correctable",
        Severity.MEDIUM if many else Severity.INFO,
        f"{device.name[0].upper()}{device.name[1:]} corrected {total} hardware error(s): "
        f"{_named(counts)}. They were corrected: no data is wrong and no user action is needed"
        + (", but there are many of them." if many else "."),
        "Compare the count with the node's other GPUs over time (amd-smi metric --ecc)."
        + (" Plan a replacement if it keeps growing far faster than theirs." if many else ""),
        cause,
        line,
        data,
    )


def _created(device: Device) -> Finding:
    return ras_finding(
        device,
        "deferred",
        Severity.HIGH,
        f"Poison was created on {device.name}: an uncorrectable memory error, deferred. The data "
        "is marked, not used yet; whatever reads it will be killed.",
        "Watch for 'poison is consumed'. At the next pause take the GPU out of service and reset "
        "it, so that the page is retired (amd-smi bad-pages); if it repeats, have the GPU "
        "replaced.",
        "ecc_uncorrectable",
        device.seen["poison_created"].first,
        {"count": device.seen["poison_created"].count},
    )


def _clear(device: Device) -> Finding:
    line = min(c.line for c in device.ras.values())
    blocks = list(dict.fromkeys(block for _, block in device.ras))
    return ras_finding(
        device,
        "clear",
        Severity.INFO,
        f"All clear: the driver counted the hardware errors of {device.name} and found none "
        f"({', '.join(blocks)}). The line looks like a fault but says that there is none.",
        "Nothing. It is printed when RAS counters are read, for instance after a reset.",
        None,
        line,
        {"uncorrectable": 0}
        if any(kind == "uncorrectable" for kind, _ in device.ras)
        else {"correctable": 0},
    )


def garbage_findings(device: Device) -> Iterator[Finding]:
    """Yield counts that are no counts: multiples of 1,048,560 come from a card that was asleep."""
    for (kind, block), counts in device.ras.items():
        if counts.garbage:
            yield ras_finding(
                device,
                "garbage",
                Severity.INFO,
                f"{counts.count} {kind} errors in {block} of {device.name} is not a real count: "
                f"multiples of {GARBAGE} are read from a card that is asleep (runtime suspend).",
                "Wake the GPU (run rocminfo) and read again: amd-smi metric --ecc. Do not replace "
                "it for this line.",
                None,
                counts.line,
                {"count": counts.count, "block": block},
            )
