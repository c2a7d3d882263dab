"""Log files beside the metrics: times placed, what has none told, missing files told."""

from __future__ import annotations

import asyncio
import gzip
import io
import json
import os

import pytest
import zstandard

from engine.sources.logs.files import LogFiles

AT = 1_764_432_000.0  # 2025-11-29 16:00:00 UTC
LOST = "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python, GPU has fallen off the bus."


async def ask(text: str | bytes, end=AT, window_s=900.0):
    raw = text.encode() if isinstance(text, str) else text
    logs = LogFiles(["-"], stdin=io.BytesIO(raw))
    events = await logs.events(None, end - window_s, end)
    await logs.aclose()
    return events, logs.take_unread(), logs.take_warnings()


@pytest.mark.parametrize(
    "text",
    [
        f"2025-11-29T15:59:00.000000+00:00 node-3 kernel: [  12.5] {LOST}",
        f"2025-11-29T16:59:00+01:00 node-3 kernel: {LOST}",
        f"Nov 29 15:59:00 node-3 kernel: [  812.123456] {LOST}",
        f"[Sat Nov 29 15:59:00 2025] {LOST}",
        json.dumps(
            {"__REALTIME_TIMESTAMP": "1764431940000000", "_HOSTNAME": "node-3", "MESSAGE": LOST}
        ),
        f"__REALTIME_TIMESTAMP=1764431940000000\n_HOSTNAME=node-3\nMESSAGE={LOST}\n\n",
        f"__REALTIME_TIMESTAMP=1764431940000000\nMESSAGE={LOST}\n_HOSTNAME=node-3\n\n",
    ],
)
async def test_a_line_is_placed_in_time(text):
    (event,), unread, _ = await ask(text)
    assert (event.xid, event.time, event.pci) == (79, AT - 60, "0000:3b:00")
    assert event.host in {"node-3", None}
    assert unread == []


async def test_a_year_that_is_not_written_is_that_of_the_window():
    new_year = 1_767_225_600.0  # 2026-01-01 00:00:00 UTC
    (event,), _, _ = await ask(f"Dec 31 23:59:00 node-3 kernel: {LOST}", end=new_year)
    assert event.time == new_year - 60
    events, _, _ = await ask(f"Feb 29 23:59:00 node-3 kernel: {LOST}", end=new_year)
    assert events == []


async def test_seconds_since_boot_cannot_be_placed_and_that_is_told():
    events, _, (warning,) = await ask(f"[  812.123456] {LOST}\n[  813.0] {LOST}\n")
    assert events == []
    assert "2 Xid(s) without a time of day" in warning
    assert "dmesg --time-format iso" in warning


async def test_times_without_a_zone_are_said_to_be_taken_as_utc():
    _, _, warnings = await ask(f"Nov 29 15:59:00 node-3 kernel: {LOST}")
    assert any("taken as UTC" in w for w in warnings)


async def test_a_missing_file_is_told_and_hides_no_other(tmp_path):
    good = tmp_path / "kern.log"
    good.write_text(f"2025-11-29T15:59:00+00:00 node-3 kernel: {LOST}\n")
    logs = LogFiles([str(tmp_path / "none"), str(good), str(tmp_path)])
    (event,) = await logs.events(None, AT - 900, AT)
    assert event.where == f"kernel log {good}"
    first, second = logs.take_unread()
    assert first.what == str(tmp_path / "none")
    assert "no such file" in first.why
    assert second.what == str(tmp_path)
    assert logs.take_unread() == []


async def test_binary_and_hostile_files_never_raise():
    for raw in (os.urandom(200_000), b"Xid" * 50_000, b"{" * 9_000 + b"NVRM: Xid\n", b"\0" * 999):
        events, _, _ = await ask(raw)
        assert events == []


async def test_a_pipe_that_stays_open_ends_with_the_question():
    """What is cancelled stops reading: the process could not end before the thread does."""
    end, start = os.pipe()
    with os.fdopen(end, "rb") as stdin, os.fdopen(start, "wb"):
        logs = LogFiles(["-"], stdin=stdin)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await logs.events(None, AT - 900, AT)
        await logs.aclose()
        await asyncio.wait_for(asyncio.get_running_loop().shutdown_default_executor(), 5)


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
async def test_a_rotated_log_may_be_packed(tmp_path, pack):
    file = tmp_path / "kern.log.2"
    file.write_bytes(pack(f"2025-11-29T15:59:00+00:00 n3 kernel: {LOST}\n".encode()))
    logs = LogFiles([str(file)])
    (event,) = await logs.events(None, AT - 900, AT)
    assert event.xid == 79
    await logs.aclose()


async def test_the_uuid_printed_beside_an_address_names_the_board():
    text = (
        "2025-11-29T15:58:59+00:00 n3 kernel: NVRM: GPU at PCI:0000:3b:00: "
        "GPU-3a4f5b6c-0000-4000-8000-000000000002\n"
        f"2025-11-29T15:59:00+00:00 n3 kernel: {LOST}\n"
    )
    (event,), _, _ = await ask(text)
    assert event.uuid == "GPU-3a4f5b6c-0000-4000-8000-000000000002"


@pytest.mark.parametrize("text", ["", "step 1, loss 2.3\nstep 2, loss 2.2\n", "DCGM_FI_X 1\n"])
async def test_a_file_that_is_no_kernel_log_is_told(text):
    events, _, (warning,) = await ask(text)
    assert events == []
    assert warning.startswith("no line of a kernel log in stdin")


@pytest.mark.parametrize(
    "line",
    [
        "Nov 29 15:59:00 node-3 kernel: usb 1-1: new device",
        "[    1.100000] Linux version 6.8",
        "[Sat Nov 29 15:59:00 2025] Linux version 6.8",
        "<6>[    1.100000] Linux version 6.8",
        "2025-11-29T15:59:00,123456+00:00 Linux version 6.8",
        "6,1234,5678901,-;Linux version 6.8",
        '{"_TRANSPORT":"kernel","MESSAGE":"Linux version 6.8"}',
        "_TRANSPORT=kernel",
    ],
)
async def test_a_healthy_kernel_log_is_one(line):
    _, unread, warnings = await ask("some other line\n" + line + "\n")
    assert (unread, warnings) == ([], [])


async def test_what_cannot_be_read_is_named_once_with_what_to_do(tmp_path):
    binary = tmp_path / "b"
    binary.write_bytes(b"\x7fELF\0\0\1")
    paths = [str(tmp_path / "none"), str(tmp_path), str(binary)]
    logs = LogFiles(paths)
    await logs.events(None, AT - 900, AT)
    missing, folder, junk = logs.take_unread()
    for path, unread in zip(paths, (missing, folder, junk), strict=True):
        assert unread.what == path
        assert path not in unread.why
    assert (missing.why, folder.why) == ("no such file", "is a directory")
    assert "check the path" in missing.fix
    assert "log files in it" in folder.fix
    assert "journalctl -k" in junk.fix
