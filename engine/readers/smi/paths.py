"""What the matrix of ``nvidia-smi topo`` shows: NVLink, paths over the CPU, far NICs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any, Final

from engine.model import Entity, Finding, Kind, Severity
from engine.readers.base import Result
from engine.readers.listing import at, finding, node, result_of
from engine.readers.smi.topology import Matrix

_SOURCE: Final = "nvidia-smi topo manual page (legend of the matrix)"
# Near to far.
_ORDER: Final = ("X", "NV", "C2C", "PIX", "PXB", "PSB", "PHB", "NODE", "SYS", "SOC")
_MEANS: Final = {
    "PIX": "one PCIe switch",
    "PXB": "several PCIe switches, not the CPU",
    "PSB": "several PCIe switches, not the CPU",
    "PHB": "the PCIe host bridge of the CPU",
    "NODE": "the CPU, between host bridges of one NUMA node",
    "SYS": "the CPU sockets' interconnect (UPI, xGMI)",
    "SOC": "the CPU sockets' interconnect (QPI, UPI)",
}
_OVER_CPU: Final = ("PHB", "NODE", "SYS", "SOC")
# Links that a GPU has to a switch, from A100 on, and GPUs that only a switch joins all with all.
_SWITCHED: Final = 12
_MESH: Final = 3
_PEER: Final = {
    "CNS": "chipset not supported",
    "GNS": "GPU not supported",
    "TNS": "topology not supported",
    "NS": "not supported",
    "DR": "disabled by a driver setting (registry key)",
    "U": "unknown",
}


def path_result(records: Sequence[Matrix]) -> Result:
    """Say what matrices show, one after the other."""
    found: list[Finding] = []
    for matrix in records:
        if matrix.paths:
            found += _peers(matrix) if matrix.peer else _matrix(matrix)
    return result_of(["nvidia_smi_topo"] if found else [], found)


def _matrix(matrix: Matrix) -> Iterator[Finding]:
    pairs = {
        (a, b): word
        for a, b in combinations(matrix.gpus, 2)
        if (word := matrix.paths.get((a, b)) or matrix.paths.get((b, a))) is not None
    }
    yield from _lonely(matrix, pairs)
    yield _gpus(matrix, pairs)
    if matrix.ports:
        yield _nics(matrix)


def _lonely(matrix: Matrix, pairs: dict[tuple[str, str], str]) -> Iterator[Finding]:
    """On a switched board all pairs have the same number of links: who has fewer has lost some."""
    bonds = {pair: int(word[2:]) for pair, word in pairs.items() if word.startswith("NV")}
    full = max(bonds.values(), default=0)
    if full < _SWITCHED or len(matrix.gpus) < 3:
        return
    weak: Counter[str] = Counter()
    for pair in pairs:
        if bonds.get(pair, 0) < full:
            weak.update(pair)
    peers = len(matrix.gpus) - 1
    lost = [gpu for gpu in matrix.gpus if weak[gpu] == peers]
    if len(matrix.gpus) - len(lost) < _MESH:
        return  # pairs joined by bridges: who has none was never joined
    for gpu in lost:
        word = next(w for pair, w in pairs.items() if gpu in pair and not _is_full(w, full))
        yield finding(
            "nvidia_smi_topo",
            "fewer_links",
            Severity.HIGH,
            f"{at(matrix.host)}{gpu} reaches its peers over {word} where the others have NV{full}: "
            "NVLinks of it are down, so collectives of the whole node run at its speed.",
            f"nvidia-smi nvlink -s -i {gpu[3:]} and nvlink -e, then dmesg -T (Xid 74, 144 to 150, "
            "SXid); see that the fabric manager runs; reset all GPUs of the node.",
            line=matrix.line,
            cause="nvlink_down",
            data={
                "gpu": int(gpu[3:]),
                "path": word,
                "sibling_path": f"NV{full}",
                "faulted_gpus": [int(name[3:]) for name in lost],
            },
            entity=_gpu(gpu, matrix.host),
            sources=(_SOURCE,),
        )


def _gpu(name: str, host: str | None) -> Entity:
    index = int(name[3:])
    called = f"{host}:{index}" if host else f"GPU {index}"
    return Entity(Kind.GPU, called, host=host, gpu=index)


def _is_full(word: str, full: int) -> bool:
    return word == f"NV{full}"


def _gpus(matrix: Matrix, pairs: dict[tuple[str, str], str]) -> Finding:
    count = len(matrix.gpus)
    kinds = Counter(pairs.values())
    over_cpu = {pair: word for pair, word in pairs.items() if word in _OVER_CPU}
    linked = sum(n for word, n in kinds.items() if word.startswith("NV"))
    says = [f"{at(matrix.host)}{count} GPU{'s' if count != 1 else ''} in the matrix."]
    cause, severity = None, Severity.INFO
    if not pairs:
        says.append("One GPU has no peers to reach.")
    elif linked == len(pairs) and len(kinds) == 1:
        word = next(iter(kinds))
        says.append(
            f"Every pair is connected by NVLink, {word} ({word[2:]} bonded links): full, as it "
            "should be; no traffic between GPUs crosses PCIe or the CPU."
        )
    elif linked == len(pairs):
        says.append(f"Every pair is connected by NVLink: {_counted(kinds)}.")
    else:
        says.append(f"Pairs: {_counted(kinds)}.")
    if over_cpu:
        worst = max(over_cpu.values(), key=_ORDER.index)
        says.append(f"Through the CPU go {_pairs(over_cpu)}: {_meanings(set(over_cpu.values()))}.")
        if linked:
            says.append("Pairs that talk much belong on GPUs that NVLink joins.")
        else:
            says.append(
                "That is how the slots of this server are wired, no fault: copies between these "
                "GPUs share PCIe and the CPU's links"
                + (
                    ", and a path across the sockets (SYS) is the slowest of all."
                    if worst in ("SYS", "SOC")
                    else "."
                )
            )
        cause = "topology_limit"
    says += _affinity(matrix)
    return finding(
        "nvidia_smi_topo",
        "paths",
        severity,
        " ".join(says),
        (
            "Place jobs within one group of near GPUs, and bind their processes to the CPUs of "
            "that group; measure with nvbandwidth or p2pBandwidthLatencyTest what the path gives."
            if over_cpu
            else "Nothing to do."
        ),
        line=matrix.line,
        cause=cause,
        data=_data(matrix, kinds, over_cpu),
        entity=node(matrix.host),
        sources=(_SOURCE,),
    )


def _data(
    matrix: Matrix, kinds: Counter[str], over_cpu: dict[tuple[str, str], str]
) -> dict[str, Any]:
    return {
        "gpu_count": len(matrix.gpus),
        "pairs": dict(sorted(kinds.items())),
        "cpu_pairs": [
            [int(a[3:]), int(b[3:]), word] for (a, b), word in sorted(over_cpu.items())[:128]
        ]
        or None,
        "numa": {g: n for g, n in matrix.numa.items() if g.startswith("GPU")} or None,
    }


def _counted(kinds: Counter[str]) -> str:
    ordered = sorted(kinds, key=lambda w: (_ORDER.index(_family(w)), w))
    return ", ".join(f"{kinds[word]} {word}" for word in ordered)


def _family(word: str) -> str:
    if word.startswith("NV"):
        return "NV"
    return word if word in _ORDER else "SYS"


def _pairs(pairs: dict[tuple[str, str], str]) -> str:
    names = [f"{a}-{b} ({word})" for (a, b), word in pairs.items()]
    return ", ".join(names[:12]) + (f" and {len(names) - 12} more pairs" if len(names) > 12 else "")


def _meanings(words: set[str]) -> str:
    return "; ".join(f"{w} = over {_MEANS[w]}" for w in _ORDER if w in words and w in _MEANS)


def _affinity(matrix: Matrix) -> list[str]:
    cpus = {matrix.cpus[g] for g in matrix.gpus if g in matrix.cpus}
    nodes = sorted({matrix.numa[g] for g in matrix.gpus if g in matrix.numa} - {"N/A"})
    if len(nodes) > 1:
        groups = [
            f"NUMA node {n}: {', '.join(g for g in matrix.gpus if matrix.numa.get(g) == n)}"
            for n in nodes
        ]
        return [f"{'; '.join(groups)}. A process belongs on the node of its GPU."]
    if cpus == {"N/A"}:
        return ["The CPU affinity is not known, as in virtual machines without a NUMA topology."]
    return []


def _nics(matrix: Matrix) -> Finding:
    """The nearest NIC of each GPU: GPUDirect RDMA wants PIX or PXB."""
    far: dict[str, str] = {}
    near: dict[str, list[str]] = {}
    for gpu in matrix.gpus:
        words = {
            port: word
            for port in matrix.ports
            if (word := matrix.paths.get((gpu, port)) or matrix.paths.get((port, gpu)))
        }
        if not words:
            continue
        best = min(words.values(), key=lambda w: _ORDER.index(_family(w)))
        if best in _OVER_CPU:
            far[gpu] = best
        near[gpu] = [matrix.nics.get(port, port) for port, word in words.items() if word == best]
    alone = len(far) == 1
    if far and len(far) == len(near):
        text = (
            f"{at(matrix.host)}No GPU has a NIC nearer than the CPU "
            f"({', '.join(sorted(set(far.values())))}): GPUDirect RDMA is off by default over such "
            "a path, so network traffic is staged through host memory. In a virtual machine the "
            "real topology may be hidden."
        )
        action = (
            "Bare metal: move NIC and GPU under one PCIe switch. Virtual machine: give NCCL the "
            "vendor's topology file (NCCL_TOPO_FILE). NCCL_NET_GDR_LEVEL=SYS forces it, often "
            "slower."
        )
        cause, severity = "topology_limit", Severity.LOW
    elif far:
        text = (
            f"{at(matrix.host)}{', '.join(sorted(far))} {'has' if alone else 'have'} no NIC nearer "
            f"than the CPU, the other GPUs do: {'its' if alone else 'their'} network traffic takes "
            "a longer way."
        )
        action = "Use as many NICs as there are GPU groups, each under the switch of its group."
        cause, severity = "topology_limit", Severity.LOW
    else:
        pairs = [f"{gpu} {'/'.join(names[:2])}" for gpu, names in list(near.items())[:16]]
        text = (
            f"{at(matrix.host)}Every GPU has a NIC under its PCIe switch (PIX or PXB), as "
            f"GPUDirect RDMA wants it: {', '.join(pairs)}."
        )
        action, cause, severity = "Nothing to do.", None, Severity.INFO
    return finding(
        "nvidia_smi_topo",
        "nics",
        severity,
        text,
        action,
        line=matrix.line,
        cause=cause,
        data={"far_gpus": [int(g[3:]) for g in far] or None, "nic_count": len(matrix.ports)},
        entity=_gpu(next(iter(far)), matrix.host) if alone else node(matrix.host),
        sources=(_SOURCE, "NVIDIA NCCL documentation, NCCL_NET_GDR_LEVEL"),
    )


def _peers(matrix: Matrix) -> Iterator[Finding]:
    closed = {
        (a, b): word
        for a, b in combinations(matrix.gpus, 2)
        if (word := matrix.paths.get((a, b), "OK")) not in ("OK", "X")
    }
    if not closed:
        yield finding(
            "nvidia_smi_topo",
            "peer_access",
            Severity.INFO,
            f"{at(matrix.host)}Peer access is OK between all {len(matrix.gpus)} GPUs.",
            "Nothing to do.",
            line=matrix.line,
            data={"gpu_count": len(matrix.gpus)},
            entity=node(matrix.host),
            sources=(_SOURCE,),
        )
        return
    why = sorted({f"{word} = {_PEER.get(word, 'unknown')}" for word in closed.values()})
    yield finding(
        "nvidia_smi_topo",
        "no_peer_access",
        Severity.MEDIUM,
        f"{at(matrix.host)}No peer access for {_pairs(closed)}: {'; '.join(why)}. Copies between "
        "these GPUs go through host memory.",
        "GNS is the product (GeForce and some others). CNS, TNS and DR: IOMMU or ACS in the BIOS, "
        "virtualisation, or the driver's registry keys; compare nvidia-smi topo -m.",
        line=matrix.line,
        cause="p2p_disabled",
        data={"closed_pairs": [[int(a[3:]), int(b[3:])] for a, b in list(closed)[:128]]},
        entity=node(matrix.host),
        sources=(_SOURCE,),
    )
