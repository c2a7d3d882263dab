"""Rules over copies that no kernel runs beside, and over pages that migrate."""

from __future__ import annotations

from collections.abc import Iterator

from engine.traces.judging.base import Capture, Loss, part
from engine.traces.model import Copies, Device
from engine.traces.wording import ms, percent

_EXPOSED_PERCENT = 5.0
_MIGRATION = "unified"
_WORDS = {
    "HtoD": "from host to GPU",
    "DtoH": "from GPU to host",
    "DtoD": "within the GPU",
    "peer": "between GPUs",
}


def copies(capture: Capture) -> Iterator[Loss]:
    """Yield copies that the GPU does nothing beside."""
    limit = 100.0 * capture.timeline.limit("h2d_not_overlapped", _EXPOSED_PERCENT / 100.0)
    affected = capture.over(lambda d: d.exposed_copy_percent, max(limit, 0.1))
    if not affected:
        return
    device, share = affected[0]
    main = device.copies[0] if device.copies else None
    if main is None:  # memsets only
        return
    pageable = main.memory == "pageable"
    yield capture.loss(
        affected,
        device.exposed_copy_ms,
        id_="exposed_copies",
        entry="pageable_copies" if pageable else "h2d_not_overlapped",
        says=(
            f"{capture.name(device)} copies for {ms(device.exposed_copy_ms)} "
            f"({percent(share)} of {ms(device.span_ms)}) while no kernel runs. {_main(main)}"
        ),
        action=_action(main),
        cause=_cause(main),
        data={
            "exposed_copy_ms": device.exposed_copy_ms,
            "copy_ms": device.copy_ms,
            "direction": main.direction,
            "host_memory": main.memory,
            "copies": main.count,
            "size_bytes": main.size_bytes,
            "rate_gbs": main.rate_gbs,
        },
    )


def _main(main: Copies) -> str:
    where = _WORDS.get(main.direction, main.direction)
    memory = f" ({main.memory} host memory)" if main.memory else ""
    rate = ""
    if main.size_bytes is not None and main.rate_gbs is not None:
        rate = f", {main.size_bytes / 1e9:.3g} GB at {main.rate_gbs:.3g} GB/s"
    return f"Most of it is {main.count} copies {where}{memory}: {ms(main.total_ms)}{rate}."


def _cause(main: Copies) -> str | None:
    if main.direction.startswith(_MIGRATION):
        return None
    if main.direction in {"HtoD", "DtoH"} and main.memory == "pageable":
        # A copy from or to pageable memory holds its stream up, although the call says Async.
        return "allocator_stall"
    return "data_loader_stall" if main.direction == "HtoD" else None


def _action(main: Copies) -> str:
    if main.memory == "pageable":
        return (
            "Pin the host memory (DataLoader pin_memory=True, cudaHostAlloc) and copy with "
            "non_blocking=True, one batch ahead on a stream of its own."
        )
    if main.direction == "HtoD":
        return (
            "Copy the next batch on a stream of its own while this one computes. Weights, KV cache "
            "or optimizer state that cross PCIe each step are offloading: keep them on the GPU if "
            "they fit. Large pinned copies should reach about 25 GB/s on PCIe Gen4 x16 and 50 GB/s "
            "on Gen5 x16: nvidia-smi --query-gpu=index,pcie.link.gen.current,"
            "pcie.link.width.current --format=csv"
        )
    if main.direction == "DtoH":
        return "Copy results on a stream of their own into pinned memory, or keep them on the GPU."
    if main.direction.startswith(_MIGRATION):
        return "Prefetch with cudaMemPrefetchAsync, or copy explicitly into memory of the GPU."
    return "Look which operators copy: contiguous(), clone() and cat() make copies within the GPU."


def migrations(capture: Capture) -> Iterator[Loss]:
    """Yield pages of unified memory that move while the program runs."""

    def moved(device: Device) -> float:
        return sum(c.total_ms for c in device.copies if c.direction.startswith(_MIGRATION))

    affected = capture.over(lambda d: part(moved(d), d.span_ms), 1.0)
    if not affected:
        return
    device, share = affected[0]
    size = sum(c.size_bytes or 0 for c in device.copies if c.direction.startswith(_MIGRATION))
    yield capture.loss(
        affected,
        0.0,
        id_="unified_memory",
        entry="page_faults",
        says=(
            f"{capture.name(device)} moves pages of unified memory for {ms(moved(device))} "
            f"({percent(share)} of {ms(device.span_ms)}), {size / 1e9:.3g} GB: kernels that touch "
            "them wait."
        ),
        action=(
            "Prefetch with cudaMemPrefetchAsync or copy explicitly; if the working set is larger "
            "than the GPU's memory, make it smaller."
        ),
        cause=None,
        data={"migration_ms": round(moved(device), 6), "size_bytes": size},
    )
