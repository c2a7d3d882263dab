"""GPUs that are busy all the time and draw far less than their siblings: held back, or waiting."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from engine.model import Finding, Severity
from engine.readers.listing import finding, node
from engine.readers.smi.state import GpuState, listed
from engine.units import number

# Utilisation (percent) of a GPU whose kernels run all the time, and the share of its siblings'
# power below which these kernels compute next to nothing, or slowly.
_FULL_TIME: Final = 90.0
_LITTLE: Final = 0.5
# At half the power a GPU is cooler than its siblings. Hotter by this much (K), so near to its limit
# (K), or so hot where no limit is known (C), heat may be what holds it back.
_HOTTER: Final = 5.0
_NEAR: Final = 5.0
_HOT: Final = 85.0
# Share of its siblings' clock below which a clock is lower; boost clocks differ by a few percent.
_SLOWER: Final = 0.95
# From this performance state on, clocks are low for a GPU at work.
_SLOW_STATE: Final = 5
_LIMITS: Final = ("max_op_temp_c", "slowdown_temp_c")


@dataclass(frozen=True, slots=True)
class LowDraw:
    """A GPU that draws little at full utilisation; ``usual`` is what its siblings show.

    Attributes:
        heat: in words, where it is hot.
        clock: in words, where its clock is lower than its siblings'.
        held: whether a clock event or a slow performance state holds it.
    """

    gpu: GpuState
    usual: float
    heat: str = ""
    clock: str = ""
    held: bool = False

    @property
    def waits(self) -> bool:
        """Whether nothing but want of work explains it."""
        return not (self.heat or self.clock or self.held)


def low_draws(gpus: Sequence[GpuState]) -> list[LowDraw]:
    """Find the few among equal GPUs at full utilisation that draw far less power than the rest."""
    at_work = [
        g
        for g in gpus
        if g.numbers.get("gpu_util_percent", 0) >= _FULL_TIME and g.numbers.get("power_w", 0) > 0
    ]
    if len(at_work) < 3 or len({(g.name, g.host) for g in at_work}) != 1:
        return []
    usual = median(g.numbers["power_w"] for g in at_work)
    little = [g for g in at_work if g.numbers["power_w"] < _LITTLE * usual]
    if 2 * len(little) >= len(at_work):
        return []
    few = {id(g) for g in little}
    rest = [g for g in at_work if id(g) not in few]
    return [
        LowDraw(gpu, usual, heat=_heat(gpu, rest), clock=_clock(gpu, rest), held=_held(gpu))
        for gpu in little
    ]


def _usual(name: str, gpus: Sequence[GpuState]) -> float | None:
    values = [g.numbers[name] for g in gpus if name in g.numbers]
    return median(values) if values else None


def _heat(gpu: GpuState, rest: Sequence[GpuState]) -> str:
    temp, margin = gpu.numbers.get("gpu_temp_c"), gpu.numbers.get("margin_c")
    usual = _usual("gpu_temp_c", rest)
    if temp is not None and usual is not None and temp >= usual + _HOTTER:
        return f"its die is at {number(temp)} °C, theirs at {number(usual)} °C"
    if margin is not None:
        return f"its die has {number(margin)} °C left to its limit" if margin <= _NEAR else ""
    if temp is None:
        return ""
    limit = next((gpu.numbers[name] for name in _LIMITS if name in gpu.numbers), None)
    near = temp >= limit - _NEAR if limit is not None else temp >= _HOT
    return f"its die is at {number(temp)} °C" if near else ""


def _clock(gpu: GpuState, rest: Sequence[GpuState]) -> str:
    clock, usual = gpu.numbers.get("sm_clock_mhz"), _usual("sm_clock_mhz", rest)
    if clock is None or usual is None or clock >= _SLOWER * usual:
        return ""
    return f"it runs at {number(clock)} MHz, they at {number(usual)} MHz"


def _held(gpu: GpuState) -> bool:
    events = any(on for reason, on in gpu.flags.items() if reason != "gpu_idle")
    return events or (gpu.mask or 0) > 1 or gpu.numbers.get("pstate", 0) >= _SLOW_STATE


def draw_findings(found: Sequence[LowDraw], said: Collection[str], kind: str) -> Iterator[Finding]:
    """Say what low power at full utilisation means.

    Args:
        found: the GPUs.
        said: titles of those of which another finding says what holds them back.
        kind: the form of the output.
    """
    for one in found:
        if (one.heat or one.clock) and not one.held and one.gpu.title not in said:
            yield _held_back(one, kind)
    waiting = [one for one in found if one.waits and one.gpu.title not in said]
    if waiting:
        yield _waiting(waiting, kind)


def _held_back(one: LowDraw, kind: str) -> Finding:
    gpu = one.gpu
    signs = "; ".join(sign for sign in (one.clock, one.heat) if sign)
    why = "Most likely heat cuts" if one.heat else "A clock or power limit holds back"
    what = "its clocks" if one.heat else "it"
    handle = gpu.handle
    which = "" if handle is None else f" -i {handle}"
    return finding(
        kind,
        "held_back",
        Severity.MEDIUM if one.clock else Severity.LOW,
        f"{gpu.label} is at full utilisation and draws {number(gpu.numbers['power_w'])} W where "
        f"the others draw {number(one.usual)} W; {signs}. {why} {what}: it does not want for work, "
        "and in synchronous training the others wait for it.",
        f"Read why: nvidia-smi -q -d PERFORMANCE,TEMPERATURE,CLOCK,POWER{which} (clock event "
        "reasons, limits)" + ("; check its cooling." if one.heat else "."),
        line=gpu.line,
        data={"power_w": gpu.numbers["power_w"], "sibling_power_w": one.usual},
        entity=gpu.entity,
    )


def _waiting(found: Sequence[LowDraw], kind: str) -> Finding:
    first = found[0].gpu
    draw = number(max(one.gpu.numbers["power_w"] for one in found))
    verbs = ("shows", "draws") if len(found) == 1 else ("show", "draw")
    return finding(
        kind,
        "low_draw",
        Severity.INFO,
        f"{listed([one.gpu.label for one in found])} {verbs[0]} full utilisation and {verbs[1]} at "
        f"most {draw} W where the others draw {number(found[0].usual)} W: a kernel runs there and "
        "computes next to nothing. Usually it spins in a collective (NCCL) and waits for a peer, "
        "or its job does other work than the rest; utilisation only says that some kernel runs.",
        "See what the rank does: py-spy dump, the collective library's log. If the clocks are not "
        "shown here, see that they are not cut: nvidia-smi -q -d CLOCK,PERFORMANCE.",
        line=first.line,
        data={"power_w": first.numbers["power_w"], "sibling_power_w": found[0].usual},
        entity=first.entity if len(found) == 1 else node(first.host),
    )
