"""``gpuwhy watch`` on a terminal and in a pipe, over a real Prometheus whose fleet falls ill."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import asynccontextmanager, suppress

import pytest

from tests.support.contracts import conforms
from tests.support.stages import DOWN, HANGS, Stage, scenes

GPUWHY = [sys.executable, "-c", "from bot.surfaces.cli.main import main; main()"]
QUICK = ("--every", "1s", "--for", "1s", "--resolve-after", "2s")
LIMIT_S = 40.0


@pytest.fixture(scope="module")
def addresses(tmp_path_factory):
    with scenes(tmp_path_factory.mktemp("scenes")) as found:
        yield found


@pytest.fixture
async def stage(addresses):
    async with Stage(addresses) as one:
        yield one


class Terminal:
    """A running ``gpuwhy watch --json``, read line by line."""

    def __init__(self, process):
        self.process = process
        self.seen = []

    async def next(self, *kinds):
        """Return the next document of some kind; fail at any other but a change."""
        async with asyncio.timeout(LIMIT_S):
            while True:
                raw = await self.process.stdout.readline()
                assert raw, (await self.process.stderr.read()).decode()
                event = json.loads(raw)
                self.seen.append(event)
                if event["event"] in kinds:
                    return event
                assert event["event"] in {"changed", "watching"}, event

    async def quiet(self, seconds):
        """Fail if anything is said within some seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                said = await self.process.stdout.readline()
                pytest.fail(f"it said {said!r}")

    async def stop(self, number=signal.SIGINT):
        self.process.send_signal(number)
        async with asyncio.timeout(LIMIT_S):
            _, err = await self.process.communicate()
        return self.process.returncode, err.decode().rstrip("\n")


