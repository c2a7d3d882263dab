"""The verdict on the GPUs of one node: NVLink, with or without NVLink SHARP, or PCIe."""

from __future__ import annotations

from engine.model import Severity
from engine.readers.nccl_tests.baseline import (
    GIB,
    RING_LIKE,
    SATURATED,
    UNSATURATED,
    Baselines,
    Expected,
)
from engine.readers.nccl_tests.platform import BEYOND_PCIE_GBS, Bus, Platform
from engine.readers.nccl_tests.run import Run
from engine.readers.nccl_tests.verdict import (
    DEGRADED,
    HEALTHY,
    TOPOLOGY_LIMIT,
    UNKNOWN,
    Verdict,
    gbs,
    share,
    size_words,
)

_AGAIN = "./build/all_reduce_perf -b 8G -e 16G -f 2 -g {ranks}"
_GOLDEN = (
    "Compare with a node of the same fleet that you trust, at the same size, algorithm and NCCL "
    "version; 5-10 % below it is a reason to look."
)
_LINKS = (
    "Look at nvidia-smi nvlink -s (state and speed of each link), nvidia-smi nvlink -e (errors), "
    "nvidia-smi topo -m, and the kernel log for Xid 74; then repeat on this node alone: {again}."
)
# The smallest message at which GPUs on PCIe reach their rate (NVIDIA/nccl issue 841).
_PCIE_SATURATED = 8 << 20
# A ring with NVLink SHARP missing reads its own figure within this.
_RING_BAND = (0.90, 1.07)
# An exchange of all with all over NVLink reaches this part of a ring's figure (site default).
_EXCHANGE = 0.85
# The limit of health is this part of the healthy figure (`Baselines`, site default).
_UPPER = 0.95


def judge_node(run: Run, busbw: float, platform: Platform | None, baselines: Baselines) -> Verdict:
    """Judge a run on one node (or on an unknown number, which is said)."""
    if platform is None:
        return _unjudged(
            "No line names the GPUs, so there is no baseline to hold this against.", _GOLDEN
        )
    if platform.bus is Bus.PCIE:
        return _pcie(run, busbw, platform, baselines)
    if platform.bus is Bus.NVLINK:
        return _nvlink(run, busbw, platform, baselines)
    if platform.bus is Bus.UNKNOWN and baselines.nvlink_ring_gbs(platform) is None:
        model = Platform(f"{platform.name.lower()}_sxm", platform.name, Bus.NVLINK)
        ring = baselines.nvlink_ring_gbs(model)
        if ring is not None:
            return _unjudged(
                f"The text does not say whether the {platform.name} is an SXM board or a PCIe "
                f"card: with NVLink this is far too low (NCCL's model is {ring:.0f} GB/s by ring), "
                "over PCIe about 10-25 GB/s is expected.",
                "Look at nvidia-smi topo -m: entries NV# between GPUs are NVLink; PIX, PHB, NODE "
                "or SYS are PCIe.",
            )
    return _unjudged(f"There is no baseline for {platform.name}.", _GOLDEN)


def _pcie(run: Run, busbw: float, platform: Platform, baselines: Baselines) -> Verdict:
    expected = baselines.pcie()
    slot = platform.pcie_gbs or BEYOND_PCIE_GBS
    if busbw > max(slot, 1.2 * slot if platform.bridged else slot):
        return _unjudged(
            f"This is more than a PCIe slot carries ({slot:.0f} GB/s): an NVLink bridge joins "
            "these GPUs. There is no published figure for bridged cards.",
            _GOLDEN,
        )
    if (run.size or SATURATED) < _PCIE_SATURATED:
        return _too_small(run)
    said = (
        f"{platform.name} has no NVLink or NVSwitch between these GPUs: data goes over PCIe and "
        f"the host, where {expected.shown} GB/s is expected"
    )
    if busbw >= expected.degraded or (platform.pcie_gbs or 0) < 32 or _not_ring(run):
        return Verdict(
            TOPOLOGY_LIMIT,
            [
                f"{said}.",
                (
                    "It is what the board gives, not a link fault; figures of SXM boards are no "
                    "measure for it."
                ),
            ],
            "Nothing to repair. nvidia-smi topo -m shows how far apart the GPUs are (PIX is "
            "best, SYS crosses sockets); NCCL_DEBUG=INFO shows P2P or SHM for each channel.",
            cause="topology_limit",
            expected=expected.shown,
            sources=expected.sources,
        )
    return Verdict(
        DEGRADED,
        [
            (
                f"{said}; below {expected.degraded:g} GB/s (rule of thumb) peer access is probably "
                "off and data is copied through host memory."
            )
        ],
        "Look for P2P or SHM in the channel lines of NCCL_DEBUG=INFO, and at ACS and IOMMU "
        "(nvidia-smi topo -p2p r; dmesg | grep -i iommu); in a container at the size of /dev/shm.",
        cause="p2p_disabled",
        severity=Severity.MEDIUM,
        expected=expected.shown,
        sources=expected.sources,
    )


