"""Finds what is wrong with the memory of a GPU: row remapping, retired pages, ECC errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from engine.readers.smi.issue import Issue, issue, yes
from engine.readers.smi.state import GpuState
from engine.units import number

# NVIDIA's limits for retired pages (DCGM modules/health/DcgmHealthWatch.cpp 4.6.0).
_RETIRED_MANY: Final = 15


def complete(gpu: GpuState) -> None:
    """Add up what newer drivers print in parts: ECC errors of SRAM and DRAM."""
    for span in ("volatile", "aggregate"):
        for kind, parts in {
            "correctable": ("sram_correctable", "dram_correctable"),
            "uncorrectable": (
                "sram_uncorrectable",
                "sram_parity",
                "sram_secded",
                "dram_uncorrectable",
            ),
        }.items():
            found = [gpu.numbers.get(f"ecc_{part}_{span}_count") for part in parts]
            there = [value for value in found if value is not None]
            if there:
                gpu.numbers.setdefault(f"ecc_{kind}_{span}_count", sum(there))


def memory_issues(gpu: GpuState) -> Iterator[Issue]:
    """Yield what is wrong with the memories of a GPU: remaps, retired pages, ECC errors."""
    n = gpu.numbers
    uncorrected = n.get("remapped_uncorrectable_count")
    remapped = (
        f" ({number(uncorrected)} row(s) remapped for uncorrectable errors so far)"
        if uncorrected
        else ""
    )
    if yes(gpu, "remap_failure"):
        yield issue("remap_failure", gpu, f"row remapping failed{remapped}", remap_failure=True)
    if yes(gpu, "unrepairable_memory"):
        yield issue("unrepairable", gpu, "Unrepairable Memory: Yes", unrepairable_memory=True)
    if yes(gpu, "remap_pending"):
        yield issue("remap_pending", gpu, f"row remap pending{remapped}", remap_pending=True)
    if yes(gpu, "retired_pending"):
        yield issue("remap_pending", gpu, "page retirement pending", retired_pending=True)
    for name, what in (("channel_repair_pending", "channel"), ("tpc_repair_pending", "TPC")):
        if yes(gpu, name):
            yield issue("repair_pending", gpu, f"{what} repair pending", **{name: True})
    banks = n.get("banks_none_count", 0)
    if banks:
        yield issue(
            "banks_used_up", gpu, f"{number(banks)} bank(s) without a spare row", banks_none=banks
        )
    if yes(gpu, "sram_threshold"):
        yield issue("sram_threshold", gpu, "SRAM Threshold Exceeded: Yes", sram_threshold=True)
    volatile = n.get("ecc_uncorrectable_volatile_count", 0)
    if volatile:
        yield issue(
            "ecc_uncorrected",
            gpu,
            f"{number(volatile)} uncorrectable error(s){_where(n)}",
            ecc_uncorrectable_volatile=int(volatile),
        )
    retired = n.get("retired_dbe_count", 0) + n.get("retired_sbe_count", 0)
    if retired >= _RETIRED_MANY:
        yield issue(
            "retired_pages", gpu, f"{number(retired)} retired pages", retired_pages=int(retired)
        )


def _where(n: Mapping[str, float]) -> str:
    sram = sum(
        n.get(f"ecc_sram_{part}_volatile_count", 0)
        for part in ("uncorrectable", "parity", "secded")
    )
    dram = n.get("ecc_dram_uncorrectable_volatile_count", 0)
    places = [name for name, count in (("SRAM", sram), ("DRAM", dram)) if count]
    return f" in {' and '.join(places)}" if places else ""
