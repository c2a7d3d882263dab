"""Memory and links of an AMD GPU: ECC counts, bad pages, PCIe, XGMI.

Counts are totals since the driver was loaded; AMD publishes no limit for corrected ones. Bad pages:
the driver gives a board up at its threshold (Linux drivers/gpu/drm/amd/amdgpu/amdgpu_ras_eeprom.c).
Replays and NAKs: over 100 is where ROCm/cvs cvs/monitors/cluster-mon alerts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from engine.model import Finding, Severity
from engine.readers.amd_smi.limits import IDLE, KIND
from engine.readers.amd_smi.state import AmdGpu
from engine.readers.listing import finding
from engine.readers.quantities import listed, plural
from engine.units import number

_RAS: Final = "Linux drivers/gpu/drm/amd/amdgpu/amdgpu_ras.c, amdgpu_ras_eeprom.c"
_CVS: Final = "ROCm/cvs cvs/monitors/cluster-mon"
# Counter garbage of a card that was asleep when it was read: multiples of this (public reports).
_GARBAGE: Final = 1_048_560
_MANY_CORRECTED: Final = 1_000
_MANY_REPLAYS: Final = 100
_MEMORY: Final = "umc"
_LINKS: Final = frozenset({"xgmi_wafl", "xgmi", "wafl"})


def integrity_findings(gpu: AmdGpu) -> Iterator[Finding]:
    """Yield what is wrong with memory and links of one GPU."""
    yield from _pages(gpu)
    yield from _ecc(gpu)
    yield from _xgmi(gpu)
    yield from _pcie(gpu)


def _ecc(gpu: AmdGpu) -> Iterator[Finding]:
    for place, kind in ((1, "uncorrectable"), (2, "deferred"), (0, "correctable")):
        blocks = {name: counts[place] for name, counts in gpu.ecc.items() if counts[place] > 0}
        total = gpu.get(f"{kind}_count") or float(sum(blocks.values()))
        if total <= 0:
            continue
        if total % _GARBAGE == 0:
            yield _garbage(gpu, kind, total)
            continue
        yield _counted(gpu, kind, int(total), blocks)


def _counted(gpu: AmdGpu, kind: str, total: int, blocks: dict[str, int]) -> Finding:
    links = bool(blocks) and set(blocks) <= _LINKS
    where = f" in {listed(f'{name} ({count})' for name, count in blocks.items())}" if blocks else ""
    data = {f"{kind}_count": total, "blocks": list(blocks)[:32] or None}
    if kind == "correctable":
        many = total >= _MANY_CORRECTED
        return finding(
            KIND,
            "ecc_correctable",
            Severity.MEDIUM if many else Severity.INFO,
            f"{gpu.label} has {total} corrected error(s){where}: no data is wrong"
            + (", but there are many of them." if many else "."),
            "Compare with the node's other GPUs over time: amd-smi metric --ecc --ecc-blocks.",
            line=gpu.line,
            cause=("xgmi_errors" if links else "ecc_correctable_storm") if many else None,
            data=data,
            entity=gpu.entity,
            sources=(_RAS,),
        )
    deferred = kind == "deferred"
    memory = _MEMORY in blocks or not blocks
    return finding(
        KIND,
        f"ecc_{kind}",
        Severity.HIGH if deferred else Severity.CRITICAL,
        f"{gpu.label} has {plural(total, f'{kind} ECC error')}{where} since its driver was loaded"
        + (
            ": uncorrectable, but not used yet; whatever reads that data will be stopped."
            if deferred
            else "."
        ),
        "Take the GPU out of service; dmesg | grep -i amdgpu tells when and where. "
        + ("amd-smi bad-pages shows retired pages. " if memory else "")
        + "Reset it with jobs stopped (amd-smi reset --gpureset --gpu N): errors that come back "
        "mean a replacement.",
        line=gpu.line,
        cause="xgmi_errors" if links else "ecc_uncorrectable",
        data=data,
        entity=gpu.entity,
        sources=(_RAS,),
    )


def _garbage(gpu: AmdGpu, kind: str, total: float) -> Finding:
    return finding(
        KIND,
        "ecc_garbage",
        Severity.INFO,
        f"{gpu.label}: {number(total)} {kind} errors is not a real count: multiples of {_GARBAGE} "
        "are read from a card that is asleep (runtime suspend).",
        "Wake the GPU (rocminfo) and read again. Do not replace it for this count.",
        line=gpu.line,
        data={"count": int(total)},
        entity=gpu.entity,
    )


def _pages(gpu: AmdGpu) -> Iterator[Finding]:
    threshold = gpu.get("bad_page_threshold_count")
    over = gpu.words.get("bad_page_threshold_exceeded", "").upper() in ("TRUE", "YES", "1")
    pages = gpu.pages
    retired, pending, failed = (pages.get(k, 0) for k in ("retired", "pending", "un_res"))
    if not over and not retired and not pending and not failed:
        return
    over = over or bool(threshold and retired >= threshold)
    counts = listed(
        f"{count} {words}"
        for count, words in (
            (retired, "retired"),
            (pending, "waiting to be retired"),
            (failed, "that could not be retired"),
        )
        if count
    )
    limit = f" The board's threshold is {number(threshold)}." if threshold else ""
    worn = over or failed > 0
    yield finding(
        KIND,
        "bad_pages",
        Severity.CRITICAL if over else Severity.HIGH if failed or pending else Severity.LOW,
        f"{gpu.label}: bad memory pages: {counts or 'over the threshold'}.{limit}"
        + (
            " Its memory is worn out: the driver will not start it again."
            if over
            else " A page that cannot be retired stays in use."
            if failed
            else ""
        ),
        "Drain it and have it replaced, with the output of amd-smi bad-pages."
        if worn
        else "Reset the GPU or reload the driver at the next pause, so that they are retired."
        if pending
        else "Watch whether the number grows; a few retired pages are no reason to act.",
        line=gpu.line,
        cause="row_remap_failure" if worn else "row_remap_pending" if pending else None,
        data={
            "retired_pages": retired,
            "pending_pages": pending,
            "unreservable_pages": failed,
            "threshold": None if threshold is None else int(threshold),
        },
        entity=gpu.entity,
        sources=(_RAS,),
    )


def _xgmi(gpu: AmdGpu) -> Iterator[Finding]:
    words = gpu.words.get("xgmi_error", "").upper()
    errors = "ERROR" in words and "NO_ERROR" not in words
    if not gpu.links_down and not errors:
        return
    up = gpu.get("xgmi_links_up")
    says = (
        f"{gpu.label}: XGMI link {listed(gpu.links_down)} is down"
        + (f", {number(up)} are up." if up is not None else ".")
        if gpu.links_down
        else f"{gpu.label}: its XGMI links report errors since they were last read."
    )
    yield finding(
        KIND,
        "xgmi",
        Severity.HIGH,
        says + " Traffic between GPUs is slower, or fails.",
        "Look for XGMI and RAS lines in dmesg and compare all GPUs: amd-smi xgmi -l. Power-cycle "
        "the node with jobs drained; if the same link stays down, have both ends and the board "
        "checked.",
        line=gpu.line,
        cause="xgmi_errors",
        data={
            "links_down": gpu.links_down or None,
            "links_up": up,
            "xgmi_error": words or None,
        },
        entity=gpu.entity,
        sources=("ROCm/amdsmi CHANGELOG.md, amd-smi xgmi --link-status",),
    )


def _pcie(gpu: AmdGpu) -> Iterator[Finding]:
    busy = (gpu.get("gfx_activity_percent") or 0.0) > IDLE
    for now_name, most_name, unit in (
        ("pcie_width_lanes", "pcie_max_width_lanes", "lanes"),
        ("pcie_speed_gts", "pcie_max_speed_gts", "GT/s"),
    ):
        now, most = gpu.get(now_name), gpu.get(most_name)
        if not now or not most or now >= most or not busy:
            continue
        yield finding(
            KIND,
            "pcie_link",
            Severity.HIGH,
            f"{gpu.label}: its PCIe link runs at {number(now)} of {number(most)} {unit} under "
            "load.",
            "lspci -vv -s BDF shows LnkSta beside LnkCap, also of the port above; reseat board or "
            "riser, look for AER errors in dmesg.",
            line=gpu.line,
            cause="pcie_degraded",
            data={now_name: now, most_name: most},
            entity=gpu.entity,
        )
    counts = {
        words: value
        for name, words in (
            ("pcie_replay_count", "replays"),
            ("pcie_nak_sent_count", "NAKs sent"),
            ("pcie_nak_received_count", "NAKs received"),
        )
        if (value := gpu.get(name)) is not None and value > _MANY_REPLAYS
    }
    if counts:
        said = listed(f"{number(value)} {words}" for words, value in counts.items())
        yield finding(
            KIND,
            "pcie_errors",
            Severity.MEDIUM,
            f"{gpu.label}: {said} on its PCIe link since the driver was loaded: packets were "
            f"damaged and sent again. Over {_MANY_REPLAYS} AMD's cluster monitor alerts.",
            "Read twice, some minutes apart: amd-smi metric --pcie. If the count grows, reseat "
            "board or riser and look for AER lines: dmesg | grep -i aer.",
            line=gpu.line,
            cause="pcie_errors",
            data={"counts": {words: int(value) for words, value in counts.items()}},
            entity=gpu.entity,
            sources=(_CVS,),
        )
