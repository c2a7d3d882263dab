"""AMD Instinct boards, what programs ask of them, and the state of one GPU."""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.samples import Floats

Level = Floats | float


@dataclass(frozen=True, slots=True)
class Board:
    """One product: W, MHz, MB of HBM, and the hottest that its sensors show under full load (C)."""

    product: str
    power_w: float
    gfx_mhz: float
    mem_mhz: float
    hbm_mb: float
    idle_w: float
    xcds: int
    family: str
    full_c: float


MI300X = Board("AMD Instinct MI300X", 750, 2100, 1300, 196_592, 140, 8, "MI3xx", 78)
MI325X = Board("AMD Instinct MI325X", 1000, 2100, 1500, 262_128, 160, 8, "MI3xx", 82)
MI250 = Board("AMD Instinct MI250", 560, 1700, 1600, 65_520, 90, 1, "MI2xx", 74)


@dataclass(frozen=True, slots=True)
class Work:
    """What a program does.

    ``gfx`` and ``umc`` are activity of compute and memory in per cent, ``power`` the share (0 to 1)
    of the board's range, ``vram`` of its memory; ``xgmi_kb`` KB/s on a link, ``pcie_mb`` Mb/s.
    """

    gfx: Level
    umc: Level
    power: Level
    vram: Level = 0.85
    xgmi_kb: Level = 4e6
    pcie_mb: Level = 9_000.0


TRAIN = Work(97.0, 42.0, 0.82)
DECODE = Work(94.0, 61.0, 0.55, vram=0.92, xgmi_kb=6e5)
IDLE = Work(0.0, 0.0, 0.0, vram=0.004, xgmi_kb=0.0, pcie_mb=0.0)


@dataclass(slots=True)
class Gpu:
    """One GPU (or partition) and what its exporter shows; levels may change over time.

    Attributes:
        index: label ``gpu_id``.
        work: what runs on it.
        clock: GFX clock as a share of the board's maximum, while busy.
        cap_w: power limit in force (W); None is the board's.
        junction_c: added to the hot spot (C).
        memory_c: added to the memory temperature (C).
        held_c: the hot spot itself (C), where throttling holds it; None follows from the power.
        held_hbm_c: the same for the memory.
        violation: share of time 0 to 1 by violation, as the exporter spells it.
        below: the same for the clock being below the host's limit: power, thermal.
        ecc: errors a second by spelling after ``gpu_ecc_``.
        pcie: errors a second by metric name.
        pcie_speed: current link speed (GT/s); None is the maximum.
        extra: gauges to set as they are.
        partition: label ``gpu_partition_id``; others than 0 have no sensors.
    """

    index: int
    work: Work = TRAIN
    clock: Level = 0.93
    cap_w: Level | None = None
    junction_c: Level = 0.0
    memory_c: Level = 0.0
    held_c: Level | None = None
    held_hbm_c: Level | None = None
    violation: dict[str, Level] = field(default_factory=dict)
    below: dict[str, Level] = field(default_factory=dict)
    ecc: dict[str, Level] = field(default_factory=dict)
    pcie: dict[str, Level] = field(default_factory=dict)
    pcie_speed: Level | None = None
    extra: dict[str, Level] = field(default_factory=dict)
    partition: int = 0
