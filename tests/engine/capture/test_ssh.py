"""The OpenSSH client against a real server, and against what is none."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import capture
from engine.capture import CaptureError, CaptureSettings, SshSettings, UnreachableError, Via
from engine.capture.executors import checked_host, files, ssh_executor
from engine.errors import UsageError
from engine.model import Entity, Kind
from tests.engine.capture.conftest import gpu, request_for

HOSTILE = (
    "-oProxyCommand=touch /tmp/x",
    "$(id)",
    "`id`",
    "a b",
    "a;id",
    "a|id",
    "root@node-3",
    "node-3\n",
    "../node",
    "node'3",
    "%h",
    "-",
    "fe80::1%$(id)",
    "[fe80::1%eth0]",
    "ssh://node",
    "nöde",
    "a" * 254,
    "",
)


@pytest.fixture
def reached(sshd):
    return ssh_executor("node-3", sshd.settings)


@pytest.mark.parametrize("host", HOSTILE)
async def test_hostile_host_names_are_refused_before_anything_runs(host, tmp_path):
    called = tmp_path / "called"
    client = tmp_path / "ssh"
    client.write_text(f"#!/bin/sh\ntouch {called}\n")
    client.chmod(0o755)
    for via in (Via.SSH, Via.LOCAL):
        settings = CaptureSettings(
            folder=tmp_path, via=via, ssh=SshSettings(program=str(client)), max_file_bytes=1
        )
        target = Entity(Kind.GPU, "from a label", host=host, gpu=5)
        with pytest.raises(UsageError):
            await capture.plan(request_for(target), settings)
    assert not called.exists()


@given(st.text(max_size=80))
def test_a_checked_host_is_never_an_option_or_more_than_a_word(text):
    with contextlib.suppress(UsageError):
        host = checked_host(text)
        assert not host.startswith("-")
        assert set(host) <= set(
            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:-"
        )


@pytest.mark.parametrize(
    ("host", "checked"),
    [
        ("node-3", "node-3"),
        ("gpu_07.rack.example", "gpu_07.rack.example"),
        ("10.0.0.7", "10.0.0.7"),
        ("[fd00::7]", "fd00::7"),
        ("::1", "::1"),
    ],
)
def test_usual_host_names_are_taken(host, checked):
    assert checked_host(host) == checked


async def test_arguments_arrive_as_they_were(reached):
    words = (
        "$(id)",
        "a  b",
        "'",
        '"',
        "*",
        "%q{HOME}",
        "\\",
        ";",
        "ä",
        "--",
        "",
        "`id`",
        "!x",
        "~",
    )
    ended = await reached.run(("printf", "%s\n", *words), timeout_s=20)
    assert ended.out.splitlines() == list(words)
    assert (ended.status, ended.err) == (0, "")


async def test_status_and_errors_come_back(reached):
    ended = await reached.run(("sh", "-c", "echo no >&2; exit 3"), timeout_s=20)
    assert (ended.status, ended.said) == (3, "no")
    missing = await reached.run(("no-such-program",), timeout_s=20)
    assert missing.status == 127


async def test_a_file_comes_over_byte_by_byte(reached, tmp_path):
    sent = tmp_path / "sent"
    sent.write_bytes(os.urandom(3_000_000))
    come = tmp_path / "new" / "come"
    size = await reached.fetch(("cat", "--", str(sent)), come, max_bytes=3_000_000, timeout_s=20)
    assert size == 3_000_000
    assert come.read_bytes() == sent.read_bytes()
    assert [p.name for p in come.parent.iterdir()] == ["come"]
    assert come.stat().st_mode & 0o777 == 0o600


async def test_a_missing_file_and_a_large_one(reached, tmp_path):
    come = tmp_path / "come"
    with pytest.raises(CaptureError, match="did not come over: cat: /nowhere: No such file"):
        await reached.fetch(("cat", "--", "/nowhere"), come, max_bytes=10, timeout_s=20)
    with pytest.raises(CaptureError, match="larger than 1 MB"):
        await reached.fetch(("cat", "/dev/zero"), come, max_bytes=1_000_000, timeout_s=20)
    assert list(tmp_path.iterdir()) == []


async def test_a_disk_that_is_full_here(reached, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_create", lambda _: os.open("/dev/full", os.O_WRONLY))
    monkeypatch.setattr(files, "free_bytes", lambda _: 4096)
    command = ("head", "-c", "3000000", "/dev/zero")
    with pytest.raises(CaptureError, match="only 0 MB are free here in ") as caught:
        await reached.fetch(command, tmp_path / "come", max_bytes=5_000_000, timeout_s=20)
    assert caught.value.code == "no_room"


async def test_a_command_that_hangs(reached):
    executor = replace(reached, connect_timeout_s=0.5)
    with pytest.raises(UnreachableError) as caught:
        await executor.run(("sleep", "60"), timeout_s=1.0)
    assert caught.value.one_line() == (
        "sleep 60 on node-3 did not end within 1 s; look at node-3: is it overloaded?"
    )


async def test_a_server_that_accepts_and_says_nothing(sshd):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        settings = replace(sshd.settings, port=silent.getsockname()[1], connect_timeout_s=1.0)
        async with asyncio.timeout(10):
            with pytest.raises(UnreachableError, match="cannot reach node-3 by ssh: Connection"):
                await ssh_executor("node-3", settings).run(("true",), timeout_s=5)


async def test_a_closed_port(sshd):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    executor = ssh_executor("node-3", replace(sshd.settings, port=port))
    with pytest.raises(UnreachableError) as caught:
        await executor.run(("true",), timeout_s=5)
    assert "Connection refused; check that node-3 is up and lets ssh in" in str(caught.value)
    assert caught.value.exit_status == 3


async def test_a_host_with_another_key(sshd, tmp_path):
    known = tmp_path / "known_hosts"
    key = "AAAAC3NzaC1lZDI1NTE5AAAAIH7sA0TQwPi6GmM1uNlVQqGs6zkdvm1rcnCpAd3CYOv9"
    known.write_text(f"[node]:{sshd.port} ssh-ed25519 {key}\n")
    options = (f"UserKnownHostsFile={known}", *sshd.settings.options)
    executor = ssh_executor("node-3", replace(sshd.settings, options=options))
    with pytest.raises(UnreachableError, match="compare its key and add it to known_hosts"):
        await executor.run(("true",), timeout_s=20)


async def test_a_key_that_is_not_let_in(sshd, tmp_path):
    other = tmp_path / "other"
    await asyncio.to_thread(
        subprocess.run, ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", other], check=True
    )
    executor = ssh_executor("node-3", replace(sshd.settings, identity=other))
    with pytest.raises(UnreachableError, match=r"Permission denied .*; let the key in on node-3"):
        await executor.run(("true",), timeout_s=20)


async def test_no_ssh_client(sshd):
    executor = ssh_executor("node-3", replace(sshd.settings, program="/nowhere/ssh"))
    with pytest.raises(UnreachableError, match="/nowhere/ssh: not found"):
        await executor.run(("true",), timeout_s=5)


async def test_the_tool_is_missing_on_the_target(sshd, tmp_path):
    settings = CaptureSettings(
        folder=tmp_path, via=Via.SSH, ssh=sshd.settings, nsys="no-nsys", max_file_bytes=1
    )
    with pytest.raises(CaptureError) as caught:
        await capture.plan(request_for(gpu()), settings)
    assert caught.value.code == "tool_missing"
