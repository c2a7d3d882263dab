"""Every printed form of an Xid, and what looks like one."""

from __future__ import annotations

import pytest

from engine.readers.xid_line import LostGpu, short, uuid_of, xid_events

TAIL = "NVRM: Xid (PCI:0000:3b:00): 79, pid=12, name=python3, GPU has fallen off the bus."
PREFIXES = (
    "",
    "[ 1201.331874] ",
    "[ 1201.331874] [   T1946] ",
    "[Thu Sep 19 02:29:46 2024] ",
    "May 29 01:37:38 node-3 kernel: [257087.812628] ",
    "<4>May  9 01:37:38 node-3 kernel: ",
    "2025-01-21T04:41:44.283575+00:00 node-3 kernel: ",
    "kern  :warn  : 2025-01-21T04:41:44,283575+00:00 ",
    "kern.warn: [171167.621162] ",
    "10.20.11.119: kern: warning: [2026-04-22T21:26:20.599488292Z]: ",
    "[gpu-health] [CRITICAL] GPU-1f0c2d44-9a17-4be1-8c55-0d2f6a7be913: XID: ",
)


@pytest.mark.parametrize("prefix", PREFIXES)
def test_any_prefix_may_stand_before_an_xid(prefix: str) -> None:
    (event,) = xid_events(prefix + TAIL, 7)
    assert (event.xid, event.pci, event.pid, event.process) == (79, "0000:3b:00", 12, "python3")
    assert event.message == "GPU has fallen off the bus."
    assert event.line == 7


@pytest.mark.parametrize(
    ("line", "xid", "pci", "message"),
    [
        ("NVRM: Xid (0000:03:00): 14, Channel 00000001", 14, "0000:03:00", "Channel 00000001"),
        ("Xid (PCI:0009:01:00): 43, Ch 00000020", 43, "0009:01:00", "Ch 00000020"),
        ("NVRM: Xid (PCI:0000:0B:00): 8", 8, "0000:0b:00", ""),
        (
            "NVRM: Xid (PCI:0000:05:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off",
            79,
            "0000:05:00",
            "GPU has fallen off",
        ),
    ],
)
def test_old_and_short_forms(line: str, xid: int, pci: str, message: str) -> None:
    (event,) = xid_events(line, 1)
    assert (event.xid, event.pci, event.message) == (xid, pci, message)
    assert event.pid is None
    assert event.process is None


def test_a_process_name_may_hold_colons_and_brackets() -> None:
    (event,) = xid_events("NVRM: Xid (PCI:0000:c6:00): 79, pid=11, name=nvc:[driver], gone", 1)
    assert event.process == "nvc:[driver]"


def test_a_mig_instance_is_read() -> None:
    (event,) = xid_events("NVRM: Xid (PCI:0000:01:00 GPU-I:05 GPU-CI:00): 94, x", 1)
    assert (event.gpu_instance, event.compute_instance) == (5, 0)


def test_the_reason_that_the_driver_names_is_taken_off_the_message() -> None:
    line = "NVRM: Xid (PCI:0000:dc:00): 45, pid=4, name=a, Ch 00000001 caused by previous Xid 149"
    (event,) = xid_events(line, 1)
    assert event.caused_by == 149
    assert event.message == "Ch 00000001"


def test_two_records_on_one_line_are_two_events() -> None:
    first, second = xid_events(f"[1.0] {TAIL} [2.0] NVRM: Xid (PCI:0000:3b:00): 45, Ch 1", 1)
    assert (first.xid, second.xid) == (79, 45)
    assert first.message == "GPU has fallen off the bus."


def test_the_device_plugins_line_names_a_uuid() -> None:
    line = "XidCriticalError: Xid=69 on Device=GPU-3b7d11c0, the device will go unhealthy."
    (event,) = xid_events(line, 1)
    assert (event.xid, event.uuid, event.pci) == (69, "GPU-3b7d11c0", None)
    assert event.detail == {"device_unhealthy": True}


@pytest.mark.parametrize(
    "line",
    [
        "nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 12028, Non-fatal, Link 32 egress",
        "nvidia-peermem nv_get_p2p_free_callback:127 ERROR detected invalid context",
        "postgres: oldest xid 79 of database 1",
        "dhclient: DHCPREQUEST on eth0 to 255.255.255.255 port 67 (xid=0x7949)",
        "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  570.86.15",
        "NVRM: Xid errors are explained at docs.nvidia.com",
        "NVRM: Xid (PCI:0000:05:00): ",
    ],
)
def test_lookalikes_are_no_xids(line: str) -> None:
    assert list(xid_events(line, 1)) == []


def test_a_gpu_lost_in_three_lines() -> None:
    lost = LostGpu()
    assert lost.feed(1, "[1.3] NVRM: The NVIDIA GPU 0000:b3:00.0") is None
    assert lost.feed(2, "NVRM: (PCI ID: 10de:26b5) installed in this system has") is None
    event = lost.feed(3, "NVRM: fallen off the bus and is not responding to commands.")
    assert event is not None
    assert (event.xid, event.source, event.pci, event.line) == (79, "lost", "0000:b3:00", 1)


def test_the_same_start_with_another_end_is_no_lost_gpu() -> None:
    lost = LostGpu()
    assert lost.feed(1, "NVRM: The NVIDIA GPU 0000:b3:00.0 (PCI ID: 10de:26b5)") is None
    assert lost.feed(2, "NVRM: installed in this system is not supported by this driver.") is None
    for number in range(3, 12):
        assert lost.feed(number, "something else") is None
    assert lost.feed(12, "NVRM: some GPU has fallen off the bus") is None


def test_helpers() -> None:
    assert short("0000:dc:00") == "dc:00"
    assert short("0009:01:00") == "0009:01:00"
    uuid = "GPU-01234567-89ab-cdef-0123-456789abcdef"
    assert uuid_of(f"NVRM: GPU at PCI:0000:91:00: {uuid}") == ("0000:91:00", uuid)
