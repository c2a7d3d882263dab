"""The NVIDIA driver's set-up: what fails before any Xid.

Lines: NVIDIA open-gpu-kernel-modules 595.45.04 (kernel-open/nvidia/nv.c and nv-pci.c,
src/nvidia/arch/nvalloc/unix/src/osinit.c and osapi.c, nvstatuscodes.h).
"""

from __future__ import annotations

import re
from typing import Any, ClassVar

from engine.model import Finding, Severity
from engine.readers.host.daemons import DAEMON_RULES
from engine.readers.host.devices import ADDRESS
from engine.readers.host.gsp import GSP_RULES
from engine.readers.host.init_codes import STATUS, STEPS
from engine.readers.host.part import Rule, RulePart, Tally
from engine.readers.logline import LogLine

_OSINIT = "NVIDIA open-gpu-kernel-modules 595.45.04, arch/nvalloc/unix/src/osinit.c"
_NV = "NVIDIA open-gpu-kernel-modules 595.45.04, kernel-open/nvidia"
_FIRMWARE = frozenset({0x60, 0x61, 0x62})
_GONE = frozenset({0x05, 0x0F})
_GPU = rf"(?:GPU )?(?P<pci>{ADDRESS})"


class DriverPart(RulePart):
    """Reads the driver's set-up and its daemons."""

    kind: ClassVar[str] = "nvidia_driver"
    marks: ClassVar[tuple[str, ...]] = (
        "NVRM: ",
        "nvidia-nvswitch",
        "nvidia-modeset",
        "nvidia-persistenced",
        "fabricmanager",
        "abric manager",
        "abric Manager",
        "multicast team",
        "nouveau ",
        "NVSwitch driver failed",
        "number of NVSwitches",
        "nvidia: ",
        "probe with driver nvidia",
        "nvidia-uvm",
    )
    rules: ClassVar = (
        Rule(
            "rm_init_minor",
            re.compile(r"NVRM: (?:GPU \S{7,20}: )?rm_init_adapter(?:\(\d{1,3}\))? failed(?!!)"),
        ),
        Rule(
            "rm_init_failed",
            re.compile(
                rf"NVRM: (?:{_GPU}: )?(?:rm_init_adapter|RmInitAdapter) failed!"
                r"(?: \((?P<step>0x[0-9a-fA-F]{1,4}):(?P<status>0x[0-9a-fA-F]{1,8})"
                r":(?P<source_line>\d{1,6})\))?"
            ),
            Severity.HIGH,
            "The driver could not start {device}{of}: nothing can use this GPU.",
            "Reset it or power-cycle the machine, then look again; read the NVRM lines just before "
            "for the reason. If it stays: reseat, other slot, then nvidia-bug-report.sh and "
            "support.",
            "driver_or_firmware_xid",
            apart=("pci",),
            source=_OSINIT,
        ),
        Rule(
            "api_mismatch",
            re.compile(
                r"NVRM: API mismatch: (?:the )?(?P<client>client|NVIDIA \S{1,40}|this "
                r"client)?.{0,60}?version "
                r"(?P<client_version>\d{3}\.\d{1,4}(?:\.\d{1,4})?)(?:.{0,160}?version "
                r"(?P<module_version>\d{3}\.\d{1,4}(?:\.\d{1,4})?))?"
            ),
            Severity.HIGH,
            "Driver mismatch{on}: the user-space libraries are {client_version}, the loaded kernel "
            "module is {module_version}. CUDA and nvidia-smi fail until both are the same.",
            "Reboot, or unload and load the module (stop what uses the GPUs; rmmod nvidia_uvm "
            "nvidia_modeset nvidia; modprobe nvidia). In a container: the mounted libraries must "
            "be the host's.",
            "host_misconfigured",
            apart=("client_version",),
            source=_NV,
        ),
        Rule(
            "module_version",
            re.compile(
                r"NVRM: .{0,40}?kernel module has the version "
                r"(?P<module_version>\d{3}[\d.]{2,10}\d)"
            ),
        ),
        Rule(
            "other_driver",
            re.compile(
                r"NVRM: The NVIDIA probe routine was not called for (?P<devices>\d{1,3}) device"
            ),
            Severity.HIGH,
            "{devices} NVIDIA device(s){of} belong to another driver (nouveau, vfio-pci …), so the "
            "NVIDIA driver cannot use them.",
            "lspci -nnk -d 10de: shows who has them; unload or blacklist that driver "
            "(nouveau: modprobe.blacklist=nouveau) and reboot.",
            "host_misconfigured",
            source=_NV,
        ),
        Rule(
            "probe_failed",
            re.compile(r"NVRM: The NVIDIA probe routine failed for (?P<devices>\d{1,3}) device"),
            Severity.MEDIUM,
            "The driver could not take over {devices} NVIDIA device(s){of}; the lines before say "
            "why.",
            "Read the NVRM lines before this one (fallen off the bus, invalid BAR, not supported).",
            source=_NV,
        ),
        Rule(
            "unsupported_gpu",
            re.compile(
                r"NVRM: .{0,80}?(?P<what>(?:system )?is not supported(?: by (?:open )?nvidia)?|"
                r"requires? use of the NVIDIA open kernel modules?)"
            ),
            Severity.HIGH,
            "The installed driver does not take a GPU{of} ({what}): it is older than the GPU, "
            "newer "
            "than the driver supports it, or of the closed kind where the open modules are needed.",
            "Install a driver branch whose release notes list the GPU (lspci -nn -d 10de:), with "
            "the open kernel modules from Blackwell on.",
            "host_misconfigured",
            source=_NV,
        ),
        Rule(
            "no_gpu",
            re.compile(
                r"NVRM: (?P<what>No NVIDIA GPU found|No NVIDIA PCI devices found|No NVIDIA devices "
                r"probed|None of the NVIDIA devices were initialized)"
            ),
            Severity.MEDIUM,
            "The NVIDIA driver{on} ends without a GPU: {what}.",
            "lspci -nnk -d 10de: is there a GPU on the bus at all, and whose is it?",
            source=_NV,
        ),
        Rule(
            "invalid_bar",
            re.compile(
                rf"NVRM: BAR(?P<bar>\d) is (?P<size_mib>\d{{1,9}})M @ "
                rf"0x(?P<address>[0-9a-fA-F]{{1,16}}) \(PCI:(?P<pci>{ADDRESS})\)"
            ),
            Severity.HIGH,
            "The firmware gave no address space to BAR{bar} of {device}{of} ({size_mib} MiB at "
            "0x{address}): the driver cannot use the GPU.",
            'Turn on "Above 4G decoding" (and resizable BAR) in the BIOS, update it, or boot with '
            "pci=realloc.",
            "host_misconfigured",
            apart=("pci",),
            source=_NV,
        ),
        Rule(
            "invalid_bar_head",
            re.compile(r"NVRM: This PCI I/O region assigned to your NVIDIA device"),
        ),
        Rule(
            "no_memory_region",
            re.compile(
                r"NVRM: request_mem_region failed for (?P<size_mib>\d{1,9})M @ "
                r"0x(?P<address>[0-9a-fA-F]{1,16})"
            ),
            Severity.HIGH,
            "The registers of a GPU{of} are taken by another driver or were given no address "
            "({size_mib} MiB at 0x{address}).",
            "lspci -nnk -d 10de: shows the driver; otherwise turn on Above 4G decoding in the "
            "BIOS.",
            "host_misconfigured",
            source=_NV,
        ),
        Rule(
            "no_irq",
            re.compile(
                rf"NVRM: (?:Can't find an IRQ for your NVIDIA card|{_GPU}: request_irq\(\) failed)"
            ),
            Severity.HIGH,
            "The driver got no interrupt for a GPU{of}.",
            "Check the BIOS (MSI, interrupt routing) and dmesg for IOMMU or MSI errors.",
            source=_NV,
        ),
        Rule(
            "watchdog_locked",
            re.compile(r"NVRM: .{0,60}?RC watchdog: GPU is probably locked"),
            Severity.HIGH,
            "The driver's watchdog{on} finds that a GPU does not get on.",
            "Look for the Xid that follows (8, 109, 119); drain and reset the GPU.",
            source=_NV,
        ),
        Rule(
            "gpu_is_lost",
            re.compile(
                r"NVRM: (?:GPU(?P<gpu>\d{1,3}) )?.{0,200}?\[(?P<status>NV_ERR_GPU_IS_LOST)\]"
            ),
            Severity.HIGH,
            "Calls into the driver{on} fail since a GPU is lost from the bus ({status}): nothing "
            "reaches it any more.",
            "Look further up for Xid 79, which names the GPU; nvidia-smi shows which one is "
            "missing, or says ERR!. Drain the machine and restart it.",
            "gpu_off_bus",
            apart=("gpu",),
            source=_NV,
        ),
        Rule(
            "wrong_kernel",
            re.compile(
                r"nvidia[\w-]{0,12}: version magic '(?P<built_for>[^' ]{3,60})[^']{0,80}' should "
                r"be '(?P<kernel>[^' ]{3,60})"
            ),
            Severity.HIGH,
            "The NVIDIA module{on} was built for kernel {built_for}, {kernel} runs: it is not "
            "loaded.",
            "Build it for the running kernel (dkms autoinstall, or install the driver again), or "
            "boot the kernel that it is for.",
            "host_misconfigured",
            source="Linux kernel/module",
        ),
        Rule(
            "probe_error",
            re.compile(
                rf"nvidia(?:: probe of)? (?P<pci>{ADDRESS})(?:: probe with driver nvidia)? failed "
                r"with error (?P<error>-\d{1,4})"
            ),
            Severity.HIGH,
            "The NVIDIA driver{on} did not take {device} (error {error}): nothing can use it.",
            "Read the NVRM lines just before; without any, lspci -vv -s of the device.",
            apart=("pci",),
            source="Linux drivers/base/dd.c",
        ),
        *GSP_RULES,
        *DAEMON_RULES,
    )

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._api: Tally | None = None

    def take(self, line: LogLine) -> bool:
        """Take a record; the driver's other lines are known, and say nothing."""
        module = _MODULE.search(line.text)
        if module is not None:
            self._note_module(module["module_version"])
            return True
        if super().take(line):
            if "API mismatch" in line.text:
                self._api = max(self.tallies.values(), key=lambda t: t.last_line, default=None)
            return True
        return _HARMLESS.search(line.text) is not None

    def finding(self, tally: Tally) -> Finding | None:
        """Read the codes of a failed start."""
        if tally.rule.id != "rm_init_failed":
            return self.said(tally)
        step, status = tally.values.get("step"), tally.values.get("status")
        if step is None or status is None:
            return self.said(tally)
        code, why = int(step, 16), int(status, 16)
        cause = tally.rule.cause
        if why in _GONE:
            cause = "gpu_off_bus"
        elif code in _FIRMWARE:
            cause = "gsp_failure"
        parts = [f"It failed at {STEPS.get(code, 'an unnamed step')} ({step})"]
        if why in STATUS:
            parts.append(f"with {STATUS[why]} ({status})")
        return self.said(tally, cause=cause, extra=" ".join(parts) + ".")

    def _note_module(self, version: str) -> None:
        if self._api is not None:
            self._api.values["module_version"] = version
            self._api.seen.setdefault("module_version", {})[version] = None


_MODULE = re.compile(
    r"NVRM: (?:.{0,40}?kernel module (?:has the )?version (?P<module_version>\d{3}[\d.]{2,10}\d))"
)
# Not the labels of node_exporter's units: name="nvidia-fabricmanager.service",state="failed".
_HARMLESS = re.compile(
    r"NVRM: |nvidia-nvswitch(?:\d{1,4})?: |nvidia-modeset: |nvidia-uvm: |nv-fabricmanager|"
    r"nvidia: (?:module|loading|Loading)|nvidia-(?:fabricmanager|persistenced)(?!\.service.,)"
)
