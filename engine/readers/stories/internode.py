"""Reader of a slowdown between nodes in figures: "2 nodes 10 GB/s (was 180), 1 node unchanged".

Where one node is as fast as before and two are not, the path between them changed. NCCL up to
2.22.3 looks only for the old peer memory module; with nvidia-peermem in its place it takes
GPUDirect RDMA for absent (NVIDIA/nccl#1676), and says so in "GPU Direct RDMA Disabled".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from engine.model import Finding, Severity
from engine.readers.base import Result
from engine.readers.listing import Listing, finding, result_of
from engine.units import number

_N: Final = r"(\d{1,5}(?:\.\d{1,3})?)"
_RATE: Final = re.compile(
    r"\b(?:([2-9]|\d{2,5}|two|three|four|eight)[ -]nodes?|multi-?node|inter-?node)\b"
    rf"[^.;]{{0,60}}?\b{_N} ?GB/s ?[(,]? ?(?:was|instead of|before|down from|used to be) {_N}",
    re.IGNORECASE,
)
_ALONE: Final = re.compile(
    r"\b(?:1|one|single)[ -]node\b[^.;,]{0,40}?"
    r"\b(?:unchanged|same|as before|fine|normal|full speed|ok)\b",
    re.IGNORECASE,
)
_VERSION: Final = re.compile(
    r"\bNCCL (?:version )?(\d{1,2})\.(\d{1,3})(?:\.(\d{1,3}))?", re.IGNORECASE
)
_OFF: Final = re.compile(
    r"GPU ?Direct RDMA (?:is )?(?:off|disabled)|\bGDR (?:is )?(?:0|off|disabled)\b", re.IGNORECASE
)
_BUSY: Final = re.compile(
    rf"\butili[sz]ation {_N} ?(?:%|per ?cent)[^.;]{{0,30}}?\bpower {_N} of {_N} W\b", re.IGNORECASE
)
_SLOWED: Final = 0.7
_BLIND_UP_TO: Final = (2, 22, 3)
# A GPU that computes draws more than this part of its limit (thresholds/power_working_ratio).
_WORKING: Final = 0.6
_LONGEST: Final = 1_000


@dataclass(frozen=True, slots=True)
class Story:
    """What one line tells: bandwidth between nodes now and before (GB/s), and what it may be."""

    line: int
    now: float
    before: float
    alone: bool
    version: tuple[int, int, int] | None
    off: bool
    busy: tuple[float, float, float] | None


class InterNodeReader(Listing[Story]):
    """Reads sentences that hold both figures."""

    triggers: ClassVar[tuple[bytes, ...]] = (b"GB/s",)

    def take(self, number: int, text: str) -> bool:
        """Take a sentence with a bandwidth between nodes now and before."""
        text = text[:_LONGEST]
        found = _RATE.search(text)
        if found is None:
            return False
        version, busy = _VERSION.search(text), _BUSY.search(text)
        self.kept.add(
            Story(
                number,
                float(found[2]),
                float(found[3]),
                _ALONE.search(text) is not None,
                (int(version[1]), int(version[2]), int(version[3] or 0)) if version else None,
                _OFF.search(text) is not None,
                (float(busy[1]), float(busy[2]), float(busy[3])) if busy else None,
            )
        )
        return True

    def judge(self, records: Sequence[Story]) -> Result:
        """Say what slows the path between the nodes."""
        slow = [r for r in records if r.now < _SLOWED * r.before]
        return result_of(["bandwidth between nodes"], [_told(r) for r in slow])


def _told(one: Story) -> Finding:
    where = (
        "Only the traffic between nodes is slow" if one.alone else "Traffic between nodes is slow"
    )
    says = f"{where}: {number(one.now)} GB/s, {number(one.before)} before"
    says += (
        "; a single node is as fast as before, so GPUs and NVLink are sound." if one.alone else "."
    )
    old = one.version is not None and one.version <= _BLIND_UP_TO
    action = (
        "Run with NCCL_DEBUG=INFO and look for 'GPU Direct RDMA Disabled', channels without"
        " /GDRDMA, and NET/Socket; check the ports (ibstat) and nvidia_peermem or DMA-BUF on all"
        " hosts."
    )
    if old and one.version is not None:
        name = ".".join(map(str, one.version))
        says += (
            f" NCCL {name} does not know nvidia_peermem (known since 2.23.4): after an upgrade that"
            " brings it, GPUDirect RDMA is taken for off, and data goes through host memory."
        )
        action = f"Upgrade NCCL to 2.23.4 or newer. To be sure: {action[0].lower()}{action[1:]}"
    elif one.off:
        says += " GPUDirect RDMA is off: data goes through host memory on the way to the network."
    if one.busy and one.busy[1] < _WORKING * one.busy[2]:
        says += (
            f" Utilisation {number(one.busy[0])} % at {number(one.busy[1])} of"
            f" {number(one.busy[2])} W is waiting in NCCL's kernels, not work."
        )
    sure = old or one.off
    return finding(
        "bandwidth between nodes",
        "gdr_off_between_nodes" if sure else "slow_between_nodes",
        Severity.HIGH if sure else Severity.MEDIUM,
        says,
        action,
        line=one.line,
        cause="gdr_disabled" if sure else None,
        data={"bandwidth_gb_per_s": one.now, "bandwidth_before_gb_per_s": one.before},
        sources=("NVIDIA/nccl#1676",) if old else (),
    )
