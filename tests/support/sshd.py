"""A real OpenSSH server on loopback, with keys made for it and thrown away."""

from __future__ import annotations

import contextlib
import getpass
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from engine.capture import SshSettings
from tests.support.servers import binary, free_port

_WAIT_S = 20.0
_CONFIG = """
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host
PidFile none
AuthorizedKeysFile {folder}/user.pub
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
UseDNS no
LogLevel ERROR
"""


@dataclass(frozen=True)
class Sshd:
    """A running server: its port, and how a client of ours is let in."""

    port: int
    settings: SshSettings


@contextlib.contextmanager
def start_sshd(folder: Path, *, extra: str = "") -> Iterator[Sshd]:
    """Run a server that lets this user in; every host name of a client leads to it.

    Args:
        folder: where its files are put.
        extra: lines for its configuration.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for key in ("host", "user"):
        subprocess.run(
            [binary("ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-f", folder / key], check=True
        )
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(
            mode=0o755, exist_ok=True
        )  # sshd wants it for its unprivileged half
    port = free_port()
    (folder / "sshd_config").write_text(_CONFIG.format(port=port, folder=folder) + extra)
    kind, key = (folder / "host.pub").read_text().split()[:2]
    (folder / "known_hosts").write_text(f"[node]:{port} {kind} {key}\n")
    (folder / "ssh_config").write_text("")
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            [_sshd(), "-D", "-e", "-f", folder / "sshd_config"],
            stdin=subprocess.DEVNULL,
            stderr=log,
        )
    try:
        _wait(port, server, folder / "log")
        yield Sshd(port, settings(folder, port))
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(_WAIT_S)


def settings(folder: Path, port: int) -> SshSettings:
    """Return settings with which any host name leads to a port of this machine."""
    return SshSettings(
        user=getpass.getuser(),
        port=port,
        identity=folder / "user",
        config=folder / "ssh_config",
        options=(
            "HostName=127.0.0.1",
            f"HostKeyAlias=[node]:{port}",
            f"UserKnownHostsFile={folder / 'known_hosts'}",
            "StrictHostKeyChecking=yes",
        ),
        connect_timeout_s=10.0,
    )


def _sshd() -> str:
    return "/usr/sbin/sshd" if Path("/usr/sbin/sshd").exists() else binary("sshd")


def _wait(port: int, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _WAIT_S
    while time.monotonic() < deadline and server.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1.0):
            return
        time.sleep(0.02)
    message = f"sshd did not start: {log.read_text()[-2000:]}"
    raise RuntimeError(message)
