"""Reader of what ``nvidia-smi``, NVML and CUDA say when they cannot work, and of the words around.

One situation is often told in several lines: ``nvidia-smi`` cannot get a handle, ``lspci`` shows
``rev ff``, processes hang in state D. They are put together by the PCI address.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final

from engine.readers.base import Context, Result
from engine.readers.listing import Kept, Listing
from engine.readers.smi.prose import (
    WORDS,
    named_gpus,
    told_hung,
    told_loads,
    told_missing,
    told_total,
    told_unreadable,
    word_number,
)

_ADDRESS: Final = r"(?:[0-9A-Fa-f]{3,8}:)?[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]"
_HANDLE: Final = re.compile(
    rf"Unable to determine the device handle for gpu ?([0-9]{{1,3}}(?![0-9A-Fa-f:]))?:? ?"
    rf"({_ADDRESS})?:? ?(.{{0,60}})",
    re.IGNORECASE,
)
# Not as a value of a listing (`` : GPU is lost``) or of CSV: that is those readers' to say.
_LOST: Final = re.compile(
    rf"(?<!\s: )(?<!\[)(?<!\ba )(?<!\bthis )(?:({_ADDRESS}): )?GPU is lost\b", re.IGNORECASE
)
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
_VERSION: Final = re.compile(r"NVML library version(?:: ([0-9][0-9.]{0,19}))?")
_INFOROM: Final = re.compile(rf"infoROM is corrupted at gpu ({_ADDRESS})", re.IGNORECASE)
_STUCK: Final = re.compile(
    r"\bprocess(?:es)?\b.{0,40}\b(?:state D|D state|in D)\b|\bstate D\b.{0,40}\bprocess"
    r"|uninterruptible sleep",
    re.IGNORECASE,
)
_COUNT_WORD: Final = rf"({WORDS})"
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
# How far before a message the GPUs may be named that it is about (characters).
_NEAR: Final = 160
MAX_MESSAGES: Final = 1_024


@dataclass(slots=True)
class Message:
    """One message: what it is, where it stands, and what it names.

    ``detail`` is the reason given; ``count``, ``total`` and ``visible`` are GPUs told in prose,
    ``gpus`` their indices.
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
    gpus: list[int] = field(default_factory=list)


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
        b"nvidia-smi",
        b"GPUs visible",
        b"GPUs are visible",
        b"GPUs instead of",
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
        elif (version := _VERSION.search(text)) is not None:
            found.append(Message("nvml_version", number, detail=version[1] or ""))
        found += [Message(id_, number) for mark, id_ in _PLAIN if mark in text]
        if (reset := _RESET.search(text)) is not None:
            total = _TOTAL.search(text)
            seen = _VISIBLE.search(text)
            counts = list(_COUNTED.finditer(text[max(reset.start() - 80, 0) : reset.start()]))
            one = Message("reset", number, count=word_number(counts[-1][1]) if counts else None)
            one.total = word_number(total[1]) if total else told_total(text)
            one.gpus = named_gpus(re.split(r"[.;]", text[: reset.start()][-_NEAR:])[-1])
            if one.count is None and one.gpus:
                one.count = len(one.gpus)
            one.visible = word_number(seen[1] or seen[2]) if seen else None
            found.append(one)
        elif (seen := _VISIBLE.search(text)) is not None:
            found.append(Message("visible", number, visible=word_number(seen[1] or seen[2])))
        stuck = _STUCK.search(text) is not None
        if stuck:
            found.append(Message("stuck", number))
        if told_hung(text) or (stuck and _SPOKEN.search(text)):
            found.append(Message("hung", number))
        if (missing := told_missing(text)) is not None:
            found.append(Message("missing", number, visible=missing[0], total=missing[1]))
        if "nvidia-smi" in text:
            found += self._told(number, text)
        if _WAIVED.search(text):
            found.append(Message("multicast", number))
        return found

    def _told(self, number: int, text: str) -> list[Message]:
        """Readings that a sentence tells of GPUs by number."""
        found: list[Message] = []
        loads = told_loads(text)
        if len(loads) > 1:
            found += [Message("load", number, gpus=gpus, count=load) for gpus, load in loads]
        if "ERR!" in text:
            gpus, readings = told_unreadable(text)
            if gpus:
                found.append(Message("unreadable", number, gpus=gpus, detail=", ".join(readings)))
        return found
