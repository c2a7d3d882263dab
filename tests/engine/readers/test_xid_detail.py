"""What messages hold beyond the code."""

from __future__ import annotations

import pytest

from engine.readers.xid_detail import detail_of, register_bits


@pytest.mark.parametrize(
    ("xid", "message", "expected"),
    [
        (
            13,
            "Graphics SM Warp Exception on (GPC 9, TPC 1, SM 1): Out Of Range Address",
            {"gpc": 9, "tpc": 1, "sm": 1, "exception": "Out Of Range Address"},
        ),
        (13, "Graphics Exception: ESR 0x405840=0xa204020e", {}),
        (
            31,
            "Ch 00000002, intr 00000000. MMU Fault: ENGINE GRAPHICS GPC6 GPCCLIENT_T1_13 faulted @ 0x6f6f_320c2000. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_READ",
            {
                "engine": "GRAPHICS",
                "client": "GPC6 GPCCLIENT_T1_13",
                "address": "0x6f6f_320c2000",
                "fault": "FAULT_PDE",
                "access": "VIRT_READ",
                "channel": "0x00000002",
            },
        ),
        (
            48,
            "An uncorrectable double bit error (DBE) has been detected on GPU in the framebuffer at partition 5, subpartition 1.",
            {"partition": 5, "subpartition": 1},
        ),
        (
            63,
            "Row Remapper: New row (0x000000000000a1b2) marked for remapping, reset gpu to activate.",
            {"row": "0x000000000000a1b2"},
        ),
        (
            64,
            "Row Remapper Error: (0x0000000001a2b3c4) - All reserved rows for bank are remapped",
            {
                "row": "0x0000000001a2b3c4",
                "remap_error": "All reserved rows for bank are remapped",
            },
        ),
        (
            95,
            "Uncontained: FB DED (0x4, 0x1). physAddr: 0x0a1b2c3d40 RST: Yes, D-RST: No",
            {
                "uncontained_unit": "FB DED",
                "place": "0x4, 0x1",
                "rst": True,
                "drain_rst": False,
                "address": "0x0a1b2c3d40",
            },
        ),
        (94, "Contained: SM (0x1). RST: No, D-RST: Yes", {"rst": False, "drain_rst": True}),
        (
            119,
            "Timeout after 6s of waiting for RPC response from GPU0 GSP! Expected function 76 (GSP_RM_CONTROL) (0x20800a7a 0x0).",
            {"timeout_s": 6, "gpu": 0, "rpc_function": 76, "rpc_name": "GSP_RM_CONTROL"},
        ),
        (
            154,
            "GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)",
            {"recovery_action": "Node Reboot Required", "recovery_code": 2},
        ),
        (
            171,
            "GDDR, Uncorrectable DRAM error in FBPA 3 subpartition 0 physAddr 0xe9b9107e0",
            {"memory": "GDDR", "fbpa": 3, "subpartition": 0, "address": "0xe9b9107e0"},
        ),
        (137, "NVLink TLC RX PRIV Error on link 5", {"link": 5}),
        (45, "channel 0x00000010", {"channel": "0x00000010"}),
        (62, "323f0f30 0000c3d8", {}),
    ],
)
def test_known_layouts(xid: int, message: str, expected: dict[str, object]) -> None:
    found = detail_of(xid, message)
    assert {key: found.get(key) for key in expected} == expected
    if not expected:
        assert found == {}


def test_nvlink_registers_and_their_bits() -> None:
    message = "NVLink: fatal error detected on link 14(0x0, 0x0, 0x10000, 0x0, 0x9, 0x0, 0x0)"
    found = detail_of(74, message)
    assert found["link"] == 14
    assert found["registers"] == ["0x0", "0x0", "0x10000", "0x0", "0x9", "0x0", "0x0"]
    assert found["register3_bits"] == [16]
    assert found["register5_bits"] == [0, 3]
    assert "register1_bits" not in found
    assert register_bits("0x80000001") == [0, 31]
