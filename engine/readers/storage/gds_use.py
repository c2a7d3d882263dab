"""What the cuFile library logged, and what ``gdsio`` measured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from engine.model import Finding, Severity
from engine.readers.listing import at, finding, node
from engine.readers.quantities import plural
from engine.readers.storage.ceilings import nic_note
from engine.units import number

SOURCES: Final = ("NVIDIA GPUDirect Storage Installation and Troubleshooting Guide",)


@dataclass(frozen=True, slots=True)
class Log:
    """A line of cufile.log."""

    line: int
    host: str | None
    level: str
    words: str


@dataclass(frozen=True, slots=True)
class Run:
    """A result of ``gdsio``; ``gbs`` is GB/s (10^9)."""

    line: int
    host: str | None
    way: str
    transfer: str
    threads: int
    block_kib: int
    gbs: float
    latency_ms: float


def judge_log(lines: Sequence[Log]) -> Iterable[Finding]:
    """Say what the library complained about."""
    compat = [x for x in lines if "compatible mode" in x.words]
    errors = [x for x in lines if x.level == "ERROR"]
    if compat:
        yield finding(
            "cufile_log",
            "compatibility_mode",
            Severity.LOW,
            f"{at(compat[0].host)}cuFile runs in compatibility mode: reads go through the "
            "CPU's memory.",
            "gdscheck -p shows what is missing (nvidia-fs, file system support).",
            line=compat[0].line,
            data={"count": len(compat)},
            entity=node(compat[0].host),
            sources=SOURCES,
        )
    if errors:
        kinds = dict.fromkeys(x.words for x in errors)
        yield finding(
            "cufile_log",
            "errors",
            Severity.MEDIUM,
            f"{at(errors[0].host)}{plural(len(errors), 'error')} in cufile.log, first: "
            f'"{errors[0].words}"' + (f" ({len(kinds)} different)." if len(kinds) > 1 else "."),
            "The troubleshooting guide lists the messages; gdscheck -p for the set-up.",
            line=errors[0].line,
            data={"errors": len(errors)},
            entity=node(errors[0].host),
            sources=SOURCES,
        )


def judge_runs(runs: Sequence[Run]) -> Iterable[Finding]:
    """Say what each run reached, and what the direct path gains over the CPU path."""
    for run in runs:
        direct = run.transfer == "GPUD"
        yield finding(
            "gdsio",
            f"{run.way}_{run.transfer.lower()}",
            Severity.INFO,
            f"{at(run.host)}gdsio {run.way}, {run.transfer} "
            f"({'direct' if direct else 'not direct'}): {number(round(run.gbs, 3))} GB/s with "
            f"{plural(run.threads, 'thread')} of {run.block_kib:,} KiB, {number(run.latency_ms)} "
            "ms a request. "
            f"{nic_note(run.gbs)}".rstrip(),
            "Compare -x 0 (direct) with -x 1 (through the CPU): the direct path should not be "
            "slower.",
            line=run.line,
            data={
                "bandwidth_gbs": round(run.gbs, 4),
                "latency_ms": run.latency_ms,
                "transfer": run.transfer,
                "threads": run.threads,
                "block_kib": run.block_kib,
            },
            entity=node(run.host),
            sources=SOURCES,
        )
    for way in dict.fromkeys(r.way for r in runs):
        direct_run = max(
            (r for r in runs if r.way == way and r.transfer == "GPUD"),
            key=lambda r: r.gbs,
            default=None,
        )
        host_run = max(
            (r for r in runs if r.way == way and r.transfer in ("CPU_GPU", "CPUGPU", "CPUONLY")),
            key=lambda r: r.gbs,
            default=None,
        )
        if direct_run and host_run and direct_run.gbs < 0.9 * host_run.gbs:
            yield finding(
                "gdsio",
                "direct_slower",
                Severity.LOW,
                f"The direct path gives {number(round(direct_run.gbs, 2))} GB/s, the path through "
                f"the CPU {number(round(host_run.gbs, 2))} GB/s: GPUDirect Storage does not work "
                "as it should here.",
                "Check IOMMU and ACS, whether GPU and drive or NIC share a PCIe switch, and "
                "compatibility mode.",
                line=direct_run.line,
                data={
                    "direct_gbs": round(direct_run.gbs, 4),
                    "cpu_path_gbs": round(host_run.gbs, 4),
                },
                sources=SOURCES,
            )
