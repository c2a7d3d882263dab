"""What copy tests show: a GPU with a slow host link, a slow pair, peer access that is off."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from engine.model import Entity, Finding, Kind, Severity
from engine.readers.listing import finding
from engine.readers.network.matrix import LOW, NVLINK_GBS, Matrix, low_pairs, shared_by
from engine.readers.quantities import listed, median
from engine.units import number

SOURCES: Final = (
    "NVIDIA/nvbandwidth README",
    "NVIDIA/cuda-samples p2pBandwidthLatencyTest",
)
# Latency of a peer write in µs far beyond any path: the copy does not arrive by itself, as with
# ACS or an IOMMU in the way (NVIDIA/nccl docs, troubleshooting, GPU direct).
_STUCK_US: Final = 1_000.0


@dataclass(slots=True)
class Copy:
    """One matrix, or (``sample``) one table of bandwidthTest with its largest row in GB/s."""

    line: int
    host: str | None
    matrix: Matrix
    test: str = ""
    sample: bool = False
    models: dict[int, str] = field(default_factory=dict)
    largest: tuple[int, float] = (0, 0.0)
    pinned: bool = True

    @property
    def title(self) -> str:
        """Test name, or the table's heading."""
        return self.test or self.matrix.title


def judge_copies(copies: Sequence[Copy]) -> list[Finding]:
    """Say what each matrix shows, and what those with and without peer access say together."""
    found: list[Finding] = []
    for copy in copies:
        title = copy.matrix.title
        if copy.sample:
            found += _table(copy)
        elif not copy.matrix.cells:
            continue
        elif title == "P2P Connectivity Matrix":
            found += _connectivity(copy)
        elif "Latency" in title:
            found += _latency(copy)
        elif "CPU" in title or "host" in copy.test:
            found += _host(copy)
        elif "Disabled" not in title:
            found += _peers(copy)
    return [*found, *_no_gain(copies, found)]


def _gpu(index: int, host: str | None) -> Entity:
    name = f"{host}:{index}" if host else f"GPU {index}"
    return Entity(Kind.GPU, name, host=host, gpu=index)


def _connectivity(copy: Copy) -> Iterable[Finding]:
    pairs = copy.matrix.pairs
    off = sorted(pair for pair, value in pairs.items() if value == 0)
    if not pairs:
        return
    if not off:
        yield finding(
            "copy_bandwidth",
            "p2p_connected",
            Severity.INFO,
            f"All {len(pairs)} ordered pairs of GPUs can access each other's memory.",
            "Nothing to do.",
            line=copy.line,
            data={"pairs": len(pairs), "pairs_without_access": 0},
            sources=SOURCES,
        )
        return
    every = len(off) == len(pairs)
    yield finding(
        "copy_bandwidth",
        "p2p_off",
        Severity.HIGH,
        (
            "No pair of GPUs"
            if every
            else f"{len(off)} of {len(pairs)} ordered pairs of GPUs "
            f"({listed(f'{a} to {b}' for a, b in off)}) do not"
        )
        + (" can access" if every else " access")
        + " the other's memory directly: copies go through the host.",
        "nvidia-smi topo -p2p n (and r, w) shows why: chipset, GPU, topology or a registry key. "
        "Check IOMMU, ACS, a virtual machine, CUDA_VISIBLE_DEVICES of containers. GPUs on "
        "different sockets without NVLink may be refused by design.",
        line=copy.line,
        cause="p2p_disabled" if every else "topology_limit",
        data={
            "pairs": len(pairs),
            "pairs_without_access": len(off),
            "without_access": [list(pair) for pair in off[:64]],
        },
        sources=SOURCES,
    )


