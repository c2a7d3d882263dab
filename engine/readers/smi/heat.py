"""What the temperatures of a GPU say beside its limits: its own, else those of its model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from typing import Final

from engine.catalogue.types import Catalogue
from engine.readers.smi.issue import Issue, issue
from engine.readers.smi.state import GpuState
from engine.units import number

# Utilisation (percent) of a GPU whose kernels run all the time, and the share of a sibling's power
# below which little of that work is done.
_FULL_TIME: Final = 90.0
_LITTLE: Final = 0.6


def heat_issues(
    gpu: GpuState, siblings: Sequence[GpuState], catalogue: Catalogue
) -> Iterator[Issue]:
    """Yield what the temperatures of a GPU say; ``siblings`` are all GPUs of the run."""
    n = gpu.numbers
    temp, most, margin = n.get("gpu_temp_c"), n.get("max_op_temp_c"), n.get("margin_c")
    too_hot = False
    if margin is not None:
        too_hot = margin <= 0
    elif temp is not None and most is not None:
        too_hot = temp >= most > 0
    # With a slowdown active, the mask says it.
    slowed = any(gpu.flags.get(reason) for reason in ("hw_slowdown", "hw_thermal", "sw_thermal"))
    if too_hot and not slowed:
        at = f"die at {number(temp)} °C" if temp is not None else "die"
        left = f", {number(margin)} °C left" if margin is not None else ""
        limit = f", limit {number(most)} °C" if margin is None and most is not None else ""
        yield issue("too_hot", gpu, f"{at}{left}{limit}")
    memory, memory_most = n.get("memory_temp_c"), n.get("memory_max_op_temp_c")
    if memory is not None and memory_most and memory >= memory_most and not too_hot:
        yield issue(
            "memory_hot",
            gpu,
            f"memory at {number(memory)} °C, limit {number(memory_most)} °C",
            memory_temp_c=memory,
        )
    if temp is None or most is not None or margin is not None or slowed:
        return
    # Where clocks are read, the rules judge them with the temperature.
    model = catalogue.model_for(gpu.name)
    limit_c = model.attrs.get("max_op_temp_c") if model is not None else None
    if limit_c and temp >= limit_c and "sm_clock_mhz" not in n and gpu.busy is not False:
        yield issue(
            "too_hot_for_model",
            gpu,
            _beside(gpu, siblings, limit_c),
            gpu_temp_c=temp,
            limit_c=limit_c,
        )


def _beside(gpu: GpuState, siblings: Sequence[GpuState], limit_c: float) -> str:
    """Its temperature beside the model's limit and its siblings, and what it draws."""
    temp, mine = gpu.numbers["gpu_temp_c"], gpu.numbers.get("power_w")
    util = gpu.numbers.get("gpu_util_percent", 0.0)
    others = [
        other
        for other in siblings
        if other is not gpu
        and (other.name, other.host) == (gpu.name, gpu.host)
        and other.numbers.get("gpu_util_percent", 0.0) >= _FULL_TIME
    ]
    temps = [other.numbers["gpu_temp_c"] for other in others if "gpu_temp_c" in other.numbers]
    drawn = [other.numbers["power_w"] for other in others if "power_w" in other.numbers]
    cooler = bool(temps) and median(temps) < temp
    words = f"its die is at {number(temp)} °C"
    words += f", theirs at {number(median(temps))} °C" if cooler else ""
    words += f"; the model's limit is {number(limit_c)} °C"
    if mine is None:
        return words
    words += f"; it draws {number(mine)} W at {number(util)} % utilisation"
    if util < _FULL_TIME or not drawn or mine >= _LITTLE * max(drawn):
        return words
    return (
        f"{words} where others draw up to {number(max(drawn))} W: heat cuts its clocks, it does "
        "not want for work"
    )
