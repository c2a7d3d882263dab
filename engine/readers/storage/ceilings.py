"""Line rates of clients, and what classes of devices deliver: what a figure can be held against.

There is no rate that is healthy for any storage; knowledge/storage says the same. Sources: line
rates by arithmetic; classes of devices from drive data sheets (orders of magnitude).
"""

from __future__ import annotations

from typing import Final

from engine.units import number

# GB/s of one client's NIC at line rate, and its usual name.
NICS: Final = (
    (0.125, "1 GbE"),
    (1.25, "10 GbE"),
    (3.125, "25 GbE"),
    (5.0, "40 GbE"),
    (6.25, "50 GbE"),
    (12.5, "100 Gb/s"),
    (25.0, "200 Gb/s"),
    (50.0, "400 Gb/s"),
    (100.0, "800 Gb/s"),
)
# Part of the line rate from which a NIC is taken to be full: TCP and NFS leave 85 to 98 %.
_FULL: Final = 0.85
# One hard disk reads and writes 100 MB/s and more in sequence.
_ONE_DISK_GBS: Final = 0.1
# Shorter than this, in s, or in smaller blocks, a transfer shows start-up, cache and calls.
ENOUGH_S: Final = 5.0
LARGE_BYTES: Final = 131_072
BELOW_ONE_DISK: Final = "One hard disk does better (100 MB/s and more)"


def below_one_disk(gbs: float, *, seconds: float | None, block: float | None) -> bool:
    """Return whether a transfer in sequence is slower than any kind of device.

    Args:
        gbs: GB/s (10^9) of all streams together.
        seconds: how long it ran, None if it is not said.
        block: bytes of a request, None if they are not said.
    """
    enough = seconds is None or seconds >= ENOUGH_S
    large = block is None or block >= LARGE_BYTES
    return enough and large and gbs < _ONE_DISK_GBS


def nic_note(gbs: float) -> str:
    """Say which client NIC a bandwidth would fill, or which it needs at least.

    Args:
        gbs: GB/s (10^9) on one client.
    """
    if gbs < 0.05:
        return ""
    for rate, name in NICS:
        if gbs <= rate:
            if gbs >= _FULL * rate:
                return (
                    f"That is {100 * gbs / rate:.0f} % of a {name} NIC ({number(rate)} GB/s): over "
                    "such a NIC a client can do no more."
                )
            return (
                f"Over the network it takes at least {name} ({number(rate)} GB/s), of which it is "
                f"{100 * gbs / rate:.0f} %."
            )
    return "No single NIC carries that: it is local storage, a cache, or several clients."


def iops_note(iops: float, depth: int | None) -> str:
    """Say what kind of device gives so many random reads of 4 KiB a second."""
    if iops < 300:
        return "That is what one hard disk gives (75 to 200)."
    if iops <= 20_000 and (depth or 1) == 1:
        return "With one request at a time an NVMe drive gives 10,000 to 15,000."
    if iops <= 110_000:
        return "A SATA SSD gives up to 100,000 at depth 32, an NVMe drive several times that."
    return "That is what NVMe drives give with many requests in flight."
