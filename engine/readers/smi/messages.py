"""Reader of what ``nvidia-smi``, NVML and CUDA say when they cannot work, and of the words around.

One situation is often told in several lines: ``nvidia-smi`` cannot get a handle, ``lspci`` shows
``rev ff``, processes hang in state D. They are put together by the PCI address.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from engine.readers.base import Context, Result
from engine.readers.listing import Kept, Listing

_ADDRESS: Final = r"(?:[0-9A-Fa-f]{3,8}:)?[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]"
_HANDLE: Final = re.compile(
    rf"Unable to determine the device handle for gpu ?([0-9]{{1,3}}(?![0-9A-Fa-f:]))?:? ?"
    rf"({_ADDRESS})?:? ?(.{{0,60}})",
    re.IGNORECASE,
)
# Not as a value of a listing (`` : GPU is lost``) or of CSV: that is those readers' to say.
_LOST: Final = re.compile(rf"(?<!\s: )(?<!\[)(?:({_ADDRESS}): )?GPU is lost\b", re.IGNORECASE)
_REV_FF: Final = re.compile(
    rf"\b({_ADDRESS}) (?:3D controller|VGA compatible controller|Display controller"
    rf"|Processing accelerators)\b.{{0,120}}\(rev ff\)"
)
_PLACE: Final = re.compile(_ADDRESS)
_INDEX: Final = re.compile(r"\bGPU ?#?([0-9]{1,2})\b(?![:.])", re.IGNORECASE)
# Told in prose: a GPU that lspci shows with rev ff, a fabric that waits.
_SPOKEN: Final = re.compile(r"\b(?:GPUs?|nvidia|lspci)\b", re.IGNORECASE)
_FABRIC: Final = re.compile(r"\bfabric.?state\W{1,4}(not started|in progress)\b", re.IGNORECASE)
_NVML: Final = re.compile(r"Failed to initialize NVML: ([A-Za-z][\w /-]{2,60})")
_INFOROM: Final = re.compile(rf"infoROM is corrupted at gpu ({_ADDRESS})", re.IGNORECASE)
_STUCK: Final = re.compile(
    r"\bprocess(?:es)?\b.{0,40}\b(?:state D|D state|in D)\b|\bstate D\b.{0,40}\bprocess"
    r"|uninterruptible sleep",
    re.IGNORECASE,
)
_COUNT_WORD: Final = (
    r"([0-9]{1,3}|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|sixteen)"
)
_TOTAL: Final = re.compile(rf"\b{_COUNT_WORD} GPUs?\b", re.IGNORECASE)
_RESET: Final = re.compile(
    r"(?<!\s: GPU )(?<!, \[GPU )\brequires? (?:a )?(?:GPU )?reset\b", re.IGNORECASE
)
_COUNTED: Final = re.compile(
    rf"\b{_COUNT_WORD}\b (?:of (?:them|the|those|{_COUNT_WORD})\b|GPUs?\b(?!,))", re.IGNORECASE
)
_VISIBLE: Final = re.compile(
    rf"cudaGetDeviceCount\(?\)?[^.;]{{0,24}}?(?:returns?|=|:|gives|is)\s?{_COUNT_WORD}\b"
    rf"|torch\.cuda\.device_count\(\)[^.;]{{0,24}}?(?:returns?|=|:|gives|is)\s?{_COUNT_WORD}\b",
    re.IGNORECASE,
)
_WAIVED: Final = re.compile(
    r"multicast.{0,60}?\bwaived\b|\bwaived\b.{0,60}?multicast"
    r"|nvbandwidth.{0,120}?multicast.{0,40}?(?:not supported|unavailable|failed|skipped)",
    re.IGNORECASE,
)
_BUSY: Final = re.compile(
    rf"({_ADDRESS})?:? ?(?:(?:is )?in use by another client"
    r"|is currently in use by one or more other processes)|being used by some other process",
    re.IGNORECASE,
)
_NUMBERS: Final = {
    word: i
    for i, word in enumerate(
        ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
         "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen")
    )
}  # fmt: skip
# A message that needs no more than to be there: what marks it, and its entry in `troubles`.
_PLAIN: Final = (
    ("No devices were found", "no_devices"),
    ("couldn't communicate with the NVIDIA driver", "no_driver"),
    ("couldn't find libnvidia-ml.so", "no_library"),
    ("nvidia-smi: command not found", "no_tool"),
    ("nvidia-smi: not found", "no_tool"),
    ("invalid device ordinal", "ordinal"),
)
# Noted for what they mean beside others; what they mean alone, the reader of CUDA errors says.
_LEFT: Final = ("ordinal", "visible")
# A message is short; what stands behind it in a longer line is not looked at.
_LONGEST: Final = 4_096
MAX_MESSAGES: Final = 1_024


@dataclass(slots=True)
class Message:
    """One message: what it is, where it stands, and what it names.

    ``detail`` is the reason given; ``count``, ``total`` and ``visible`` are GPUs told in prose.
    """

    id: str
    line: int
    host: str | None = None
    pci: str | None = None
    index: int | None = None
    detail: str = ""
    count: int | None = None
    total: int | None = None
    visible: int | None = None


class SmiMessageReader(Listing[Message]):
    """Collects messages; what they mean together is said at the end."""

    triggers: ClassVar[tuple[bytes, ...]] = (
        b"Unable to determine the device handle",
        b"GPU is lost",
        b"No devices were found",
        b"Failed to initialize NVML",
        b"communicate with the NVIDIA driver",
        b"requires reset",
        b"cudaGetDeviceCount",
        b"invalid device ordinal",
        b"(rev ff)",
        b"state D",
        b"D state",
        b"uninterruptible sleep",
        b"infoROM is corrupted",
        b"NVML library version",
        b"aived",
        b"WAIVED",
        b"n use by another client",
        b"in use by one or more other processes",
        b"used by some other process",
        b"find libnvidia-ml.so",
        b"abric State",
        b"abric state",
        b"nvidia-smi: command not found",
        b"nvidia-smi: not found",
    )

    def __init__(
        self, context: Context, host: str | None = None, kept: Kept[Message] | None = None
    ) -> None:
        super().__init__(context, host, Kept(MAX_MESSAGES) if kept is None else kept)

    def take(self, number: int, text: str) -> bool:
        """Take a line that holds a message."""
        text = text[:_LONGEST]
        if text.lstrip().startswith("|"):
            return False  # a row of the table
        found = [*self._devices(number, text), *self._words(number, text)]
        for message in found:
            message.host = self.host
            self.kept.add(message)
        return any(message.id not in _LEFT for message in found)

    def judge(self, records: Sequence[Message]) -> Result:
        """Say what the messages mean together."""
        from engine.readers.smi.troubles import trouble_result  # noqa: PLC0415 - only if needed

        return trouble_result(records)

    def _devices(self, number: int, text: str) -> list[Message]:
        found: list[Message] = []
        handle = _HANDLE.search(text)
        if handle:
            index = int(handle[1]) if handle[1] else None
            pci = handle[2].lower() if handle[2] else None
            found.append(Message("handle", number, pci=pci, index=index, detail=handle[3].strip()))
        elif _LOST.search(text):
            place, named = _PLACE.search(text), _INDEX.search(text)
            lost = Message("lost", number, pci=place[0].lower() if place else None)
            lost.index = int(named[1]) if named else None
            found.append(lost)
        if (off := _REV_FF.search(text)) is not None:
            found.append(Message("rev_ff", number, pci=off[1].lower()))
        elif "(rev ff)" in text and _SPOKEN.search(text):
            found.append(Message("rev_ff", number))
        if (fabric := _FABRIC.search(text)) is not None:
            found.append(Message("fabric_waiting", number, detail=fabric[1]))
        if (rom := _INFOROM.search(text)) is not None:
            found.append(Message("inforom", number, pci=rom[1].lower()))
        if (busy := _BUSY.search(text)) is not None:
            found.append(Message("in_use", number, pci=busy[1].lower() if busy[1] else None))
        return found

    def _words(self, number: int, text: str) -> list[Message]:
        found: list[Message] = []
        if (nvml := _NVML.search(text)) is not None:
            found.append(Message("nvml", number, detail=nvml[1].strip()))
        elif "NVML library version" in text:
            found.append(Message("nvml_version", number))
        found += [Message(id_, number) for mark, id_ in _PLAIN if mark in text]
        if (reset := _RESET.search(text)) is not None:
            total = _TOTAL.search(text)
            seen = _VISIBLE.search(text)
            counts = list(_COUNTED.finditer(text[max(reset.start() - 80, 0) : reset.start()]))
            one = Message("reset", number, count=_number(counts[-1][1]) if counts else None)
            one.total = _number(total[1]) if total else None
            one.visible = _number(seen[1] or seen[2]) if seen else None
            found.append(one)
        elif (seen := _VISIBLE.search(text)) is not None:
            found.append(Message("visible", number, visible=_number(seen[1] or seen[2])))
        if _STUCK.search(text):
            found.append(Message("stuck", number))
        if _WAIVED.search(text):
            found.append(Message("multicast", number))
        return found


def _number(word: str | None) -> int | None:
    if word is None:
        return None
    low = word.lower()
    return int(low) if low.isascii() and low.isdigit() else _NUMBERS.get(low)
