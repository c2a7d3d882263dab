"""GPUs of ``dcgmi dmon`` that are hotter than their siblings without drawing more power."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from typing import Final

from engine.model import Finding, Severity
from engine.readers.dcgmi.dmon_findings import Course
from engine.readers.listing import finding
from engine.units import number

_TEMPERATURE, _POWER = 150, 155
# So much hotter (Celsius), at a power that is above theirs by no more than this share.
_HOTTER_C: Final = 12.0
_ALIKE: Final = 0.1
# Below this power (W) GPUs idle, and temperatures tell nothing.
_AT_WORK_W: Final = 150.0


def outlier_findings(records: Sequence[Course]) -> Iterator[Finding]:
    """Yield GPUs of one machine whose cooling is worse than that of the others."""
    for host in dict.fromkeys(one.host for one in records):
        gpus = [
            one
            for one in records
            if one.host == host
            and one.kind == "GPU"
            and one.newest.get(_POWER, 0.0) >= _AT_WORK_W
            and _TEMPERATURE in one.newest
        ]
        if len(gpus) < 3:
            continue
        usual = median(one.newest[_TEMPERATURE] for one in gpus)
        drawn = median(one.newest[_POWER] for one in gpus)
        for one in gpus:
            heat, power = one.newest[_TEMPERATURE], one.newest[_POWER]
            if heat < usual + _HOTTER_C or power > (1 + _ALIKE) * drawn:
                continue
            less = power < (1 - _ALIKE) * drawn
            yield finding(
                "dcgmi_dmon",
                "hot",
                Severity.MEDIUM,
                f"GPU {one.id} is at {number(heat)} °C and {number(power)} W where its siblings "
                f"are at {number(usual)} °C and {number(drawn)} W: its cooling is worse"
                + (
                    ", and it may be throttled for it: it draws less at the same time."
                    if less
                    else "."
                ),
                "Check its heat sink or cold plate, fans and airflow; nvidia-smi -q -d PERFORMANCE "
                f"-i {one.id} shows whether heat holds its clocks (dcgmi dmon -e 112,100).",
                line=one.line,
                cause="cooling_outlier",
                data={"gpu_temp_c": heat, "median_c": usual, "power_w": power},
                entity=one.entity,
            )
