"""What lines of dcgm-exporter's log mean: a normal start, missing profiling, no exporter."""

from __future__ import annotations

from typing import Final

# What a start without trouble prints.
START: Final = (
    "Starting dcgm-exporter",
    "DCGM successfully initialized",
    "no fields to watch for device type",
    "Falling back to metric file",
    "Initializing system entities of type",
    "Pipeline starting",
    "Starting webserver",
)
# What the driver's or DCGM's words mean, and the cause; the first that matches.
REASONS: Final[tuple[tuple[str, str, str, str], ...]] = (
    (
        "module of DCGM that is not currently loaded",
        "DCGM's profiling module did not load (error -33)",
        (
            "usual reasons: a GPU without profiling support (GeForce before Blackwell, Pascal and "
            "older), no CAP_SYS_ADMIN in the container, a vGPU, DCGM 4 without its proprietary "
            "package (datacenter-gpu-manager-4-proprietary) on Ampere and older, or a driver that "
            "is too old"
        ),
        "metrics_missing",
    ),
    (
        "Profiling module returned an unrecoverable error",
        "the profiling module failed (error -37)",
        (
            "usual reasons: another profiler or a second host engine holds the counters (ncu, "
            "nsys, CUPTI, nv-hostengine beside the embedded one), or a driver fault"
        ),
        "profiling_paused",
    ),
    (
        "rofiling is not supported",
        "profiling is not supported on this GPU (or on one of this group)",
        "profiling metrics need a data-centre GPU from Volta on",
        "metrics_missing",
    ),
    (
        "GPUs of this group are incompatible",
        "the GPUs of this node differ, and the exporter asks for profiling of all as one group",
        (
            "usual reasons: GPUs of two models or of two generations on one node, or some in MIG "
            "mode and some not; run one exporter for each kind (-d), or use a newer one"
        ),
        "metrics_missing",
    ),
    (
        "requested function was not found",
        "the DCGM library lacks the function that the exporter asks it for",
        (
            "usual reasons: exporter and DCGM (or the host engine on the node) are of different "
            "major versions, or a driver too old for profiling"
        ),
        "metrics_missing",
    ),
    (
        "sufficient privileges to expose profiling metrics",
        "the exporter lacks the privilege for profiling",
        "it needs CAP_SYS_ADMIN, or the driver option NVreg_RestrictProfilingToAdminUsers=0",
        "metrics_missing",
    ),
)
DEAD: Final[tuple[tuple[str, str, str], ...]] = (
    (
        "Failed to connect to remote hostengine",
        "The exporter cannot reach the DCGM host engine that it was told to use.",
        (
            "Check nv-hostengine on that address and port (5555): systemctl status nvidia-dcgm; or "
            "leave out -r for the embedded one."
        ),
    ),
    (
        "libdcgm.so not Found",
        "The DCGM library is not installed where the exporter runs.",
        "Install datacenter-gpu-manager, or use the exporter's container image.",
    ),
    (
        "library was not found. Install Data Center GPU Manager",
        "The DCGM library is not installed where the exporter runs.",
        "Install datacenter-gpu-manager, or use the exporter's container image.",
    ),
    (
        "Cannot init NVML library",
        (
            "The exporter cannot load NVML: the driver's libraries are not in its container, or "
            "the driver does not answer."
        ),
        "Use the NVIDIA container runtime (runtimeClassName: nvidia); run nvidia-smi on the node.",
    ),
)
