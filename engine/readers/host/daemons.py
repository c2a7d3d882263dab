"""Beside the NVIDIA driver: Fabric Manager and the persistence daemon in syslog, and nouveau."""

from __future__ import annotations

import re

from engine.model import Severity
from engine.readers.host.devices import ADDRESS
from engine.readers.host.part import Rule

_FM = "NVIDIA Fabric Manager user guide"

DAEMON_RULES: tuple[Rule, ...] = (
    Rule(
        "fabric_manager_version",
        re.compile(
            r"fabric manager (?:NVIDIA )?GPU driver interface version "
            r"(?P<fabric_manager_version>[\d.]{3,16}) "
            r"don't match with driver version (?P<driver_version>\d[\d.]{1,14}\d)",
            re.IGNORECASE,
        ),
        Severity.HIGH,
        "Fabric Manager{on} is version {fabric_manager_version}, the driver {driver_version}: "
        "it "
        "does not start, so NVLink through NVSwitch is off and CUDA fails with error 802.",
        "Install the Fabric Manager of exactly the driver's version and start it "
        "(systemctl restart nvidia-fabricmanager); if the driver on disk is newer than the one "
        "loaded, reboot.",
        "nvswitch_fault",
        source=_FM,
    ),
    Rule(
        "fabric_manager_no_switch",
        re.compile(
            r"query NVSwitch device information from NVSwitch driver failed with "
            r"error:\s?(?P<error>[^\[]{0,60}\[(?P<status>NV_\w{4,40})\])"
        ),
        Severity.LOW,
        "Fabric Manager{on} found no NVSwitch ({status}). On a machine without NVSwitch it is "
        "not needed; on B200 and later NVLSM must run beside it.",
        "Without NVSwitch: systemctl disable --now nvidia-fabricmanager. With: lspci -d 10de: "
        "must list the switches, and for NVLink 5 install nvlsm.",
        source=_FM,
    ),
    Rule(
        "fabric_manager_multicast",
        re.compile(r"failed to find the GPU handle \d{1,20} in the multicast team"),
        Severity.MEDIUM,
        "Fabric Manager{on} could not set up an NVLink multicast team: a GPU is not registered.",
        "nvidia-smi -q | grep -A 2 Fabric: every GPU must say Completed and Success; restart "
        "Fabric Manager after a GPU reset.",
        "nvls_unavailable",
        source=_FM,
    ),
    Rule(
        "fabric_manager_topology",
        re.compile(r"detected number of NVSwitches don't match with any supported system topology"),
        Severity.HIGH,
        "Fabric Manager{on} ended: the number of NVSwitches that it finds fits no known system, so "
        "one is missing or does not answer. Without Fabric Manager CUDA fails with error 802.",
        "lspci -d 10de: must list every switch; look for SXid and PCIe errors, then power-cycle "
        "the machine. If a switch stays away, it is a case for the vendor.",
        "nvswitch_fault",
        source=_FM,
    ),
    Rule(
        "fabric_manager_failed",
        re.compile(
            r"nvidia-fabricmanager\.service: (?P<what>Failed with result|Control process "
            r"exited)"
        ),
        Severity.HIGH,
        "Fabric Manager{on} failed to start or ended ({what}): without it GPUs behind NVSwitch "
        "cannot be used (CUDA error 802).",
        "journalctl -u nvidia-fabricmanager -b; the lines before say why.",
        "nvswitch_fault",
        source=_FM,
    ),
    Rule(
        "nvlink_detect_failed",
        re.compile(
            r"NVRM: (?:GPU\d{1,3} )?(?P<function>knvlink(?:UpdatePostRxDetectLinkMask|"
            r"DiscoverPostRxDetLinks)_\w{2,20}): .{0,60}?(?P<what>failed|Failed)"
        ),
        Severity.MEDIUM,
        "The driver{on} could not tell which NVLinks have a partner ({function}): links may be "
        "missing on that GPU or its peer.",
        "nvidia-smi nvlink --status and nvidia-smi -q | grep -A 3 Fabric: if links are inactive, "
        "reset the GPUs together and restart Fabric Manager.",
        "nvlink_down",
        apart=("function",),
        source="NVIDIA open-gpu-kernel-modules, gpu/nvlink/arch/hopper/kernel_nvlink_gh100.c",
    ),
    Rule(
        "persistenced_failed",
        re.compile(
            r"nvidia-persistenced.{0,40}?(?P<what>Failed to query NVIDIA devices|failed to "
            r"open|"
            r"Failed to (?:initialize|open)[\w -]{0,30})"
        ),
        Severity.MEDIUM,
        "The NVIDIA persistence daemon{on} reports: {what}.",
        "Look at the driver's own lines (NVRM) first; then ls -l /dev/nvidia* and "
        "systemctl status nvidia-persistenced.",
        source="nvidia-persistenced",
    ),
    Rule(
        "nouveau",
        re.compile(
            rf"nouveau (?P<pci>{ADDRESS}): (?:NVIDIA (?P<chip>[A-Z]{{2}}\w{{2,8}})|"
            rf"\w{{2,12}}: )"
        ),
        Severity.LOW,
        "The nouveau driver has {device}{of}: while it does, CUDA cannot use that GPU.",
        "On a compute node blacklist it (modprobe.blacklist=nouveau, rebuild the initramfs) "
        "and "
        "reboot with the NVIDIA driver.",
        apart=("pci",),
        source="Linux drivers/gpu/drm/nouveau",
    ),
)
