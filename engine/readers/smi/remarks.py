"""What else is worth a word about the GPUs of a run: odd beside their siblings, or set so."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from engine.readers.smi.state import GpuState, Process, listed
from engine.units import number

# Calls GPUs by their indices, or by host and index where there are several hosts.
Named = Callable[[Sequence[GpuState]], str]

# Utilisation (percent) of a GPU at work, and the share of its highest clock that is far below it.
_AT_WORK: Final = 50.0
_LOW_CLOCK: Final = 0.6
# Memory of a program that is more than a context left open (MiB).
_MUCH_MIB: Final = 1_024
# From this performance state on, clocks are low for a GPU at work.
_SLOW_STATE: Final = 5


def remarks(gpus: Sequence[GpuState], named: Named) -> Iterator[str]:
    """Yield sentences on what is odd or worth knowing, beside what the findings say."""
    yield from _slow_states(gpus, named)
    yield from _slow_clocks(gpus)
    yield from _link(gpus)
    yield from _programs(gpus)
    yield from _memory_held(gpus, named)
    yield from _corrected(gpus)


def _slow_states(gpus: Sequence[GpuState], named: Named) -> Iterator[str]:
    states: dict[int, list[GpuState]] = {}
    for gpu in gpus:
        state = int(gpu.numbers.get("pstate", 0))
        if gpu.busy and state >= _SLOW_STATE:
            states.setdefault(state, []).append(gpu)
    for state, group in sorted(states.items()):
        verb = "is" if len(group) == 1 else "are"
        yield f"{named(group)} {verb} busy and yet in P{state} (P0 is the fastest)."


def _slow_clocks(gpus: Sequence[GpuState]) -> Iterator[str]:
    """GPUs at work far below their highest clock, where no mask tells why."""
    slow = []
    for gpu in gpus:
        clock, most = (gpu.numbers.get(f"{name}sm_clock_mhz") for name in ("", "max_"))
        told = gpu.flags or gpu.mask is not None
        at_work = gpu.numbers.get("gpu_util_percent", 0) >= _AT_WORK
        if clock and most and at_work and not told and clock < _LOW_CLOCK * most:
            slow.append(f"{gpu.label} runs at {number(clock)} MHz of {number(most)} MHz")
    if slow:
        yield (
            f"{'; '.join(slow[:8])} while it works, and nothing here says why (nvidia-smi -q -d "
            "PERFORMANCE,POWER,TEMPERATURE: clock event reasons, power limit, heat)."
        )


def _link(gpus: Sequence[GpuState]) -> Iterator[str]:
    """The PCIe link, where it is the same on all and as fast as board and slot allow."""
    names = ("pcie_gen", "pcie_gen_max", "pcie_width", "pcie_width_max", "pcie_device_gen_max")
    links = {tuple(g.numbers.get(name) for name in names) for g in gpus}
    if len(links) != 1:
        return
    gen, most, width, widest, device = links.pop()
    if gen is None or gen != most or width != widest:
        return
    lanes = f" x{number(width)}" if width is not None else ""
    says = f"PCIe link at generation {number(gen)}{lanes}, all that board and slot allow"
    if device is not None and device > gen:
        says += (
            f" (the board could do generation {number(device)}, the host gives {number(gen)}: how "
            "the server is built, no fault)"
        )
    yield f"{says}."


def _programs(gpus: Sequence[GpuState]) -> Iterator[str]:
    """Programs that hold much memory on one GPU: one alone is as it should be."""
    told = []
    for gpu in gpus:
        large = [
            p
            for p in gpu.processes or ()
            if p.kind in ("C", "C+G") and (p.memory_mib or 0) >= _MUCH_MIB and _whole(p)
        ]
        if len(large) > 1:
            names = [f"{p.name} (pid {p.pid}, {number(p.memory_mib or 0)} MiB)" for p in large]
            told.append(f"{gpu.label} holds {len(large)} programs: {listed(names, 4)}")
    if told:
        yield (
            f"{'; '.join(told[:8])}. If more than one of them works at the same time they take "
            "turns, and each is slower than alone (nvidia-smi pmon shows who works)."
        )


def _whole(process: Process) -> bool:
    """Whether a process has the whole GPU, not an instance of it (MIG)."""
    return process.gi in (None, "", "N/A")


def _corrected(gpus: Sequence[GpuState]) -> Iterator[str]:
    """ECC errors that were corrected in passing, and old ones that were not."""
    now = [g for g in gpus if g.numbers.get("ecc_correctable_volatile_count")]
    if now:
        each = [
            f"{number(g.numbers['ecc_correctable_volatile_count'])} on {g.label}" for g in now[:8]
        ]
        yield (
            f"Correctable ECC errors since the driver was loaded: {', '.join(each)}; nothing is "
            "lost by them, a rising count is worth watching."
        )
    old = [
        g
        for g in gpus
        if g.numbers.get("ecc_uncorrectable_aggregate_count")
        and not g.numbers.get("ecc_uncorrectable_volatile_count")
    ]
    if old:
        each = [
            f"{number(g.numbers['ecc_uncorrectable_aggregate_count'])} on {g.label}"
            for g in old[:8]
        ]
        yield (
            f"Uncorrectable ECC errors over the whole life: {', '.join(each)}; not proof of a "
            "fault of now (nvidia-smi -q -d ROW_REMAPPER tells what became of the rows)."
        )


def _memory_held(gpus: Sequence[GpuState], named: Named) -> Iterator[str]:
    """GPUs with memory in use and no process listed for them."""
    held = [
        g
        for g in gpus
        if g.processes == [] and g.numbers.get("fb_used_mib", 0) > 1_024 and g.lost is None
    ]
    if not held:
        return
    verb = "holds" if len(held) == 1 else "hold"
    says = (
        f"{named(held)} {verb} over 1 GiB of memory with no process listed: processes of other "
        "containers are not shown, or one died and left its context behind (fuser -v /dev/nvidia*)."
    )
    yield says


def settings(gpus: Sequence[GpuState], named: Named) -> list[str]:
    """Return sentences on settings that are worth knowing."""
    parts = []
    for name, value, says in (
        (
            "persistence_mode",
            ("disabled", "off"),
            "persistence mode is off (the driver unloads with the last program: slow first calls)",
        ),
        ("mig_mode", ("enabled",), "MIG is on (utilisation is then not shown for the whole GPU)"),
        ("compute_mode", ("exclusive_process", "e. process"), "one process at a time is allowed"),
    ):
        group = [g for g in gpus if g.words.get(name, "").lower() in value]
        if group:
            parts.append(f"On {named(group)} {says}.")
    return parts
