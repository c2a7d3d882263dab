"""One line of the amdgpu driver: which device, which RAS event, and the message itself.

Forms, old and new: ``amdgpu 0000:c1:00.0: amdgpu: …``, without the second name (Linux 6.17 on),
``[drm:amdgpu_job_timedout [amdgpu]] *ERROR* …``, ``[drm] …``, ``kfd kfd: amdgpu: …``,
``amdgpu: …``, each behind any log prefix; RAS messages carry an event number in braces. Source:
Linux drivers/gpu/drm/amd (6.1 to 7.1) and logs in public issue threads.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from engine.readers.logline import LogLine

PCI = r"[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]"
_DEVICE = re.compile(rf"\bamdgpu ({PCI}): ?")
# Without a device: the driver's name, or that of a function of it in a drm line.
_DRIVER = re.compile(
    r"(?:^|[\s\]])(?:(?:kfd kfd: )?(?:amdgpu|amdkfd): "
    r"|\[drm:[\w.]{1,80} \[amdgpu\]\] ?|\[drm\] ?)"
)
_TAG = re.compile(
    r"(?:amdgpu:|\[drm(?::[\w.]{1,80}(?: \[amdgpu\])?)?\]|\*ERROR\*|\[[Hh]ardware [Ee]rror\]:?"
    r"|\{(?P<event>\d{1,18})\})[ \t]{0,8}"
)
_TAGS = 6
# Messages that only this driver has: old kernels print some without a name, and people cut or
# quote them.
_BARE = re.compile(
    r"qcm fence wait loop timeout|The cp might be in an unrecoverable state"
    r"|GPU reset begin!|GPU reset ?(?:\(\d{1,9}\) ?)?(?:succeeded|failed)"
    r"|(?:MODE[0-3]|BACO) reset|VRAM is lost due to GPU reset"
    r"|ring [\w.:-]{1,40} timeout, (?:signaled|but soft)"
    r"|MES (?:failed to respon|might be in unrecoverable)|Failed to evict process queues"
    r"|Runlist is getting oversubscribed|No more SDMA queue|psp gfx command "
    r"|SMU: (?:I'm not done with|No response)|[Uu]ncorrectable hardware error ?\(ERREVENT"
    r"|\d{1,9} (?:new )?(?:un)?correctable hardware errors? detected in"
    r"|[Pp]oison is consumed by client|Saved bad pages \d"
    r"|Process (?:information: process )?\S{1,60} pid \d{1,10} thread \S{1,60} pid \d"
    r"|\[(?:gfx|mm)hub\d?\] (?:(?:no-)?retry )?page fault \(src_id|WARN: GPU is throttled"
)
_QUOTES = " \t\"'`,;:)]"
# Such a line tells what to look for, and not what was found.
_ADVICE = re.compile(r"\b(?:if|when|whenever|grep|like|such as)\b")
_MESSAGE = 1_024


@dataclass(frozen=True, slots=True)
class Message:
    """What one line says.

    Attributes:
        number: line, from 1.
        host: machine named by the log's prefix.
        pci: address of the GPU with its function, lower case; None for lines about no one GPU.
        event: number of the RAS event in braces.
        text: the message without names, tags and leading blanks.
    """

    number: int
    host: str | None
    pci: str | None
    event: int | None
    text: str


def message_of(record: LogLine) -> Message | None:
    """Return the message of a driver line, None if the line is of something else."""
    text = record.text
    device = _DEVICE.search(text)
    if device is not None:
        at, pci = device.end(), device[1].lower()
    else:
        pci = None
        driver = _DRIVER.search(text)
        if driver is None:
            return None
        at = driver.end()
    rest, event = _untagged(text[at : at + _MESSAGE])
    return Message(record.number, record.host, pci, event, rest)


def bare_messages(record: LogLine) -> Iterator[Message]:
    """Yield the driver's messages in a line without its name: cut out, or quoted in a sentence."""
    text = record.text[:_MESSAGE]
    starts = [found.start() for found in _BARE.finditer(text)]
    if not starts or _ADVICE.search(text[: starts[0]]):
        return
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        yield Message(record.number, record.host, None, None, text[start:end].rstrip(_QUOTES))


def _untagged(text: str) -> tuple[str, int | None]:
    event: int | None = None
    text = text.lstrip()
    for _ in range(_TAGS):
        tag = _TAG.match(text)
        if tag is None:
            break
        if tag["event"] is not None and event is None:
            event = int(tag["event"])
        text = text[tag.end() :].lstrip()
    return text.rstrip(), event
