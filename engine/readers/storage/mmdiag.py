"""Reader of ``mmdiag`` of IBM Storage Scale: waiters, connections, I/O history, settings.

Source: IBM Storage Scale documentation, mmdiag; lines as public collectors of them test for.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar, Final

from engine.readers.base import Result
from engine.readers.listing import Listing, result_of
from engine.readers.quantities import short
from engine.readers.storage.mmdiag_verdict import (
    Connection,
    Heading,
    Io,
    Setting,
    Waiter,
    judge_connections,
    judge_ios,
    judge_settings,
    judge_waiters,
)

_HEADING: Final = re.compile(r"^\s{0,4}=== mmdiag: (\w{3,24}) ===\s*$")
# New: "Waiting 64.3890 sec since 17:55:45, monitored, thread 1 NSDThread: for I/O completion";
# old: "0x7F… waiting 12.345678900 seconds, NSDThread: for I/O completion".
_WAITER: Final = re.compile(
    r"^\s{0,4}(?:0x[0-9A-Fa-f]{1,16}"
    r"(?: \([0-9A-Fa-fx]{1,20}\))? )?[Ww]aiting ([0-9]{1,9}\.[0-9]{1,9}) sec(?:onds)?"
    r"(?: since [0-9:_.-]{5,32})?,(?: (ignored|monitored|delayed[^,]{0,40}),)?"
    r"(?: thread [0-9]{1,9})? (\w{2,48}): (.{1,200})$"
)
_CONNECTION: Final = re.compile(
    r"^\s{1,12}([\w.-]{1,63})\s{1,40}<c[0-9a-z]{1,8}>\s{1,12}(?:[0-9]{1,3}\s{1,6})?"
    r"[0-9.:a-f]{3,40}\s{1,20}(\w{3,16})\s{1,12}-?[0-9]{1,5}\s{1,12}-?[0-9]{1,6}\s"
)
Record = Heading | Waiter | Connection | Io | Setting

_IO: Final = re.compile(
    r"^\s{0,4}[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{1,9}\s{1,4}([RW])\s{1,16}([\w-]{2,16})\s{1,8}"
    r"([\w.-]{1,40}):([0-9]{1,16})\s{1,12}([0-9]{1,9})\s{1,12}([0-9]{1,9}\.[0-9]{1,6})"
)
# "!" marks what was set; values are numbers and words.
_SETTING: Final = re.compile(
    r"^\s{0,4}(!)?\s{0,3}([a-z]\w{2,60}) (\S{1,120}(?: \S{1,60}){0,4})\s*$"
)


_NETWORK_LINES: Final = (
    "Pending messages:",
    "(none)",
    "Inter-node communication",
    "tsc",
    "my address",
    "my addr list",
    "my subnet list",
    "my node number",
    "TCP Connections between nodes:",
    "RDMA Connections between nodes:",
    "Device ",
    "hostname ",
    "devicename ",
    "Connection details:",
    "Device details:",
    "diag verbs",
    "dest ",
)


class MmdiagReader(Listing[Record]):
    """Reads waiters, connections and the I/O history, with or without the heading."""

    triggers: ClassVar[tuple[bytes, ...]] = (
        b"=== mmdiag: ",
        b"Buf type disk:sectorNum",
    )
    pattern: ClassVar[bytes] = rb"[Ww]aiting [0-9]+\.[0-9]+ sec"
    PATIENCE = 4

    _section = ""

    def take(self, number: int, text: str) -> bool:
        """Take a line of ``mmdiag``."""
        heading = _HEADING.match(text)
        if heading:
            self._section, self.inside = heading[1], True
            self.kept.add(Heading(number, self.host, heading[1]))
            return True
        waiter = _WAITER.match(text)
        if waiter:
            self.kept.add(
                Waiter(
                    number,
                    self.host,
                    float(waiter[1]),
                    waiter[2] == "ignored",
                    waiter[3],
                    short(waiter[4], 120),
                )
            )
            self.inside = True
            return True
        if "Buf type disk:sectorNum" in text:
            self._section, self.inside = "iohist", True
            return True
        taken = self.inside and self._body(number, text)
        # A line at the margin that is not known is another tool's.
        self.inside = self.inside and (taken or text.startswith((" ", "\t")))
        return taken

    def judge(self, records: Sequence[Record]) -> Result:
        """Say where I/O is stuck."""
        found = [
            *judge_waiters(
                [r for r in records if isinstance(r, Waiter)],
                [r for r in records if isinstance(r, Heading) and r.section == "waiters"],
            ),
            *judge_connections([r for r in records if isinstance(r, Connection)]),
            *judge_ios([r for r in records if isinstance(r, Io)]),
            *judge_settings([r for r in records if isinstance(r, Setting)]),
        ]
        return result_of(["mmdiag"], found)

    def _body(self, number: int, text: str) -> bool:
        if self._section == "network":
            row = _CONNECTION.match(text)
            if row:
                self.kept.add(Connection(number, self.host, short(row[1]), row[2]))
            return bool(row) or text.lstrip().startswith(_NETWORK_LINES)
        if self._section == "config":
            setting = _SETTING.match(text)
            if setting:
                self.kept.add(
                    Setting(number, self.host, setting[2], short(setting[3], 60), bool(setting[1]))
                )
            return bool(setting)
        if self._section == "iohist":
            io = _IO.match(text)
            if io:
                self.kept.add(Io(number, self.host, io[1], short(io[3]), int(io[5]), float(io[6])))
            return (
                bool(io)
                or set(text.split()[0:1]) <= {"-" * 15, "I/O"}
                or text.lstrip().startswith("--")
            )
        return False
