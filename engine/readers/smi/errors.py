"""Errors of ``nvidia-smi``, NVML and CUDA that need no reading: what each means, what to do."""

from __future__ import annotations

from typing import Final

from engine.model import Severity
from engine.readers.smi.concern import Concern

_NVML: Final = ("NVIDIA NVML API 13, nvml.h, nvmlReturn_t",)
_MAN: Final = ("nvidia-smi manual page, return values",)

# By the reason after "Failed to initialize NVML:", in lower case; "" is any other.
INIT_FAILURES: Final = {
    "driver/library version mismatch": Concern(
        "version_mismatch",
        "host_misconfigured",
        Severity.HIGH,
        "The driver's libraries were updated while the old kernel module stays loaded. Running "
        "programs go on, new ones fail. The GPU itself is sound.",
        "Reboot; or drain the node, stop everything on the GPUs, then rmmod nvidia_uvm nvidia_drm "
        "nvidia_modeset nvidia && modprobe nvidia. Compare cat /proc/driver/nvidia/version with "
        "modinfo -F version nvidia, and hold back automatic driver updates.",
        _NVML,
    ),
    "unknown error": Concern(
        "unknown",
        None,
        Severity.HIGH,
        "In a container this is usually lost access to /dev/nvidia*: a systemctl daemon-reload on "
        "the host rewrites the device cgroup. On the host it means a GPU or driver that does not "
        "answer.",
        "Run nvidia-smi on the host: if it works there, restart the container (and name the "
        "devices with --device, or use CDI); if not, read dmesg -T for Xids.",
        (*_NVML, "NVIDIA/nvidia-container-toolkit issue 48"),
    ),
    "insufficient permissions": Concern(
        "permissions",
        None,
        Severity.MEDIUM,
        "This user or container may not open the NVIDIA devices.",
        "ls -l /dev/nvidia*; run as a member of the right group, or give the container the "
        "devices.",
        _NVML,
    ),
    "driver not loaded": Concern(
        "not_loaded",
        "host_misconfigured",
        Severity.HIGH,
        "The kernel module is not loaded.",
        "modprobe nvidia and read dmesg -T; after a kernel update rebuild it (dkms status); check "
        "Secure Boot.",
        _NVML,
    ),
    "gpu access blocked by the operating system": Concern(
        "blocked",
        None,
        Severity.HIGH,
        "Usual in WSL and virtual machines: the driver of the host is missing, too old, or was "
        "updated without a restart.",
        "In WSL: install the current Windows driver, then wsl --update and wsl --shutdown. In a "
        "virtual machine: check the passed-through device on the host.",
        _NVML,
    ),
    "gpu is lost": Concern(
        "lost",
        "gpu_off_bus",
        Severity.CRITICAL,
        "A GPU is off the PCIe bus and keeps NVML from starting.",
        "Drain the node, keep dmesg -T, power-cycle the host.",
        _NVML,
    ),
    "": Concern(
        "other",
        None,
        Severity.HIGH,
        "So no tool can read the GPUs.",
        "Read dmesg -T | grep NVRM, and see that the kernel module is loaded.",
        _NVML,
    ),
}

