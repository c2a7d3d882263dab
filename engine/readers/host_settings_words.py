"""What settings of a machine that cost GPU speed mean, and what to do about them."""

from __future__ import annotations

from engine.model import Entity, Finding, Kind, Severity

SLOW_GOVERNORS = frozenset({"powersave", "ondemand", "conservative", "schedutil"})


def balancing_finding(line: int, value: str) -> Finding:
    """Automatic NUMA balancing is on."""
    return _finding(
        "numa_balancing",
        Severity.MEDIUM,
        f"Automatic NUMA balancing is on (kernel.numa_balancing = {value}): the kernel unmaps and "
        "moves pages of running programs, which stalls processes that feed GPUs. AMD asks for it "
        "to be off on MI200 and MI300X nodes.",
        "Disable it and measure again: sysctl -w kernel.numa_balancing=0; to keep it, put "
        "kernel.numa_balancing=0 into /etc/sysctl.d/.",
        line,
        {"numa_balancing": int(value)},
        "AMD Instinct MI300X system optimization, NUMA balancing",
    )


def governor_finding(line: int, value: str) -> Finding:
    """The processors' clocks fall between bursts of work."""
    return _finding(
        "cpu_governor",
        Severity.LOW,
        f"The processors' frequency governor is {value}: clocks fall between bursts of work and "
        "come up late, which delays kernel launches and input pipelines.",
        "Set it and measure again: cpupower frequency-set -g performance (with intel_pstate or "
        "amd_pstate in active mode powersave is the normal name; there compare the real clocks "
        "under load: turbostat).",
        line,
        {"governor": value},
        "Linux Documentation/admin-guide/pm/cpufreq.rst; AMD Instinct system optimization",
    )


def idle_state_finding(line: int, state: str) -> Finding:
    """Processors may go into a deep idle state."""
    return _finding(
        "cpu_idle_state",
        Severity.LOW,
        f"The processors' idle state {state} is enabled: waking from it takes long, which delays "
        "kernel launches and network traffic. AMD asks for it to be disabled on MI300X nodes.",
        "Disable it and measure again: cpupower idle-set -d 2 (cpupower idle-info shows the "
        "number of the state), after every boot; DF C-states are set in the BIOS.",
        line,
        {"idle_state": state},
        "AMD Instinct MI300X system optimization, C-states",
    )


def iommu_finding(line: int) -> Finding:
    """The IOMMU translates the traffic of devices of the host itself."""
    return _finding(
        "iommu",
        Severity.MEDIUM,
        "iommu=pt is missing from the kernel command line: without pass-through every transfer "
        "between GPUs and to the NIC is translated, which costs bandwidth, and RCCL may hang.",
        "Add iommu=pt (and amd_iommu=on on AMD processors) to GRUB_CMDLINE_LINUX, rebuild grub's "
        "configuration, reboot, check /proc/cmdline and measure again.",
        line,
        {"iommu_pt": False},
        "AMD Instinct system optimization, IOMMU; ROCm/rccl src/init.cc",
    )


def variable_finding(line: int, name: str) -> Finding:
    """A variable that RCCL asks for is not set."""
    why = (
        "RCCL on PCIe-linked GPUs needs it for fine-grained memory between peers"
        if name == "HSA_FORCE_FINE_GRAIN_PCIE"
        else "with ROCm older than 6.4 RCCL cannot use its LL128 protocol without it"
    )
    return _finding(
        "rccl_variable",
        Severity.LOW,
        f"{name}=1 is missing from the environment: {why}, and collectives are slower.",
        f"Set it for all ranks (export {name}=1, srun or mpirun must pass it on) and measure "
        "again.",
        line,
        {"variable": name},
        "ROCm/rccl src/init.cc",
    )


def acs_finding(line: int, ports: int, redirecting: int) -> Finding:
    """Access control sends peer traffic through the root complex."""
    return _finding(
        "acs",
        Severity.MEDIUM,
        f"Access control (ACS) redirects requests on {redirecting} of {ports} PCIe port(s): peer "
        "traffic between GPUs, or GPU and NIC, below one switch goes up to the root complex and "
        "back.",
        "On a machine without guests that own devices, turn it off: in the BIOS (IOMMU or ACS), or "
        "for each port setpci -s ADDRESS ECAP_ACS+0x6.w=0000, again after every boot. Then measure "
        "peer bandwidth.",
        line,
        {"ports": ports, "redirecting": redirecting},
        "NVIDIA NCCL documentation, Troubleshooting: PCI Access Control Services",
    )


def _finding(
    id_: str,
    severity: Severity,
    says: str,
    action: str,
    line: int,
    data: dict[str, object],
    source: str,
) -> Finding:
    return Finding(
        kind="host_settings",
        id=id_,
        severity=severity,
        says=says,
        action=action,
        entity=Entity(Kind.NODE, "this node"),
        line=line,
        cause="host_misconfigured",
        data=dict(data),
        sources=(source,),
    )