def _latency(copy: Copy) -> Iterable[Finding]:
    if "Enabled" not in copy.matrix.title:
        return
    stuck = {p: v for p, v in copy.matrix.pairs.items() if v >= _STUCK_US}
    if not stuck:
        return
    worst = max(stuck, key=lambda p: stuck[p])
    yield finding(
        "copy_bandwidth",
        "p2p_stuck",
        Severity.HIGH,
        f"With peer access on, a write takes up to {number(stuck[worst])} µs (GPU {worst[0]} to "
        f"{worst[1]}, {len(stuck)} pairs over {number(_STUCK_US)} µs): peer writes do not get "
        "through, as with ACS or an IOMMU between the GPUs. NCCL hangs or gives wrong data then.",
        "Switch ACS off on the PCIe bridges (bare metal) and the IOMMU off or to pass-through; "
        "until then NCCL_P2P_DISABLE=1 avoids the path.",
        line=copy.line,
        cause="p2p_disabled",
        data={"worst_us": stuck[worst], "pairs_stuck": [list(p) for p in sorted(stuck)[:64]]},
        sources=("NVIDIA/nccl docs/userguide/source/troubleshooting",),
    )


def _host(copy: Copy) -> Iterable[Finding]:
    """Judge copies between host and GPUs: one row, a column a GPU."""
    rows = {c: v for (_, c), v in sorted(copy.matrix.cells.items())}
    if not rows:
        return
    middle = median(list(rows.values()))
    slow = {gpu: v for gpu, v in rows.items() if v < LOW * middle}
    figures = {str(gpu): value for gpu, value in rows.items()}
    if slow and len(slow) < len(rows) / 2:
        worst = min(slow, key=lambda g: slow[g])
        yield finding(
            "copy_bandwidth",
            "host_link_slow",
            Severity.HIGH,
            f"{copy.title}: GPU {listed(f'{g} ({number(v)} GB/s)' for g, v in slow.items())} "
            f"against {number(middle)} GB/s of the others: its PCIe link is narrower or slower, or "
            "busy.",
            f"nvidia-smi -q -i {worst} -d PCIE (or lspci -vv, LnkSta) under load: width and "
            "generation against the maximum; reseat the GPU or riser.",
            line=copy.line,
            cause="pcie_degraded",
            data={
                "gpu": worst,
                "bandwidth_gbs": slow[worst],
                "median_gbs": middle,
                "by_gpu_gbs": figures,
            },
            entity=_gpu(worst, copy.host),
            sources=SOURCES,
        )
        return
    lowest, highest = min(rows.values()), max(rows.values())
    yield finding(
        "copy_bandwidth",
        "host_bandwidth",
        Severity.INFO,
        f"{copy.title}: {number(lowest)} to {number(highest)} GB/s for {len(rows)} GPUs, none "
        f"stands out. {_pcie(middle)}",
        "Compare with the link in nvidia-smi -q (PCIe generation and width, max and current).",
        line=copy.line,
        data={"median_gbs": middle, "lowest_gbs": lowest, "by_gpu_gbs": figures},
        sources=(*SOURCES, "Azure/azurehpc-health-checks README (pass marks)"),
    )


def _pcie(gbs: float) -> str:
    for low, what in (
        (70, "More than PCIe Gen5 x16 carries: NVLink-C2C or several paths at once."),
        (45, "That is a PCIe Gen5 x16 link (about 55)."),
        (20, "That is a PCIe Gen4 x16 link (about 25), or Gen5 x8."),
        (10, "That is a PCIe Gen3 x16 link (about 12), or Gen4 x8."),
    ):
        if gbs >= low:
            return what
    return "That is less than a PCIe Gen3 x16 link gives (about 12)."


