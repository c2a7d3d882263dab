"""The file of a capture that is called off while it is being made leaves nothing behind."""

from __future__ import annotations

import asyncio
import os
import time

import pytest

from engine.capture.executors import files


async def test_called_off_while_the_file_is_created(tmp_path, monkeypatch):
    made: list[int] = []
    create = files._create

    def slowly(part):
        time.sleep(0.2)
        made.append(create(part))
        return made[0]

    async def never(descriptor):
        raise AssertionError(descriptor)

    monkeypatch.setattr(files, "_create", slowly)
    work = files.receive(never, tmp_path / "trace.nsys-rep", host="node-1", max_bytes=1000)
    running = asyncio.ensure_future(work)
    await asyncio.sleep(0.05)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(made[0])
