"""Kernel logs by ssh, from a real sshd; the commands on the far side are stand-ins."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
from pathlib import Path

import pytest

from engine.capture import SshSettings
from engine.errors import SourceError
from engine.sources.logs.several import SeveralLogs
from engine.sources.logs.ssh import MOST_HOSTS, SshLogs, journal
from tests.support.sshd import start_sshd

AT = 1_764_432_000.0
LOST = "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python, GPU has fallen off the bus."


@pytest.fixture(scope="module")
def far(tmp_path_factory):
    """A machine: a folder of commands that come before all others, and how to reach it."""
    folder = tmp_path_factory.mktemp("far")
    commands = folder / "bin"
    commands.mkdir()
    path = f"SetEnv PATH={commands}:/usr/local/bin:/usr/bin:/bin\n"
    with start_sshd(folder / "sshd", extra=path) as server:
        yield commands, server.settings


def command(folder: Path, name: str, out: str = "", err: str = "", status: int = 0, wait: int = 0):
    """Put a command there; it writes down its arguments."""
    (folder / f"{name}.out").write_text(out)
    script = folder / name
    script.write_text(
        f'#!/bin/sh\necho "$@" > {folder}/{name}.argv\nsleep {wait}\n'
        f"cat {folder}/{name}.out\n"
        f"printf %s {shlex.quote(err)} >&2\nexit {status}\n"
    )
    script.chmod(0o755)


def entry(when: float, message: str, **more: str) -> str:
    return json.dumps(
        {
            "__REALTIME_TIMESTAMP": str(round(when * 1e6)),
            "_HOSTNAME": "inner-name",
            "_TRANSPORT": "kernel",
            "MESSAGE": message,
            **more,
        }
    )


async def ask(settings, hosts=("node-3",), **options):
    logs = SshLogs(settings, **options)
    return await logs.events(list(hosts), AT - 900, AT), logs.take_unread()


async def test_the_journal_of_the_window_is_read(far):
    folder, settings = far
    lines = [entry(AT - 60, LOST), entry(AT - 50, "eth0: link up"), entry(AT - 5000, LOST)]
    command(folder, "journalctl", "\n".join(lines) + "\n")
    events, unread = await ask(settings)
    assert unread == []
    (event,) = events
    assert (event.time, event.xid, event.host, event.pci) == (AT - 60, 79, "node-3", "0000:3b:00")
    said = (folder / "journalctl.argv").read_text().split()
    assert said == list(journal(AT - 900, AT))[1:]
    assert f"--since=@{AT - 900:.0f}" in said


@pytest.mark.parametrize(
    ("out", "err", "status"),
    [
        ("", "sh: 1: journalctl: not found", 127),
        ("", "Hint: You are currently not seeing messages from other users", 0),
        ("", "No journal files were opened due to insufficient permissions.", 1),
    ],
)
async def test_dmesg_speaks_where_the_journal_does_not(far, out, err, status):
    folder, settings = far
    command(folder, "journalctl", out, err, status)
    command(folder, "dmesg", f"2025-11-29T15:59:00,000000+00:00 {LOST}\n")
    events, unread = await ask(settings)
    assert [(e.time, e.xid, e.host) for e in events] == [(AT - 60, 79, "node-3")]
    assert unread == []
    assert (folder / "dmesg.argv").read_text().split() == ["--time-format", "iso"]


async def test_a_log_that_is_not_shown_is_told(far):
    folder, settings = far
    command(folder, "journalctl", "", "No journal files were found: insufficient permissions", 1)
    command(folder, "dmesg", "", "dmesg: read kernel buffer failed: Operation not permitted", 1)
    events, (unread,) = await ask(settings)
    assert events == []
    assert unread.what == "ssh node-3"
    assert "Operation not permitted" in unread.why
    assert "dmesg_restrict" in unread.fix


async def test_a_machine_that_hangs_does_not_hold_the_others(far):
    folder, settings = far
    command(folder, "journalctl", entry(AT - 60, LOST), wait=5)
    loop = asyncio.get_running_loop()
    began = loop.time()
    events, unread = await ask(settings, ["node-3", "node-4"], timeout_s=0.5)
    assert loop.time() - began < 4
    assert events == []
    assert sorted(u.what for u in unread) == ["ssh node-3", "ssh node-4"]
    assert "no answer within 0.5 s" in unread[0].why


async def test_many_slow_machines_are_each_told_and_the_quick_ones_are_kept(monkeypatch):
    line = entry(AT - 60, LOST).encode()

    async def lines(_self, host, *_):
        await asyncio.sleep(0 if host == "n00" else 30)
        return [line]

    monkeypatch.setattr(SshLogs, "lines", lines)
    logs = SeveralLogs([SshLogs(SshSettings(), timeout_s=0.3)])
    events = await logs.events([f"n{k:02}" for k in range(40)], AT - 900, AT)
    assert [e.host for e in events] == ["n00"]
    assert len(logs.take_unread()) == 39


async def test_a_machine_that_refuses_is_told(far):
    _, settings = far
    refused = SshSettings(
        user=settings.user,
        port=1,
        identity=settings.identity,
        config=settings.config,
        options=("HostName=127.0.0.1",),
    )
    events, (unread,) = await ask(refused)
    assert events == []
    assert "cannot reach node-3" in unread.why


@pytest.mark.parametrize(
    "host",
    ["-oProxyCommand=touch x", "a b", "$(touch x)", "`id`", "a;id", "", "-", "../x", "h\nid", "é"],
)
async def test_a_host_of_the_metrics_is_no_command(far, tmp_path, monkeypatch, host):
    """Labels of metrics are anybody's data."""
    folder, settings = far
    command(folder, "journalctl", entry(AT - 60, LOST))
    monkeypatch.chdir(tmp_path)
    events, (unread,) = await ask(settings, [host])
    assert events == []
    assert "no host name" in unread.why
    assert list(tmp_path.iterdir()) == []
    assert "\n" not in unread.one_line()


async def test_a_fleet_is_not_called_one_by_one(monkeypatch):
    asked = []

    async def lines(_self, host, *_):
        asked.append(host)
        raise SourceError("down")

    monkeypatch.setattr(SshLogs, "lines", lines)
    _, unread = await ask(SshSettings(), [f"n{k}" for k in range(MOST_HOSTS + 40)])
    assert len(asked) == MOST_HOSTS
    assert "40 more hosts" in unread[0].why


async def test_nothing_asks_for_a_password_and_no_shell_is_started_here(tmp_path):
    """A stand-in for the ssh client shows what it is called with."""
    client = tmp_path / "ssh"
    client.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/argv\nexit 255\n')
    client.chmod(0o755)
    settings = SshSettings(program=str(client), connect_timeout_s=3.0)
    _, (unread,) = await ask(settings)
    argv = (tmp_path / "argv").read_text().splitlines()
    assert "BatchMode=yes" in argv
    assert "ConnectTimeout=3" in argv
    assert argv[-3:-1] == ["--", "node-3"]
    assert argv[-1] == shlex.join(journal(AT - 900, AT))
    assert unread.fix
    assert os.environ.get("SSH_ASKPASS") is None or "SSH_ASKPASS" not in argv
