"""What an out-of-memory message says about the reason: full, fragmented, crowded, too large."""

from __future__ import annotations

from engine.model import Finding, Severity
from engine.readers.gpu_errors.memory import OutOfMemory
from engine.readers.gpu_errors.seen import Seen
from engine.units import number

_WHO = (
    "nvidia-smi shows who: another process, or this one (JAX takes 75 % of the GPU unless "
    "XLA_PYTHON_CLIENT_MEM_FRACTION says otherwise). "
)
_LESS = (
    "Need less: smaller batch or sequences, activation checkpointing, sharding (FSDP, ZeRO, tensor "
    "parallelism), lower precision; in a server lower --max-num-seqs or --gpu-memory-utilization "
    "(vLLM), --mem-fraction-static (SGLang)."
)


def memory_finding(memory: OutOfMemory, seen: Seen) -> Finding:
    """Return the finding about messages of one GPU and size."""
    says, action, cause = _reason(memory)
    gpu = f" on GPU {memory.gpu} (as the process counts)" if memory.gpu is not None else ""
    asked = f" while asking for {_size(memory.tried)}" if memory.tried is not None else ""
    head = f"{seen.who} ran out of GPU memory{gpu}{asked}{seen.times}."
    return Finding(
        kind="gpu_error",
        id="out_of_memory",
        severity=Severity.MEDIUM,
        says=f"{head}{_held(memory)} {says}",
        action=action,
        entity=None,
        line=seen.line,
        cause=cause,
        data={"device": memory.device} | memory.data() | seen.data,
        sources=("pytorch/pytorch c10/cuda/CUDACachingAllocator.cpp",),
    )


def _held(memory: OutOfMemory) -> str:
    parts = []
    if memory.total is not None and memory.free is not None:
        parts.append(f"{_size(memory.free)} of {_size(memory.total)} are free")
    if memory.own is not None:
        which = f" (probably {memory.pid}, by its size)" if memory.pid is not None else ""
        parts.append(f"this process{which} holds {_size(memory.own)}")
    if memory.allocated is not None:
        parts.append(f"PyTorch uses {_size(memory.allocated)}")
    if memory.reserved is not None:
        parts.append(f"keeps {_size(memory.reserved)} reserved but unallocated")
    return f" {', '.join(parts)}." if parts else ""


def _reason(memory: OutOfMemory) -> tuple[str, str, str]:
    """Return what the numbers say, what to do, and the cause."""
    if memory.allowed is not None:
        return (
            (
                f"The process is limited to {_size(memory.allowed)} "
                "(set_per_process_memory_fraction): the limit is full, not necessarily the GPU."
            ),
            "Raise the fraction, or ask for less.",
            "gpu_memory_full",
        )
    if memory.too_large:
        return (
            (
                "One request is larger than the whole GPU: a wrong shape, or attention without a "
                "memory-saving kernel at a very long sequence."
            ),
            (
                "Look at the shapes in the stack trace; use FlashAttention or SDPA, shorter "
                "sequences, a smaller batch."
            ),
            "gpu_memory_full",
        )
    if memory.crowded:
        gone = memory.elsewhere or 0.0
        named = ", ".join(
            f"process {pid} {_size(size)}" for pid, size in list(memory.others.items())[:4]
        )
        unsure = "; one of them is this process" if memory.own is None and named else ""
        return (
            (
                f"About {_size(gone)} are held by others"
                f"{f' ({named}{unsure})' if named else ''}: another "
                "process, a stray job or other containers share this GPU."
            ),
            (
                "nvidia-smi (on the host, not in the container) shows who holds memory: end stray "
                "processes, or give each job a GPU of its own."
            ),
            "gpu_contention",
        )
    if memory.fragmented:
        return (
            "Enough is reserved but in pieces: fragmentation, not a full GPU.",
            (
                "Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True (PYTORCH_ALLOC_CONF from "
                "2.9); avoid shapes that change all the time, or call torch.cuda.empty_cache() "
                "between phases."
            ),
            "gpu_memory_full",
        )
    if memory.free is None and memory.allocated is None:
        return (
            "The message does not say who holds the memory.",
            _WHO + _LESS,
            "gpu_memory_full",
        )
    return (
        "The GPU is really full: what PyTorch holds is in use, so fragmentation is not the reason."
        if memory.reserved is not None
        else "The GPU is full.",
        _LESS + " If it fills up: torch.cuda.memory._record_memory_history shows what stays.",
        "gpu_memory_full",
    )


def _size(gib: float | None) -> str:
    if gib is None:
        return "?"
    return f"{number(round(gib, 2))} GiB" if gib >= 1 else f"{number(round(1024 * gib, 1))} MiB"
