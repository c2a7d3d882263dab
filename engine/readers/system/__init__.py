"""Readers of what a host says of its CPU and memory: free, vmstat, pressure, CPU quota."""

from __future__ import annotations

from engine.readers.base import MakesReader
from engine.readers.system.cpu_quota import CpuQuotaReader
from engine.readers.system.memory import FreeReader
from engine.readers.system.pressure import PressureReader
from engine.readers.system.vmstat import VmstatReader

SYSTEM_READERS: tuple[MakesReader, ...] = (
    CpuQuotaReader,
    PressureReader,
    FreeReader,
    VmstatReader,
)

__all__ = ["SYSTEM_READERS"]
