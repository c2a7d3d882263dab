"""The ways that data takes: channel lines (``via P2P/CUMEM``, SHM, NET) and types of paths.

Path types (NVIDIA/nccl src/graph/topo.h): NVL NVLink, C2C, PIX one PCIe switch, PXB several of
them, PXN over another GPU's NIC, PHB over the CPU's host bridge, SYS over the link between sockets.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from engine.model import Finding, Severity
from engine.readers.nccl.ranks import Ranks
from engine.readers.nccl.remarks import Remarks
from engine.readers.nccl.skim import Skim
from engine.readers.nccl.told import ORDER, Told

_PATTERN = re.compile(
    r"^Pattern \d{1,3}, crossNic (?P<cross>\d), nChannels (?P<channels>\d{1,4}),"
    r" (?:bw|speed) (?P<intra_bw>[\d.]{1,16})/(?P<inter_bw>[\d.]{1,16}),"
    r" type (?P<intra>[A-Z0-9]{2,4})/(?P<inter>[A-Z0-9]{2,4})"
)
_FAR: Final = ("PHB", "SYS", "NODE")
_WORDS: Final = {
    "PHB": "through the CPU's host bridge",
    "NODE": "through the CPU's host bridge",
    "SYS": "across the link between CPU sockets",
}
_CHANNELS = re.compile(
    r"^(?P<coll>\d{1,3}) coll channels(?:, (?P<collnet>\d{1,3}) collnet channels)?"
    r"(?:, (?P<nvls>\d{1,3}) nvls channels)?(?:, (?P<p2p>\d{1,3}) p2p channels)?"
)
_SOURCES: Final = ("NVIDIA/nccl v2.30.7 src/transport, src/graph/topo.h, src/graph/search.cc",)


class Paths:
    """What a log says of paths, bounded."""

    def __init__(self) -> None:
        self._types: dict[tuple[str, str], int] = {}
        self._channels: dict[str, int] = {}

    def info(self, _host: str | None, text: str, number: int) -> bool:
        """Take a set-up line; return whether it is about paths."""
        found = _PATTERN.match(text)
        if found is not None:
            if len(self._types) < 256:
                self._types.setdefault((found["intra"], found["inter"]), number)
            return True
        found = _CHANNELS.match(text)
        if found is not None and not self._channels:
            self._channels = {k: int(v) for k, v in found.groupdict().items() if v}
        return found is not None or text.startswith(("GPU/", "Pattern ", "Connected all rings"))

    def tell(
        self, skim: Skim, ranks: Ranks, remarks: Remarks, *, nodes: bool | None
    ) -> Iterator[Told]:
        """Yield where data takes a detour, and which ways are used."""
        transports = named(skim)
        local = {n: c for n, c in transports.items() if not n.startswith(("NET/", "COLLNET"))}
        shared = sum(c for n, c in local.items() if n.startswith("SHM"))
        if shared:
            yield self._shared(shared, sum(local.values()), first_of(skim, "SHM"), remarks)
        inside = self._net_inside(skim, ranks, nodes=nodes)
        if inside is not None:
            yield inside
        far = self._far(nodes=nodes)
        if far is not None:
            yield far
        if transports:
            yield self._summary(transports, min(skim.first_lines.values()))

    @staticmethod
    def _shared(shared: int, total: int, line: int, remarks: Remarks) -> Told:
        every = shared == total
        # GeForce drivers have no peer access, and such cards no NVLink: nothing is switched off.
        sure = (every or remarks.nvls_expected) and not remarks.consumer
        count = "All" if every else f"{shared} of"
        says = (
            f"{count} {total} channels between GPUs of a node go through shared memory (SHM), not"
            " directly (P2P): every copy takes a detour through host memory."
        )
        says += (
            " Between GeForce cards that is what the driver gives (no peer access): expected, not a"
            " fault. The network is not used inside one node."
            if remarks.consumer
            else " With NVLink that means that peer access is off (P2P disabled, IOMMU or ACS,"
            " separate containers); between PCIe cards on two sockets it is normal."
        )
        return Told(
            ORDER["setup"] if sure else ORDER["note"],
            line,
            Finding(
                kind="nccl",
                id="shm_channels",
                severity=Severity.MEDIUM if sure else Severity.LOW,
                says=says,
                action=(
                    "nvidia-smi topo -m and nvidia-smi topo -p2p rw; unset NCCL_P2P_DISABLE and"
                    " NCCL_P2P_LEVEL; lspci -vvv | grep ACSCtl (must show SrcValid-); run the"
                    " ranks of a node in one container with all GPUs visible."
                ),
                entity=None,
                line=line,
                cause="topology_limit" if remarks.consumer else "p2p_disabled" if sure else None,
                data={"transport": "SHM", "channels": total, "shm_channels": shared},
                sources=_SOURCES,
            ),
        )

    @staticmethod
    def _net_inside(skim: Skim, ranks: Ranks, *, nodes: bool | None) -> Told | None:
        """Two ranks of one host that talk over the network."""
        hosts = {r: h for one in ranks.communicators.values() for r, h in one.started.items()}
        for (one, other), line in skim.pairs.items():
            first, second = int(one), int(other)
            host = hosts.get(first)
            same = host is not None and hosts.get(second) == host
            if not (same or nodes is False):
                continue
            return Told(
                ORDER["setup"],
                line,
                Finding(
                    kind="nccl",
                    id="network_inside_node",
                    severity=Severity.HIGH,
                    says=(
                        f"Ranks {first} and {second}"
                        + (f" of {host}" if host else " of one node")
                        + " talk over the network: neither direct copies (P2P) nor shared memory"
                        " work between them, so the processes are isolated from each other or both"
                        " are switched off."
                    ),
                    action=(
                        "Unset NCCL_P2P_DISABLE and NCCL_SHM_DISABLE; give the containers of a"
                        " node one /dev/shm and IPC namespace (--ipc=host, hostIPC) and all GPUs;"
                        " NCCL_HOSTID must be the same for processes of one host."
                    ),
                    entity=None,
                    line=line,
                    cause="p2p_disabled",
                    data={"ranks": [first, second], "transport": "NET"},
                    sources=_SOURCES,
                ),
            )
        return None

    def _far(self, *, nodes: bool | None) -> Told | None:
        far = {inter: n for (_, inter), n in self._types.items() if inter in _FAR}
        if not far or nodes is False or len(far) < len({i for _, i in self._types}):
            return None
        inter, line = next(iter(far.items()))
        return Told(
            ORDER["setup"],
            line,
            Finding(
                kind="nccl",
                id="path_far",
                severity=Severity.MEDIUM,
                says=(
                    f"The best path between GPU and NIC that NCCL found is {inter},"
                    f" {_WORDS[inter]}: slower than PIX or PXB (under the same PCIe switches), and"
                    " GPUDirect RDMA is as a rule off there. NICs on the wrong socket, a virtual"
                    " machine without topology, or near NICs that are left out."
                ),
                action=(
                    "nvidia-smi topo -m: is any NIC PIX or PXB to these GPUs? Then check"
                    " NCCL_IB_HCA and that this NIC is up. In virtual machines give the vendor's"
                    " NCCL_TOPO_FILE."
                ),
                entity=None,
                line=line,
                cause="topology_limit",
                data={"path": inter, "paths": [f"{a}/{b}" for a, b in self._types][:64]},
                sources=_SOURCES,
            ),
        )

    def _summary(self, transports: Mapping[str, int], line: int) -> Told:
        most = sorted(transports.items(), key=lambda item: (-item[1], item[0]))
        said = ", ".join(f"{count} via {name}" for name, count in most[:8])
        network = {n: c for n, c in transports.items() if n.startswith("NET/")}
        data: dict[str, Any] = {"transports": dict(most[:64])}
        if len({n.split("/GDRDMA")[0] for n in network}) == 1:
            data["transport"] = next(iter(network)).split("/GDRDMA")[0]
        rdma = [n for n in network if not n.startswith("NET/Socket")]
        if rdma:
            data["gdr"] = all("GDRDMA" in n for n in rdma)
        if self._channels:
            data |= {f"{name}_channels": count for name, count in self._channels.items()}
        if self._types:
            data["paths"] = [f"{a}/{b}" for a, b in self._types][:64]
        return Told(
            ORDER["note"],
            line,
            Finding(
                kind="nccl",
                id="transports",
                severity=Severity.INFO,
                says=(
                    f"Channels of this log: {said}."
                    + (" All network channels use GPUDirect RDMA." if data.get("gdr") else "")
                ),
                action="Nothing by itself; a slow node differs here from a good one.",
                entity=None,
                line=line,
                cause=None,
                data=data,
                sources=_SOURCES,
            ),
        )


def named(skim: Skim) -> dict[str, int]:
    """Return channels by transport, without the number of the device: ``NET/IB/GDRDMA``."""
    found: dict[str, int] = {}
    for raw, count in skim.transports.items():
        name = _short(raw.decode("ascii", "replace"))
        found[name] = found.get(name, 0) + count
    return found


def _short(transport: str) -> str:
    """Cut what differs from channel to channel: device, proxy rank, ``/Shared``."""
    if transport.startswith("direct shared memory"):
        # As NCCL before 2.8 has it.
        return "SHM"
    base = transport.split("(", maxsplit=1)[0]
    parts = base.split("/")
    if parts[0] == "NET" and len(parts) > 1:
        return f"NET/{parts[1]}" + ("/GDRDMA" if "/GDRDMA" in transport else "")
    if parts[0] in ("P2P", "COLLNET") and len(parts) > 1:
        return f"{parts[0]}/{parts[1]}"
    return parts[0]


def first_of(skim: Skim, start: str, without: str = "\0") -> int:
    """Return where the first channel of a transport stands, 0 if there is none."""
    lines = [
        n
        for t, n in skim.first_lines.items()
        if (name := t.decode("ascii", "replace")).startswith(start) and without not in name
    ]
    return min(lines, default=0)
