"""Reader of messages of the ``nvidia-peermem`` module, which look like Xids but are none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from engine.model import Finding, Severity
from engine.readers.base import Context, Result

_SOURCE = "NVIDIA open-gpu-kernel-modules, nvidia-peermem/nvidia-peermem.c"
_MODULE = "nvidia-peermem (GPU peer memory for RDMA)"


@dataclass(frozen=True, slots=True)
class _Kind:
    """What some of the module's lines have in common.

    Attributes:
        id: of the finding.
        words: one of them stands in such a line.
    """

    id: str
    words: tuple[str, ...]
    severity: Severity
    says: str
    action: str
    cause: str | None = None


# The first that fits has a line.
_KINDS: tuple[_Kind, ...] = (
    _Kind(
        "not_loaded",
        (
            "nknown symbol",
            "could not insert",
            "while registering",
            "disagrees about version of symbol",
            "nv_mem_client_init",
            "Module nvidia-peermem not found",
            "Module nvidia_peermem not found",
        ),
        Severity.MEDIUM,
        f"{_MODULE} could not be loaded or registered with the RDMA stack: without it, and without "
        "DMA-BUF in its place, GPUDirect RDMA is off and data goes through host memory.",
        "Install the RDMA stack (MLNX_OFED or DOCA) before the NVIDIA driver, so that the driver "
        "is built with its peer-memory symbols; then modprobe nvidia-peermem. With a kernel from "
        "5.12 on and the open driver, NCCL uses DMA-BUF and needs no such module.",
        "gdr_disabled",
    ),
    _Kind(
        "not_mapped",
        ("nv_dma_map", "incompatible dma mapping", "nv_mem_get_pages"),
        Severity.MEDIUM,
        f"{_MODULE} could not map GPU memory for a network adapter: that registration fails, and "
        "with it GPUDirect RDMA of that GPU and adapter.",
        "Check IOMMU and ACS settings and that GPU and adapter may reach each other (nvidia-smi "
        "topo -m); NCCL_NET_GDR_LEVEL=LOC works around it.",
        "gdr_disabled",
    ),
    _Kind(
        "nv_get_p2p_free_callback",
        ("nv_get_p2p_free_callback", "invalid context"),
        Severity.LOW,
        f"{_MODULE} was told to free a mapping whose context was already gone. This is no Xid: the "
        "number after the function name is a line of the module's source. It usually follows a "
        "process with RDMA mappings that crashed or was killed.",
        "Look for what ended that process: an earlier Xid, an NCCL failure or an OOM kill before "
        "this line. Harmless on its own.",
    ),
    _Kind(
        "error",
        ("ERROR", "error"),
        Severity.LOW,
        f"{_MODULE} reports an error. This is no Xid.",
        "Look for what ended the process that used RDMA: an earlier Xid, an NCCL failure or an OOM "
        "kill before this line. Harmless on its own.",
    ),
)
_ERRORS = ("ERROR", "error", "nknown symbol", "could not insert", "disagrees about", "not found")


class PeermemReader:
    """Reads ``nvidia-peermem nv_get_p2p_free_callback:127 ERROR …``: 127 is a source line."""

    triggers: ClassVar[tuple[bytes, ...]] = (b"nvidia-peermem", b"nvidia_peermem", b"nv_peer_mem")

    def __init__(self, _context: Context) -> None:
        self.open = False
        self._seen: dict[str, list[int]] = {}

    def feed(self, number: int, text: str) -> bool:
        """Take one line; only errors become a finding."""
        if any(word in text for word in _ERRORS):
            kind = next((k for k in _KINDS if any(word in text for word in k.words)), None)
            if kind is not None:
                first_and_count = self._seen.setdefault(kind.id, [number, 0])
                first_and_count[1] += 1
        return True

    def finish(self) -> Result:
        """Say what the module's errors mean."""
        findings = []
        for kind in _KINDS:
            if kind.id not in self._seen:
                continue
            line, count = self._seen[kind.id]
            findings.append(
                Finding(
                    kind="peermem",
                    id=kind.id,
                    severity=kind.severity,
                    says=kind.says + (f" Printed {count} times." if count > 1 else ""),
                    action=kind.action,
                    entity=None,
                    line=line,
                    cause=kind.cause,
                    data={"count": count},
                    sources=(_SOURCE,),
                )
            )
        if not findings:
            return Result()
        causes = list(dict.fromkeys(f.cause for f in findings if f.cause))
        return Result(kinds=["peermem"], findings=findings, causes=causes)
