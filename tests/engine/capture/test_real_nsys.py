"""Captures with real Nsight Systems, on this machine and over real ssh."""

from __future__ import annotations

import asyncio
import re
import sqlite3
import subprocess
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from engine import capture
from engine.capture import CaptureError, Phase, Via
from tests.engine.capture.conftest import MemoryJournal, gpu, request_for


def os_calls(report, folder):
    """Return how many OS calls a report holds, by nsys's own export."""
    out = folder / "report.sqlite"
    subprocess.run(
        ["nsys", "export", "--type=sqlite", f"--output={out}", report],
        check=True,
        capture_output=True,
    )
    with closing(sqlite3.connect(out)) as database:
        return database.execute("select count(*) from OSRT_API").fetchone()[0]


class Listening:
    """An executor that keeps what was run."""

    def __init__(self, inner):
        self._inner = inner
        self.ran = []
        self.host, self.route, self.through = inner.host, inner.route, inner.through

    async def run(self, argv, **how):
        self.ran.append(argv)
        return await self._inner.run(argv, **how)

    async def fetch(self, argv, destination, **how):
        self.ran.append(argv)
        return await self._inner.fetch(argv, destination, **how)


def size(file):
    return Path(file).stat().st_size


async def test_a_capture_here_brings_a_trace_and_leaves_nothing_behind(
    local, nsys, program, journal, tmp_path
):
    plan = await capture.plan(request_for(program.target, 1.0), local)
    assert (plan.session, plan.route) == (program.session, "local")
    assert re.match(r"\d{4}\.\d", plan.version)
    executor = Listening(capture.reach(plan, local))
    result = await capture.run(plan, executor, journal)

    index = program.target.gpu
    assert Path(result.file) == local.folder / plan.id / f"node-3-gpu{index}.nsys-rep"
    assert size(result.file) == result.size_bytes > 10_000
    assert 1.0 <= result.duration_s < 3.0
    assert os_calls(result.file, tmp_path) > 20
    assert set(executor.ran) <= {step.argv for step in plan.steps}
    assert journal.steps() == journal.steps(Phase.BEGIN)
    assert nsys.sessions()[program.session] == "Launched"
    assert program.runs
    assert not list(tmp_path.glob("gpuwhy-*"))


async def test_a_capture_over_ssh(local, nsys, program, journal, sshd):
    settings = replace(local, via=Via.AUTO, ssh=sshd.settings)
    plan = await capture.plan(request_for(program.target), settings)
    assert plan.route == "ssh"
    assert plan.through[-2:] == ("--", "node-3")
    result = await capture.run(plan, capture.reach(plan, settings), journal)
    assert size(result.file) == result.size_bytes > 10_000
    assert nsys.sessions()[program.session] == "Launched"


async def test_cancelled_while_recording_no_session_is_left_recording(
    local, nsys, program, tmp_path
):
    recording = asyncio.Event()

    def at(entry):
        if entry.step == "record":
            recording.set()

    journal = MemoryJournal(before=at)
    plan = await capture.plan(request_for(program.target, 30.0), local)
    running = asyncio.ensure_future(capture.run(plan, capture.reach(plan, local), journal))
    await asyncio.wait_for(recording.wait(), 20)
    assert nsys.sessions()[program.session] == "Collection"
    with pytest.raises(CaptureError, match="is being recorded already; wait until that ends"):
        await capture.plan(request_for(program.target), local)

    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert nsys.sessions()[program.session] == "Launched"
    assert program.runs
    assert journal.steps(Phase.UNDONE) == ["start", "folder"]
    assert not list(tmp_path.glob("gpuwhy-*"))
    assert not list(local.folder.rglob("*.*"))


async def test_a_program_that_ends_during_the_capture_still_gives_its_trace(
    local, nsys, program, tmp_path
):
    async def end_soon():
        await asyncio.sleep(0.5)
        program.end()

    ending = []

    def at(entry):
        if (entry.step, entry.phase) == ("record", Phase.BEGIN):
            ending.append(asyncio.ensure_future(end_soon()))

    plan = await capture.plan(request_for(program.target, 2.0), local)
    result = await capture.run(plan, capture.reach(plan, local), MemoryJournal(before=at))
    await ending[0]
    assert os_calls(result.file, tmp_path) > 20
    nsys.wait_for(program.session, None)


@pytest.mark.parametrize("before", ["check", "start"])
async def test_a_session_that_ends_before_it_is_recorded(before, local, nsys, program):
    journal = MemoryJournal()
    plan = await capture.plan(request_for(program.target), local)

    def at(entry):
        if (entry.step, entry.phase) == (before, Phase.BEGIN):
            nsys.run("shutdown", f"--session={program.session}")
            nsys.wait_for(program.session, None)

    journal.before = at
    with pytest.raises(CaptureError, match=f"{program.session} on node-3 has ended") as caught:
        await capture.run(plan, capture.reach(plan, local), journal)
    assert caught.value.code == "session_gone"
    # nsys makes a new and empty session of the name if it is told to start one that is gone.
    assert program.session not in nsys.sessions()


async def test_without_an_armed_session_the_line_that_arms_one_is_given(local, nsys):
    index = nsys.free_gpu()
    with pytest.raises(CaptureError) as caught:
        await capture.plan(request_for(gpu(index=index)), local)
    assert caught.value.code == "not_armed"
    arming = f"nsys launch --session-new=gpuwhy-{index} --trace=cuda,nvtx,osrt PROGRAM …"
    assert caught.value.hint.endswith(arming)
