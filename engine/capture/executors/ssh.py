"""Commands on another machine, through the OpenSSH client.

The client is called with an argument list. The far side always hands a command to the login
shell, so every argument is quoted for it. A host name that could be an option or hold anything
but a name is refused, and ``--`` stands before it as well.
"""

from __future__ import annotations

import re
import shlex
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from engine.capture.errors import UnreachableError
from engine.capture.executors import files, process
from engine.capture.executors.local import too_slow
from engine.capture.ports import Completed
from engine.capture.settings import SshSettings
from engine.errors import UsageError

_SSH_FAILED = 255
_ADDRESS = re.compile(r"[0-9A-Fa-f:.]{2,45}")
_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9])?")
# Nothing may ask, forward, or run a command here; what the user configured for a host still holds.
_OPTIONS = (
    "BatchMode=yes",
    "ClearAllForwardings=yes",
    "PermitLocalCommand=no",
    "RemoteCommand=none",
    "ServerAliveInterval=5",
    "ServerAliveCountMax=3",
    "LogLevel=ERROR",
)
_HINTS = (
    ("host key verification", "compare its key and add it to known_hosts (ssh-keyscan {host})"),
    ("permission denied", "let the key in on {host}, or set another ssh user or identity"),
    ("could not resolve", "check the name, or give its address by the ssh option HostName"),
    ("identity file", "check the ssh identity"),
)
_UNREACHED = "check that {host} is up and lets ssh in"


def checked_host(name: str) -> str:
    """Return a host name or address as ssh takes it.

    Raises:
        UsageError: it is neither, or could be taken for an option.
    """
    if _HOST.fullmatch(name):
        return name
    bare = name.removeprefix("[").removesuffix("]")
    # The pattern first: an address of the library's may end in %, and anything after that.
    if _ADDRESS.fullmatch(bare):
        with suppress(ValueError):
            return str(ip_address(bare))
    shown = repr(name if len(name) <= 60 else name[:57] + "...")
    hint = "use letters, digits, dots and hyphens"
    raise UsageError(f"{shown} is no host name", hint=hint, code="bad_host")


def through(host: str, settings: SshSettings) -> tuple[str, ...]:
    """Return the argument list up to and with the host."""
    argv = [settings.program, "-T", "-a", "-x"]
    # The first value of an option wins, so the site's come first.
    wait = f"ConnectTimeout={max(1, round(settings.connect_timeout_s))}"
    for option in (*settings.options, *_OPTIONS, wait):
        argv += ["-o", option]
    if settings.config is not None:
        argv += ["-F", str(settings.config)]
    if settings.identity is not None:
        argv += ["-i", str(settings.identity), "-o", "IdentitiesOnly=yes"]
    if settings.user is not None:
        argv += ["-l", settings.user]
    if settings.port is not None:
        argv += ["-p", str(settings.port)]
    return (*argv, "--", checked_host(host))


@dataclass(frozen=True, slots=True)
class SshExecutor:
    """Runs commands on another machine; make it with `ssh_executor`."""

    host: str
    through: tuple[str, ...]
    connect_timeout_s: float
    route: str = "ssh"

    async def run(
        self, argv: tuple[str, ...], *, timeout_s: float, output: int | None = None
    ) -> Completed:
        """Run a command; see `engine.capture.ports.Executor`."""
        command = (*self.through, shlex.join(argv))
        try:
            ended = await process.run(
                command, timeout_s=timeout_s + self.connect_timeout_s, output=output
            )
        except TimeoutError:
            raise too_slow(argv, self.host, timeout_s) from None
        if ended.status == _SSH_FAILED or _no_client(ended, command):
            raise _unreachable(ended, self.host)
        return ended

    async def fetch(
        self, argv: tuple[str, ...], destination: Path, *, max_bytes: int, timeout_s: float
    ) -> int:
        """Keep a command's output as a file; see `engine.capture.ports.Executor`."""
        return await files.receive(
            lambda output: self.run(argv, timeout_s=timeout_s, output=output),
            destination,
            host=self.host,
            max_bytes=max_bytes,
        )


def ssh_executor(host: str, settings: SshSettings) -> SshExecutor:
    """Return the executor for a host.

    Raises:
        UsageError: the host name is not usable.
    """
    return SshExecutor(host, through(host, settings), settings.connect_timeout_s)


def _no_client(ended: Completed, command: tuple[str, ...]) -> bool:
    wrong = {process.NOT_FOUND, process.NOT_RUNNABLE}
    return ended.status in wrong and ended.err.startswith(f"{command[0]}: ")


def _unreachable(ended: Completed, host: str) -> UnreachableError:
    said = ended.said or "ssh gave no reason"
    hint = next((hint for part, hint in _HINTS if part in said.lower()), _UNREACHED)
    return UnreachableError(f"cannot reach {host} by ssh: {said}", hint=hint.format(host=host))
