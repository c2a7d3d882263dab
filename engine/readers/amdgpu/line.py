"""One line of the amdgpu driver: which device, which RAS event, and the message itself.

Forms, old and new: ``amdgpu 0000:c1:00.0: amdgpu: …``, without the second name (Linux 6.17 on),
``[drm:amdgpu_job_timedout [amdgpu]] *ERROR* …``, ``[drm] …``, ``kfd kfd: amdgpu: …``,
``amdgpu: …``, each behind any log prefix; RAS messages carry an event number in braces. Source:
Linux drivers/gpu/drm/amd (6.1 to 7.1) and logs in public issue threads.
"""

from __future__ import annotations

import re
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
# Messages that old kernels print without any name before them.
_BARE = ("qcm fence wait loop timeout", "The cp might be in an unrecoverable state")
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
        if driver is not None:
            at = driver.end()
        else:
            at = min((i for bare in _BARE if (i := text.find(bare)) >= 0), default=-1)
            if at < 0:
                return None
    rest, event = _untagged(text[at : at + _MESSAGE])
    return Message(record.number, record.host, pci, event, rest)


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
