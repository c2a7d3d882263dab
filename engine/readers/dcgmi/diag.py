"""Reader of the table that ``dcgmi diag`` prints.

Layouts: DCGM 2 and 3 (``| PCIe | Fail - GPU: 0 |``, messages as ``Warning`` and ``Info`` rows) and
DCGM 4 (``| pcie | Fail |`` with a row for each GPU, ``| | GPU0: Fail |``, messages as rows
``Warning: GPU0``). Messages are wrapped at 45 columns. Source: NVIDIA/DCGM dcgmi/Diag.cpp, 2.1
to 4.6.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar, Final

from engine.readers.base import Context, Result
from engine.readers.dcgmi.diag_result import (
    MAX_MESSAGES,
    MAX_TESTS,
    STATUSES,
    Message,
    Run,
    Test,
    gpus_in,
    report,
)
from engine.readers.listing import Kept, Listing

_CELLS: Final = re.compile(r"^\s{0,8}\|(?P<left>[^|]{1,64})\|(?P<right>.{1,512}?)\|?\s*$")
_RULE: Final = re.compile(r"^\s{0,8}[+|][-=+]{3,}")
_CATEGORY: Final = re.compile(
    r"^\s{0,8}[+|]-{2,8}\s{1,4}(?P<name>[A-Z][A-Za-z ]{2,30}?)\s{1,4}-{2,}"
)
_TITLE: Final = re.compile(r"^\s{0,8}\|\s?Diagnostic\s{1,60}\|\s?Result\b")
# Pass - All, Fail - GPU: 0, Skip - GPUs: 0, 1, Pass
_STATUS: Final = re.compile(
    r"^(?P<status>Pass|Fail|Skip|Warn|Not Run|Error)\b(?: - (?P<who>All|GPUs?:? ?[\d, ]{1,400}))?",
    re.IGNORECASE,
)
_ENTITY: Final = re.compile(
    r"^(?P<kind>[A-Za-z_-]{2,12}?) ?(?P<id>\d{1,5}): (?P<status>Pass|Fail|Skip|Warn|Not Run)\b"
)
_MESSAGE: Final = re.compile(
    r"^(?P<what>Warning|Error|Info)(?:: (?P<kind>[A-Za-z_-]{2,12}?) ?(?P<id>\d{1,5}))?$"
)
_ERROR: Final = re.compile(
    r"^Error: (?P<text>Unable to complete diagnostic.{0,300}|Diagnostic could not be run.{0,300}"
    r"|Diagnostic can only be performed.{0,200})"
)
# PCI device ids, one a GPU, in hexadecimal.
_IDS: Final = re.compile(r"[0-9A-Fa-f]{4}")
_LONG_IDS: Final = 1_024
_META: Final = {"dcgm version": "dcgm", "driver version detected": "driver"}


class DiagReader(Listing[Run]):
    """Reads the result table."""

    triggers: ClassVar[tuple[bytes, ...]] = (
        b"| Diagnostic ",
        b"ran diagnostic for group",
        b"Error: Unable to complete diagnostic",
        b"Error: Diagnostic ",
    )
    PATIENCE: ClassVar[int] = 3

    def __init__(
        self, context: Context, host: str | None = None, kept: Kept[Run] | None = None
    ) -> None:
        super().__init__(context, host, Kept(256) if kept is None else kept)
        self._run: Run | None = None
        self._category: str | None = None
        self._test: Test | None = None
        self._message: Message | None = None
        self._full = False

    def take(self, number: int, text: str) -> bool:
        """Take a line of the table, or the sentence that says why there is none."""
        failed = _ERROR.match(text.strip())
        if failed is not None:
            self.kept.add(Run(number, self.host, error=failed["text"]))
            return True
        if _TITLE.match(text):
            self._start(number)
            return True
        if not self.inside:
            return "ran diagnostic for group" in text
        category = _CATEGORY.match(text)
        if category is not None:
            self._category, self._test, self._message = category["name"], None, None
            return True
        if _RULE.match(text):
            return True
        cells = _CELLS.match(text)
        if cells is None:
            return False
        raw = cells["right"]
        self._cells(number, cells["left"].strip(), raw.strip())
        # A row filled to its end was cut there, also within a word.
        self._full = len(raw.strip()) >= len(raw.rstrip("|")) - 2
        return True

    def end(self) -> None:
        """Forget the run: what follows is another."""
        self._run = self._test = self._message = None

    def judge(self, records: Sequence[Run]) -> Result:
        """Say what the runs show."""
        return report(records, self.context)

    def _start(self, number: int) -> None:
        self._run = Run(number, self.host)
        if not self.kept.add(self._run):
            self._run = None
        self._category = self._test = self._message = None
        self.inside = True

    def _cells(self, number: int, left: str, right: str) -> None:
        run = self._run
        if run is None:
            return
        message = _MESSAGE.match(left)
        if message is not None:
            self._start_message(number, message, right)
            return
        if not left:
            self._continued(number, right)
            return
        name = left.lower()
        if name == "gpu device ids detected":
            run.devices = max(run.devices, len(_IDS.findall(right[:_LONG_IDS])))
            return
        if name in _META or name.endswith(("detected", "version")):
            if name in _META and getattr(run, _META[name]) is None:
                setattr(run, _META[name], right[:40])
            return
        status = _STATUS.match(right)
        if status is not None and len(run.tests) < MAX_TESTS:
            self._message = None
            self._test = Test(left, number, category=self._category)
            run.tests.append(self._test)
            self._set_status(status["status"], status["who"])

    def _set_status(self, status: str, who: str | None) -> None:
        test = self._test
        assert test is not None
        found = STATUSES[status.lower()]
        if who is None or who.lower() == "all":
            test.status = found
            return
        for gpu in re.findall(r"\d{1,4}", who)[:1_024]:
            test.of_gpu(int(gpu), found)

    def _start_message(self, number: int, found: re.Match[str], text: str) -> None:
        self._message = None
        test = self._test
        if test is None or found["what"] == "Info" or len(test.messages) >= MAX_MESSAGES:
            return
        gpu = int(found["id"]) if found["id"] and found["kind"].upper() == "GPU" else None
        self._message = Message(text, number, gpu)
        test.messages.append(self._message)
        self._place()

    def _continued(self, number: int, text: str) -> None:
        """A row without a name: a GPU's status, or more of a message or of a list of GPUs."""
        del number
        test = self._test
        if test is None:
            return
        entity = _ENTITY.match(text)
        if entity is not None:
            self._message = None
            if entity["kind"].upper() == "GPU":
                test.of_gpu(int(entity["id"]), STATUSES[entity["status"].lower()])
            return
        status = _STATUS.match(text)
        if status is not None and status["who"] and self._message is None:
            self._set_status(status["status"], status["who"])
            return
        message = self._message
        if message is not None and len(message.text) < 1_024:
            message.text += ("" if self._full else " ") + text
            self._place()

    def _place(self) -> None:
        message = self._message
        if message is not None and message.gpu is None:
            named = gpus_in(message.text)
            message.gpu = named[0] if named else None
