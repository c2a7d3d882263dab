"""Clock event masks and the readings around them: nvidia-smi listings, CSV, words."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from engine.catalogue import Catalogue
from engine.model import Read, Severity
from engine.readers.throttle import Around, reasons_of, throttle_finding

ReadText = Callable[[str], Read]

LISTING = """
==============NVSMI LOG==============

Driver Version                            : 550.54.15
Attached GPUs                             : 2
GPU 00000000:18:00.0
    Product Name                          : NVIDIA H100 80GB HBM3
    GPU UUID                              : GPU-11111111-2222-3333-4444-555555555555
    Performance State                     : P0
    Clocks Throttle Reasons
        Idle                              : Not Active
        Applications Clocks Setting       : Not Active
        SW Power Cap                      : Active
        HW Slowdown                       : Not Active
        HW Thermal Slowdown               : Not Active
        HW Power Brake Slowdown           : Not Active
        Sync Boost                        : Not Active
        SW Thermal Slowdown               : Not Active
        Display Clock Setting             : Not Active
    Temperature
        GPU Current Temp                  : 61 C
        GPU T.Limit Temp                  : 25 C
        Memory Current Temp               : 70 C
    GPU Power Readings
        Power Draw                        : 398.20 W
        Current Power Limit               : 400.00 W
        Default Power Limit               : 700.00 W
    Clocks
        Graphics                          : 1215 MHz
        SM                                : 1215 MHz
    Max Clocks
        Graphics                          : 1980 MHz
        SM                                : 1980 MHz
GPU 00000000:2A:00.0
    Performance State                     : P0
    Clocks Throttle Reasons
        Idle                              : Not Active
        HW Slowdown                       : Active
        HW Thermal Slowdown               : Active
    Temperature
        GPU Current Temp                  : 93 C
"""


def test_a_whole_listing_gives_a_finding_for_each_gpu_worst_first(read_text: ReadText) -> None:
    answer = read_text(LISTING)
    assert answer.unread_lines == 0
    hot, capped, both = answer.findings
    assert hot.entity is not None
    assert hot.entity.pci == "00000000:2a:00.0"
    assert (hot.cause, hot.data["mask"], hot.data["gpu_temp_c"]) == ("thermal_slowdown_hw", 72, 93)
    assert capped.cause == "power_limit_lowered"
    assert capped.entity is not None
    assert capped.entity.model == "NVIDIA H100 80GB HBM3"
    assert capped.data["sm_clock_mhz"] == 1215
    assert capped.data["max_sm_clock_mhz"] == 1980
    assert capped.data["power_limit_default_w"] == 700
    assert both.data["faulted_gpus"] == [1]
    assert answer.causes == ("thermal_slowdown_hw", "power_limit_lowered")


def test_counters_stand_beside_the_flags(read_text: ReadText) -> None:
    answer = read_text(
        "Clocks Event Reasons\n  SW Power Cap : Not Active\n"
        "Clocks Event Reasons Counters\n  SW Power Capping : 86400000000 us\n  Sync Boost : 0 us\n"
    )
    (finding,) = answer.findings
    assert finding.data["counters_us"] == {"sw_power_cap": 86_400_000_000}
    assert "86400 s of sw power cap" in finding.says
    assert "twice" in finding.action
    assert finding.cause is None


def test_prose_after_a_listing_ends_it(read_text: ReadText) -> None:
    answer = read_text("HW Slowdown : Active\n" + "this is prose, not a reading!\n" * 6)
    assert answer.unread_lines == 6


@pytest.mark.parametrize(
    ("mask", "around", "cause"),
    [
        (0, Around(), None),
        (1, Around(), "idle"),
        (4, Around(), None),
        (4, Around(power_w=690, power_limit_w=700), "power_bound"),
        (4, Around(power_limit_w=400, power_limit_default_w=700), "power_limit_lowered"),
        (5, Around(power_limit_w=400, power_limit_default_w=700), "idle"),
        (8, Around(), None),
        (8, Around(margin_c=0), "thermal_slowdown_hw"),
        (8, Around(gpu_temp_c=88, max_op_temp_c=87), "thermal_slowdown_hw"),
        (16, Around(), "sync_boost_held"),
        (32, Around(), "thermal_slowdown_sw"),
        (
            32,
            Around(gpu_temp_c=60, max_op_temp_c=87, memory_temp_c=105, memory_max_op_temp_c=95),
            "memory_overheat",
        ),
        (0x48, Around(), "thermal_slowdown_hw"),
        (0x88, Around(), "power_brake"),
        (0xC8, Around(), "power_brake"),
    ],
)
def test_causes(mask: int, around: Around, cause: str | None, catalogue: Catalogue) -> None:
    finding = throttle_finding(mask, around, catalogue)
    assert finding.cause == cause
    assert finding.data["mask"] == mask
    assert finding.says
    assert finding.action


def test_an_undocumented_bit_is_said(catalogue: Catalogue) -> None:
    reasons, left = reasons_of(0x80001, catalogue)
    assert reasons == ["gpu_idle"]
    assert left == 0x80000
    finding = throttle_finding(0x80001, Around(), catalogue)
    assert "0x80000 are not documented" in finding.says
    assert finding.data["unknown_bits"] == 0x80000


def test_an_idle_gpu_under_the_brake_is_no_idle_gpu(catalogue: Catalogue) -> None:
    finding = throttle_finding(0x89, Around(gpu_temp_c=33), catalogue)
    assert finding.severity is Severity.CRITICAL
    assert "under load it would be slow" in finding.says
    assert "heat is ruled out" in finding.says


def test_active_and_supported_masks_in_csv(read_text: ReadText) -> None:
    answer = read_text(
        "index, clocks_event_reasons.supported, clocks_event_reasons.active\n"
        "0, 0x00000000000001FF, 0x0000000000000048\n"
        "1, 0x00000000000001FF, [N/A]\n"
    )
    assert answer.causes == ("thermal_slowdown_hw",)
    assert [f.data.get("supported_mask") for f in answer.findings] == [None, 511]
    assert answer.unread_lines == 0
