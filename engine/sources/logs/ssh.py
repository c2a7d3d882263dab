"""Events from machines by ssh: ``journalctl -k -o json`` of the window, else ``dmesg``.

Commands are argument lists through the OpenSSH client (`engine.capture.executors`), host names are
checked, nothing asks for a password, and a machine that does not answer in time is told.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from typing import IO

from engine.capture.executors.ssh import SshExecutor, ssh_executor
from engine.capture.settings import SshSettings
from engine.errors import GpuwhyError, SourceError
from engine.readers.logline import LogLine, Records
from engine.readers.text import clean
from engine.sources.logs.parse import EventParser
from engine.sources.logs.port import LogEvent, Unread
from engine.sources.text import show

MOST_HOSTS = 64
_AT_ONCE = 16
# A ring buffer is a few hundred KiB, an hour of a flooded journal a few MiB.
_MOST_BYTES = 16 << 20
_DMESG = ("dmesg", "--time-format", "iso")
_NOTHING_FOUND = 1
# journalctl says so on stderr and shows an empty journal: that is not an empty one.
_NOT_SHOWN = ("insufficient permissions", "not seeing messages", "No journal files")

_LATE = "check that it is up and lets ssh in, or raise logs.timeout"


def journal(start: float, end: float) -> tuple[str, ...]:
    """Return the command that prints the kernel's records of a window as JSON."""
    return (
        "journalctl",
        # Not --dmesg, which means this boot alone: a lost GPU is often followed by another.
        "_TRANSPORT=kernel",
        "--no-pager",
        "--output=json",
        f"--since=@{int(start)}",
        f"--until=@{int(end) + 1}",
    )


class SshLogs:
    """Events of the kernel logs of the machines asked about."""

    def __init__(self, settings: SshSettings, *, timeout_s: float = 10.0) -> None:
        """Nothing is connected yet."""
        self._settings = settings
        self._wait_s = timeout_s
        # Machines that are late are told one by one: the question waits a little longer for that.
        self.timeout_s = timeout_s + 1.0
        self._unread: list[Unread] = []

    @property
    def name(self) -> str:
        """What messages call it."""
        return "ssh"

    @property
    def needs_hosts(self) -> bool:
        """Machines are reached by name."""
        return True

    @property
    def queries(self) -> int:
        """No HTTP requests are sent."""
        return 0

    async def events(self, hosts: Sequence[str] | None, start: float, end: float) -> list[LogEvent]:
        """Read the kernel logs of some hosts; see `engine.sources.logs.port.LogSource`."""
        named = sorted(set(hosts or ()))
        if not named:
            self._unread.append(
                Unread("ssh", "no machine is known to ask", "name the target as HOST:GPU")
            )
        if len(named) > MOST_HOSTS:
            more = f"{len(named) - MOST_HOSTS} more hosts (at most {MOST_HOSTS} are asked)"
            self._unread.append(Unread("ssh", more, "configure Loki for a fleet"))
        gate = asyncio.Semaphore(_AT_ONCE)
        found = await asyncio.gather(
            *(self._guarded(host, start, end, gate) for host in named[:MOST_HOSTS])
        )
        events = (event for some in found for event in some)
        return sorted(events, key=lambda event: event.order)

    async def lines(self, host: str, start: float, end: float) -> list[bytes]:
        """Return the kernel log of one host, as its commands print it.

        Raises:
            SourceError: the host cannot be reached, or shows its log to nobody of this name.
            UsageError: the host's name is not usable.
        """
        executor = ssh_executor(host, self._settings)
        status, said, lines = await self._run(executor, journal(start, end))
        if not any(word in said for word in _NOT_SHOWN) and (
            status == 0 or (status == _NOTHING_FOUND and not said)
        ):
            return lines
        status, again, lines = await self._run(executor, _DMESG)
        if status == 0:
            return lines
        raise SourceError(
            f"the kernel log of {host} cannot be read: {again or said or f'status {status}'}",
            hint="let that user read it: group systemd-journal or adm, or kernel.dmesg_restrict=0",
        )

    def take_unread(self) -> list[Unread]:
        """Return the machines whose logs could not be read."""
        taken, self._unread = self._unread, []
        return taken

    def take_warnings(self) -> list[str]:
        """There is nothing else to tell."""
        return []

    async def aclose(self) -> None:
        """Nothing is held open."""

    async def _guarded(
        self, host: str, start: float, end: float, gate: asyncio.Semaphore
    ) -> list[LogEvent]:
        parser = EventParser(f"kernel log by ssh {host}", start, end, default_host=host)
        try:
            async with asyncio.timeout(self._wait_s), gate:
                lines = await self.lines(host, start, end)
        except TimeoutError:
            said = f"no answer within {self._wait_s:g} s"
            self._unread.append(Unread(f"ssh {show(host, 80)}", said, _LATE))
            return []
        except GpuwhyError as error:
            self._unread.append(Unread(f"ssh {show(host, 80)}", error.message, error.hint))
            return []
        parser.feed(_of_host(_records(lines), host))
        return parser.done()

    async def _run(
        self, executor: SshExecutor, argv: tuple[str, ...]
    ) -> tuple[int, str, list[bytes]]:
        """Run a command; return its status, what it said on stderr, and its lines."""
        with tempfile.TemporaryFile() as file:
            ended = await executor.run(argv, timeout_s=self._wait_s, output=file.fileno())
            return ended.status, ended.err.strip()[:400], _read(file)


def _read(file: IO[bytes]) -> list[bytes]:
    file.seek(0)
    return file.read(_MOST_BYTES).split(b"\n")


def _records(lines: Iterable[bytes]) -> Iterator[LogLine]:
    records = Records()
    for number, raw in enumerate(lines, start=1):
        if b"NVRM" in raw or b"Xid" in raw:
            yield from records.feed(number, clean(raw[:65_536]))[0]
    yield from records.flush()


def _of_host(lines: Iterable[LogLine], host: str) -> Iterator[LogLine]:
    """Name the machine as it was asked for: its own name may be another."""
    for line in lines:
        line.host = host
        yield line
