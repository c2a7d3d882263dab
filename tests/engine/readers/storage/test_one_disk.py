"""fio and dd are held against one hard disk by the same rule."""

from __future__ import annotations

import json

import pytest

from engine.catalogue import Catalogue
from engine.model import Read
from engine.readers import read

MIB = 1_048_576


def fio(catalogue: Catalogue, mb_s: float, seconds: float, block: int, **options: str) -> Read:
    rate = mb_s * 1e6
    job = {
        "jobname": "w",
        "groupid": 0,
        "error": 0,
        "job options": {"rw": "write", "bs": str(block), "ioengine": "libaio", **options},
        "write": {
            "bw_bytes": rate,
            "iops": rate / block,
            "io_bytes": rate * seconds,
            "runtime": seconds * 1e3,
            "clat_ns": {"mean": 1.4e9, "percentile": {"50.000000": 1.2e9, "99.000000": 4e9}},
        },
    }
    document = {"fio version": "fio-3.28", "global options": {}, "jobs": [job]}
    return read(json.dumps(document, indent=1).encode(), catalogue)


def dd(catalogue: Catalogue, mb_s: float, seconds: float, block: int) -> Read:
    size = round(mb_s * 1e6 * seconds)
    count = max(1, round(size / block))
    text = (
        f"{count}+0 records in\n{count}+0 records out\n"
        f"{count * block} bytes (1 GB, 1 GiB) copied, {seconds} s, {mb_s} MB/s\n"
    )
    return read(text.encode(), catalogue)


@pytest.mark.parametrize("tool", [fio, dd])
@pytest.mark.parametrize(
    ("mb_s", "seconds", "block", "slow"),
    [
        (42.0, 60.0, MIB, True),
        (50.1, 60.0, MIB, True),
        (92.5, 60.0, MIB, True),
        (92.5, 6.0, 131_072, True),
        (92.5, 4.0, MIB, False),
        (92.5, 60.0, 65_536, False),
        (104.0, 60.0, MIB, False),
        (900.0, 60.0, MIB, False),
    ],
)
def test_both_tools_follow_one_rule(
    tool: object, mb_s: float, seconds: float, block: int, slow: bool, catalogue: Catalogue
) -> None:
    answer = tool(catalogue, mb_s, seconds, block)  # type: ignore[operator]

    assert answer.causes == (("storage_slow",) if slow else ())
    assert any("One hard disk does better" in f.says for f in answer.findings) is slow


@pytest.mark.parametrize("option", ["rate", "rate_iops", "thinktime"])
def test_fio_that_was_held_back_is_not_slow(option: str, catalogue: Catalogue) -> None:
    assert fio(catalogue, 50.0, 60.0, MIB, **{option: "50m"}).causes == ()
