"""Bad memory pages of a GPU: where one was found, and when there are too many."""

from __future__ import annotations

from typing import Any, Final

from engine.model import Finding, Severity
from engine.readers.amdgpu.device import Device
from engine.readers.amdgpu.finding import ras_finding

_BAD_ENDS: Final = ("bad_pages_limit", "bad_status")


def bad_pages_finding(device: Device) -> Finding | None:
    """Say that the driver's threshold of bad pages is near or reached."""
    end = device.any(_BAD_ENDS)
    near = device.seen.get("bad_pages_near")
    seen = end or near
    if seen is None:
        return None
    source = device.seen.get("bad_pages_limit") or near
    pages, limit = (source.value("pages"), source.value("limit")) if source else (None, None)
    data: dict[str, Any] = {}
    if pages and limit:
        data = {"bad_pages": int(pages), "threshold": int(limit)}
    figures = f" ({pages} pages, threshold {limit})" if pages and limit else ""
    if end is None:
        return ras_finding(
            device,
            "bad_pages",
            Severity.HIGH,
            f"{device.name[0].upper()}{device.name[1:]} has retired over 90 % of the memory pages "
            f"that the driver tolerates{figures}.",
            "Plan its replacement: once the threshold is reached the driver no longer starts it. "
            "See amd-smi bad-pages.",
            "row_remap_pending",
            seen.first,
            data,
        )
    return ras_finding(
        device,
        "bad_pages",
        Severity.CRITICAL,
        f"{device.name[0].upper()}{device.name[1:]} has reached its threshold of bad memory "
        f"pages{figures}: its memory is worn out, and the driver will not start it again.",
        "Drain it now and have it replaced (RMA), with the output of amd-smi bad-pages and the "
        "kernel log. Raising the threshold (amdgpu.bad_page_threshold) only hides it.",
        "row_remap_failure",
        seen.first,
        data,
    )


def bad_address_finding(device: Device) -> Finding:
    """Say where in memory an uncorrectable error was found."""
    seen = device.seen["bad_address"]
    return ras_finding(
        device,
        "bad_address",
        Severity.HIGH,
        f"{device.name[0].upper()}{device.name[1:]} found an uncorrectable error in its memory at "
        f"physical address {seen.value('address')}: the driver retires the page.",
        "Look at the lines around it and at amd-smi bad-pages; restart the work that used the page "
        "and reset the GPU at the next pause. If pages keep growing, have it replaced.",
        "ecc_uncorrectable",
        seen.first,
        {"addresses": seen.values.get("address", []), "count": seen.count},
    )
