"""GPUs of one machine whose clocks are cut, where no limit or counter of the text says so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from engine.model import Finding
from engine.readers.amd_slowed import Board, is_throttled, slowed
from engine.readers.amd_smi.limits import KIND, VIOLATIONS
from engine.readers.amd_smi.state import AmdGpu
from engine.readers.listing import finding

HEAT: Final = frozenset({"thermal_slowdown_sw", "thermal_slowdown_hw"})
# With one of these it is told already what holds the clocks.
_TOLD: Final = HEAT | {
    "memory_overheat",
    "power_brake",
    "power_limit_lowered",
    "clocks_locked",
    "pstate_stuck",
}


def slowed_findings(gpus: Sequence[AmdGpu], found: Sequence[Finding]) -> Iterator[Finding]:
    """Yield what cuts the clocks of GPUs of which ``found`` does not say it yet."""
    told = {f.entity.name for f in found if f.entity and f.cause in _TOLD}
    boards = {id(gpu): _board(gpu) for gpu in gpus if gpu.whole}
    for gpu in gpus:
        if not gpu.whole or gpu.entity.name in told:
            continue
        one = slowed(boards[id(gpu)], [b for key, b in boards.items() if key != id(gpu)])
        if one is not None:
            yield finding(
                KIND,
                "slowed",
                one.severity,
                one.says,
                one.action,
                line=gpu.line,
                cause=one.cause,
                data=one.data,
                entity=gpu.entity,
                sources=(VIOLATIONS,),
            )


def _board(gpu: AmdGpu) -> Board:
    return Board(
        gpu.label,
        activity=gpu.get("gfx_activity_percent"),
        hot=gpu.get("hotspot_c"),
        hot_limit=gpu.get("slowdown_hotspot_c"),
        clock=gpu.get("gfx_clock_mhz"),
        clock_max=gpu.get("gfx_clock_max_mhz"),
        power=gpu.get("power_w"),
        cap=gpu.get("power_cap_w"),
        throttled=is_throttled(gpu.words.get("throttle_status")),
    )
