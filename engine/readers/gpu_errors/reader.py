"""Reader of GPU errors in the output of any program: out of memory, CUDA and HIP errors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar

from engine.model import Finding, Severity
from engine.readers.base import Context, Result
from engine.readers.gpu_errors.memory import OutOfMemory, out_of_memory
from engine.readers.gpu_errors.seen import Seen
from engine.readers.gpu_errors.shortage import memory_finding

_MAX_KINDS = 256
_MAX_WORDS = 80
_HARDWARE = (Severity.CRITICAL, Severity.HIGH)
# Where a program says that a call failed; the words around it are one of the known messages.
_FAILED = re.compile(
    r"(?:CUDA|HIP|[Cc]uda|hip)(?: runtime| driver)?(?: API)? ?(?:[Ee]rror|[Ff]ailure|failed)"
    r"|(?:CUDA|HIP|CUBLAS|HIPBLAS|CUDNN)_(?:ERROR|STATUS)_|(?:cuda|hip)Error|GPUassert: "
    r"|(?:cuda|hip|cu)[A-Z]\w{2,40}(?:\(\))? failed|RuntimeError: (?:No (?:CUDA|HIP) GPUs|CUDA)"
    r"|Memory access fault by GPU|(?:cuda|hip)GetDeviceCount\(\)|Cannot re-initialize CUDA"
    r"|CUDA (?:unknown error|initialization: )|Torch not compiled with CUDA|OutOfResources: "
    r"|DefaultCPUAllocator: |DataLoader worker \(|insufficient shared memory \(shm\)"
)
# An error that the knowledge does not hold: its words, after the colon.
_OTHER = re.compile(
    r"(?:CUDA|HIP)(?: runtime| driver)? [Ee]rror(?: \(?[^():]{1,120}\)?| in [^:]{1,200})?: "
    r"(?!(?:no error|success|0)\b)([A-Za-z][^\n]{3,200})"
)
# Where AMD's runtime speaks.
_HIP = re.compile(r"\bHIP\b|\bhip(?=[A-Z])|HIPBLAS_|ROCm-capable|AMD_SERIALIZE")
# PyTorch's hint behind an error that the line before has told.
_HINT = re.compile(r"Search for `(?:cuda|hip)Error|Compile with `TORCH_USE_(?:CUDA|HIP)_DSA`")
# What NCCL and its watchdog print is for their reader, with what they were doing.
_NCCL = re.compile(
    r"CCL (?:WARN|INFO|ERROR|ABORT)|ProcessGroup|watchdog|unhandled ?cuda ?error", re.IGNORECASE
)


class GpuErrorReader:
    """Counts errors by kind; one finding a kind."""

    triggers: ClassVar[tuple[bytes, ...]] = (
        b"out of memory. Tried",
        b"CUDA out of memory",
        b"HIP out of memory",
        b"Out of memory while trying to allocate",
        b"Out of memory allocating",
        b"OOM when allocating tensor",
        b"CUDA error",
        b"HIP error",
        b"CUDA driver error",
        b"CUDA runtime error",
        b"HIP runtime error",
        b"CUDA Error",
        b"Cuda error",
        b"CUDA failure",
        b"CUDA unknown error",
        b"CUDA initialization: ",
        b"Cannot re-initialize CUDA",
        b"GPUassert: ",
        b"CUDA_ERROR_",
        b"cudaError",
        b"cudaMalloc",
        b"hipError",
        b"hipMalloc",
        b"CUBLAS_STATUS_",
        b"HIPBLAS_STATUS_",
        b"CUDNN_STATUS_",
        b"Memory access fault by GPU",
        b"No CUDA GPUs are available",
        b"No HIP GPUs are available",
        b"no CUDA-capable device",
        b"CUDA driver version is insufficient",
        b"device-side assert",
        b"GetDeviceCount()",
        b"not compiled with CUDA enabled",
        b"OutOfResources: out of resource",
        b"DefaultCPUAllocator: ",
        b"is killed by signal: ",
        b"insufficient shared memory (shm)",
    )

    def __init__(self, context: Context) -> None:
        self.open = False
        entries = context.catalogue.entries.get("cuda_errors", {}).values()
        self._by_name = {name: entry for entry in entries for name in entry["names"]}
        self._by_message = {text: entry for entry in entries for text in entry["messages"]}
        self._names = _any_of(self._by_name, edge=r"\b")
        self._messages = _any_of(self._by_message)
        self._memory: dict[tuple[int | None, float | None], tuple[OutOfMemory, Seen]] = {}
        self._errors: dict[str, tuple[Mapping[str, Any], Seen]] = {}
        self._others: dict[str, Seen] = {}
        self._hip: set[str] = set()

    def feed(self, number: int, text: str) -> bool:
        """Take one line."""
        if _NCCL.search(text):
            return False
        if _HINT.search(text):
            return bool(self._errors or self._others)
        memory = out_of_memory(text)
        if memory is not None:
            if memory.key in self._memory or len(self._memory) < _MAX_KINDS:
                _, seen = self._memory.setdefault(memory.key, (memory, Seen(number)))
                seen.note(text)
            return True
        if not _FAILED.search(text):
            return False
        entry = self._entry(text)
        if entry is not None:
            _, seen = self._errors.setdefault(entry["id"], (entry, Seen(number)))
            seen.note(text)
            if seen.count == 1 and _HIP.search(text):
                self._hip.add(entry["id"])
            return True
        other = _OTHER.search(text)
        if other is None:
            return False
        words = "".join(c if c.isprintable() else "?" for c in other[1][:_MAX_WORDS])
        if words in self._others or len(self._others) < _MAX_KINDS:
            self._others.setdefault(words, Seen(number)).note(text)
        return True

    def finish(self) -> Result:
        """Say what failed, the first failure first."""
        found: list[tuple[int, Finding]] = []
        for memory, seen in self._memory.values():
            found.append((seen.line, memory_finding(memory, seen)))
        for entry, seen in self._errors.values():
            found.append((seen.line, _known(entry, seen, hip=entry["id"] in self._hip)))
        for words, seen in self._others.items():
            found.append((seen.line, _other(words, seen)))
        if not found:
            return Result()
        # Hardware before programs; then the first error: once a context is broken, all calls fail.
        found.sort(key=lambda pair: (pair[1].severity not in _HARDWARE, pair[0]))
        findings = [finding for _, finding in found]
        causes = list(dict.fromkeys(f.cause for f in findings if f.cause))
        return Result(["gpu_error"], findings, causes)

    def _entry(self, text: str) -> Mapping[str, Any] | None:
        message = self._messages.search(text.lower())
        if message:
            return self._by_message[message[0]]
        name = self._names.search(text)
        return self._by_name[name[0]] if name else None


def _any_of(words: Mapping[str, object], edge: str = "") -> re.Pattern[str]:
    """Return an expression that finds any of some words, the longest of those at one place."""
    longest_first = sorted(words, key=lambda word: (-len(word), word))
    if not longest_first:
        return re.compile(r"(?!)")
    return re.compile(f"{edge}(?:{'|'.join(map(re.escape, longest_first))}){edge}")


def _known(entry: Mapping[str, Any], seen: Seen, *, hip: bool) -> Finding:
    code = entry.get("number")
    named = f" ({'HIP' if hip else 'CUDA'} error {code})" if code is not None else ""
    name = next((n for n in entry["names"] if n.startswith("hip")), None) if hip else None
    words = _words(entry, hip=hip) if code is not None else entry["names"][0]
    amd = hip and "amd_action" in entry
    meaning, action = (entry[f"amd_{k}" if amd else k] for k in ("meaning", "action"))
    return Finding(
        kind="gpu_error",
        id=entry["id"],
        severity=Severity(entry["severity"]),
        says=f"{seen.who} met {entry['title']}{named}: “{words}”{seen.times}. {meaning}",
        action=action,
        entity=None,
        line=seen.line,
        cause=entry.get("taxonomy"),
        data={"error": name or entry["names"][0]}
        | ({"code": code} if code is not None else {})
        | seen.data,
        sources=tuple(entry["source"]),
    )


def _words(entry: Mapping[str, Any], *, hip: bool) -> str:
    """What the runtime says: of AMD where it speaks, else the first."""
    messages: list[str] = entry["messages"]
    amd = (m for m in messages if "hip" in m or "rocm" in m)
    return next(amd, messages[0]) if hip else messages[0]


def _other(words: str, seen: Seen) -> Finding:
    return Finding(
        kind="gpu_error",
        id="other",
        severity=Severity.MEDIUM,
        says=f"{seen.who} met an error of the GPU's runtime that is not known here: “{words}”"
        f"{seen.times}.",
        action="Look in the kernel log for an Xid (or amdgpu lines) of that time; run again with "
        "CUDA_LAUNCH_BLOCKING=1 (HIP_LAUNCH_BLOCKING=1) to see which call it was.",
        entity=None,
        line=seen.line,
        cause=None,
        data={"error": words} | seen.data,
    )
