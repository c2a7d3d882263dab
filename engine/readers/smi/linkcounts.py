"""What error counters, capabilities and the mere list of GPUs and their links show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from engine.model import Entity, Finding, Kind, Severity
from engine.readers.listing import finding, node
from engine.readers.readings import Readings
from engine.readers.smi.links import LinkGpu
from engine.readers.smi.state import listed, ranges

_SOURCE: Final = "nvidia-smi nvlink manual page"
_COUNTS: Final = "NVIDIA/DCGM modules/health/DcgmHealthWatch.cpp 4.6.0 (warns from about 100 CRC/s)"
# Counters that stand for lost or repeated traffic; the rest is corrected in passing (FEC, raw).
_SERIOUS: Final = (
    "recovery",
    "link recovery failed events",
    "malformed packet",
    "buffer overrun",
    "local link integrity",
    "effective errors",
    "symbol errors",
    "rx errors",
    "rx general",
    "tx discards",
    "ecc",
)
_MILD: Final = ("replay", "crc", "link recovery successful", "link recovery total", "rx remote")
_SATURATED: Final = 65_535
# Replays or CRC errors of one link since the driver was loaded that are no longer noise.
_MANY: Final = 1_000
_SIGNALS: Final = (
    ("replay", "nvlink_replay_errors"),
    ("recovery errors", "nvlink_recovery_errors"),
    ("crc data", "nvlink_crc_data_errors"),
    ("crc", "nvlink_crc_flit_errors"),
)


def counted_errors(gpus: Sequence[LinkGpu]) -> Iterator[Finding]:
    """Say which links count errors, and which GPUs count none."""
    counted = [g for g in gpus if g.errors]
    if not counted:
        return
    clean = 0
    for gpu in counted:
        bad = {key: n for key, n in sorted(gpu.errors.items()) if n and _is(key[1], _SERIOUS)}
        mild = {key: n for key, n in sorted(gpu.errors.items()) if n and _is(key[1], _MILD)}
        many = {k: n for k, n in mild.items() if n >= _MANY}
        if not bad and not mild:
            clean += 1
            continue
        shown_ = bad | many or mild
        text = listed([f"link {link} {name}: {n}" for (link, name), n in shown_.items()], 8)
        serious = bool(bad or many)
        full = " A counter at 65535 is full: it counts no further." * (
            _SATURATED in shown_.values()
        )
        yield finding(
            "nvlink",
            "errors",
            Severity.MEDIUM if serious else Severity.LOW,
            f"{gpu.label}: {text}, since the driver was loaded.{full} "
            + (
                "Errors of this kind or number mean a link that repeats or loses traffic."
                if serious
                else "Few replays and CRC errors are repeated by the link without loss and are no "
                "fault; a rising count is."
            ),
            "Read nvidia-smi nvlink -e twice under load, a minute apart: a count that grows names "
            "the bad link; DCGM warns from about 100 CRC errors per second. Then dmesg -T (Xid 74, "
            "144 to 150), seating or cable.",
            line=gpu.line,
            cause="nvlink_errors" if serious else None,
            data={
                "gpu": gpu.index if gpu.index >= 0 else None,
                "error_links": sorted({link for link, _ in shown_}),
                "errors": {
                    f"link {link} {name}": n for (link, name), n in list(shown_.items())[:32]
                },
            },
            entity=gpu.entity,
            sources=(_SOURCE, _COUNTS),
        )
    if clean:
        who = counted[0].label if len(counted) == 1 else f"{clean} of {len(counted)} GPUs"
        yield finding(
            "nvlink",
            "no_errors",
            Severity.INFO,
            f"{who}: no NVLink errors counted since the driver was loaded.",
            "Nothing to do.",
            line=counted[0].line,
            data={"gpu_count": clean},
            entity=_one(counted),
            sources=(_SOURCE,),
        )


def _is(name: str, words: Sequence[str]) -> bool:
    low = name.lower()
    if low.startswith(("fec", "raw", "link recovery successful")) and words is _SERIOUS:
        return False
    return any(word in low for word in words)


def capabilities(gpus: Sequence[LinkGpu]) -> Iterator[Finding]:
    """Say whether the links of all GPUs can be used for peer access (``nvlink -c``)."""
    able = [g for g in gpus if g.able]
    if not able:
        return
    closed = [g for g in able if any("P2P" in what for lack in g.unable.values() for what in lack)]
    if not closed:
        yield finding(
            "nvlink",
            "capabilities",
            Severity.INFO,
            f"NVLink capabilities of {len(able)} GPU(s): peer access is supported on all links "
            "listed. Capabilities say what the links can do, not that they are up (nvlink -s).",
            "Nothing to do.",
            line=able[0].line,
            data={"gpu_count": len(able)},
            entity=_one(able),
            sources=(_SOURCE,),
        )
        return
    yield finding(
        "nvlink",
        "no_p2p",
        Severity.MEDIUM,
        f"Peer access over NVLink is not supported on links of "
        f"{listed([g.label for g in closed], 8)}: copies between the GPUs go through the host.",
        "Check virtualisation (vGPU, MIG, a partition with one GPU) and the driver's settings.",
        line=closed[0].line,
        cause="p2p_disabled",
        data={"gpus": [g.index for g in closed if g.index >= 0]},
        entity=_one(closed),
        sources=(_SOURCE,),
    )


def without_links(gpus: Sequence[LinkGpu]) -> Iterator[Finding]:
    """Name the boards that have no NVLink."""
    none = [g for g in gpus if g.without]
    if none:
        yield finding(
            "nvlink",
            "none",
            Severity.INFO,
            f"{listed([g.label for g in none], 8)}: no NVLink on this board, so GPUs talk over "
            "PCIe. That is the product, not a fault.",
            "Nothing to do.",
            line=none[0].line,
            entity=_one(none),
            sources=(_SOURCE,),
        )


def _one(gpus: Sequence[LinkGpu]) -> Entity | None:
    return gpus[0].entity if len(gpus) == 1 else node(gpus[0].host)


def inventory(gpus: Sequence[LinkGpu]) -> Finding:
    """Say what the mere list of GPUs shows (``nvidia-smi -L``)."""
    models = list(dict.fromkeys(g.name for g in gpus if g.name))
    indices = sorted(g.index for g in gpus if g.index >= 0)
    holes = sorted(set(range(max(indices, default=-1) + 1)) - set(indices))
    says = f"{len(gpus)} GPU(s) listed (indices {ranges(indices)}): {listed(models, 4)}."
    if len(models) > 1:
        says += " The models differ."
    if holes:
        says += f" Index {ranges(holes)} is missing from the list."
    migs = [f"{g.label}: {listed(g.migs, 8)}" for g in gpus if g.migs]
    if migs:
        says += f" MIG devices: {'; '.join(migs[:16])}."
    says += " A list shows that the driver can name the GPUs, not that they are healthy."
    data: dict[str, Any] = {"gpu_count": len(gpus), "missing_indices": holes or None}
    return finding(
        "nvidia_smi_l",
        "gpus",
        Severity.INFO,
        says,
        "Compare the number with what the node should have; lspci | grep -i nvidia shows GPUs that "
        "the driver lost.",
        line=gpus[0].line,
        data=data,
        entity=node(gpus[0].host),
    )


def feed(readings: Readings, gpu: LinkGpu) -> None:
    """Counters are summed over the links, as the exporter's totals are."""
    entity = gpu.entity or Entity(Kind.GPU, "GPU")
    sums: dict[str, int] = {}
    for (_link, name), count in gpu.errors.items():
        low = name.lower()
        signal = next((s for word, s in _SIGNALS if word in low and "link" not in low), None)
        if signal is not None:
            sums[signal] = sums.get(signal, 0) + count
    for signal, total in sums.items():
        readings.add(signal, float(total), entity=entity, line=gpu.line)