def _nvlink(run: Run, busbw: float, platform: Platform, baselines: Baselines) -> Verdict:
    size = run.size or SATURATED
    if run.ranks is None:
        return _unjudged("The number of ranks is not told, so there is no baseline.", _GOLDEN)
    if size < UNSATURATED and run.plateau is None:
        return _too_small(run)
    collective = run.collective or "all_gather"
    expected = baselines.one_node(
        platform, run.ranks, collective, max(size, UNSATURATED), ring=run.setup.by_ring
    )
    if expected is None:
        return _no_figure(run, busbw, platform, baselines)
    if busbw >= expected.healthy:
        return _healthy(run, busbw, platform, expected, baselines)
    if size < UNSATURATED and busbw >= 0.5 * expected.degraded:
        return _too_small(run)
    if busbw >= expected.degraded:
        return _between(run, expected, size)
    if run.collective is None:
        return _unjudged("The collective is not named, so there is no baseline.", _GOLDEN)
    return _degraded(run, busbw, platform, expected, baselines)


def _healthy(
    run: Run, busbw: float, platform: Platform, expected: Expected, baselines: Baselines
) -> Verdict:
    rate = baselines.nvlink_line_rate_gbs(platform)
    said = f"Healthy: {expected.shown} GB/s is expected ({expected.what})"
    if rate is not None and not expected.nvls:
        said += f"; it is {share(busbw, rate)} of the NVLink line rate of {rate:.0f} GB/s"
    says = [f"{said}."]
    if rate is not None and expected.nvls and busbw > rate:
        says.append(
            f"It may exceed the NVLink line rate of {rate:.0f} GB/s, since NVLink SHARP (NVLS) "
            "reduces in the switch and busbw no longer equals bytes on the wire."
        )
    elif rate is not None and expected.nvls:
        says.append(
            f"{rate:.0f} GB/s is the NVLink line rate in one direction; a ring reaches 80 % of it."
        )
    elif rate is not None and run.collective == "all_reduce" and not expected.nvls:
        says.append("Only NVLink SHARP (NVLS) shows more, 460-480 GB/s, by reducing in the switch.")
    action = "Nothing to do."
    peak = _peak(run, platform, baselines)
    if peak is not None and busbw < peak.healthy:
        says.append(
            f"{size_words(run.size or 0)} is too small for the peak of {peak.shown} GB/s at 8 GiB "
            "and more."
        )
    elif run.size is None and busbw < expected.healthy / _UPPER:
        says.append("The size is not told: small messages read lower, the peak needs 8 GiB.")
        peak = expected
    if peak is not None and busbw < peak.healthy / _UPPER:
        action = f"Nothing to do; for the peak run large sizes: {_AGAIN.format(ranks=run.ranks)}."
    if not expected.measured:
        says.append("That figure is carried over from another size or model, not measured here.")
    return Verdict(
        HEALTHY,
        says,
        action,
        cause="healthy",
        expected=expected.shown,
        sources=expected.sources,
    )


def _peak(run: Run, platform: Platform, baselines: Baselines) -> Expected | None:
    """Return what large messages read, where the largest of a run is below that size."""
    if run.ranks is None or (run.size or SATURATED) >= GIB:
        return None
    return baselines.one_node(
        platform, run.ranks, run.collective or "", SATURATED, ring=run.setup.by_ring
    )