@asynccontextmanager
async def watching(stage, folder, *words, options=QUICK):
    keep = {k: v for k, v in os.environ.items() if not k.startswith("GPUWHY_")}
    process = await asyncio.create_subprocess_exec(
        *GPUWHY, "watch", "--json", "--prometheus", stage.url, *options, *words,
        cwd=folder, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        env={**keep, "XDG_CONFIG_HOME": str(folder)}, limit=1 << 22,
    )  # fmt: skip
    try:
        yield Terminal(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


def names(*events):
    return sorted((e["incident"]["cause"], e["incident"]["entity"]["name"]) for e in events)


BOTH = [("clocks_locked", "node-0:1"), ("power_brake", "node-1")]


async def test_incidents_open_close_and_come_back(stage, tmp_path):
    async with watching(stage, tmp_path) as terminal:
        first = await terminal.next("watching")
        assert first["says"] == f"{stage.url}: no incident open"
        stage.show("sick")
        opened = [await terminal.next("opened") for _ in range(2)]
        assert names(*opened) == BOTH
        assert opened[0]["incident"]["cause"] == "power_brake"  # worst first
        assert len(opened[0]["incident"]["members"]) == 4
        await terminal.quiet(3.0)
        stage.show("worse")
        third = await terminal.next("opened")
        assert names(third) == [("gpu_off_bus", "node-0:3")]
        stage.show("healthy")
        closed = [await terminal.next("closed") for _ in range(3)]
        assert {e["id"] for e in closed} == {e["id"] for e in (*opened, third)}
        stage.show("sick")
        again = [await terminal.next("reopened") for _ in range(2)]
        assert {e["id"] for e in again} == {e["id"] for e in opened}
        assert {e["times"] for e in again} == {2}
        status, err = await terminal.stop()
    assert (status, err) == (130, "")
    for event in terminal.seen:
        conforms(event, "watch")
    revisions = [(e["id"], e["revision"]) for e in terminal.seen if e["id"]]
    assert len(set(revisions)) == len(revisions)


async def test_what_cannot_be_read_does_not_close(stage, tmp_path):
    stage.show("sick")
    async with watching(stage, tmp_path) as terminal:
        opened = [await terminal.next("opened") for _ in range(2)]
        stage.show("silent")
        unread = [await terminal.next("changed") for _ in range(2)]
        assert names(*unread) == BOTH
        for event in unread:
            assert event["changes"] == ["cannot be read"]
            assert "unknown is not healthy" in event["says"]
        await terminal.quiet(4.0)
        stage.show("healthy")
        closed = [await terminal.next("closed") for _ in range(2)]
        assert {e["id"] for e in closed} == {e["id"] for e in opened}
        await terminal.stop()


async def test_a_source_that_holds_nothing_is_blind_and_closes_nothing(stage, tmp_path):
    stage.show("sick")
    async with watching(stage, tmp_path) as terminal:
        for _ in range(2):
            await terminal.next("opened")
        stage.show("empty")
        assert "nothing could be checked" in (await terminal.next("blind"))["says"]
        await terminal.quiet(4.0)
        stage.show("healthy")
        await terminal.next("seeing")
        for _ in range(2):
            await terminal.next("closed")
        await terminal.stop()


async def test_a_watch_that_is_killed_says_nothing_twice_after_its_restart(stage, tmp_path):
    stage.show("sick")
    async with watching(stage, tmp_path, "--state", "watch.db") as terminal:
        opened = [await terminal.next("opened") for _ in range(2)]
        await terminal.stop(signal.SIGKILL)
    async with watching(stage, tmp_path, "--state", "watch.db") as terminal:
        first = await terminal.next("watching")
        assert first["says"] == f"{stage.url}: 2 incidents open"
        still = [await terminal.next("open") for _ in range(2)]
        assert {e["id"] for e in still} == {e["id"] for e in opened}
        await terminal.quiet(3.0)
        stage.show("healthy")
        closed = [await terminal.next("closed") for _ in range(2)]
        assert {e["id"] for e in closed} == {e["id"] for e in opened}
        await terminal.stop()
    assert (tmp_path / "watch.db").stat().st_mode & 0o077 == 0


async def test_a_source_that_is_down_is_said_once_and_closes_nothing(stage, tmp_path):
    stage.show("sick")
    async with watching(stage, tmp_path) as terminal:
        for _ in range(2):
            await terminal.next("opened")
        stage.show(DOWN)
        blind = await terminal.next("blind")
        assert "503" in blind["says"]
        await terminal.quiet(4.0)
        stage.show("sick")
        assert "can be read again after" in (await terminal.next("seeing"))["says"]
        await terminal.quiet(2.0)
        status, err = await terminal.stop()
    assert status == 130
    assert err.count("\n") == 0
    assert err.startswith(f"gpuwhy: warning: cannot look: {stage.url}")


async def test_a_source_that_hangs_ends_at_the_deadline(stage, tmp_path):
    (tmp_path / "gpuwhy.yaml").write_text("watch: {timeout: 1s}\n")
    stage.show(HANGS)
    async with watching(stage, tmp_path) as terminal:
        await terminal.next("watching")
        assert "no sweep within 1 s" in (await terminal.next("blind"))["says"]
        stage.show("sick")
        await terminal.next("seeing")
        assert names(*[await terminal.next("opened") for _ in range(2)]) == BOTH
        await terminal.stop(signal.SIGTERM)
    assert terminal.process.returncode == 130


async def run(stage, folder, *words):
    async with watching(stage, folder, "--once", *words, options=()) as terminal:
        async with asyncio.timeout(LIMIT_S):
            out, err = await terminal.process.communicate()
    events = [json.loads(line) for line in out.splitlines()]
    return terminal.process.returncode, events, err.decode()


async def test_cron_runs_go_on_from_one_another(stage, tmp_path):
    words = ("--state", "watch.db", "--for", "1s", "--resolve-after", "0s")
    stage.show("sick")
    assert await run(stage, tmp_path, *words) == (0, [], "")
    await asyncio.sleep(1.0)
    status, opened, err = await run(stage, tmp_path, *words)
    assert (status, err) == (0, "")
    assert names(*opened) == BOTH
    assert await run(stage, tmp_path, *words) == (0, [], "")
    stage.show(DOWN)
    status, events, err = await run(stage, tmp_path, *words)
    assert (status, [*events[0]]) == (3, ["error"])
    assert "503" in events[0]["error"]["message"]
    assert err.count("\n") == 1
    stage.show("healthy")
    status, closed, _ = await run(stage, tmp_path, *words)
    assert (status, [e["event"] for e in closed]) == (0, ["closed", "closed"])


async def test_once_without_state_says_what_is_there_now(stage, tmp_path):
    stage.show("sick")
    status, events, err = await run(stage, tmp_path)
    assert (status, names(*events), err) == (0, BOTH, "")
    assert {e["event"] for e in events} == {"opened"}


async def test_only_what_is_selected_is_watched(stage, tmp_path):
    stage.show("sick")
    _, events, _ = await run(stage, tmp_path, "--where", 'Hostname="node-0"')
    assert names(*events) == [("clocks_locked", "node-0:1")]
    assert events[0]["watch"] == f'{stage.url} {{Hostname="node-0"}}'


async def test_people_read_lines(stage, tmp_path):
    stage.show("sick")
    process = await asyncio.create_subprocess_exec(
        *GPUWHY, "watch", "--once", "--prometheus", stage.url,
        cwd=tmp_path, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, err = await asyncio.wait_for(process.communicate(), LIMIT_S)
    assert (process.returncode, err) == (0, b"")
    first, second = out.decode().splitlines()
    assert (
        "Z opened external power brake asserted on node-1 (power_brake, critical, certain)" in first
    )
    assert "on node-1:0, node-1:1, node-1:2, node-1:3" in first
    assert "clocks_locked" in second


def test_a_watch_that_a_script_left_in_the_background_ends_when_it_is_told_to(tmp_path):
    """Shells start such a process with SIGINT ignored; SIGTERM must do all the same."""
    file = tmp_path / "scrape.prom"
    file.write_text('DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-1",Hostname="node-1"} 40\n')
    run = "from bot.surfaces.cli.main import main; main()"
    command = [sys.executable, "-c", run, "watch", "--metrics", str(file), "--every", "1s"]
    ignored = "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); "
    wrapped = [sys.executable, "-c", ignored + "os.execv(sys.argv[1], sys.argv[1:])", *command]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(wrapped, stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + 30.0
        while not (tmp_path / "log").stat().st_size and time.monotonic() < deadline:
            time.sleep(0.1)
        process.terminate()
        assert process.wait(timeout=30) != 0
    finally:
        process.kill()
        process.wait()
