"""The GSP, the processor on the GPU that runs most of the driver, in lines without an Xid.

Lines: NVIDIA open-gpu-kernel-modules 595.45.04, src/nvidia/src/kernel/gpu/gsp/kernel_gsp.c.
"""

from __future__ import annotations

import re

from engine.model import Severity
from engine.readers.host.part import Rule

_SOURCE = "NVIDIA open-gpu-kernel-modules 595.45.04, gpu/gsp/kernel_gsp.c"
_GPU = r"NVRM: (?:GPU ?(?P<gpu>\d{1,3})[ :] ?)?"

GSP_RULES: tuple[Rule, ...] = (
    Rule(
        "gsp_heartbeat",
        re.compile(
            rf"{_GPU}.{{0,60}}?[Hh]eartbeat timed out"
            r"(?:.{0,160}?diff (?P<late_ms>[0-9]{1,15}))?"
        ),
        Severity.HIGH,
        "The GSP{on} missed its heartbeat: the firmware on the GPU does not run, or not in time, "
        "so nothing that needs it comes back.",
        "Look for Xid 109, 119, 120 or 154 beside it and obey the last; drain the GPU and reset "
        "it, power-cycle the machine if that fails. Where it comes with each wake-up of an idle "
        "GPU, keep the GPU awake (nvidia-persistenced). Update the driver.",
        "gsp_failure",
        apart=("gpu",),
        source=_SOURCE,
    ),
    Rule(
        "gsp_timeout",
        re.compile(rf"{_GPU}\w{{0,40}}:? ?\*{{4,40}} ?GSP Timeout ?\*{{4,40}}"),
        Severity.HIGH,
        "The driver{on} waited in vain for the GSP, the processor on the GPU that runs its "
        "firmware.",
        "Look for the Xid 119 beside it; drain the GPU and reset it, power-cycle the machine if "
        "that fails.",
        "gsp_failure",
        apart=("gpu",),
        source=_SOURCE,
    ),
    Rule(
        "gsp_rate_limited",
        re.compile(
            r"NVRM: Rate limiting GSP RPC error prints for GPU at (?:PCI:)?(?P<gpu>\S{5,20}) "
        ),
    ),
)
