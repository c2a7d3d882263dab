"""The throttle reasons of the knowledge agree with NVIDIA's own NVML binding (nvidia-ml-py)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pynvml
import pytest
import yaml

import engine

REASONS: list[dict[str, Any]] = yaml.load(
    (Path(engine.__file__).parent.parent / "knowledge" / "throttle_reasons.yaml").read_bytes(),
    Loader=yaml.CSafeLoader,
)["throttle_reasons"]
BITS = {reason["id"]: reason["bit"] for reason in REASONS}
BY_CONSTANT = {name: reason["bit"] for reason in REASONS for name in reason["nvml"]}

PREFIXES = ("nvmlClocksEventReason", "nvmlClocksThrottleReason")
# Not bits of their own: no reason at all, all of them, and the function that returns the mask.
NOT_A_BIT = {f"{prefix}{name}" for prefix in PREFIXES for name in ("None", "All", "s")}
VENDOR = {
    name: value
    for name, value in vars(pynvml).items()
    if name.startswith(PREFIXES) and name not in NOT_A_BIT
}


def test_the_nine_documented_reasons_are_there() -> None:
    assert {name: BITS[name] for name in list(BITS)[:9]} == {
        "gpu_idle": 0x1,
        "clocks_setting": 0x2,
        "sw_power_cap": 0x4,
        "hw_slowdown": 0x8,
        "sync_boost": 0x10,
        "sw_thermal": 0x20,
        "hw_thermal": 0x40,
        "hw_power_brake": 0x80,
        "display_clocks": 0x100,
    }


@pytest.mark.parametrize(("constant", "value"), sorted(VENDOR.items()))
def test_every_reason_of_nvml_is_known_with_its_value(constant: str, value: int) -> None:
    assert BY_CONSTANT.get(constant) == value


@pytest.mark.parametrize("reason", REASONS, ids=lambda reason: str(reason["id"]))
def test_every_reason_is_one_bit_that_nvml_has(reason: dict[str, Any]) -> None:
    bit = reason["bit"]
    assert bit > 0
    assert bit & (bit - 1) == 0
    assert reason["hex"] == hex(bit)
    assert {VENDOR.get(name) for name in reason["nvml"]} == {bit}


def test_ids_and_bits_are_unique() -> None:
    assert len(BITS) == len(REASONS) == len(set(BITS.values()))


def test_bad_reasons_are_those_that_dcgm_fails_on() -> None:
    """NVIDIA/DCGM nvvs/src/DcgmRecorder.cpp: hardware slowdown, both thermal ones, power brake."""
    assert sum(reason["bit"] for reason in REASONS if reason["bad"]) == 0xE8


def test_the_reasons_up_to_display_clocks_fill_nvmls_mask_of_event_reasons() -> None:
    assert sum(bit for bit in BITS.values() if bit <= 0x100) == pynvml.nvmlClocksEventReasonAll
