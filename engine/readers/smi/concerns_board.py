"""What can be wrong with the GPU itself: its state, memory, heat and sensors."""

from __future__ import annotations

from typing import Final

from engine.model import Severity
from engine.readers.smi.concern import Concern

_MEMORY: Final = (
    "NVIDIA, GPU Memory Error Management (docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt)"
)
_MAN: Final = "nvidia-smi manual page"
_NVML: Final = "NVIDIA NVML API 13, nvml.h"
_RESET: Final = (
    "Drain the GPU, stop every process on it, then nvidia-smi --gpu-reset -i INDEX; on NVSwitch "
    "systems reset all GPUs of the node together. If the reset is refused, reboot the node."
)

BOARD: Final = (
    Concern(
        "requires_reset",
        "gpu_needs_reset",
        Severity.CRITICAL,
        "The driver has taken the GPU out of use until it is reset: a new process cannot use it, "
        "CUDA counts fewer GPUs than are there, and jobs that ask for the missing ones fail with "
        "'invalid device ordinal'. The reset is the remedy, not the cause: an Xid before it is.",
        "Drain the node and take it out of service; find the first Xid with dmesg -T. " + _RESET,
        (f"{_NVML}, NVML_ERROR_RESET_REQUIRED",),
    ),
    Concern(
        "lost",
        "gpu_off_bus",
        Severity.CRITICAL,
        "The driver cannot reach the GPU any more: it is off the PCIe bus, as after Xid 79. An "
        "in-band reset cannot bring it back.",
        "Drain the node, keep dmesg -T and nvidia-bug-report.sh, then power-cycle the host; if it "
        "comes back, check seating, power and temperature before it gets work.",
        (f"{_NVML}, NVML_ERROR_GPU_IS_LOST",),
    ),
    Concern(
        "unreadable",
        "gpu_needs_reset",
        Severity.CRITICAL,
        "Several of the readings that every working GPU has cannot be read, so the GPU or its "
        "firmware does not answer: usual after Xid 79 (off the bus), 119 or 120 (GSP), or with a "
        "hung driver. It is not usable in this state.",
        "Drain the node; the first Xid in dmesg -T tells which it is. lspci -s BUS_ID showing "
        "'rev ff' means that the GPU is off the bus: power-cycle the host. Otherwise reset the "
        "GPU, or reboot if the reset hangs.",
        (_NVML,),
    ),
    Concern(
        "recovery_reset",
        "gpu_needs_reset",
        Severity.CRITICAL,
        "The driver's own recovery action asks for a GPU reset.",
        "Find the Xid that caused it: dmesg -T. " + _RESET,
        (f"{_NVML}, nvmlDeviceGpuRecoveryAction_t",),
    ),
    Concern(
        "recovery_reboot",
        "gpu_needs_reset",
        Severity.CRITICAL,
        "The driver's own recovery action asks for a reboot of the node: a reset is not enough.",
        "Drain the node, keep dmesg -T with the Xid that caused it, then reboot.",
        (f"{_NVML}, nvmlDeviceGpuRecoveryAction_t",),
    ),
    Concern(
        "recovery_drain",
        "gpu_needs_reset",
        Severity.HIGH,
        "The driver's own recovery action asks to take work off the GPU before anything is reset.",
        "Drain the node; stop jobs that use peer access to this GPU. " + _RESET,
        (f"{_NVML}, nvmlDeviceGpuRecoveryAction_t",),
    ),
    Concern(
        "recovery_other",
        "gpu_needs_reset",
        Severity.HIGH,
        "The driver asks for a recovery action of this name; it is none of those that are known "
        "here.",
        "Look it up in the driver's release notes (nvmlDeviceGpuRecoveryAction_t), find the Xid "
        "that caused it with dmesg -T, and drain the node.",
        (f"{_NVML}, nvmlDeviceGpuRecoveryAction_t",),
    ),
    Concern(
        "drain_and_reset",
        "gpu_needs_reset",
        Severity.MEDIUM,
        "A reset is recommended, for instance because a row remap waits or a contained error left "
        "part of the memory unusable. Running work can finish.",
        "Drain the GPU at the next opportunity, then " + _RESET[0].lower() + _RESET[1:],
        (_MAN,),
    ),
    Concern(
        "remap_failure",
        "row_remap_failure",
        Severity.CRITICAL,
        "A row of the GPU memory could not be remapped: the repair is at its end and the memory "
        "is not to be trusted.",
        "Take the GPU out of service, run the field diagnostics and open an RMA (in a cloud: "
        "replace the instance).",
        (_MEMORY,),
    ),
    Concern(
        "unrepairable",
        "row_remap_failure",
        Severity.CRITICAL,
        "The memory has an error that can no longer be repaired.",
        "Take the GPU out of service, run the field diagnostics and open an RMA.",
        (_MEMORY, f"{_NVML}, NVML_DEVICE_MEMORY_UNREPAIRABLE"),
    ),
    Concern(
        "remap_pending",
        "row_remap_pending",
        Severity.MEDIUM,
        "A bad memory row or page is recorded for repair and takes effect at the next reset. Work "
        "can go on until then.",
        "Drain the GPU at the next maintenance window and reset it: nvidia-smi --gpu-reset -i "
        "INDEX. Then see that 'Pending' says No.",
        (_MEMORY,),
    ),
    Concern(
        "repair_pending",
        "row_remap_pending",
        Severity.MEDIUM,
        "A memory channel or an SM cluster (TPC) is recorded for repair; the spare takes over at "
        "the next reset.",
        "Drain the GPU and reset it, or reboot; then read ECC ERRORS again.",
        (_MAN, _MEMORY),
    ),
    Concern(
        "banks_used_up",
        "row_remap_failure",
        Severity.HIGH,
        "Banks of the memory have no spare row left: the next bad row in one of them cannot be "
        "remapped.",
        "Plan the replacement; run the field diagnostics at the next drain.",
        (_MEMORY,),
    ),
    Concern(
        "sram_threshold",
        "ecc_uncorrectable",
        Severity.HIGH,
        "Uncorrectable errors of on-chip memory (SRAM) are over NVIDIA's threshold; no remap can "
        "repair SRAM.",
        "Drain the GPU, run the field diagnostics and ask for a replacement.",
        (_MEMORY,),
    ),
    Concern(
        "ecc_uncorrected",
        "ecc_uncorrectable",
        Severity.HIGH,
        "Uncorrectable ECC errors since the driver was loaded or the GPU reset: the work that used "
        "that memory died or computed with lost data.",
        "Find the Xids (48, 63, 64, 94, 95) with dmesg -T; read nvidia-smi -q -d ECC,ROW_REMAPPER; "
        "drain and reset the GPU; replace it if the remap failed or errors come back.",
        (_MEMORY,),
    ),
    Concern(
        "retired_pages",
        "row_remap_failure",
        Severity.HIGH,
        "So many pages are retired that NVIDIA's limit for a replacement is near or reached (63; "
        "15 are a warning).",
        "Ask the vendor for a replacement.",
        ("NVIDIA, Dynamic Page Retirement", "NVIDIA/DCGM modules/health/DcgmHealthWatch.cpp 4.6.0"),
    ),
    Concern(
        "too_hot",
        "thermal_slowdown_sw",
        Severity.HIGH,
        "The die is at or over its maximum operating temperature: the driver lowers the clocks.",
        "Check airflow, fans, cold plate or coolant and the inlet; compare with the other GPUs.",
        (_MAN,),
    ),
    Concern(
        "too_hot_for_model",
        "thermal_slowdown_sw",
        Severity.HIGH,
        "The die is at or over the highest temperature at which this model is meant to work: the "
        "driver or the hardware lowers the clocks. In synchronous training the others wait for it.",
        "Read clocks and reasons: nvidia-smi -q -d TEMPERATURE,PERFORMANCE,CLOCK -i INDEX. Check "
        "airflow, fans, cold plate or coolant and the inlet; compare with the other GPUs.",
        (_MAN, "gpuwhy knowledge/gpu_models.yaml"),
    ),
    Concern(
        "memory_hot",
        "memory_overheat",
        Severity.HIGH,
        "The memory is at or over its maximum operating temperature, the die is not: the driver "
        "lowers the clocks.",
        "Check cold plate, thermal pads and airflow of this board.",
        (_MAN,),
    ),
    Concern(
        "fan_unreadable",
        None,
        Severity.MEDIUM,
        "The fan cannot be read: usually a broken fan or its connector, the GPU itself answers.",
        "Look at the fan, and watch the temperature under load until it is replaced.",
        (_MAN,),
    ),
    Concern(
        "sensor_unreadable",
        None,
        Severity.LOW,
        "A single sensor cannot be read. Some boards and drivers never report it; the other "
        "readings are there, so the GPU answers.",
        "Compare with the same model elsewhere before acting.",
        (_MAN,),
    ),
    Concern(
        "permissions",
        None,
        Severity.LOW,
        "Readings are hidden from this user or container, which says nothing about the GPU.",
        "Run nvidia-smi as root or in a container with the right capabilities.",
        (f"{_NVML}, NVML_ERROR_NO_PERMISSION",),
    ),
)
