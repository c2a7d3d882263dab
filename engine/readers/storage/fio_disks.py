"""What the block devices under a fio run say of it; a network file system has none there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from engine.readers.quantities import listed
from engine.readers.storage.fio_run import Disk
from engine.units import number

# A disk with requests in flight for so much of the time (percent) is what the run waited for.
_BUSY: Final = 90.0
# An NVMe drive reads and writes more than this in sequence, GB/s; slow ones give 1 (order of
# magnitude of data sheets).
_NVME_GBS: Final = 0.5


def disk_note(disks: Sequence[Disk]) -> str:
    """Say that block devices did the work, and how busy they were."""
    if not disks:
        return ""
    told = listed((f"{d.name} {number(d.busy_percent)} %" for d in disks), 4)
    busiest = max(d.busy_percent for d in disks)
    end = ": the disk is what it waits for." if busiest >= _BUSY else "."
    return (
        f"It ran on a block device, not on a network file system; time with requests in flight: "
        f"{told}{end}"
    )


def slow_drive(gbs: float, disks: Sequence[Disk]) -> str:
    """Say that a busy NVMe drive gives less than any does; empty if that is not so.

    Args:
        gbs: GB/s (10^9) of large requests in sequence.
        disks: the disks of the run.
    """
    busy = [d for d in disks if d.busy_percent >= _BUSY]
    if not busy or len(busy) != len(disks) or not all(d.name.startswith("nvme") for d in disks):
        return ""
    if gbs >= _NVME_GBS * len(disks):
        return ""
    names = listed((f"{d.name} ({number(d.busy_percent)} % of the time)" for d in busy), 4)
    return (
        f"The disk {names} had requests in flight all along, and an NVMe drive gives 1 GB/s "
        "and more in sequence: the drive is slow, worn, hot, or shared."
    )
