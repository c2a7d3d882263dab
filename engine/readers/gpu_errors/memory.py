"""Messages "out of memory" of frameworks: their numbers, and what they say about the reason.

Formats: pytorch/pytorch c10/cuda/CUDACachingAllocator.cpp, 1.5 to 2.9, CUDA and HIP, which tells
most; openxla/xla (JAX, TensorFlow), CuPy and llama.cpp, which tell the size asked for.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

_SIZE = r"(\d{1,9}(?:\.\d{1,4})?) (bytes|[KMGT]iB)"
_GIB = {"bytes": 2.0**-30, "KiB": 2.0**-20, "MiB": 2.0**-10, "GiB": 1.0, "TiB": 1024.0}
_START = re.compile(
    r"(CUDA|HIP|XPU|NPU) out of memory|Out of memory (?:while trying to allocate|allocating) \d"
    r"|OOM when allocating tensor|allocating \S{1,16} MiB on device \d{1,3}: (?:cuda|hip)Malloc"
)
# Words that make a message of one that did not happen; with a size it always did.
_NOT_BEFORE = re.compile(
    r"\b(?:no|avoid(?:s|ed|ing)?|prevent(?:s|ed|ing)?|without|never|fix(?:es|ed)?|in case of|if|not"
    r"|against|risk of)(?: (?:any|an?|the|more|further|future|got|saw|hit)){0,2} [\"'`]?$",
    re.IGNORECASE,
)
_NOT_AFTER = re.compile(
    r"[\"'`]?(?: errors?)?(?: (?:was|were|is|are|has been|have been|can be))?"
    r" (?:avoided|prevented|averted|fixed|resolved|handled|mitigated|no longer|never"
    r"|not (?:seen|hit)|did not|didn't)\b",
    re.IGNORECASE,
)
_TRIED = re.compile(rf"[Tt]ried to allocate {_SIZE}")
_ASKED = re.compile(r"(?:to allocate|allocating) ([\d,]{1,20}(?:\.\d{1,4})?) ?(bytes|[KMGT]iB)")
_DEVICE = re.compile(r"on device (\d{1,3}):|device:GPU:(\d{1,3})\b")
# Since 2.1 (with the misspelt "capacty" until 2.2).
_GPU = re.compile(r"GPU (\d{1,3}) has a total capac[i]?ty of ")
_TOTAL = re.compile(rf"total capac[i]?ty of {_SIZE} of which {_SIZE} is free")
_OWN = re.compile(rf"this process has {_SIZE} memory in use")
_PROCESS = re.compile(rf"Process (\d{{1,10}}) has {_SIZE} memory in use")
_ALLOWED = re.compile(rf"(?<!\d){_SIZE} allowed")
_ALLOCATED = re.compile(rf"{_SIZE} is allocated by PyTorch")
_POOLS = re.compile(rf"with {_SIZE} allocated in private pools")
_RESERVED = re.compile(rf"{_SIZE} is reserved by PyTorch but unallocated")
# Until 2.0.
_OLD = re.compile(
    rf"\(GPU (\d{{1,3}}); {_SIZE} total capacity; {_SIZE} already allocated; {_SIZE} free; "
    rf"(?:{_SIZE} (?:reserved in total by PyTorch|cached))?"
)
# Reserved but unallocated memory counts as fragmentation from this share of the total, if it is
# as large as what was asked for.
_FRAGMENT_SHARE = 0.05
# What others hold counts from this share: contexts and displays take less.
_OTHERS_SHARE = 0.05
_OTHERS_GIB = 1.0
# A process's CUDA context and libraries, which messages until 2.0 leave out of its memory.
_CONTEXT_GIB = 1.5
# What a process holds over PyTorch's memory: context, libraries, NCCL's buffers, graphs.
_BESIDES_GIB = 4.0
# Figures are rounded to hundredths.
_ROUNDED_GIB = 0.02
# Processes closer than this to each other in memory cannot be told apart by it.
_ALIKE_GIB = 0.25


@dataclass(slots=True)
class OutOfMemory:
    """The numbers of one message, in GiB; None where it does not say."""

    device: str = "CUDA"
    gpu: int | None = None
    tried: float | None = None
    total: float | None = None
    free: float | None = None
    own: float | None = None
    pid: int | None = None
    others: dict[int, float] = field(default_factory=dict)
    allocated: float | None = None
    reserved: float | None = None
    allowed: float | None = None
    pools: float | None = None

    @property
    def key(self) -> tuple[int | None, float | None]:
        """What makes messages the same in kind: GPU and size."""
        return (self.gpu, self.tried)

    @property
    def elsewhere(self) -> float | None:
        """Memory that is neither free nor this process's: other processes, or not visible ones."""
        used = self.own
        if used is None and self.allocated is not None:
            used = self.allocated + (self.reserved or 0.0)
        if self.total is None or self.free is None or used is None:
            return None
        return max(self.total - self.free - used, 0.0)

    @property
    def fragmented(self) -> bool:
        """Whether PyTorch holds enough unused memory for the request, in pieces."""
        if self.reserved is None or self.total is None:
            return False
        return self.reserved >= _FRAGMENT_SHARE * self.total and (
            self.tried is None or self.reserved >= self.tried
        )

    @property
    def crowded(self) -> bool:
        """Whether others hold memory that would have been enough."""
        gone = self.elsewhere
        context = _CONTEXT_GIB if self.own is None else 0.0
        return (
            gone is not None
            and self.total is not None
            and gone >= max(_OTHERS_SHARE * self.total, _OTHERS_GIB + context)
            and (self.tried is None or gone + (self.free or 0.0) >= self.tried)
        )

    @property
    def too_large(self) -> bool:
        """Whether the GPU is too small for this request even if it were empty."""
        return self.tried is not None and self.total is not None and self.tried >= self.total

    def data(self) -> dict[str, Any]:
        """Return the numbers as finding data."""
        named = {
            "gpu": self.gpu,
            "tried_gib": self.tried,
            "total_gib": self.total,
            "free_gib": self.free,
            "process_gib": self.own,
            "process": self.pid,
            "allocated_gib": self.allocated,
            "reserved_unallocated_gib": self.reserved,
            "allowed_gib": self.allowed,
            "elsewhere_gib": self.elsewhere,
        }
        return {
            name: round(value, 4) if isinstance(value, float) else value
            for name, value in named.items()
            if value is not None
        }


