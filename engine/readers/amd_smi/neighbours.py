"""GPUs of a machine that differ from their neighbours at the same load."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from typing import Final

from engine.model import Finding, Severity
from engine.readers.amd_smi.limits import BUSY, KIND
from engine.readers.amd_smi.state import AmdGpu
from engine.readers.listing import finding
from engine.units import number

# So much hotter (Celsius) at a power that is above theirs by no more than this share.
_HOTTER_C: Final = 10.0
_ALIKE: Final = 0.15
_SLOW: Final = 0.9


def outlier_findings(gpus: Sequence[AmdGpu]) -> Iterator[Finding]:
    """Yield the GPUs of one machine that are hotter or slower than the others at work."""
    busy = [g for g in gpus if (g.get("gfx_activity_percent") or 0.0) >= BUSY and g.whole]
    if len(busy) < 3:
        return
    hot = {id(g): t for g in busy if (t := g.get("hotspot_c") or g.get("edge_c")) is not None}
    power = {id(g): p for g in busy if (p := g.get("power_w"))}
    clocks = {id(g): c for g in busy if (c := g.get("gfx_clock_mhz"))}
    for gpu in busy:
        key = id(gpu)
        if len(hot) == len(power) == len(busy):
            usual, drawn = median(hot.values()), median(power.values())
            alike = power[key] <= (1 + _ALIKE) * drawn
            if alike and hot[key] >= usual + _HOTTER_C:
                yield finding(
                    KIND,
                    "hot",
                    Severity.MEDIUM,
                    f"{gpu.label} is at {number(hot[key])} °C where its neighbours are at "
                    f"{number(usual)} °C with "
                    + ("less" if power[key] < (1 - _ALIKE) * drawn else "the same")
                    + " power: its cooling is worse.",
                    "Check its heat sink, fan or cold plate, and the airflow at its place.",
                    line=gpu.line,
                    cause="cooling_outlier",
                    data={"hotspot_c": hot[key], "median_c": usual},
                    entity=gpu.entity,
                )
        if len(clocks) == len(busy) and clocks[key] < _SLOW * median(clocks.values()):
            usual = median(clocks.values())
            yield finding(
                KIND,
                "slow",
                Severity.MEDIUM,
                f"{gpu.label} clocks at {number(clocks[key])} MHz under load, its neighbours at "
                f"{number(usual)} MHz: ranks that wait for it are slow too.",
                "amd-smi monitor -V shows which limit holds it; amd-smi metric --perf-level "
                "--clock shows a setting.",
                line=gpu.line,
                cause="straggler",
                data={"gfx_clock_mhz": clocks[key], "median_mhz": usual},
                entity=gpu.entity,
            )
