"""GPUDirect RDMA: whether the NIC reads and writes GPU memory itself, and why not.

``NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'`` means that NCCL found neither a registered
peer memory module (``/sys/kernel/mm/memory_peers``) nor DMA-BUF; ``… Disabled for GPU a / HCA b
(distance 6 > 4)`` that the two are too far apart. Channel lines say what is really used:
``via NET/IB/3/GDRDMA``. Source: NVIDIA/nccl src/graph/topo.cc, src/graph/paths.cc.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from engine.model import Entity, Finding, Kind, Severity
from engine.readers.nccl.remarks import Remarks
from engine.readers.nccl.told import ORDER, Told

_HCA = re.compile(
    r"GPU Direct RDMA (?P<state>Enabled|Disabled) for HCA (?P<index>\d{1,4})"
    r" '(?P<name>[\w.:-]{1,40})'"
)
_DISTANCE = re.compile(
    r"GPU Direct RDMA (?P<state>Enabled|Disabled) for GPU (?P<gpu>[0-9a-f]{1,16})(?:\[\d{1,4}\])?"
    r" / HCA (?P<hca>[0-9a-f-]{1,20})[^(]{0,44}"
    r"\(distance (?P<distance>\d{1,3}) (?:>=|>|<=|<) (?P<limit>\d{1,3})"
)
_RING = re.compile(r"use ring PXN \d GDR (\d)")
_MOST: Final = 4_096
_SOURCES: Final = (
    "NVIDIA/nccl v2.30.7 src/graph/topo.cc, src/transport/net_ib/gdr.cc",
    "NVIDIA GPUDirect RDMA documentation",
)
_AMD_SOURCES: Final = ("ROCm/rccl src/transport/net_ib.cc", "ROCm/amdgpu#102")


class Gdr:
    """What a log says about GPUDirect RDMA, bounded."""

    def __init__(self) -> None:
        self._hcas: dict[tuple[str | None, str], bool] = {}
        self._near: dict[tuple[str | None, str], bool] = {}
        self._far: tuple[int, int] | None = None
        self._dmabuf = False
        self._rings: set[bool] = set()
        self._line = 0
        self.amd = False

    def info(self, host: str | None, text: str, number: int) -> bool:
        """Take a set-up line; return whether it is about GPUDirect RDMA."""
        found = _HCA.search(text)
        if found is not None:
            enabled = found["state"] == "Enabled"
            if len(self._hcas) < _MOST:
                self._hcas[host, found["name"]] = enabled
            if not enabled:
                self._line = self._line or number
            return True
        found = _DISTANCE.search(text)
        if found is not None:
            self._distance(host, found, number)
            return True
        if text.startswith("DMA-BUF is available"):
            self._dmabuf = True
            return True
        found = _RING.search(text)
        if found is not None:
            self._rings.add(found[1] == "1")
        return found is not None

    def tell(
        self, transports: Mapping[str, int], line: int, remarks: Remarks, value: str | None
    ) -> Iterator[Told]:
        """Yield whether GPUDirect RDMA is used and why not.

        Args:
            transports: network channels (without sockets) by transport, as printed.
            line: where the first channel without GPUDirect RDMA stands.
            remarks: what the poster found.
            value: ``NCCL_NET_GDR_LEVEL``, if it is set.
        """
        off = sorted({name for (_, name), on in self._hcas.items() if not on})
        total = sum(transports.values())
        staged = sum(n for name, n in transports.items() if "GDRDMA" not in name)
        far = sorted({gpu for (_, gpu), near in self._near.items() if not near})
        if off:
            yield self._told(self._no_registration(off, remarks), remarks)
        elif staged and staged * 20 >= total:
            yield self._told(self._staged(staged, total, line, value, far), remarks)
        elif far and not total:
            yield self._told(self._too_far(far), remarks)
        elif far and self._far is not None:
            yield self._distant(far)

    def _distance(self, host: str | None, found: re.Match[str], number: int) -> None:
        key = (host, found["gpu"])
        near = found["state"] == "Enabled"
        if key in self._near or len(self._near) < _MOST:
            self._near[key] = self._near.get(key, False) or near
        if not near:
            self._far = self._far or (int(found["distance"]), int(found["limit"]))
            self._line = self._line or number

    def _hosts(self) -> list[str]:
        return sorted({h for (h, _), on in self._hcas.items() if h and not on})

    def _no_registration(self, off: list[str], remarks: Remarks) -> dict[str, Any]:
        hosts = self._hosts()
        where = f" on {', '.join(hosts[:4])}" if hosts else ""
        says = (
            f"GPUDirect RDMA is off for {', '.join(off[:8])}{where}: data goes to the NIC through"
            " host memory."
        )
        severity = Severity.HIGH
        if self.amd or remarks.amd:
            says += (
                " This is RCCL on AMD GPUs: the peer memory interface between amdgpu (amdkfd) and"
                " the NIC driver is not registered."
            )
            action = (
                "Install the DKMS amdgpu driver of ROCm together with the NIC vendor's OFED (the"
                " in-tree driver has no peer memory), or use a kernel, ROCm and RCCL that do"
                " DMA-BUF (CONFIG_PCI_P2PDMA and CONFIG_DMABUF_MOVE_NOTIFY;"
                " NCCL_DMABUF_ENABLE=1). Check /sys/kernel/mm/memory_peers/amdkfd/version."
                " nvidia-peermem has nothing to do here."
            )
        elif remarks.peermem_unregistered and remarks.peermem_loaded is not False:
            says += (
                " nvidia_peermem is loaded, but not registered with the RDMA stack:"
                " /sys/kernel/mm/memory_peers has no entry for it, so the GPU driver was built"
                " without the peer memory interface of OFED. lsmod alone proves nothing."
            )
            action = (
                "Rebuild (reinstall) the GPU driver after OFED is installed, then load"
                " nvidia_peermem and look for /sys/kernel/mm/memory_peers/nv_mem/version. Or use"
                " DMA-BUF: open GPU kernel modules, Linux 5.12 or newer and a recent NCCL need no"
                " peermem."
            )
        else:
            says += (
                " NCCL found no peer memory module registered with the RDMA stack (nvidia_peermem"
                " is not loaded, or the driver was built without OFED), and no DMA-BUF."
            )
            action = (
                "lsmod | grep nvidia_peermem; cat /sys/kernel/mm/memory_peers/nv_mem/version;"
                " then modprobe nvidia-peermem. If the file stays missing, rebuild the GPU driver"
                " after OFED. Or use DMA-BUF: open GPU kernel modules, Linux 5.12 or newer."
            )
            if self._dmabuf:
                says += " DMA-BUF is reported as available for some GPU."
        return {
            "id": "gdr_off",
            "severity": severity,
            "says": says,
            "action": action,
            "line": self._line,
            "data": {"gdr": False, "hcas": off[:64]},
            "host": hosts[0] if len(hosts) == 1 else None,
        }

    def _staged(
        self, staged: int, total: int, line: int, value: str | None, far: list[str]
    ) -> dict[str, Any]:
        every = staged == total
        says = (
            f"{'All' if every else f'{staged} of'} {total} network channels run without GPUDirect"
            " RDMA (no /GDRDMA in the channel line): data is staged in host memory on the way to"
            " the NIC."
        )
        if value is not None:
            says += f" NCCL_NET_GDR_LEVEL={value} is set."
        if far and self._far is not None:
            says += (
                f" For GPU {', '.join(far[:8])} every NIC is too far away (distance {self._far[0]}"
                f" > {self._far[1]})."
            )
        return {
            "id": "gdr_staged",
            "severity": Severity.HIGH if every else Severity.MEDIUM,
            "says": says,
            "action": (
                "Look for nvidia_peermem or DMA-BUF on these hosts, for ACS (lspci -vvv | grep"
                " ACSCtl) and for NICs that are not under the GPU's PCIe switch (nvidia-smi topo"
                " -m: PIX or PXB is near, PHB and SYS are far). NCCL_DEBUG_SUBSYS=INIT,GRAPH,NET"
                " prints the reason."
            ),
            "line": line,
            "data": {"gdr": False, "channels": total, "channels_without_gdr": staged},
            "host": None,
        }

    def _too_far(self, far: list[str]) -> dict[str, Any]:
        assert self._far is not None
        return {
            "id": "gdr_distance",
            "severity": Severity.MEDIUM,
            "says": (
                f"GPUDirect RDMA is off for GPU {', '.join(far[:8])}: every NIC is too far away"
                f" (distance {self._far[0]} > {self._far[1]}, not under the same PCIe switches)."
                " Data is staged in host memory."
            ),
            "action": (
                "nvidia-smi topo -m: which NIC is PIX or PXB to the GPU? In virtual machines the"
                " PCI tree must be passed through or given by a topology file; check that"
                " NCCL_IB_HCA does not leave the near NICs out."
            ),
            "line": self._line,
            "data": {
                "gdr": False,
                "gpus": far[:64],
                "distance": self._far[0],
                "limit": self._far[1],
            },
            "host": None,
        }

    def _distant(self, far: list[str]) -> Told:
        """Some pair of GPU and NIC is too far apart, while the channels use nearer ones."""
        assert self._far is not None
        return Told(
            ORDER["note"],
            self._line,
            Finding(
                kind="nccl",
                id="gdr_some_far",
                severity=Severity.INFO,
                says=(
                    f"GPU {', '.join(far[:8])} and some HCA are too far apart for GPUDirect RDMA"
                    f" (distance {self._far[0]} > {self._far[1]}): normal for a NIC under another"
                    " PCIe switch or socket. The network channels of this log use GPUDirect RDMA"
                    " by nearer ones."
                ),
                action="Nothing by itself; nvidia-smi topo -m shows which NIC is near which GPU.",
                entity=None,
                line=self._line,
                cause=None,
                data={"distance": self._far[0], "limit": self._far[1]},
                sources=_SOURCES,
            ),
        )

    def _told(self, said: Mapping[str, Any], remarks: Remarks) -> Told:
        host = said["host"]
        amd = self.amd or remarks.amd
        return Told(
            ORDER["setup"],
            said["line"],
            Finding(
                kind="nccl",
                id=said["id"],
                severity=said["severity"],
                says=said["says"],
                action=said["action"],
                entity=Entity(Kind.NODE, host, host=host) if host else None,
                line=said["line"],
                cause="gdr_disabled",
                data=said["data"],
                sources=_AMD_SOURCES if amd else _SOURCES,
            ),
        )