def _degraded(
    run: Run, busbw: float, platform: Platform, expected: Expected, baselines: Baselines
) -> Verdict:
    said = (
        f"Degraded: {expected.shown} GB/s is expected ({expected.what}), and the limit for an "
        f"alarm is {gbs(expected.degraded)} GB/s; this is {share(busbw, expected.degraded)} of it."
    )
    again = _AGAIN.format(ranks=run.ranks)
    links = _LINKS.format(again=again)
    ring = baselines.nvlink_ring_gbs(platform)
    made = Verdict(
        DEGRADED,
        [said],
        severity=Severity.HIGH,
        expected=expected.shown,
        sources=expected.sources,
    )
    if run.setup.on("NCCL_P2P_DISABLE") or run.setup.settings.get("NCCL_P2P_LEVEL") == "LOC":
        made.cause = "p2p_disabled"
        made.says.append("A variable turns peer access off, so NVLink is not used.")
        made.action = f"Unset NCCL_P2P_DISABLE and NCCL_P2P_LEVEL and run again: {again}."
    elif busbw < BEYOND_PCIE_GBS:
        made.cause = "p2p_disabled"
        made.says.append(
            "That is no more than PCIe or host memory carries: NVLink is not used, or hardly."
        )
        made.action = (
            "Look for SHM or P2P in the channel lines of NCCL_DEBUG=INFO, at "
            "nvidia-smi topo -m (NV# between all GPUs?), nvidia-smi nvlink -s, the fabric manager "
            "(systemctl status nvidia-fabricmanager), ACS and IOMMU."
        )
    elif expected.nvls and ring and _RING_BAND[0] * ring <= busbw <= _RING_BAND[1] * ring:
        made.cause, made.severity = "nvls_unavailable", Severity.MEDIUM
        made.says.append(
            f"It is what a ring reads (about {ring:.0f} GB/s), so the links are sound and NVLink "
            "SHARP (NVLS) was not used: turned off, an old NCCL, MIG, a VM, or fabric manager "
            "trouble."
        )
        made.action = (
            'Look for "NVLS multicast support" and nvls channels in NCCL_DEBUG=INFO, for '
            "NCCL_NVLS_ENABLE and NCCL_ALGO in the environment, and at the fabric manager "
            "(systemctl status nvidia-fabricmanager; nvidia-smi -q | grep -A3 Fabric)."
        )
    else:
        made.cause = "nvlink_degraded"
        made.says.append("A link that is down or slow, or a broken NVSwitch path, reads like this.")
        made.action = links
    return made


def _between(run: Run, expected: Expected, size: int) -> Verdict:
    if size < SATURATED and expected.measured is False:
        why = (
            f"{size_words(size)} does not reach the peak, and there is no figure for this size; "
            f"{expected.shown} GB/s is expected at large ones ({expected.what})."
        )
    else:
        why = (
            f"A little under the {expected.shown} GB/s that is expected ({expected.what}), not "
            "enough for a verdict."
        )
    again = _AGAIN.format(ranks=run.ranks)
    made = _unjudged(why, f"Run large sizes: {again}. {_GOLDEN}")
    made.expected, made.sources = expected.shown, expected.sources
    return made


def _no_figure(run: Run, busbw: float, platform: Platform, baselines: Baselines) -> Verdict:
    ring = baselines.nvlink_ring_gbs(platform)
    exchange = run.collective in {"alltoall", "alltoallv", "sendrecv"}
    if ring is not None and exchange and busbw >= _EXCHANGE * ring:
        return Verdict(
            HEALTHY,
            [
                (
                    f"Healthy: {share(busbw, ring)} of the {ring:.0f} GB/s that NCCL counts for "
                    "the NVLinks of one GPU."
                )
            ],
            "Nothing to do.",
            cause="healthy",
            expected=gbs(ring),
        )
    said = f"There is no published figure for {run.name} over {run.ranks} GPUs of {platform.name}"
    if ring is not None and run.collective is not None:
        said += (
            f"; NCCL counts {ring:.0f} GB/s for the NVLinks of one GPU, and this is "
            f"{share(busbw, ring)} of it"
        )
    return _unjudged(f"{said}.", _GOLDEN)


def _too_small(run: Run) -> Verdict:
    return _unjudged(
        f"The largest message, {size_words(run.size or 0)}, is too small to judge bandwidth by: "
        "it does not fill the links.",
        f"Run large sizes: {_AGAIN.format(ranks=run.ranks or 8)}.",
    )


def _unjudged(why: str, action: str) -> Verdict:
    return Verdict(UNKNOWN, [why], action)


def _not_ring(run: Run) -> bool:
    return run.collective is not None and run.collective not in {"all_reduce", *RING_LIKE}
