"""Words about Xids that are no Xid lines: nothing is claimed that the driver did not print."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.catalogue import Catalogue
from engine.readers import read
from engine.readers.base import Context
from engine.readers.kernel import KernelReader
from engine.readers.xid_line import xid_events

WORDS = (
    "Xid", "SXid", "xid", "XID", "NVRM:", "NVRM", "GPU", "GPU-I:05", "(PCI:", "(PCI:0000:3b:00)", "PCI:0000:3b:00",
    "0000:3b:00", ":", "):", "79", "79,", "48", "13", "error", "caused", "by", "previous", "pid=12,", "name=x,",
    "fallen", "off", "the", "bus", "is", "lost", "kernel:", "[", "]", "[ 1.5]", "nvidia-nvswitch0:", "Fatal,", "12028,",
    "Row", "Remapper:", "has", "been", "detected", "on", "Device=", "=", "Link", "154", "recovery", "action",
)  # fmt: skip
# What makes a line one of the driver's, or of the device plugin.
PRINTED = re.compile(
    r"\bXid \((?:PCI:)?[0-9A-Fa-f]{4,8}:|\bXid=\d+ on Device=|fallen off the bus|SXid \(PCI:"
)


def _codes(text: str, catalogue: Catalogue) -> list[str]:
    reader = KernelReader(Context(catalogue))
    for number, line in enumerate(text.split("\n"), 1):
        reader.feed(number, line)
    return [f.id for f in reader.finish().findings if f.kind in {"xid", "sxid"}]


@settings(max_examples=400, deadline=None)
@given(
    words=st.lists(st.sampled_from(WORDS), max_size=14), glue=st.sampled_from(["", " ", ", ", "\n"])
)
def test_the_words_of_the_driver_in_another_order_are_no_xid(
    words: list[str], glue: str, catalogue: Catalogue
) -> None:
    text = glue.join(words)
    if not PRINTED.search(text):
        assert _codes(text, catalogue) == []


@pytest.mark.parametrize(
    "line",
    [
        "dhclient[812]: DHCPDISCOVER on eth0 to 255.255.255.255 port 67 interval 8 (xid=0x4f)",
        "RPC: xid 79 timed out",
        "Please see https://docs.nvidia.com/deploy/xid-errors for Xid 79 errors",
        "alert: NodeHighXidRate firing (Xid 48 > 0)",
        "systemd[1]: Starting Xid exporter, code 79",
        "NVRM: Xid messages are explained in the user's guide",
        "NVRM: Xid (PCI:0000:3b:00): see the guide",
        "NVRM: Xid (PCI:bad): 79",
        "nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 12, x",
        "nvidia-nvswitch0: SXid: 12028",
        "DCGM_FI_DEV_XID_ERRORS is 79",
        "the GPU has not fallen off the bus",
        "# NVRM: Xid says what the driver saw",
    ],
)
def test_talk_about_xids_is_no_xid(line: str, catalogue: Catalogue) -> None:
    assert [f for f in read(line.encode(), catalogue).findings if f.kind in {"xid", "sxid"}] == []


LINE = "[  12.5] NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python, GPU has fallen off the bus."


@settings(max_examples=400, deadline=None)
@given(at=st.integers(0, len(LINE)), cut=st.integers(0, 6), put=st.text(max_size=6))
def test_a_damaged_line_gives_the_number_that_stands_there_or_none(
    at: int, cut: int, put: str
) -> None:
    text = (LINE[:at] + put + LINE[at + cut :]).replace("\n", " ")
    for event in xid_events(text, 1):
        assert (
            re.search(rf"\): {event.xid}(?!\d)|\D{event.xid} on Device", text) or not text.isascii()
        )


@settings(max_examples=200, deadline=None)
@given(xid=st.integers(0, 999_999), bus=st.integers(0, 255), tail=st.text(max_size=60))
def test_a_printed_code_is_read_as_it_stands(xid: int, bus: int, tail: str) -> None:
    line = f"NVRM: Xid (PCI:0000:{bus:02x}:00): {xid}, {tail}".replace("\n", " ")
    first = next(xid_events(line, 1))
    assert (first.xid, first.pci) == (xid, f"0000:{bus:02x}:00")