def _peers(copy: Copy) -> Iterable[Finding]:
    low, middle = low_pairs(copy.matrix)
    every = copy.matrix.pairs
    if not every:
        return
    data: dict[str, object] = {"median_gbs": middle, "pairs": len(every)}
    if not low:
        yield finding(
            "copy_bandwidth",
            "pairs_even",
            Severity.INFO,
            f"{copy.title}: {number(min(every.values()))} to {number(max(every.values()))} GB/s "
            f"over {len(every)} pairs, no pair stands out.",
            "Compare with the same test on another node of this build.",
            line=copy.line,
            data=data | {"lowest_gbs": min(every.values())},
            sources=SOURCES,
        )
        return
    device = shared_by(low, every)
    worst = min(low, key=lambda p: low[p])
    data |= {
        "worst_pair": list(worst),
        "worst_gbs": low[worst],
        "slow_pairs": [list(p) for p in list(low)[:64]],
        "gpu": device,
    }
    names = listed(f"{a}-{b} ({number(v)})" for (a, b), v in low.items())
    if middle < NVLINK_GBS and device is None:
        yield finding(
            "copy_bandwidth",
            "paths_differ",
            Severity.INFO,
            f"{copy.title}: pairs differ over PCIe, {names} GB/s against a median of "
            f"{number(middle)}: GPUs on other switches or sockets have a longer path.",
            "nvidia-smi topo -m tells which pairs are PIX, PHB or SYS; that is the board, no "
            "fault, if the slow pairs are the far ones.",
            line=copy.line,
            cause="topology_limit",
            data=data,
            sources=SOURCES,
        )
        return
    cause = "nvlink_degraded" if middle >= NVLINK_GBS else "pcie_degraded"
    yield finding(
        "copy_bandwidth",
        "pair_slow" if device is None else "gpu_slow",
        Severity.HIGH,
        f"{copy.title}: {names} GB/s against a median of {number(middle)} GB/s"
        + (f"; all slow pairs share GPU {device}." if device is not None else "."),
        (
            f"nvidia-smi nvlink -s -i {device if device is not None else worst[0]} and -e: are all "
            "links up and free of errors? Then nvidia-smi topo -m, and the fabric manager's state."
            if cause == "nvlink_degraded"
            else f"nvidia-smi -q -i {device} -d PCIE under load: width and generation against the "
            "maximum."
        ),
        line=copy.line,
        cause=cause,
        data=data,
        entity=_gpu(device if device is not None else worst[0], copy.host),
        sources=SOURCES,
    )


def _no_gain(copies: Sequence[Copy], found: Sequence[Finding]) -> Iterable[Finding]:
    """Name peer access that brings no bandwidth although it is said to be on."""
    if any(f.cause == "p2p_disabled" for f in found):
        return
    tables = {c.matrix.title: c for c in copies}
    off = tables.get("Unidirectional P2P=Disabled Bandwidth Matrix (GB/s)")
    on = next((c for t, c in tables.items() if t.startswith("Unidirectional P2P=Enabled")), None)
    if off is None or on is None or not off.matrix.pairs or not on.matrix.pairs:
        return
    without, with_ = (median(list(c.matrix.pairs.values())) for c in (off, on))
    if with_ >= NVLINK_GBS or with_ > 1.1 * without:
        return
    yield finding(
        "copy_bandwidth",
        "p2p_no_gain",
        Severity.LOW,
        f"Peer access brings nothing here: {number(with_)} GB/s with it, {number(without)} GB/s "
        "without. Either the PCIe path is the limit in both cases, or peer traffic goes through "
        "the host all the same (ACS).",
        "nvidia-smi topo -m: PIX or PXB pairs should gain; then check ACS (lspci -vvv | grep "
        "ACSCtl).",
        line=on.line,
        data={"with_p2p_gbs": with_, "without_p2p_gbs": without},
        sources=SOURCES,
    )


def _table(copy: Copy) -> Iterable[Finding]:
    size, gbs = copy.largest
    if not size:
        return
    kind = copy.matrix.title
    inside = kind == "Device to Device"
    yield finding(
        "copy_bandwidth",
        kind.lower().replace(" ", "_"),
        Severity.INFO,
        f"bandwidthTest, {kind.lower()}: {number(gbs)} GB/s at {size:,} bytes"
        + (
            ""
            if copy.pinned or inside
            else ", from pageable memory: the copy is staged, so this is no measure of the link"
        )
        + ". "
        + ("That is inside the GPU's memory." if inside else _pcie(gbs) if copy.pinned else ""),
        "bandwidthTest is gone from current CUDA samples: nvbandwidth replaces it and tests all "
        "GPUs and pairs.",
        line=copy.line,
        data={"bandwidth_gbs": gbs, "transfer_bytes": size, "pinned": copy.pinned},
        sources=SOURCES,
    )
