"""Step by fault: whatever happens at whichever step, nothing is left recording or lying about.

The stand-in for nsys has the states of the real one, so that every cell takes milliseconds.
"""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import replace

import pytest

from engine import capture
from engine.capture import CaptureError, Phase, UnreachableError, plan_from_json
from engine.capture.executors import files
from engine.errors import GpuwhyError
from engine.model import to_json
from tests.engine.capture.conftest import MemoryJournal, gpu, request_for

STEPS = (
    "check",
    "folder",
    "start",
    "confirm",
    "record",
    "stop",
    "measure",
    "import",
    "fetch",
    "clean",
)


class KilledError(BaseException):
    """Stands for the end of the process: nothing after it runs."""


def first(step, phase, act):
    """Return a hook for a journal that acts the first time it is told this."""
    seen = []

    def before(entry):
        if (entry.step, entry.phase) == (step, phase) and not seen:
            seen.append(entry)
            act()

    return before


def raising(error):
    def act():
        raise error

    return act


def left_over(pretended, settings, tmp_path):
    """Return everything that must not be there once a capture has been undone."""
    files = [*tmp_path.glob("gpuwhy-*"), *settings.folder.rglob("*.part")]
    return (pretended.state, files)


async def made(settings):
    return await capture.plan(request_for(gpu(), 0.1), settings)


async def test_the_stand_in_captures_like_the_real_one(pretended, pretending, journal, tmp_path):
    plan = await made(pretending)
    result = await capture.run(plan, capture.reach(plan, pretending), journal)
    assert (result.size_bytes, result.log) == (600, ())
    assert tuple(dict.fromkeys(journal.steps())) == STEPS
    assert left_over(pretended, pretending, tmp_path) == ("Launched", [])


@pytest.mark.parametrize("step", STEPS)
async def test_cancelled(step, pretended, pretending, tmp_path):
    plan = await made(pretending)
    journal = MemoryJournal()
    running = asyncio.ensure_future(capture.run(plan, capture.reach(plan, pretending), journal))
    journal.before = first(step, Phase.BEGIN, running.cancel)
    with pytest.raises(asyncio.CancelledError):
        await running
    assert left_over(pretended, pretending, tmp_path) == ("Launched", [])


@pytest.mark.parametrize("phase", [Phase.BEGIN, Phase.DONE])
@pytest.mark.parametrize("step", STEPS)
async def test_the_journal_fails(step, phase, pretended, pretending, tmp_path):
    plan = await made(pretending)
    full = GpuwhyError("the store is gone")
    journal = MemoryJournal(before=first(step, phase, raising(full)))
    with pytest.raises(GpuwhyError, match="the store is gone"):
        await capture.run(plan, capture.reach(plan, pretending), journal)
    assert left_over(pretended, pretending, tmp_path) == ("Launched", [])


@pytest.mark.parametrize("phase", [Phase.BEGIN, Phase.DONE])
@pytest.mark.parametrize("step", STEPS)
async def test_killed_and_recovered_from_the_journal(step, phase, pretended, pretending, tmp_path):
    plan = await made(pretending)
    journal = MemoryJournal(before=first(step, phase, raising(KilledError())))
    with pytest.raises(KilledError):
        await capture.run(plan, capture.reach(plan, pretending), journal)

    stored = plan_from_json(json.loads(json.dumps(to_json(plan))))
    assert stored == plan
    entries = list(journal.entries)
    incomplete = pretending.folder / plan.id / "node-3-gpu5.qdstrm.part"
    incomplete.parent.mkdir(parents=True, exist_ok=True)
    incomplete.touch()
    result = await capture.recover(stored, entries, capture.reach(plan, pretending), journal)
    assert left_over(pretended, pretending, tmp_path) == ("Launched", [])
    came_over = ("fetch", "done") in {(e.step, e.phase) for e in entries}
    assert (result is not None) == came_over
    if result:
        assert (result.size_bytes, result.duration_s >= 0.1) == (600, True)
    # Once more changes nothing: all of it is in the journal.
    assert capture.pending(stored, journal.entries) == ()


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("sessions", "nsys sessions on node-3 did not end within 0.3 s"),
        ("start", "nsys start on node-3 did not end within 0.3 s"),
        ("stop", "nsys stop on node-3 did not end within 0.3 s"),
    ],
)
async def test_a_tool_that_hangs(command, said, pretended, pretending, journal, tmp_path):
    plan = await made(replace(pretending, command_timeout_s=0.3, stop_timeout_s=0.3))
    marker = f"4242.{os.getpid()}"  # other runs on this machine have their own
    pretended.hook(command, f"rm -f on-{command}; sleep {marker}")
    with pytest.raises(UnreachableError) as caught:
        await capture.run(plan, capture.reach(plan, pretending), journal)
    assert said.replace("nsys", str(pretended.command), 1) in caught.value.one_line()
    assert caught.value.code == "target_timeout"
    assert left_over(pretended, pretending, tmp_path) == ("Launched", [])
    listed = await asyncio.create_subprocess_exec(
        "ps", "-eo", "args", stdout=asyncio.subprocess.PIPE
    )
    out, _ = await listed.communicate()
    assert marker not in out.decode()