_ERRORS: Final = (
    Concern(
        "no_devices",
        None,
        Severity.HIGH,
        "nvidia-smi finds no device it could use: the driver is loaded, but no GPU is attached to "
        "it, none could be initialised, or none is given to this container.",
        "lspci | grep -i nvidia ('rev ff' means off the bus, nothing at all means power or slot); "
        "dmesg -T | grep NVRM (RmInitAdapter failed, Xid); in a container look on the host.",
        _MAN,
    ),
    Concern(
        "no_driver",
        "host_misconfigured",
        Severity.HIGH,
        "nvidia-smi cannot talk to the NVIDIA driver: its kernel module is not loaded, or does not "
        "fit the running kernel. This says nothing about the GPU's health.",
        "lsmod | grep nvidia; modprobe nvidia and read dmesg -T; after a kernel update rebuild the "
        "module (dkms status); check Secure Boot and nouveau.",
        _MAN,
    ),
    Concern(
        "no_library",
        None,
        Severity.HIGH,
        "nvidia-smi finds no libnvidia-ml.so: the driver's libraries are not installed, or not "
        "given to this container. This says nothing about the GPU's health.",
        "On the host: install the driver's utilities of the running version (cat "
        "/proc/driver/nvidia/version), then ldconfig. In a container: "
        "NVIDIA_DRIVER_CAPABILITIES=compute,utility and the NVIDIA runtime.",
        _MAN,
    ),
    Concern(
        "no_tool",
        None,
        Severity.LOW,
        "nvidia-smi is not there: no driver utilities on this host, or a container without them. "
        "This says nothing about the GPU.",
        "lspci | grep -i nvidia; on the host install the driver's utilities; in a container set "
        "NVIDIA_DRIVER_CAPABILITIES=compute,utility and use the NVIDIA runtime.",
        _MAN,
    ),
    Concern(
        "multicast",
        "nvls_unavailable",
        Severity.MEDIUM,
        "nvbandwidth's multicast tests are waived: multicast (NVLink SHARP, NVLS) is not available "
        "here. A fabric in State Completed with Status Success is registered all the same, and "
        "ordinary peer traffic over NVLink works.",
        "Set NCCL_NVLS_ENABLE=0 for now. Check that the fabric manager runs in the driver's "
        "version, and virtualisation: a VM needs a partition with multicast; MIG turns it off.",
        (
            "NVIDIA/nvbandwidth README (waived tests)",
            "NVIDIA NCCL documentation, NCCL_NVLS_ENABLE",
        ),
    ),
    Concern(
        "inforom",
        None,
        Severity.MEDIUM,
        "The board's InfoROM is corrupted: its records of ECC errors, remapped rows and limits "
        "cannot be trusted. The GPU may work otherwise.",
        "Power-cycle the host; if the warning stays, ask the vendor (reflash or RMA).",
        _MAN,
    ),
    Concern(
        "in_use",
        None,
        Severity.LOW,
        "The GPU reset was refused: something still holds the GPU.",
        "fuser -v /dev/nvidia*; stop what it lists (monitoring and the persistence daemon too: "
        "nvidia-smi -pm 0), then reset again; otherwise reboot.",
        ("nvidia-smi manual page, --gpu-reset",),
    ),
)
# Told with what the text around says; the rest is told as it stands.
_TOLD: Final = (
    Concern(
        "missing",
        "gpu_off_bus",
        Severity.CRITICAL,
        "A GPU that the driver does not list fell off the PCIe bus, failed to initialise, or has "
        "no power.",
        "Drain the node. lspci | grep -i nvidia: 'rev ff' is off the bus, a GPU that answers there "
        "failed to initialise, one that is not there has lost power, seating or its slot. "
        "dmesg -T | grep -E 'NVRM|Xid' (79, RmInitAdapter) tells when; then power-cycle the host.",
        (*_MAN, "NVIDIA Xid Errors documentation, Xid 79"),
    ),
    Concern(
        "hung",
        None,
        Severity.HIGH,
        "A process hangs in the NVIDIA driver: in state D (uninterruptible) it cannot be killed. "
        "The driver waits for a GPU that does not answer: off the bus (Xid 79), GSP firmware "
        "(Xid 119, 120), or a lock that another hung process holds.",
        "dmesg -T | grep -E 'NVRM|Xid|blocked for more than' for the first message; lspci | grep "
        "-i nvidia ('rev ff' is off the bus); cat /proc/PID/stack of the hung process. Drain the "
        "node and reboot; power-cycle it if the reboot hangs or a GPU is off the bus.",
        ("Linux kernel documentation, hung task detector", *_NVML),
    ),
)
PLAIN: Final = {concern.id: concern for concern in _ERRORS}
ERRORS: Final = PLAIN | {concern.id: concern for concern in _TOLD}
