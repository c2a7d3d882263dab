"""The demonstration, with its real Prometheus."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import aiohttp
import pytest

from bot.commands.demo import SCRIPT, Demo
from bot.demo.folder import own_folder, sweep_up
from bot.demo.prometheus import serving
from bot.demo.scraped import SteppingClock, scraping
from bot.render import plain
from bot.surfaces.cli.demo import _words
from engine.diagnosis import Engine
from engine.errors import SourceError, UsageError
from engine.samples import Selection
from engine.simulate.fleet import Fleet
from tests.support import packaged

PYTHON = [sys.executable, "-c", "from bot.surfaces.cli.main import main; main()"]


async def test_history_is_served_and_everything_is_gone_afterwards():
    history = ["# TYPE x gauge\n", 'x{a="b"} 7 1764432000.0\n', "# EOF\n"]
    async with serving(history) as address, aiohttp.ClientSession() as session:
        query = {"query": "x", "time": "1764432000"}
        async with session.get(f"{address}/api/v1/query", params=query) as reply:
            found = await reply.json()
        assert found["data"]["result"][0]["value"][1] == "7"
    async with aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.ClientError):
            await session.get(address)


async def test_history_that_promtool_refuses_is_one_line():
    with pytest.raises(SourceError, match="promtool cannot load the history: ") as caught:
        async with serving(["no metrics at all"]):
            pass
    assert "\n" not in caught.value.one_line()


def test_the_clock_of_the_scraped_fleet_ends_at_the_moment():
    clock = SteppingClock(1000.0, 60.0)
    seen = [clock()]
    for done in range(1, clock.rounds + 1):
        clock.step(done, clock.rounds)
        seen.append(clock())
    assert seen == [940.0, 955.0, 970.0, 985.0, 1000.0, 1000.0]


async def test_the_scraped_fleet_has_the_history_of_its_window():
    fleet = Fleet(nodes=1, gpus=2)
    at = fleet.start + 600
    async with scraping(fleet, at=at, window_s=60.0) as source:
        batch = await source.select([Selection(("DCGM_FI_DEV_GPU_TEMP",), (), 60.0)], at=at)
    assert [list(s.ts) for s in batch.series] == [[at - 60 + 15 * k for k in range(5)]] * 2


async def test_questions_that_it_does_not_know_say_what_it_does():
    fleet = Fleet(nodes=1, gpus=1)
    at = fleet.start + 60
    async with scraping(fleet, at=at, window_s=60.0) as source:
        demo = Demo(Engine(packaged.catalogue()), fleet, source, at, "a test", None)
        assert (await demo.ask(["why", "node-0:0"])).data["schema"] == "gpuwhy/why/1"
        assert (await demo.ask(["decode", "xid", "79"])).data["schema"] == "gpuwhy/decode/1"
        help_ = plain.render(await demo.ask(["help"]))
        assert all(word in help_ for word in ("sweep", "why node-3:5", "decode xid 79", "quit"))
        for words in (["frobnicate"], ["why"], ["decode"], []):
            with pytest.raises(UsageError, match="ask: sweep, why"):
                await demo.ask(words)


@pytest.mark.parametrize("typed", ["help", "?", "gpuwhy help", "help why"])
def test_help_at_the_prompt_is_help(typed):
    assert _words(typed) == ["help"]


def test_the_whole_demonstration_names_every_planted_fault_first():
    command = [*PYTHON, "demo", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert "Prometheus" in document["source"]
    assert len(document["steps"]) == len(SCRIPT)
    sweep = document["steps"][0]["answer"]
    found = {i["entity"]["name"]: i["cause"] for i in reversed(sweep["incidents"])}
    assert found == {p["entity"]: p["cause"] for p in document["planted"]}


def test_ended_from_outside_it_leaves_nothing_behind(tmp_path):
    process = subprocess.Popen(
        [*PYTHON, "demo", "--batch"],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        deadline = time.monotonic() + 60
        while not list(tmp_path.glob("*/data/wal")) and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        err = process.stderr.read()
        assert process.wait(timeout=30) == 143, err
    finally:
        process.kill()
        process.stderr.close()
        process.wait()
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not shutil.which("setpriv"), reason="nothing ties its server to it")
def test_killed_it_takes_its_server_along_and_the_next_one_sweeps_up(tmp_path, monkeypatch):
    process = subprocess.Popen(
        [*PYTHON, "demo", "--batch"],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert until(lambda: list(tmp_path.glob("*/data/wal")))
    finally:
        process.kill()
        process.wait()
    assert until(lambda: not servers_of(tmp_path))
    [left] = tmp_path.iterdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    sweep_up()
    assert left.exists(), "too young to be swept up"
    os.utime(left, (0, 0))
    sweep_up()
    assert not left.exists()


def test_the_folder_of_a_living_demonstration_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with own_folder() as folder:
        os.utime(folder, (0, 0))
        sweep_up()
        assert folder.exists()
    assert not folder.exists()


def until(holds, seconds=60.0):
    """Wait until something holds; return whether it does."""
    deadline = time.monotonic() + seconds
    while not (found := holds()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return bool(found)


def servers_of(folder):
    """Return the processes whose command lines name a folder."""
    found = []
    for line in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if str(folder).encode() in line.read_bytes():
                found.append(line)
    return found
