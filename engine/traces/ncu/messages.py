"""What Nsight Compute prints when it could not profile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from engine.model import Severity

SOURCE: Final = (
    "NVIDIA Nsight Compute documentation (2026), Frequently Asked Questions and release notes"
)


@dataclass(frozen=True, slots=True)
class Message:
    """A message: how it is found, and what it means."""

    id: str
    match: str
    severity: Severity
    says: str
    action: str


MESSAGES: Final = (
    Message(
        "counters_restricted",
        "ERR_NVGPUCTRPERM",
        Severity.MEDIUM,
        "Nsight Compute may not read the GPU's counters: the driver restricts them to "
        "administrators (ERR_NVGPUCTRPERM). Nothing was measured.",
        "Run it as root or with CAP_SYS_ADMIN, or let the node's owner set "
        "`NVreg_RestrictProfilingToAdminUsers=0` for the nvidia module and reload the driver; "
        "check with `grep RmProfilingAdminOnly /proc/driver/nvidia/params`.",
    ),
    Message(
        "counters_taken",
        "driver resource was unavailable",
        Severity.MEDIUM,
        "Another tool holds the GPU's counters (DCGM, Nsight Systems with GPU metrics, another "
        "ncu): nothing was measured.",
        "Pause DCGM's profiling for the time of the capture (`dcgmi profile --pause`, then "
        "`--resume`), or stop the other profiler.",
    ),
    Message(
        "no_kernels",
        "No kernels were profiled",
        Severity.LOW,
        "No kernel was profiled: no launch matched the filters, or the work runs in a child "
        "process.",
        "Check `--kernel-name regex:...`, `--launch-skip`, and give `--target-processes all`.",
    ),
    Message(
        "no_metrics",
        "Failed to find metric",
        Severity.LOW,
        "A metric that was asked for does not exist on this GPU or in this version of ncu.",
        "`ncu --query-metrics --chip CHIP` lists those that do; `gpuwhy decode METRIC` knows old "
        "names.",
    ),
)


def message_of(text: str) -> Message | None:
    """Return what a line of ncu's own says, if it says that something went wrong."""
    return next((m for m in MESSAGES if m.match in text), None)
