"""What the messages of ROCm's runtime mean, and what to do about them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.model import Severity

_APP = "app_fault_xid"
# Status: what it means, cause, what to do. Meanings in our words.
_STATUSES: dict[str, tuple[str, str | None, str]] = {
    "HSA_STATUS_ERROR_MEMORY_APERTURE_VIOLATION": (
        "a kernel used an address outside every memory window",
        _APP,
        "debug",
    ),
    "HSA_STATUS_ERROR_MEMORY_FAULT": (
        "a kernel used memory that it may not access",
        _APP,
        "debug",
    ),
    "HSA_STATUS_ERROR_ILLEGAL_INSTRUCTION": (
        (
            "a kernel ran an instruction that this GPU does not have, mostly code built for "
            "another architecture, or jumped into garbage"
        ),
        _APP,
        "isa",
    ),
    "HSA_STATUS_ERROR_EXCEPTION": (
        "a kernel raised a hardware exception; the kernel log says which",
        _APP,
        "debug",
    ),
    "HSA_STATUS_ERROR_FATAL": ("a queue met an error that ends the process", _APP, "debug"),
    "HSA_STATUS_ERROR_OUT_OF_REGISTERS": (
        "a kernel asks for more registers than the GPU has",
        _APP,
        "isa",
    ),
    "HSA_STATUS_ERROR_INVALID_PACKET_FORMAT": (
        "a queue packet is malformed: the program or a library wrote over its queue",
        _APP,
        "debug",
    ),
    "HSA_STATUS_ERROR_INVALID_ISA": (
        "the code was built for another GPU architecture",
        "launch_misconfigured",
        "isa",
    ),
    "HSA_STATUS_ERROR_INVALID_CODE_OBJECT": (
        "the code object does not fit this GPU or is damaged",
        "launch_misconfigured",
        "isa",
    ),
    "HSA_STATUS_ERROR_OUT_OF_RESOURCES": (
        "the runtime could not get memory, a queue or a thread",
        "gpu_memory_full",
        "resources",
    ),
    "HSA_STATUS_ERROR_INVALID_ALLOCATION": (
        "an allocation was refused",
        "gpu_memory_full",
        "resources",
    ),
}
NUMBERS = {
    4096: "HSA_STATUS_ERROR",
    4097: "HSA_STATUS_ERROR_INVALID_ARGUMENT",
    4104: "HSA_STATUS_ERROR_OUT_OF_RESOURCES",
    4107: "HSA_STATUS_ERROR_NOT_INITIALIZED",
}
"""Values of hsa_status_t that ``rocminfo`` prints as numbers."""
_ACTIONS = {
    "debug": (
        "Look at the kernel log of that time (dmesg | grep -i amdgpu): a page fault there names "
        "the process. Run with AMD_SERIALIZE_KERNEL=3 HIP_LAUNCH_BLOCKING=1 to find the kernel, "
        "then use rocgdb or -fsanitize=address. Suspect hardware only if RAS errors stand beside "
        "it or a known-good program fails on this GPU alone."
    ),
    "isa": (
        "Compare the GPU's architecture (rocminfo | grep gfx) with what the program was built for "
        "(roc-obj-ls, torch.cuda.get_arch_list()): rebuild for it, and unset "
        "HSA_OVERRIDE_GFX_VERSION if it is set."
    ),
    "resources": (
        "See what is taken: amd-smi process, amd-smi metric --mem-usage, ulimit -l and -u, and "
        "/dev/shm in containers. Stop what is left over, then start again."
    ),
    "hang": (
        "Read the kernel log (dmesg | grep -i amdgpu) for the hang and the reset, and restart the "
        "jobs that ran on this GPU: their data is lost."
    ),
    "ecc": (
        "Take the GPU out of service; amd-smi metric --ecc-blocks and amd-smi bad-pages show what "
        "failed. Restart the job elsewhere."
    ),
    "module": (
        "Load the driver (modprobe amdgpu) and read dmesg | grep -i amdgpu for why it is not "
        "there; after a kernel update rebuild it (dkms status)."
    ),
    "device": (
        "Give the user access: groups render and video own /dev/kfd and /dev/dri/renderD* (usermod "
        "-aG render,video USER, then log in anew); containers need --device=/dev/kfd "
        "--device=/dev/dri --group-add of those groups."
    ),
}


_MODULE = (
    "The kernel driver is not loaded (rocminfo: ROCk module is NOT loaded), so no AMD GPU can be "
    "used on this machine."
)
_MODULE_SMI = (
    "amd-smi or rocm-smi found no driver: the module amdgpu is not loaded, or it is built into the "
    "kernel, or this is WSL, where the tools cannot see it. Whether a GPU works is not shown."
)
_BINARY = (
    "A HIP program holds no code for the architecture of this GPU (hipErrorNoBinaryForGpu or "
    "invalid device function)."
)

Words = tuple[str, str, str | None, Severity]
"""What it shows, what to do, cause, severity."""


def words(what: str, place: str, values: Mapping[str, Any]) -> Words:
    """Return the words for one message.

    Args:
        what: fault, ecc, hang, start, status, binary, module or device.
        place: the number of the GPU node, the status, the value returned, or the tool (smi).
        values: what the message says.
    """
    if what == "fault":
        return _fault(place, values)
    if what == "ecc":
        says = (
            f"{_node(place)} raised a hardware exception for an uncorrectable ECC error; the "
            "program that ran there was stopped."
        )
        return says, _ACTIONS["ecc"], "ecc_uncorrectable", Severity.CRITICAL
    if what == "hang":
        says = (
            f"{_node(place)} hung and was reset ({values['reason']}): every program on it lost "
            "its data and was stopped."
        )
        return says, _ACTIONS["hang"], "queue_hang_reset", Severity.HIGH
    if what == "status":
        meaning, cause, action = _STATUSES.get(place, ("a runtime call failed", None, "debug"))
        says = f"ROCm's runtime reports {place}: {meaning}."
        return says, _ACTIONS[action], cause, Severity.HIGH if cause else Severity.MEDIUM
    if what == "binary":
        return _BINARY, _ACTIONS["isa"], "launch_misconfigured", Severity.HIGH
    if what == "module":
        says = _MODULE_SMI if place == "smi" else _MODULE
        return says, _ACTIONS["module"], "host_misconfigured", Severity.HIGH
    says = _start(place, values) if what == "start" else _device(values)
    return says, _ACTIONS["device"], "host_misconfigured", Severity.HIGH


def _node(place: str) -> str:
    return f"GPU node-{place} (numbered as in rocminfo, processors included)"


def _fault(place: str, values: Mapping[str, Any]) -> Words:
    reason, address = str(values["reason"]), values["address"]
    if reason.startswith("ECC"):
        says = (
            f"A program on {_node(place)} was stopped by an ECC failure at address {address}: "
            "memory of the GPU is bad there."
        )
        return says, _ACTIONS["ecc"], "ecc_uncorrectable", Severity.CRITICAL
    says = (
        f"A program was stopped: {_node(place)} touched address {address}, which it may not use "
        f"({reason}). Nearly always a bug of the program or a library (index out of range, memory "
        "freed too early), not a hardware fault."
    )
    return says, _ACTIONS["debug"], _APP, Severity.HIGH


def _start(place: str, values: Mapping[str, Any]) -> str:
    named = f" ({values['status']})" if values.get("status") else ""
    return (
        f"A ROCm tool could not start the runtime: call returned {place}{named}. With 4104 the "
        "device file /dev/kfd is mostly not accessible, or the GPU hangs."
    )


def _device(values: Mapping[str, Any]) -> str:
    error = f" ({values['error']})" if values.get("error") else ""
    return (
        f"/dev/kfd, the device file of AMD compute, could not be opened{error}: the program sees "
        "no GPU."
    )
