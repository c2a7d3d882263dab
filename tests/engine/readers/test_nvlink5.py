"""NVLink 5 messages: two layouts of IntrInfo, and the row that they select."""

from __future__ import annotations

from typing import Any

import pytest

from engine.catalogue import Catalogue
from engine.readers.facts import Facts
from engine.readers.nvlink5 import parse

ZERO = "0x00000000 0x00000000 0x00000000 0x00000000"


@pytest.fixture
def decode(catalogue: Catalogue) -> Any:
    facts = Facts(catalogue)
    return lambda xid, message: parse(message, facts.nvlink5, xid)


def test_the_older_layout(decode: Any) -> None:
    found = decode(149, f"NETIR_LINK_EVT  Fatal   XC0 i0 Link 09 (0x004525c6 0x00000000 {ZERO})")
    assert (found["subcode"], found["reason"], found["link"]) == (14, 4, 9)
    assert found["intrinfo_layout"] == "before R575"
    row = found["table_row"]
    assert (row["resolution"], row["investigate"]) == ("RESET_GPU", "INVESTIGATE_LINK_SI")


def test_the_newer_layout_is_told_by_the_unit(decode: Any) -> None:
    found = decode(144, f"SAW_MVB Nonfatal XC0 i0 Link 0 (0x00000001 0x00000008 {ZERO})")
    assert (found["subcode"], found["intrinfo_layout"]) == (1, "R575 on")
    assert found["table_row"]["remote"] == ["poison_or_xid_94"]


@pytest.mark.parametrize(
    ("unit", "xid", "info", "status", "resolution"),
    [
        ("TLW_RX/TLW_RX_PIPE0", 146, "0x0000000a", "0x00000004", "RESET_GPU"),
        ("RLW_SRC_TRACK", 145, "0x040868e2", "0x00000008", "XID_154_EVAL"),
        ("RLW_RXPIPE", 145, "0x000000c2", "0x00000001", "IGNORE"),
        ("RLW_RXPIPE", 145, "0x000004c2", "0x00000001", "RESET_GPU"),  # the extra bit is set
        ("RLW_REMAP", 145, "0x00000082", "0x00000041", "RESET_GPU"),  # two bits: the worst decides
        ("MSE_WATCHDOG", 150, "0x00000000", "0x00000000", "RESET_GPU"),
    ],
)
def test_rows(decode: Any, unit: str, xid: int, info: str, status: str, resolution: str) -> None:
    found = decode(xid, f"{unit} Fatal XC1 i0 Link 03 ({info} {status} {ZERO})")
    assert found["unit"] == unit
    assert found["table_row"]["resolution"] == resolution
    assert found["cross_contained"] is True


def test_a_reason_that_is_not_published_selects_no_row(decode: Any) -> None:
    found = decode(149, f"NETIR_LINK_EVT Fatal XC0 i0 Link 09 (0x03f1e1c6 0x00000000 {ZERO})")
    assert found["reason"] == 63
    assert "table_row" not in found


def test_a_line_cut_before_the_words(decode: Any) -> None:
    found = decode(145, "RLW_REMAP Nonfatal XC0 i0 Link 02")
    assert found["subcode"] == 4
    assert "error_status" not in found
    assert "table_row" not in found


def test_no_link_is_minus_one_as_printed(decode: Any) -> None:
    found = decode(149, f"NETIR Fatal XC0 i0 Link -1 (0x000fe406 0x00000000 {ZERO})")
    assert found["link"] == -1


def test_other_messages_give_nothing(decode: Any) -> None:
    assert decode(149, "something new") == {}
