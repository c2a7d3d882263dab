"""Several kernel lines together: bursts, roots, consequences, recovery actions."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from engine.catalogue import Catalogue
from engine.model import Read, Severity
from engine.readers import read

ReadText = Callable[[str], Read]


def xid(code: int, message: str = "x", pci: str = "0000:10:00", host: str = "") -> str:
    prefix = f"May 29 01:37:38 {host} kernel: [1.0] " if host else "[1.0] "
    return f"{prefix}NVRM: Xid (PCI:{pci}): {code}, pid=77, name=train, {message}\n"


RESET = "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"
DRAIN = "GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)"


def test_lines_of_one_fault_are_one_finding(read_text: ReadText) -> None:
    answer = read_text("".join(xid(31, f"Ch 0000000{i}, intr 1") for i in range(5)))
    (finding,) = answer.findings
    assert finding.data["count"] == 5
    assert "Printed 5 times (lines 1 to 5)." in finding.says


def test_a_memory_error_and_what_follows_from_it(read_text: ReadText) -> None:
    answer = read_text(
        xid(45, "Ch 00000010")
        + xid(63, "Row Remapper: New row (0x0a) marked for remapping, reset gpu to activate.")
        + xid(48)
        + xid(94, "Contained: FB DED (0x4, 0x1). RST: No, D-RST: Yes")
        + xid(154, DRAIN)
    )
    assert answer.causes == ("ecc_uncorrectable", "row_remap_pending", "ecc_contained")
    root = answer.findings[0]
    assert root.id == "48"
    assert root.data["primary_xid"] == 48
    assert root.data["secondary_xids"] == [45, 63, 94, 154]
    assert root.data["xids"] == [45, 63, 48, 94, 154]
    assert root.data["actions"] == {"10:00": "Drain and Reset"}
    assert "Xid 63 beside it" in root.action
    assert "asks for Drain and Reset (Xid 154, line 5)" in root.action
    echo = next(f for f in answer.findings if f.id == "45")
    assert echo.data["sympathetic"] is True
    assert echo.cause is None
    assert "consequence of Xid 48 on GPU 0000:10:00 (line 3)" in echo.says


def test_a_lost_gpu_explains_links_switches_and_firmware(read_text: ReadText) -> None:
    switch = "May 29 01:37:38 n1 kernel: nvidia-nvswitch{}: SXid (PCI:0000:c1:00.0): 20034, Fatal, "
    answer = read_text(
        switch.format(0)
        + "Link 30 LTSSM Fault Up\n"
        + switch.format(1)
        + "Link 31 LTSSM Fault Up\n"
        + xid(74, "NVLink: fatal error detected on link 14(0x0, 0x0)", "0000:3b:00", "n1")
        + xid(119, "Timeout after 6s of waiting for RPC response from GPU0 GSP!", host="n1")
        + xid(79, "GPU has fallen off the bus.", host="n1")
    )
    assert answer.causes == ("gpu_off_bus",)
    assert answer.findings[0].data["switches"] == [0, 1]
    assert [f.id for f in answer.findings] == ["79", "20034", "74", "119"]


def test_a_lost_gpu_of_another_machine_explains_nothing(read_text: ReadText) -> None:
    answer = read_text(
        xid(74, "NVLink: fatal error detected on link 1(0x0)", "0000:3b:00", "n1")
        + xid(79, "GPU has fallen off the bus.", host="n2")
    )
    assert set(answer.causes) == {"gpu_off_bus", "nvlink_down"}


def test_a_reason_named_but_not_printed_is_the_root(read_text: ReadText) -> None:
    answer = read_text(xid(45, "Ch 00000001 caused by previous Xid 149"))
    root, echo = answer.findings
    assert root.id == "149"
    assert "not in the text" in root.says
    assert root.data["caused_by"] == {"10:00": 149}
    assert echo.data["caused_by_xid"] == 149
    assert "app_fault_xid" not in answer.causes


@pytest.mark.parametrize("order", [(119, 120), (120, 119)])
def test_of_two_that_explain_each_other_the_first_is_the_root(
    order: tuple[int, int], read_text: ReadText
) -> None:
    answer = read_text("".join(xid(code) for code in order))
    assert answer.findings[0].data["primary_xid"] == order[0]


def test_a_repaired_row_alone_and_with_a_reset_request(read_text: ReadText) -> None:
    alone = read_text(xid(63, "Row Remapper: New row (0x0a) marked for remapping"))
    assert alone.causes == ("row_remap_pending",)
    both = read_text(xid(63, "Row Remapper: New row (0x0a) marked") + xid(154, RESET))
    assert both.causes == ("row_remap_pending",)
    assert "asks for GPU Reset Required" in both.findings[0].action


@pytest.mark.parametrize(
    ("new", "severity", "causes"),
    [
        ("0x0 (None)", Severity.INFO, ()),
        ("0x1 (GPU Reset Required)", Severity.CRITICAL, ("gpu_needs_reset",)),
        ("0x2 (Node Reboot Required)", Severity.CRITICAL, ("gpu_needs_reset",)),
        ("0x3 (Drain P2P)", Severity.HIGH, ()),
        ("0x4 (Drain and Reset)", Severity.HIGH, ("gpu_needs_reset",)),
    ],
)
def test_recovery_actions(
    new: str, severity: Severity, causes: tuple[str, ...], read_text: ReadText
) -> None:
    answer = read_text(xid(154, f"GPU recovery action changed from 0x7 (Other) to {new}"))
    assert answer.findings[0].severity is severity
    assert answer.causes == causes


def test_the_newest_recovery_action_counts(read_text: ReadText) -> None:
    back = "GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)"
    answer = read_text(xid(154, RESET) + xid(154, back))
    assert answer.findings[0].data["recovery_action"] == "None"
    assert answer.causes == ()


def test_exceptions_on_one_sm_point_at_hardware_and_wandering_ones_do_not(
    read_text: ReadText,
) -> None:
    place = "Graphics SM Warp Exception on (GPC {}, TPC 0, SM 1): Illegal Instruction"
    same = read_text(xid(13, place.format(1)) * 2).findings[0]
    assert "hardware is suspect" in same.says
    assert same.data["gpc"] == 1
    wandering = read_text(xid(13, place.format(1)) + xid(13, place.format(2))).findings[0]
    assert "not a single bad SM" in wandering.says
    assert "gpc" not in wandering.data


def test_flags_of_contained_errors_decide_about_the_reset(read_text: ReadText) -> None:
    def action(flags: str) -> str:
        return read_text(xid(94, f"Contained: SM (0x1). {flags}")).findings[0].action

    assert "stays in service" in action("RST: No, D-RST: No")
    assert "next window" in action("RST: No, D-RST: Yes")
    assert action("RST: Yes, D-RST: No").startswith("Drain the GPU and reset it.")


def test_a_lost_gpu_printed_with_and_without_code_is_one_finding(read_text: ReadText) -> None:
    answer = read_text(
        "NVRM: GPU at PCI:0000:10:00: GPU-01234567-89ab-cdef-0123-456789abcdef\n"
        "NVRM: GPU Board Serial Number: 1234567\n"
        + xid(79, "GPU has fallen off the bus.")
        + "NVRM: GPU 0000:10:00.0: GPU has fallen off the bus.\n"
    )
    (finding,) = answer.findings
    assert finding.data["xid"] == 79
    assert finding.data["serial"] == "1234567"
    assert finding.entity is not None
    assert finding.entity.uuid == "GPU-01234567-89ab-cdef-0123-456789abcdef"
    assert answer.unread_lines == 0


def test_detail_lines_of_a_switch_error_do_not_count(read_text: ReadText) -> None:
    head = "nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 20034, "
    answer = read_text(
        f"{head}Fatal, Link 30 LTSSM Fault Up\n"
        f"{head}Severity 1 Engine instance 30 Sub-engine instance 00\n"
        f"{head}Data {{0x00000000, 0x10000000}}\n"
    )
    (finding,) = answer.findings
    assert finding.data["count"] == 1
    assert (finding.data["switch"], finding.data["port"]) == (0, 30)
    assert finding.data["severity"] == "Fatal"
    assert answer.causes == ("nvswitch_fault",)


def test_unknown_codes_are_said_to_be_unknown(read_text: ReadText) -> None:
    answer = read_text(
        xid(999) + "nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 99999, Fatal, Link 1 what\n"
    )
    assert answer.causes == ()
    for finding in answer.findings:
        assert finding.data["known"] is False
        assert "not a documented" in finding.says


def test_ten_thousand_different_events_stay_bounded(catalogue: Catalogue) -> None:
    text = "".join(xid(79, "gone", f"{i:04x}:00:00") for i in range(10_000))
    answer = read(text.encode(), catalogue)
    assert len(answer.findings) == 1024
    assert any("8976 more events" in note for note in answer.notes)


AT_1 = "Nov 11 03:11:41 gpu-22 kernel: "


def test_a_fault_of_a_program_just_after_a_peer_failed_stands_last(read_text: ReadText) -> None:
    answer = read_text(
        xid(48, host="gpu-22").replace("01:37:38", "01:37:37")
        + xid(95, "Uncontained: FBHUB. RST: Yes, D-RST: No", host="gpu-22")
        + xid(43, "Ch 00000010", pci="0000:43:00", host="gpu-22")
    )
    assert answer.causes == ("ecc_uncorrectable", "ecc_uncontained", "app_fault_xid")
    (peer,) = [f for f in answer.findings if f.id == "43"]
    assert "failed just before it: Xid 48 on GPU 0000:10:00 (line 1)" in peer.says


@pytest.mark.parametrize(
    ("later", "host"), [("01:39:38", "gpu-22"), ("01:37:36", "gpu-22"), ("01:37:38", "gpu-23")]
)
def test_a_fault_long_after_before_or_elsewhere_is_its_own(
    read_text: ReadText, later: str, host: str
) -> None:
    own = xid(43, "Ch 00000010", pci="0000:43:00", host=host).replace("01:37:38", later)
    answer = read_text(xid(48, host="gpu-22").replace("01:37:38", "01:37:37") + own)
    (peer,) = [f for f in answer.findings if f.id == "43"]
    assert "just before" not in peer.says


PORT = "Nov 11 03:11:40 gpu-22 kernel: pcieport 0000:15:01.0: "
OOM = (
    "Nov 11 03:12:01 gpu-22 kernel: Memory cgroup out of memory: Killed process 991 (loader) "
    "total-vm:88123456kB, anon-rss:65000000kB, file-rss:1234kB, shmem-rss:0kB, UID:0\n"
)


@pytest.mark.parametrize(
    "lines",
    [
        ["pciehp: Slot(5): Link Down"],
        [
            "AER: Uncorrected (Fatal) error received: 0000:15:01.0",
            "PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer, (Requester ID)",
        ],
        ["DPC: containment event, status:0x1f01 source:0x0000"],
    ],
)
def test_a_dead_link_above_a_lost_gpu_is_of_its_story(
    read_text: ReadText, lines: list[str]
) -> None:
    lost = f"{AT_1}NVRM: Xid (PCI:0000:19:00): 79, pid=1, name=t, GPU has fallen off the bus.\n"
    answer = read_text("".join(f"{PORT}{line}\n" for line in lines) + lost + OOM)
    assert answer.causes == ("gpu_off_bus", "pcie_errors", "host_memory_pressure")
    first, second = answer.findings[:2]
    assert (first.id, second.cause) == ("79", "pcie_errors")
    assert first.says.count("the link at 0000:15:01.0 failed (line 1)") == 1


def test_a_link_of_another_branch_or_hour_is_not(read_text: ReadText) -> None:
    lost = f"{AT_1}NVRM: Xid (PCI:0000:04:00): 79, pid=1, name=t, GPU has fallen off the bus.\n"
    down = f"{PORT}pciehp: Slot(5): Link Down\n"
    assert "Just before it the link" not in read_text(down + lost).findings[0].says
    early = down.replace("03:11:40", "02:11:40")
    lost = lost.replace("0000:04:00", "0000:19:00")
    assert "Just before it the link" not in read_text(early + lost).findings[0].says
