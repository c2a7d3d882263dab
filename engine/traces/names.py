"""What names in a trace mean: kernels that communicate, CPU calls that wait, ranges that load data.

Names come from CUPTI, ROCm and the program's own annotations. Every pattern is linear in the name.
"""

from __future__ import annotations

import re
from enum import StrEnum
from hashlib import blake2b

# What a name is cut to; longer ones keep their start and a digest, so that two stay two.
MAX_NAME = 400
_HEAD = 360

# NCCL and RCCL name their kernels ncclKernel_*, ncclDevKernel_* (NVIDIA/nccl src/device); MSCCL's
# start likewise. The custom all-reduce of vLLM and SGLang (csrc/custom_all_reduce.cuh), PyTorch's
# symmetric memory (torch/csrc/distributed/c10d/CUDASymmetricMemoryOps.cu), NVSHMEM and DeepEP
# carry data between GPUs too.
_COMMUNICATION = re.compile(
    r"(?:nccl|rccl|msccl|oneccl)"
    r"|.{0,200}?\b(?:cross_device_reduce_[12]stage|multimem_all_|multimem_one_shot_"
    r"|one_shot_all_reduce|two_shot_all_reduce|nvshmem|deep_ep::)"
)

# CPU calls of the CUDA runtime and driver, and of HIP, without the version that nsys appends
# (cudaLaunchKernel_v7000) and the suffix of per-thread streams (_ptsz).
_SUFFIX = re.compile(r"(?:_v\d{1,7})?(?:_ptsz|_ptds)?$")


class Call(StrEnum):
    """What a CPU call does, as far as it matters here."""

    LAUNCH = "launch"
    GRAPH = "graph"
    SYNC = "sync"
    COPY = "copy"
    ENQUEUE = "enqueue"
    ALLOCATE = "allocate"
    OTHER = "other"


_LAUNCH = re.compile(
    r"(?:cuda|hip)(?:Ext)?(?:Module)?Launch(?:Cooperative)?Kernel\w{0,40}"
    r"|cuLaunch\w{0,40}|hipExtModuleLaunchKernel|hipExtLaunch\w{0,40}"
)
_GRAPH = re.compile(r"(?:cuda|hip|cu)GraphLaunch\w{0,20}")
_SYNC = re.compile(
    r"(?:cuda|hip)(?:Stream|Device|Event|Thread)Synchronize|cu(?:Stream|Ctx|Event)Synchronize"
)
# Copies that return when they are done; the asynchronous ones end in Async.
_COPY = re.compile(
    r"(?:cuda|hip)Memcpy(?:2D|3D|ToSymbol|FromSymbol|ToArray|FromArray|HtoD|DtoH|DtoD|WithStream"
    r"|Peer|Default)?|cuMemcpy(?:HtoD|DtoH|DtoD|2D|3D|Peer)?(?:_v2)?"
)
_ENQUEUE = re.compile(r"(?:cuda|hip|cu)Mem(?:cpy|set|Prefetch)\w{0,40}")
_ALLOCATE = re.compile(
    r"(?:cuda|hip)(?:Malloc|Free)(?:Host|Managed|Pitch|3D|Array)?|(?:cuda|hip)HostAlloc"
    r"|(?:cuda|hip)HostRegister|hipHostMalloc|hipHostFree"
    r"|cuMem(?:Alloc|Free|AllocHost|FreeHost|HostAlloc|AllocManaged)(?:_v2)?"
    r"|cuMem(?:Create|Map|Unmap|Release|SetAccess)"
)


def call_name(name: str) -> str:
    """Return a call without the version that nsys appends to it."""
    return _SUFFIX.sub("", name)


def call_of(name: str) -> Call:
    """Say what a CPU call does."""
    name = call_name(name)
    for kind, pattern in (
        (Call.LAUNCH, _LAUNCH),
        (Call.GRAPH, _GRAPH),
        (Call.SYNC, _SYNC),
        (Call.COPY, _COPY),
        (Call.ENQUEUE, _ENQUEUE),
        (Call.ALLOCATE, _ALLOCATE),
    ):
        if pattern.fullmatch(name):
            return kind
    return Call.OTHER


class Range(StrEnum):
    """What an annotation of the program stands for, as far as it matters here."""

    STEP = "step"
    DATA = "data"
    CHECKPOINT = "checkpoint"
    OPERATOR = "operator"
    LIBRARY = "library"
    OTHER = "other"


