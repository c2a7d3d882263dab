"""Links in ``lspci -vv``: what the slot above says of a device, and what is none of its business."""

from __future__ import annotations

from engine.catalogue import Catalogue
from engine.model import Severity
from engine.readers import read

PORT = """\
{primary}:01.0 PCI bridge [0604]: Intel Corporation Ice Lake PCIe Root Port A [8086:347a] (rev 04)
\tBus: primary={primary}, secondary={bus}, subordinate={bus}, sec-latency=0
\t\tLnkCap:\tPort #5, Speed {gts}GT/s, Width x{lanes}, ASPM not supported
\t\tLnkSta:\tSpeed {gts}GT/s, Width x{lanes}
"""
GPU = """\
{bus}:00.0 3D controller [0302]: NVIDIA Corporation GH100 [H100 PCIe] [10de:2331] (rev a1)
\t\tLnkCap:\tPort #0, Speed 32GT/s, Width x16, ASPM not supported
\t\tLnkSta:\tSpeed {gts}GT/s{slow}, Width x{lanes}{narrow}
"""


def port(bus: str, gts: int, lanes: int) -> str:
    return PORT.format(primary="40", bus=bus, gts=gts, lanes=lanes)


def gpu(bus: str, gts: int, lanes: int) -> str:
    slow = " (downgraded)" if gts < 32 else ""
    narrow = " (downgraded)" if lanes < 16 else ""
    return GPU.format(bus=bus, gts=gts, lanes=lanes, slow=slow, narrow=narrow)


def severities(text: str, catalogue: Catalogue) -> list[tuple[str, Severity]]:
    return [(f.id, f.severity) for f in read(text.encode(), catalogue).findings]


def test_a_slot_of_an_older_generation_is_no_fault(catalogue: Catalogue) -> None:
    text = port("41", 16, 16) + gpu("41", 16, 16)
    assert severities(text, catalogue) == [("slot", Severity.INFO)]


def test_a_slot_with_fewer_lanes_is_no_fault(catalogue: Catalogue) -> None:
    text = port("41", 32, 8) + gpu("41", 32, 8)
    assert severities(text, catalogue) == [("slot", Severity.INFO)]


def test_fewer_lanes_than_the_slot_has_is_a_fault(catalogue: Catalogue) -> None:
    text = port("41", 32, 16) + gpu("41", 32, 8)
    answer = read(text.encode(), catalogue)
    assert answer.causes == ("pcie_degraded",)
    assert answer.findings[0].severity is Severity.HIGH


def test_the_slot_may_stand_after_the_device(catalogue: Catalogue) -> None:
    text = gpu("41", 16, 16) + port("41", 16, 16)
    assert severities(text, catalogue) == [("slot", Severity.INFO)]


def test_a_slot_of_another_bus_says_nothing(catalogue: Catalogue) -> None:
    text = port("51", 32, 8) + gpu("41", 32, 8)
    assert read(text.encode(), catalogue).causes == ("pcie_degraded",)


def test_equal_links_of_equal_boards_are_how_the_server_is_built(catalogue: Catalogue) -> None:
    text = gpu("41", 32, 8) + gpu("61", 32, 8)
    assert severities(text, catalogue) == [("alike", Severity.INFO)]


def test_one_narrow_board_among_others_stands_out(catalogue: Catalogue) -> None:
    text = gpu("41", 32, 16) + gpu("61", 32, 8) + gpu("81", 32, 16)
    assert ("narrow", Severity.HIGH) in severities(text, catalogue)


def test_empty_slots_and_onboard_devices_are_left_alone(catalogue: Catalogue) -> None:
    text = (
        "00:1c.0 PCI bridge: Intel Corporation C620 Series PCI Express Root Port #1 (rev fa)\n"
        "\t\tLnkCap:\tPort #1, Speed 8GT/s, Width x1, ASPM L1\n"
        "\t\tLnkSta:\tSpeed 2.5GT/s (downgraded), Width x0 (downgraded)\n"
        "02:00.0 VGA compatible controller: ASPEED Technology, Inc. ASPEED Graphics Family\n"
        "\t\tLnkCap:\tPort #0, Speed 5GT/s, Width x1, ASPM not supported\n"
        "\t\tLnkSta:\tSpeed 2.5GT/s (downgraded), Width x1\n"
    )
    assert severities(text, catalogue) == []


def test_a_lost_gpu_is_said_once(catalogue: Catalogue) -> None:
    text = (
        "41:00.0 3D controller: NVIDIA Corporation GH100 [H100 PCIe] (rev a1)\n"
        "c1:00.0 3D controller: NVIDIA Corporation GH100 [H100 PCIe] (rev ff)\n"
    )
    answer = read(text.encode(), catalogue)
    assert answer.causes == ("gpu_off_bus",)
    assert sum("c1:00" in f.says for f in answer.findings) == 1
