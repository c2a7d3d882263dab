"""What GPUDirect Storage tools show: whether the direct path can be used, and whether it was.

In compatibility mode the library does ordinary reads and copies: it looks the same, at the speed of
the CPU path. Source: NVIDIA GPUDirect Storage Troubleshooting Guide.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from engine.model import Finding, Severity
from engine.readers.listing import at, finding, node
from engine.readers.quantities import listed, plural

SOURCES: Final = ("NVIDIA GPUDirect Storage Installation and Troubleshooting Guide",)
_PATHS: Final = (
    "NVMe P2PDMA",
    "NVMe",
    "NVMeOF",
    "SCSI",
    "ScaleFlux CSD",
    "NVMesh",
    "DDN EXAScaler",
    "IBM Spectrum Scale",
    "NFS",
    "BeeGFS",
    "WekaFS",
    "Userspace RDMA",
)


# Of a list that was cut off nothing is said: the driver lists eight kinds and more.
_LISTED: Final = 4


@dataclass(slots=True)
class Check:
    """One ``gdscheck -p``."""

    line: int
    host: str | None
    values: dict[str, str] = field(default_factory=dict)
    gpus: int = 0
    unsupported_gpus: int = 0
    iommu_on: bool = False
    verified: bool | None = None

    def add(self, key: str, value: str) -> None:
        """Keep a line."""
        if len(self.values) < 256:
            self.values.setdefault(key, value)

    def paths(self, word: str) -> list[str]:
        """Return the file systems and devices with this word: Supported, Unsupported."""
        return [name for name in _PATHS if self.values.get(name) == word]

    def setting(self, name: str) -> bool | None:
        """Return a true or false setting of cufile.json."""
        return {"true": True, "false": False}.get(self.values.get(f"properties.{name}", ""))


@dataclass(slots=True)
class Stats:
    """Counters of the module, or (``user_level``) of one process."""

    line: int
    host: str | None
    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    errors: int = 0
    cross_root: int = 0
    user_level: bool = False

    def add(self, name: str, values: Mapping[str, int]) -> None:
        """Add counters: several GPUs of one listing are summed."""
        held = self.counts.setdefault(name, {})
        for key, value in values.items():
            held[key] = held.get(key, 0) + value

    def total(self, key: str) -> int:
        """Return the sum over reads and writes."""
        return sum(self.counts.get(n, {}).get(key, 0) for n in ("reads", "writes"))


def judge_checks(checks: Sequence[Check]) -> Iterable[Finding]:
    """Say whether the direct path can be used on each host."""
    for check in checks:
        supported = check.paths("Supported")
        seen = supported or check.paths("Unsupported")
        compat, forced = check.setting("use_compat_mode"), check.setting("force_compat_mode")
        data = {
            "supported": supported,
            "compat_mode": compat,
            "force_compat_mode": forced,
            "gpus": check.gpus or None,
            "iommu_enabled": check.iommu_on if check.gpus else None,
            "platform_verified": check.verified,
        }
        none = len(seen) >= _LISTED and not supported
        wrong = [
            words
            for held, words in (
                (none, "no kind of storage is supported on this host"),
                (bool(forced), "compatibility mode is forced"),
                (
                    check.unsupported_gpus > 0,
                    f"{plural(check.unsupported_gpus, 'GPU')} cannot use it",
                ),
                (check.verified is False, "the platform check failed"),
            )
            if held
        ]
        if wrong:
            yield finding(
                "gdscheck",
                "no_direct_path",
                Severity.MEDIUM,
                f"{at(check.host)}GPUDirect Storage: {listed(wrong)}. cuFile then reads through "
                "the CPU's memory, at that speed.",
                "Load nvidia-fs (modprobe nvidia-fs) or use PCI P2PDMA, check the mount (ext4 "
                "needs data=ordered, NFS needs RDMA), then gdscheck -p again.",
                line=check.line,
                data=data,
                entity=node(check.host),
                sources=SOURCES,
            )
        else:
            yield finding(
                "gdscheck",
                "direct_path",
                Severity.INFO,
                f"{at(check.host)}GPUDirect Storage is possible for "
                f"{listed(supported) or 'nothing listed'}"
                + (
                    "; compatibility mode is allowed, so what cannot go direct goes through the "
                    "CPU without a word."
                    if compat
                    else "."
                ),
                "Whether it is used: /proc/driver/nvidia-fs/stats (Reads n, err) while the job "
                "reads, and cufile.log.",
                line=check.line,
                data=data,
                entity=node(check.host),
                sources=SOURCES,
            )
        if check.iommu_on:
            yield finding(
                "gdscheck",
                "iommu_on",
                Severity.LOW,
                f"{at(check.host)}The IOMMU is enabled: transfers between NVMe or NIC and GPU may "
                "go up to the CPU, slower or not at all.",
                "On bare metal switch it off, or to pass-through (iommu=pt); in a VM it has "
                "to stay.",
                line=check.line,
                cause="host_misconfigured",
                data={"iommu_enabled": True},
                entity=node(check.host),
                sources=SOURCES,
            )


def judge_stats(stats: Sequence[Stats]) -> Iterable[Finding]:
    """Say what went the direct way; of two listings the difference."""
    last = stats[-1]
    first = stats[0] if len(stats) > 1 and stats[0].host == last.host else None
    n = last.total("n") - (first.total("n") if first else 0)
    errors = last.total("err") - (first.total("err") if first else 0)
    posix = last.total("posix") - (first.total("posix") if first else 0)
    data = {
        "operations": n,
        "errors": errors,
        "posix_operations": posix if last.user_level else None,
        "mapping_errors": last.counts.get("bar1-map", {}).get("err"),
        "cross_root_port_percent": last.cross_root or None,
        "compared": first is not None,
    }
    when = "between the two listings" if first else "since the module was loaded"
    if last.user_level:
        when = "in that process"
    if errors > 0 or last.counts.get("bar1-map", {}).get("err", 0) > 0:
        yield finding(
            "nvidia_fs",
            "errors",
            Severity.MEDIUM,
            f"{at(last.host)}nvidia-fs: {errors:,} failed reads and writes, "
            f"{last.counts.get('bar1-map', {}).get('err', 0):,} failed mappings of GPU memory "
            f"{when}.",
            "dmesg | grep nvidia-fs and cufile.log name the error; failed mappings mean that BAR1 "
            "is full.",
            line=last.line,
            data=data,
            entity=node(last.host),
            sources=SOURCES,
        )
    elif last.user_level and n > 0 and posix * 2 >= n:
        yield finding(
            "nvidia_fs",
            "compatibility_mode",
            Severity.LOW,
            f"{at(last.host)}{posix:,} of {n:,} cuFile operations {when} went through POSIX and a "
            "bounce buffer: GPUDirect Storage looks active and is not.",
            "gdscheck -p for what is supported; cufile.log says why it fell back.",
            line=last.line,
            data=data,
            entity=node(last.host),
            sources=SOURCES,
        )
    elif n <= 0:
        yield finding(
            "nvidia_fs",
            "not_used",
            Severity.LOW,
            f"{at(last.host)}No read or write went through nvidia-fs {when}: nothing uses "
            "GPUDirect Storage, or it falls back to the CPU path (or uses PCI P2PDMA, which is not "
            "counted here).",
            "Read again while the job reads; cufile.log says whether compatibility mode is taken.",
            line=last.line,
            data=data,
            entity=node(last.host),
            sources=SOURCES,
        )
    else:
        yield finding(
            "nvidia_fs",
            "used",
            Severity.INFO,
            f"{at(last.host)}{n:,} reads and writes went the direct way {when}, none failed.",
            "Its rate: gdsio or the job's own; compare with the NIC or drives.",
            line=last.line,
            data=data,
            entity=node(last.host),
            sources=SOURCES,
        )
    if last.cross_root >= 10:
        yield finding(
            "nvidia_fs",
            "cross_root_port",
            Severity.LOW,
            f"{at(last.host)}Up to {last.cross_root} % of a GPU's direct transfers cross the root "
            "port: GPU and drive or NIC are not under one PCIe switch.",
            "nvidia-smi topo -m: let each GPU read through the NIC or drive near it.",
            line=last.line,
            cause="numa_misplaced",
            data={"cross_root_port_percent": last.cross_root},
            entity=node(last.host),
            sources=SOURCES,
        )
