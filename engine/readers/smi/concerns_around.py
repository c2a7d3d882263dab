"""What can be wrong around a GPU: its links, power limit, fabric and modes."""

from __future__ import annotations

from typing import Final

from engine.model import Severity
from engine.readers.smi.concern import Concern

_MAN: Final = "nvidia-smi manual page"
_NVML: Final = "NVIDIA NVML API 13, nvml.h"
_FABRIC: Final = "NVIDIA, Fabric Manager for NVSwitch Systems User Guide"
_VGPU: Final = "NVIDIA, Virtual GPU Client Licensing User Guide"

SURROUNDINGS: Final = (
    Concern(
        "pcie_narrow",
        "pcie_degraded",
        Severity.MEDIUM,
        "The PCIe link has fewer lanes than the board can use, which idling does not explain: host "
        "copies are slower by that share.",
        "Check whether the slot is wired that narrow; otherwise lspci -vv -s BUS_ID, the AER lines "
        "in dmesg -T, and reseat board, riser or cable.",
        (f"{_NVML}, nvmlDeviceGetCurrPcieLinkWidth",),
    ),
    Concern(
        "pcie_narrow_by_design",
        None,
        Severity.INFO,
        "Fewer lanes than the board could use on all of them alike, or in a virtual machine: "
        "usually how the platform is built, not a fault.",
        "Compare with the specification of the server or instance type.",
    ),
    Concern(
        "pcie_slow",
        "pcie_degraded",
        Severity.HIGH,
        "The PCIe link runs below its maximum generation although work is running, when power "
        "saving no longer explains it.",
        "Read it again under load; then lspci -vv -s BUS_ID, the AER lines in dmesg -T, the slot "
        "speed in the BIOS, riser, retimer or cable.",
        (f"{_NVML}, nvmlDeviceGetCurrPcieLinkGeneration",),
    ),
    Concern(
        "pcie_narrower",
        "pcie_degraded",
        Severity.HIGH,
        "The PCIe link has fewer lanes than those of equal boards beside it, under load: host "
        "copies are slower by that share.",
        "Read pcie.link.width.max beside it: a maximum as low is a slot wired or set that narrow; "
        "otherwise lspci -vv -s BUS_ID, the AER lines in dmesg -T, and reseat board, riser or "
        "cable.",
        (f"{_NVML}, nvmlDeviceGetCurrPcieLinkWidth",),
    ),
    Concern(
        "pcie_narrower_maybe",
        "pcie_degraded",
        Severity.MEDIUM,
        "The PCIe link has fewer lanes than others here: possibly degraded, if board and slot are "
        "like theirs; what they can do is not shown.",
        "Read it again under load with the maximum: nvidia-smi --query-gpu=index,name,"
        "pcie.link.width.current,pcie.link.width.max,utilization.gpu --format=csv. If the maximum "
        "is higher, check riser, cable, seating and the slot's BIOS setting.",
        (f"{_NVML}, nvmlDeviceGetCurrPcieLinkWidth",),
    ),
    Concern(
        "pcie_slower",
        "pcie_degraded",
        Severity.HIGH,
        "The PCIe link runs at a lower generation than those of equal boards beside it, under "
        "load, when power saving does not explain it.",
        "Read pcie.link.gen.max beside it; then lspci -vv -s BUS_ID, the AER lines in dmesg -T, "
        "the slot speed in the BIOS, riser, retimer or cable.",
        (f"{_NVML}, nvmlDeviceGetCurrPcieLinkGeneration",),
    ),
    Concern(
        "pcie_rollovers",
        "pcie_errors",
        Severity.MEDIUM,
        "The replay number rolled over: the same packet was sent four times without success and "
        "the PCIe link had to be trained anew. A sound link never does.",
        "Read nvidia-smi -q twice under load: counts that grow are a bad link. Then the AER lines "
        "in dmesg -T, and reseat board, riser or cable.",
        (f"{_NVML}, nvmlDeviceGetPcieReplayCounter", "PCI Express Base Specification, REPLAY_NUM"),
    ),
    Concern(
        "pcie_replays",
        None,
        Severity.LOW,
        "So many PCIe packets had to be sent again since the GPU was reset. Nothing is lost by it "
        "but time, and the count does not say when it was.",
        "Read it twice under load: a count that grows by more than a few a minute is a bad link.",
        (f"{_NVML}, nvmlDeviceGetPcieReplayCounter",),
    ),
    Concern(
        "pcie_idle",
        None,
        Severity.INFO,
        "The PCIe generation is low because no work runs: normal power saving, no fault.",
        "Nothing to do; if it stays low under load, check riser, cable, slot and BIOS.",
        (f"{_NVML}, nvmlDeviceGetCurrPcieLinkGeneration",),
    ),
    Concern(
        "pcie_slow_or_idle",
        None,
        Severity.INFO,
        "The lowered PCIe generation alone says nothing: an idle GPU lowers it to save power, "
        "which is normal; under load it would be a fault.",
        "Read it again under load (nvidia-smi --query-gpu=pcie.link.gen.current,utilization.gpu): "
        "if it stays low there, check riser, cable, retimer, slot and BIOS.",
        (f"{_NVML}, nvmlDeviceGetCurrPcieLinkGeneration",),
    ),
    Concern(
        "power_limit_low",
        "power_limit_lowered",
        Severity.MEDIUM,
        "The power limit is set below the board's default, and the GPU draws what it allows.",
        "Find who lowered it (nvidia-smi -pl, BMC, a start script); undo it with nvidia-smi -i "
        "INDEX -pl WATTS of the default.",
        (_MAN,),
    ),
    Concern(
        "power_limit_set",
        None,
        Severity.LOW,
        "The power limit is set below the board's default. It costs speed only once the GPU draws "
        "that much.",
        "Undo it with nvidia-smi -i INDEX -pl WATTS of the default, if nobody wanted it.",
        (_MAN,),
    ),
    Concern(
        "fabric_waiting",
        "nvswitch_fault",
        Severity.HIGH,
        "The GPU has not registered with the NVLink fabric: on NVSwitch systems CUDA cannot start "
        "(error 802, system not yet initialized) or peer traffic leaves NVLink. Links can show as "
        "active all the same.",
        "Within a minute of boot or reset it is normal: read it again. If it stays, see that the "
        "fabric manager runs in the version of the driver: systemctl status "
        "nvidia-fabricmanager, /var/log/fabricmanager.log; in a virtual machine the host has to "
        "activate the partition. A GPU reset after a restart of it may be needed.",
        (_FABRIC, f"{_NVML}, nvmlGpuFabricState_t"),
    ),
    Concern(
        "fabric_failed",
        "nvswitch_fault",
        Severity.HIGH,
        "The registration with the NVLink fabric ended with an error: traffic between GPUs does "
        "not go over NVLink as it should.",
        "Read /var/log/fabricmanager.log (multi-node NVLink: the subnet manager and IMEX too), "
        "compare with the other GPUs of the fabric, then restart the fabric manager and reset the "
        "GPUs.",
        (_FABRIC, f"{_NVML}, nvmlGpuFabricInfo_t"),
    ),
    Concern(
        "fabric_unhealthy",
        "nvswitch_fault",
        Severity.HIGH,
        "The NVLink fabric reports itself as faulty for this GPU.",
        "Read /var/log/fabricmanager.log and dmesg -T (SXid, Xid 74, 144 to 150) and look at "
        "nvidia-smi nvlink -s and -e.",
        (_FABRIC, f"{_NVML}, nvmlGpuFabricInfo_v3_t"),
    ),
    Concern(
        "fabric_narrow",
        "nvlink_degraded",
        Severity.HIGH,
        "The NVLink fabric runs with less than its full bandwidth for this GPU.",
        "nvidia-smi nvlink -s and -e tell which link; then cable, switch tray and dmesg -T.",
        (_FABRIC, f"{_NVML}, nvmlGpuFabricInfo_v3_t"),
    ),
    Concern(
        "vgpu_restricted",
        "host_misconfigured",
        Severity.HIGH,
        "The vGPU has no licence and its grace period is over: the driver throttles it hard, "
        "with no clock event reason and no Xid. The GPU itself is sound.",
        "In the guest: systemctl status nvidia-gridd, the client token in "
        "/etc/nvidia/ClientConfigToken, FeatureType in /etc/nvidia/gridd.conf and the way to the "
        "licence server; then systemctl restart nvidia-gridd.",
        (_VGPU,),
    ),
    Concern(
        "vgpu_unlicensed",
        None,
        Severity.LOW,
        "The vGPU has no licence yet. It runs at full speed for now and is throttled after the "
        "grace period.",
        "In the guest: systemctl status nvidia-gridd and the way to the licence server.",
        (_VGPU,),
    ),
    Concern(
        "compute_prohibited",
        None,
        Severity.MEDIUM,
        "No CUDA program can use the GPU.",
        "nvidia-smi -i INDEX -c DEFAULT, unless somebody reserved the GPU on purpose.",
        (_MAN,),
    ),
    Concern(
        "mig_empty",
        None,
        Severity.MEDIUM,
        "CUDA uses MIG devices only while MIG is on: programs find no device on this GPU until "
        "some are made.",
        "Make them: nvidia-smi mig -i INDEX -cgi PROFILE -C (nvidia-smi mig -lgip lists the "
        "profiles); or turn MIG off: nvidia-smi -i INDEX -mig 0.",
        ("NVIDIA, Multi-Instance GPU User Guide",),
    ),
    Concern(
        "mode_pending",
        None,
        Severity.LOW,
        "A change of mode waits for a reset or reboot.",
        "Drain the GPU and reset it, or reboot, to make it hold.",
        (_MAN,),
    ),
)
