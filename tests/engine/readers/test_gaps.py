"""What pasted readings leave open: for which GPUs, the first of many, slow GPUs first."""

from __future__ import annotations

from engine.catalogue import Catalogue
from engine.model import Read, Severity
from engine.readers import read
from tests.support.readings import judge

WHOLE = {
    "DCGM_FI_DEV_SM_CLOCK": 1755,
    "DCGM_FI_DEV_GPU_TEMP": 64,
    "DCGM_FI_DEV_POWER_USAGE": 640,
    "DCGM_FI_DEV_GPU_UTIL": 100,
}
SLOW = WHOLE | {"DCGM_FI_DEV_SM_CLOCK": 345, "DCGM_FI_DEV_POWER_USAGE": 190}


def answer(catalogue: Catalogue, *gpus: dict[str, int]) -> Read:
    rows = [
        f'{name}{{gpu="{n}",UUID="GPU-{n}",modelName="NVIDIA H100 80GB HBM3",Hostname="g1"}} {value}'
        for n, gpu in enumerate(gpus)
        for name, value in gpu.items()
    ]
    return read("\n".join([*rows, ""]).encode(), catalogue, judge)


def whys(found: Read, signal: str) -> list[str]:
    return [gap.why for gap in found.unknown if gap.needs == signal]


def test_a_series_of_another_gpu_is_not_called_missing_everywhere(catalogue: Catalogue) -> None:
    found = answer(
        catalogue,
        WHOLE | {"DCGM_FI_DEV_ROW_REMAP_PENDING": 1},
        WHOLE | {"DCGM_FI_DEV_XID_ERRORS": 79},
        WHOLE,
    )

    assert whys(found, "xid") == ["not exported for g1:0, g1:2"]
    assert whys(found, "row_remap_pending") == ["not exported for g1:1, g1:2"]
    fixes = {gap.needs: gap.fix for gap in found.unknown}
    assert fixes["xid"].startswith("the text has it for g1:1: give the lines of the other GPUs")


def test_a_series_that_no_gpu_has_is_not_exported(catalogue: Catalogue) -> None:
    found = answer(catalogue, WHOLE, WHOLE)

    assert whys(found, "xid") == ["not exported"]


def test_of_many_the_first_are_named_and_the_rest_counted(catalogue: Catalogue) -> None:
    found = answer(catalogue, WHOLE, WHOLE)

    assert sum(gap.why == "not exported" for gap in found.unknown) == 10
    assert any("more signals that rules use are not exported" in note for note in found.notes)


def test_slow_gpus_without_a_reason_are_one_finding_at_the_top(catalogue: Catalogue) -> None:
    found = answer(catalogue, WHOLE, SLOW, SLOW | {"DCGM_FI_DEV_SM_CLOCK": 360})

    first = found.findings[0]
    assert (first.id, first.severity, first.cause) == ("slow_untold", Severity.MEDIUM, None)
    assert first.says == (
        "g1:1 is slow under load (SM clock 345 MHz), and no throttle reading is exported that "
        "would say why. The same on g1:2."
    )
    assert first.entity is not None
    assert first.line == 5
    assert not any("is slow under load" in gap.why for gap in found.unknown)


def test_gpus_at_speed_are_not_called_slow(catalogue: Catalogue) -> None:
    assert all(f.id != "slow_untold" for f in answer(catalogue, WHOLE, WHOLE).findings)