# PyTorch writes ProfilerStep#N and enumerate(DataLoader)#..., Lightning its own; people write
# step_12, "iteration 5", data_loading, next_batch, save_checkpoint.
_STEP = re.compile(
    r"(?:ProfilerStep[#*]?|(?:train(?:ing)?|global|eval|decode|engine)?[ _-]?"
    r"(?:step|iter|iteration|batch)[ _#:=-]{0,3})\s?\d{0,12}",
    re.IGNORECASE,
)
_DATA = re.compile(
    r"enumerate\(DataLoader\)"
    r"|.{0,80}?(?:dataloader|data[ _-]?load|load[ _-]?(?:data|batch)|(?:next|get|fetch)[ _-]?batch"
    r"|data[ _-]?(?:wait|fetch|next|time)|fetch[ _-]?data|batch[ _-]?(?:wait|fetch)"
    r"|train_dataloader_next|input[ _-]?pipeline)",
    re.IGNORECASE,
)
_CHECKPOINT = re.compile(r".{0,80}?(?:checkpoint|ckpt|save[ _-]?(?:model|state))", re.IGNORECASE)
# Activation checkpointing recomputes, it writes nothing.
_RECOMPUTE = re.compile(r".{0,80}?(?:activation|recompute|CheckpointFunction)", re.IGNORECASE)
_OPERATOR = re.compile(r"(?:aten|c10d|torch|autograd|prim|inductor)::")
_LIBRARY = re.compile(r"(?:nccl|cublas|cudnn|cusparse|cusolver|cutlass)[A-Z:_]")


def range_of(name: str) -> Range:
    """Say what an annotation stands for."""
    if _OPERATOR.match(name):
        return Range.OPERATOR
    if _LIBRARY.match(name):
        return Range.LIBRARY
    if _DATA.match(name):
        return Range.DATA
    if _CHECKPOINT.match(name) and not _RECOMPUTE.match(name):
        return Range.CHECKPOINT
    if _STEP.fullmatch(name):
        return Range.STEP
    return Range.OTHER


# A number before a letter belongs to the word: AllToAll4D, conv2d.
_NUMBERS = re.compile(r"\d{1,20}+(?![A-Za-z0-9])")
_OP_ID = re.compile(r", (?:op_id|seq|sizes|shape|input_op_ids) ?=.{0,4000}", re.DOTALL)


def family(name: str) -> str:
    """Return what the numbered ranges of one kind have in common: ``ProfilerStep#*``."""
    return _NUMBERS.sub("*", _OP_ID.sub("", name, count=1))


def communicates(name: str) -> bool:
    """Return whether a kernel carries data between GPUs."""
    return _COMMUNICATION.match(name) is not None


def cut(name: str) -> str:
    """Return a name that is short enough to keep, without control characters."""
    if len(name) > MAX_NAME:
        digest = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
        name = f"{name[:_HEAD]}...{digest}"
    return name if name.isprintable() else "".join(c if c.isprintable() else " " for c in name)


class Names:
    """Numbers for names: the same name has the same number, beyond the limit all are one.

    Attributes:
        limit: names kept; number ``limit`` stands for all later ones.
    """

    OTHERS = "(other names)"
    # Long names (templates) are also known by their full text, up to so many characters.
    _LONG = 4_000_000

    def __init__(self, limit: int = 8_192) -> None:
        self.limit = limit
        self._numbers: dict[str, int] = {}
        self._names: list[str] = []
        self._left = self._LONG
        self.overflow = False

    def __len__(self) -> int:
        """How many numbers there are."""
        return len(self._names) + self.overflow

    def number(self, name: str) -> int:
        """Return the number of a name."""
        found = self._numbers.get(name)
        if found is not None:
            return found
        short = cut(name)
        found = self._numbers.get(short)
        if found is None:
            if len(self._names) >= self.limit:
                self.overflow = True
                return self.limit
            found = len(self._names)
            self._numbers[short] = found
            self._names.append(short)
        if short != name and len(name) <= self._left:
            self._left -= len(name)
            self._numbers[name] = found
        return found

    def numbers(self, names: list[str]) -> list[int]:
        """Return the numbers of many names."""
        get = self._numbers.get
        found = [get(name, -1) for name in names]
        if -1 in found:
            found = [
                self.number(name) if n < 0 else n for name, n in zip(names, found, strict=True)
            ]
        return found

    def name(self, number: int) -> str:
        """Return the name that a number stands for."""
        return self._names[number] if number < len(self._names) else self.OTHERS
