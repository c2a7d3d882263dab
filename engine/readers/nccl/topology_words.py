"""What a topology file of NCCL shows: missing links, NICs that are far, PCIe that is slow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from engine.model import Entity, Finding, Kind, Severity
from engine.readers.base import Result

if TYPE_CHECKING:
    from engine.readers.nccl.topology import Gpu, Nic, Topology

_SOURCES: Final = ("NVIDIA/nccl v2.30.7 src/graph/xml.cc, src/graph/topo.cc",)
_FAR: Final = {"PHB": "through the CPU's host bridge", "SYS": "across CPU sockets"}


def result(files: Sequence[Topology]) -> Result:
    """Return the findings of all files."""
    findings = [f for one in files for f in _findings(one)]
    order = {s: i for i, s in enumerate(Severity)}
    findings.sort(key=lambda f: (f.cause is None, order[f.severity], f.line or 0))
    causes = list(dict.fromkeys(f.cause for f in findings if f.cause))
    return Result(kinds=["nccl_topology"] if files else [], findings=findings, causes=causes)


def nearest_nic(gpu: Gpu, nics: Sequence[Nic]) -> str | None:
    """Return the type of path from a GPU to its nearest NIC: PIX, PXB, PHB or SYS."""
    found = [_path(gpu.place, nic.place) for nic in nics]
    return min(found, key=("PIX", "PXB", "PHB", "SYS").index) if found else None


def _path(gpu: tuple[str, ...], nic: tuple[str, ...]) -> str:
    """Path type of two devices: each place ends in the device itself, its bridges before it."""
    common = 0
    for one, other in zip(gpu[:-1], nic[:-1], strict=False):
        if one != other:
            break
        common += 1
    if not common:
        return "SYS"
    if common == 1:
        return "PHB"
    deepest = max(len(gpu), len(nic)) - 1
    return "PIX" if deepest - common == 0 else "PXB"


def _findings(one: Topology) -> Iterator[Finding]:
    yield from _links(one)
    yield from _pcie(one)
    yield from _gdr(one)
    if not one.cut:
        yield from _far(one)
    yield from _graphs(one)
    if one.gpus or one.nics:
        yield _summary(one)


def _links(one: Topology) -> Iterator[Finding]:
    """GPUs with fewer NVLinks than the usual number of this node."""
    counts = Counter(gpu.links for gpu in one.gpus)
    if len(counts) < 2:
        return
    most = max(counts)
    fewer = [g for g in one.gpus if g.links < most]
    if len(fewer) * 2 > len(one.gpus):
        return
    said = ", ".join(f"{_gpu(g)}: {g.links}" for g in fewer[:8])
    none = all(g.links == 0 for g in fewer)
    yield Finding(
        kind="nccl_topology",
        id="nvlinks_differ",
        severity=Severity.HIGH,
        says=(
            f"NCCL sees fewer NVLinks on {len(fewer)} of {len(one.gpus)} GPUs than the {most} of"
            f" the others ({said})."
            + (" A GPU without any is cut off from the NVLink domain." if none else "")
        ),
        action=(
            f"nvidia-smi nvlink -s -i {fewer[0].dev}; Xid 74 or 144-150 and SXid in dmesg;"
            " nvidia-smi -q | grep -A4 Fabric; reset the GPU, then check the board."
        ),
        entity=Entity(Kind.GPU, f"GPU {fewer[0].dev}", pci=fewer[0].bus or None),
        line=fewer[0].line,
        cause="nvlink_down",
        data={
            "gpus": [g.dev for g in fewer][:64],
            "ranks": [g.rank for g in fewer if g.rank is not None][:64],
            "bus": fewer[0].bus,
            "nvlinks": fewer[0].links,
            "nvlinks_expected": most,
        },
        sources=_SOURCES,
    )


def _pcie(one: Topology) -> Iterator[Finding]:
    """GPUs whose PCIe link is slower than that of most others."""
    known = [(g, g.pcie) for g in one.gpus if g.pcie is not None]
    rates = Counter(speed * width for _, (speed, width) in known)
    if len(rates) < 2:
        return
    most = max(rates)
    slow = [(g, p) for g, p in known if p[0] * p[1] < most]
    if len(slow) * 2 > len(known):
        return
    gpu, (speed, width) = slow[0]
    _, (full_speed, full_width) = next(x for x in known if x[1][0] * x[1][1] == most)
    narrow = width < full_width
    yield Finding(
        kind="nccl_topology",
        id="pcie_differs",
        severity=Severity.MEDIUM,
        says=(
            f"The PCIe link of {_gpu(gpu)} is {speed:g} GT/s x{width}, that of other GPUs"
            f" {full_speed:g} GT/s x{full_width}."
            + ("" if narrow else " An idle link may have been slowed down to save power.")
        ),
        action=(
            f"lspci -vv -s {gpu.bus} | grep -e LnkCap -e LnkSta under load; then reseat the board"
            " or its riser and check the BIOS."
        ),
        entity=Entity(Kind.GPU, f"GPU {gpu.dev}", pci=gpu.bus or None),
        line=gpu.line,
        cause="pcie_degraded" if narrow else None,
        data={
            "gpus": [g.dev for g, _ in slow][:64],
            "pcie_width": width,
            "pcie_width_expected": full_width,
            "pcie_speed_gts": speed,
            "pcie_speed_expected_gts": full_speed,
        },
        sources=_SOURCES,
    )


def _gdr(one: Topology) -> Iterator[Finding]:
    off = [n for n in one.nics if n.rdma and n.gdr is False]
    blind = [g for g in one.gpus if g.gdr is False]
    rdma = [n for n in one.nics if n.rdma]
    if not off and not (blind and rdma):
        return
    names = [n.name for n in off] or [_gpu(g) for g in blind]
    line = (off or blind)[0].line
    yield Finding(
        kind="nccl_topology",
        id="gdr_off",
        severity=Severity.HIGH,
        says=(
            f'GPUDirect RDMA is off (gdr="0") for {", ".join(names[:8])}: data is staged in host'
            " memory on the way to the NIC."
        ),
        action=(
            "Look for /sys/kernel/mm/memory_peers/nv_mem (nvidia_peermem) or DMA-BUF (open GPU"
            " kernel modules, Linux 5.12 or newer); on AMD for the DKMS amdgpu driver with peer"
            " memory."
        ),
        entity=None,
        line=line,
        cause="gdr_disabled",
        data={"gdr": False, "devices": names[:64]},
        sources=_SOURCES,
    )


def _far(one: Topology) -> Iterator[Finding]:
    """GPUs without a near NIC, in a node where others have one."""
    nics = [n for n in one.nics if n.rdma]
    paths = {g.dev: (g, nearest_nic(g, nics)) for g in one.gpus} if nics else {}
    near = [d for d, (_, p) in paths.items() if p in ("PIX", "PXB")]
    far = [(g, p) for g, p in paths.values() if p in _FAR]
    if not far or not near:
        return
    gpu, path = far[0]
    yield Finding(
        kind="nccl_topology",
        id="nic_far",
        severity=Severity.MEDIUM,
        says=(
            f"{len(far)} of {len(one.gpus)} GPUs ({', '.join(_gpu(g) for g, _ in far[:8])}) have"
            f" no NIC under their PCIe switches; their nearest is {path}, {_FAR[str(path)]}, while"
            " other GPUs have one at PIX or PXB. A NIC may be missing there, down or filtered."
        ),
        action=(
            "nvidia-smi topo -m; lspci | grep -i mellanox (how many NICs?); ibstat for ports that"
            " are not ACTIVE; NCCL_IB_HCA."
        ),
        entity=Entity(Kind.GPU, f"GPU {gpu.dev}", pci=gpu.bus or None),
        line=gpu.line,
        cause="ib_link_down" if len(far) * 4 <= len(one.gpus) else "topology_limit",
        data={"gpus": [g.dev for g, _ in far][:64], "path": path},
        sources=_SOURCES,
    )


def _graphs(one: Topology) -> Iterator[Finding]:
    if not one.paths:
        return
    far = [(p, n) for p, n in one.paths.items() if p[1] in _FAR]
    line = far[0][1] if far else one.line
    said = ", ".join(f"{a}/{b}" for a, b in one.paths)
    yield Finding(
        kind="nccl_topology",
        id="graph",
        severity=Severity.MEDIUM if far else Severity.INFO,
        says=(
            f"NCCL's graphs use paths of type {said} (inside the node / to the NIC)."
            + (
                f" {far[0][0][1]} is {_FAR[far[0][0][1]]}: slower than PIX or PXB, and as a rule"
                " without GPUDirect RDMA."
                if far
                else ""
            )
        ),
        action=(
            "nvidia-smi topo -m: is any NIC PIX or PXB to the GPUs? NCCL_IB_HCA, NCCL_TOPO_FILE."
            if far
            else "Nothing."
        ),
        entity=None,
        line=line,
        cause="topology_limit" if len(far) == len(one.paths) else None,
        data={"paths": [f"{a}/{b}" for a, b in one.paths]},
        sources=_SOURCES,
    )


def _summary(one: Topology) -> Finding:
    links = sorted({g.links for g in one.gpus})
    speeds = Counter(n.speed_mbps for n in one.nics if n.speed_mbps)
    nics = [n for n in one.nics if n.rdma]
    paths = Counter(nearest_nic(g, nics) for g in one.gpus) if nics else Counter()
    parts = [f"{len(one.gpus)} GPUs"]
    if links and links[-1]:
        parts.append(f"{'/'.join(map(str, links))} NVLinks each")
    if one.nics:
        parts.append(
            f"{len(one.nics)} NICs ("
            + ", ".join(f"{n} of {s / 1000:g} Gb/s" for s, n in sorted(speeds.items())[:6])
            + ")"
        )
    if paths:
        parts.append(f"nearest NIC {', '.join(f'{p} for {n}' for p, n in paths.items())}")
    says = f"NCCL's topology of a node: {', '.join(parts)}."
    if len(speeds) > 1:
        says += " The NICs differ in speed: if that is not meant, a port came up slow (ibstat)."
    if not one.switches and len(one.gpus) > 1 and one.nics:
        says += (
            " No PCIe switch is visible: on a machine that has some, the virtual machine hides"
            " them, and the vendor's topology file is needed (NCCL_TOPO_FILE)."
        )
    data: dict[str, Any] = {
        "gpus": len(one.gpus),
        "nvlinks": links[-1] if links else 0,
        "nics": len(one.nics),
        "nic_speeds_gbps": sorted(s / 1000 for s in speeds),
        "paths": {str(p): n for p, n in paths.items()},
    }
    return Finding(
        kind="nccl_topology",
        id="topology",
        severity=Severity.INFO,
        says=says,
        action=(
            "Hold it against the file of a good node. It shows no switches of the network, so it"
            " cannot show how rails are wired."
        ),
        entity=None,
        line=one.line,
        cause=None,
        data=data,
        sources=_SOURCES,
    )


def _gpu(gpu: Gpu) -> str:
    return f"GPU {gpu.dev}" + (f" ({gpu.bus})" if gpu.bus else "")