async def test_what_cannot_be_undone_is_said_and_tried_again(pretended, pretending, journal):
    plan = await made(pretending)
    executor = capture.reach(plan, pretending)
    pretended.hook("stop", "echo 'it is busy' >&2; exit 1")
    with pytest.raises(CaptureError) as caught:
        await capture.run(plan, executor, journal)
    assert "did not stop recording: it is busy; session gpuwhy-5 on node-3 may still be" in (
        caught.value.one_line()
    )
    assert caught.value.hint == f"run there: {pretended.command} stop --session=101744"
    assert [step.id for step in capture.pending(plan, journal.entries)] == ["start"]
    assert pretended.state == "Collection"

    pretended.unhook("stop")
    assert await capture.recover(plan, list(journal.entries), executor, journal) is None
    assert pretended.state == "Launched"
    assert capture.pending(plan, journal.entries) == ()


async def test_a_recording_of_somebody_else_is_not_stopped(pretended, pretending, journal):
    plan = await made(pretending)
    begun = "[ -e theirs ] || { touch theirs; echo Collection >state; }"
    pretended.hook("start", begun)
    with pytest.raises(CaptureError, match="did not start recording: Configuring is not allowed"):
        await capture.run(plan, capture.reach(plan, pretending), journal)
    assert pretended.state == "Collection"
    assert journal.steps(Phase.UNDONE) == ["folder"]


async def test_a_full_disk_on_the_target(pretended, pretending, journal, tmp_path):
    plan = await made(pretending)
    left = tmp_path / "nsys-report-4d8f.qdstrm"
    left.write_text("what nsys wrote elsewhere")
    pretended.hook(
        "stop",
        "echo Launched >state\n"
        "echo \"Failed to create '/x/capture.qdstrm': No space left on device.\" >&2\n"
        f"echo Generated:; echo '    {left}'; exit 0",
    )
    with pytest.raises(CaptureError) as caught:
        await capture.run(plan, capture.reach(plan, pretending), journal)
    said = "nsys on node-3 could not write the trace: No space left on device"
    assert caught.value.one_line() == said
    assert left_over(pretended, pretending, tmp_path) == ("Launched", [])
    assert not left.exists()


async def test_a_full_disk_here(pretended, pretending, journal, tmp_path, monkeypatch):
    plan = await made(pretending)
    monkeypatch.setattr(files, "_create", lambda _: os.open("/dev/full", os.O_WRONLY))
    with pytest.raises(CaptureError, match=r"node-3 did not come over: .*No space left on device"):
        await capture.run(plan, capture.reach(plan, pretending), journal)
    assert left_over(pretended, pretending, tmp_path) == ("Launched", [])


async def test_a_trace_that_is_too_large(pretended, pretending, journal, tmp_path):
    settings = replace(pretending, max_file_bytes=500)
    plan = await made(settings)
    with pytest.raises(CaptureError) as caught:
        await capture.run(plan, capture.reach(plan, settings), journal)
    assert "is larger than 0.0005 MB and was thrown away; record for a shorter" in str(caught.value)
    assert left_over(pretended, pretending, tmp_path) == ("Launched", [])


async def test_a_target_that_sends_more_than_it_said(pretended, pretending, journal, tmp_path):
    plan = await made(pretending)
    script = "head -c 2000000 /dev/zero; sleep 60"
    endless = replace(plan.step("fetch"), argv=("sh", "-c", script))
    plan = replace(plan, steps=tuple(endless if s.id == "fetch" else s for s in plan.steps))
    with pytest.raises(CaptureError, match="larger than 1 MB and was thrown away"):
        await capture.run(plan, capture.reach(plan, pretending), journal)
    assert left_over(pretended, pretending, tmp_path) == ("Launched", [])
    assert not list(pretending.folder.rglob("*.*"))


async def test_a_file_that_comes_incomplete(pretended, pretending, journal, tmp_path):
    plan = await made(pretending)
    cut = replace(plan.step("fetch"), argv=("head", "-c", "99", plan.step("fetch").argv[-1]))
    plan = replace(plan, steps=tuple(cut if s.id == "fetch" else s for s in plan.steps))
    with pytest.raises(CaptureError, match="99 bytes came from node-3 for a file of 600"):
        await capture.run(plan, capture.reach(plan, pretending), journal)
    assert not list(pretending.folder.rglob("*.*"))


async def test_no_importer_keeps_the_raw_stream(pretended, pretending, journal, tmp_path):
    settings = replace(pretending, importer="/nowhere/QdstrmImporter")
    plan = await made(settings)
    result = await capture.run(plan, capture.reach(plan, settings), journal)
    assert result.file.endswith("node-3-gpu5.qdstrm")
    assert result.size_bytes == 1000
    assert "the raw stream was kept" in result.log[0]
    assert left_over(pretended, pretending, tmp_path) == ("Launched", [])


async def test_no_room_for_a_trace(pretending):
    settings = replace(pretending, max_file_bytes=1 << 60)
    with pytest.raises(CaptureError, match="MB are free here in ") as caught:
        await made(settings)
    assert caught.value.code == "no_room"


async def test_the_tool_is_missing(pretending):
    with pytest.raises(CaptureError) as caught:
        await made(replace(pretending, nsys="/nowhere/nsys"))
    assert caught.value.code == "tool_missing"
    assert caught.value.one_line() == (
        "/nowhere/nsys cannot be run on node-3; "
        "install Nsight Systems there, or set the path of nsys"
    )
