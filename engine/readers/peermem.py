"""Reader of messages of the ``nvidia-peermem`` module, which look like Xids but are none."""

from __future__ import annotations

from typing import ClassVar

from engine.model import Finding, Severity
from engine.readers.base import Context, Result


class PeermemReader:
    """Reads ``nvidia-peermem nv_get_p2p_free_callback:127 ERROR …``: 127 is a source line."""

    triggers: ClassVar[tuple[bytes, ...]] = (b"nvidia-peermem", b"nvidia_peermem", b"nv_peer_mem")

    def __init__(self, _context: Context) -> None:
        self.open = False
        self._line = 0
        self._count = 0
        self._context_lost = False

    def feed(self, number: int, text: str) -> bool:
        """Take one line; only errors become a finding."""
        if "ERROR" in text or "error" in text:
            self._line = self._line or number
            self._count += 1
            self._context_lost |= "nv_get_p2p_free_callback" in text or "invalid context" in text
        return True

    def finish(self) -> Result:
        """Say what the module's errors mean."""
        if not self._count:
            return Result()
        if self._context_lost:
            says = (
                "nvidia-peermem (GPU peer memory for RDMA) was told to free a mapping whose "
                "context was already gone. This is no Xid: the number after the function name is a "
                "line of the module's source. It usually follows a process with RDMA mappings that "
                "crashed or was killed."
            )
        else:
            says = "nvidia-peermem (GPU peer memory for RDMA) reports an error. This is no Xid."
        if self._count > 1:
            says += f" Printed {self._count} times."
        finding = Finding(
            kind="peermem",
            id="nv_get_p2p_free_callback" if self._context_lost else "error",
            severity=Severity.LOW,
            says=says,
            action=(
                "Look for what ended that process: an earlier Xid, an NCCL failure or an OOM kill "
                "before this line. Harmless on its own."
            ),
            entity=None,
            line=self._line,
            cause=None,
            data={"count": self._count},
            sources=("NVIDIA open-gpu-kernel-modules, nvidia-peermem/nvidia-peermem.c",),
        )
        return Result(kinds=["peermem"], findings=[finding])
