"""Reader of the frame of ``nvidia-bug-report.log``: whose it is, and what it holds more than once.

The script collects the kernel's messages from the log files, from the journal of three boots and
from ``dmesg``, so one event stands in its report up to three times. This reader comes first and
takes the repeats; everything else in the report (Xids, ``lspci``, ``nvidia-smi -q``, ``ibstat`` …)
is left to the readers of each. Source: nvidia-bug-report.sh of the drivers 470 to 590.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import ClassVar, Final

from engine.readers.base import Context, Result
from engine.readers.quantities import plural, short

KIND: Final = "nvidia_bug_report"
_START: Final = "Start of NVIDIA bug report log file"
_SCAN: Final = "Scanning kernel log files for NVIDIA kernel messages:"
_DMESG: Final = "dmesg:"
_RULE: Final = "______________"
# Where another copy of the messages begins, inside the section of the log files.
_COPY: Final = re.compile(r"^  (?:journalctl -b -?[0-9]|/\S{1,80}):?\s*$")
_UNAME: Final = re.compile(r"^uname: Linux ([A-Za-z0-9][\w.-]{0,62}) ")
_DATE: Final = re.compile(r"^Date: ([A-Z][a-z]{2} [\w :,+-]{10,48})$")
_MESSAGE: Final = re.compile(
    r"^(?:(?P<head>[A-Z][a-z]{2} {1,2}[0-9]{1,2} [0-9:]{8}"
    r"|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.+Z-]{8,24}) \S{1,64} )?"
    r"(?:kernel: )?(?:\[ {0,8}[0-9.]{3,20}\] )?(?P<body>\S.*)$"
)
_CLOCK: Final = re.compile(r"(?<![0-9:])([0-2][0-9]):([0-5][0-9]):([0-5][0-9])(?![0-9:])")
# Copies of one message differ by so much (s): the journal and the log files round on their own.
_APART: Final = 2
_DAY: Final = 86_400
# The frame's first lines, in which the report says whose it is.
_FRAME: Final = 24
MAX_MESSAGES: Final = 65_536


class _Copies:
    """Tells a message that an earlier copy had from one that is new."""

    def __init__(self) -> None:
        self._all: defaultdict[str, list[int | None]] = defaultdict(list)
        self._left: dict[str, list[int | None]] = {}
        self._kept = 0

    def begin(self) -> None:
        """Begin another copy: each message so far may come once more."""
        self._left = {body: list(times) for body, times in self._all.items()}

    def repeats(self, body: str, at: int | None) -> bool:
        """Return whether an earlier copy had this message.

        Args:
            body: the message without host and time.
            at: second of the day, None where the copy has no time of day.
        """
        waiting = self._left.get(body, [])
        for place, time in enumerate(waiting):
            if at is None or time is None or min(abs(at - time), _DAY - abs(at - time)) <= _APART:
                del waiting[place]
                return True
        if self._kept < MAX_MESSAGES:
            self._kept += 1
            self._all[body].append(at)
        return False


class BugReportReader:
    """Reads the frame of a bug report and takes messages that it repeats."""

    triggers: ClassVar[tuple[bytes, ...]] = (_START.encode(), _SCAN.encode(), _DMESG.encode())

    def __init__(self, _context: Context) -> None:
        self.open = False
        self._line: int | None = None
        self._known = False
        self._in_frame = 0
        self._host: str | None = None
        self._date: str | None = None
        self._copies = _Copies()
        self._reports = 0
        self._repeats = 0

    def feed(self, number: int, text: str) -> bool:
        """Take a line of the frame, or a kernel message that an earlier copy had."""
        line = text.strip()
        taken = True
        if line.startswith(_START):
            self._begin(number)
        elif line == _SCAN or (line == _DMESG and self._known):
            self._line, self._known, self.open = self._line or number, True, True
            self._in_frame = 0
            self._copies.begin()
        elif not self.open:
            taken = False
        elif line.startswith(_RULE):
            self.open = False
        elif self._in_frame:
            taken = self._frame(text)
        elif _COPY.match(text):
            self._copies.begin()
        else:
            taken = self._message(line)
        return taken

    def finish(self) -> Result:
        """Say whose report it is, and how many messages it repeats."""
        if self._line is None:
            return Result()
        whose = f" of {self._host}" if self._host else ""
        written = f", written {self._date}" if self._date else ""
        says = f"NVIDIA bug report{whose}{written}."
        if self._reports > 1:
            says = f"{self._reports} NVIDIA bug reports, the last one{whose}{written}."
        if self._repeats:
            says += (
                f" It holds the kernel's messages from log files, journal and dmesg: "
                f"{plural(self._repeats, 'repeat')} left out, each message counts once."
            )
        says += (
            " It shows the moment at which it was written: if the trouble came later, run "
            "nvidia-bug-report.sh again (--safe-mode if nvidia-smi hangs)."
        )
        return Result(kinds=[KIND], notes=[says])

    def _begin(self, number: int) -> None:
        self._line = self._line or number
        self._known, self.open, self._in_frame = True, True, _FRAME
        self._host = self._date = None
        self._copies = _Copies()
        self._reports += 1

    def _frame(self, text: str) -> bool:
        self._in_frame -= 1
        self.open = self._in_frame > 0
        if (uname := _UNAME.match(text)) is not None:
            self._host = uname[1]
        elif (date := _DATE.match(text)) is not None:
            self._date = short(date[1], 48)
        return True

    def _message(self, line: str) -> bool:
        found = _MESSAGE.match(line)
        if found is None:
            return False
        clock = _CLOCK.search(found["head"] or "")
        at = None
        if clock is not None:
            at = int(clock[1]) * 3_600 + int(clock[2]) * 60 + int(clock[3])
        if not self._copies.repeats(found["body"], at):
            return False
        self._repeats += 1
        return True