def out_of_memory(text: str) -> OutOfMemory | None:
    """Read the message, None if a line has none."""
    start = _START.search(text)
    if start is None:
        return None
    if start[1] is not None and _denied(text, start):
        return None
    text = text[start.start() :]
    if start[1] is None:
        return _of_others(text)
    found = OutOfMemory(start[1], tried=_size(_TRIED, text))
    old = _OLD.search(text)
    if old:
        sizes = [_gib(old[i], old[i + 1]) for i in (2, 4, 6, 8) if old[i]]
        found.gpu, found.total, found.allocated, found.free = int(old[1]), *sizes[:3]
        if len(sizes) > 3:
            found.reserved = max(sizes[3] - sizes[1], 0.0)
        return found
    gpu, total = _GPU.search(text), _TOTAL.search(text)
    found.gpu = int(gpu[1]) if gpu else None
    if total:
        found.total, found.free = _gib(total[1], total[2]), _gib(total[3], total[4])
    found.own = _size(_OWN, text)
    found.others = {int(pid): _gib(value, unit) for pid, value, unit in _PROCESS.findall(text)[:64]}
    found.allocated, found.pools = _size(_ALLOCATED, text), _size(_POOLS, text)
    found.reserved, found.allowed = _size(_RESERVED, text), _size(_ALLOWED, text)
    if found.own is None and len(found.others) == 1:
        # In a container NVML shows the process under the host's number: it is this one.
        used = next(iter(found.others.values()))
        if found.allocated is None or used >= found.allocated:
            found.own, found.others = used, {}
    elif found.own is None:
        _tell_own(found)
    return found


def _denied(text: str, start: re.Match[str]) -> bool:
    """Return whether a sentence says that memory did not run out, or what to do if it does."""
    if _TRIED.search(text, start.end()):
        return False
    before = text[max(0, start.start() - 80) : start.start()]
    return bool(_NOT_BEFORE.search(before) or _NOT_AFTER.match(text, start.end()))


def _tell_own(found: OutOfMemory) -> None:
    """Find the process itself among several: the one that fits what PyTorch holds and a context."""
    if found.allocated is None:
        return
    held = found.allocated + (found.reserved or 0.0)
    fits = sorted(
        (used - held, pid)
        for pid, used in found.others.items()
        if -_ROUNDED_GIB <= used - held <= _BESIDES_GIB
    )
    if not fits or (len(fits) > 1 and fits[1][0] - fits[0][0] < _ALIKE_GIB):
        return
    found.pid = fits[0][1]
    found.own = found.others.pop(found.pid)


def _of_others(text: str) -> OutOfMemory:
    """Read a message of JAX, TensorFlow, CuPy or llama.cpp: the size, and perhaps the GPU."""
    asked, device = _ASKED.search(text), _DEVICE.search(text)
    tried = asked[1].replace(",", "") if asked else ""
    return OutOfMemory(
        gpu=int(device[1] or device[2]) if device else None,
        tried=_gib(tried, asked[2]) if asked and tried else None,
    )


def _size(pattern: re.Pattern[str], text: str) -> float | None:
    found = pattern.search(text)
    return _gib(found[1], found[2]) if found else None


def _gib(value: str, unit: str) -> float:
    return float(value) * _GIB[unit]
