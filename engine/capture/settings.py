"""What a site can set about captures."""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from platformdirs import user_data_path

from engine.errors import UsageError

# Where Debian's nsight-systems has it; NVIDIA's own packages import by themselves at the stop.
DEBIAN_IMPORTER = "/usr/lib/nsight-systems/host-linux-x64/QdstrmImporter"
_USER = re.compile(r"[A-Za-z_][A-Za-z0-9._-]{0,63}\$?")
_OPTION = re.compile(r"[A-Za-z0-9]+=[^\n\r\0]+")
_PROGRAM = re.compile(r"[A-Za-z0-9/._+][A-Za-z0-9/._+-]*")


class Via(StrEnum):
    """How commands reach the target's machine; auto: ssh, except for this machine itself."""

    AUTO = "auto"
    LOCAL = "local"
    SSH = "ssh"


def own_names() -> tuple[str, ...]:
    """Return the names by which this machine calls itself."""
    full = socket.gethostname()
    return tuple(dict.fromkeys(("localhost", full, full.partition(".")[0])))


@dataclass(frozen=True, slots=True)
class SshSettings:
    """How the OpenSSH client is called; what is None is left to the user's ssh configuration.

    Attributes:
        program: the client, a name or a path.
        user: login on the targets; nsys shows a user's own sessions only, so it must be the one
            that the programs run as.
        port: port of the ssh server.
        identity: private key file.
        config: ssh configuration file to use instead of the user's.
        options: ``-o`` options, each ``Key=Value``; they win over those that gpuwhy sets.
        connect_timeout_s: longest wait for a connection (s).
    """

    program: str = "ssh"
    user: str | None = None
    port: int | None = None
    identity: Path | None = None
    config: Path | None = None
    options: tuple[str, ...] = ()
    connect_timeout_s: float = 10.0

    def __post_init__(self) -> None:
        _check(_PROGRAM.fullmatch(self.program), "ssh program", self.program)
        _check(self.user is None or _USER.fullmatch(self.user), "ssh user", self.user)
        _check(self.port is None or 0 < self.port < 65536, "ssh port", self.port)
        for option in self.options:
            _check(_OPTION.fullmatch(option), "ssh option", option)


@dataclass(frozen=True, slots=True)
class CaptureSettings:
    """Everything that can be set about captures.

    Attributes:
        folder: where captured files are kept, one folder a capture.
        via: how commands reach the target's machine.
        local_hosts: host names that mean this machine, for ``via`` auto.
        ssh: how ssh is called.
        nsys: Nsight Systems' command on the target, a name or a path.
        importer: ``QdstrmImporter`` on the target; used where nsys leaves a raw stream.
        target_folder: folder on the target in which a capture makes its own.
        max_duration_s: longest recording (s); NVIDIA supports nsys runs of up to 5 minutes.
        max_file_bytes: largest trace that is fetched (bytes); as much must be free on both sides.
        command_timeout_s: longest wait for a quick command on the target (s).
        stop_timeout_s: longest wait for nsys to write its stream out (s).
        import_timeout_s: longest wait for the importer (s).
        fetch_timeout_s: longest wait for the file to come over (s).
    """

    folder: Path = field(default_factory=lambda: user_data_path("gpuwhy") / "captures")
    via: Via = Via.AUTO
    local_hosts: tuple[str, ...] = field(default_factory=own_names)
    ssh: SshSettings = field(default_factory=SshSettings)
    nsys: str = "nsys"
    importer: str = DEBIAN_IMPORTER
    target_folder: str = "/tmp"  # noqa: S108 - a fresh folder of mode 700 is made in it
    max_duration_s: float = 60.0
    max_file_bytes: int = 1 << 30
    command_timeout_s: float = 20.0
    stop_timeout_s: float = 120.0
    import_timeout_s: float = 300.0
    fetch_timeout_s: float = 300.0

    def __post_init__(self) -> None:
        for name in ("nsys", "importer", "target_folder"):
            value = getattr(self, name)
            _check(_PROGRAM.fullmatch(value), name, value)
        _check(self.target_folder.startswith("/"), "target_folder", self.target_folder)


def _check(good: object, name: str, value: object) -> None:
    if not good:
        shown = repr(str(value)[:60])
        raise UsageError(f"{name} {shown} is not usable for captures", hint="", code="config")
