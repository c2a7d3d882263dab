"""Rules over collectives: what compute does not hide, and who comes last."""

from __future__ import annotations

from collections.abc import Iterator

from engine.traces.judging.base import Capture, Loss
from engine.traces.model import Device
from engine.traces.wording import gpu, ms, percent

# From the first on exposed communication counts where little of it is hidden, from the second on
# in any case (percent of the span; rules of thumb).
_EXPOSED_PERCENT, _MUCH_PERCENT = 10.0, 20.0
_OFTEN_LAST_PERCENT = 60.0


def exposed(capture: Capture) -> Iterator[Loss]:
    """Yield communication that nothing computes beside, and the rank that the others wait for."""
    hidden = 100.0 * capture.timeline.limit("nccl_not_overlapped", 0.5)
    much = capture.timeline.value("gpu_row_dense", "nccl_exposed_share", _MUCH_PERCENT)

    def share(device: Device) -> float | None:
        value = device.exposed_communication_percent
        little = device.overlap_percent is not None and device.overlap_percent < hidden
        return value if value >= much or (little and value >= _EXPOSED_PERCENT) else None

    affected = capture.over(share, _EXPOSED_PERCENT)
    if not affected:
        return
    late = _late(capture)
    if late is not None:
        yield late
        return
    device, value = affected[0]
    alone = len(capture.figures.devices) < 2
    yield capture.loss(
        affected,
        device.exposed_communication_ms,
        id_="exposed_communication",
        entry="nccl_not_overlapped",
        says=(
            f"{capture.name(device)} spends {ms(device.exposed_communication_ms)} "
            f"({percent(value)} of {ms(device.span_ms)}) in collectives while nothing computes "
            f"beside them: only {percent(device.overlap_percent or 0.0)} of their "
            f"{ms(device.communication_ms)} is hidden."
            + (
                " A late rank looks the same on all others: one trace alone cannot tell."
                if alone
                else ""
            )
        ),
        action=(
            "First compare the start of the same collective on other ranks: the one that comes "
            "last is to blame. If they start together, look for what prevents overlap: one huge "
            "bucket (bucket_cap_mb), find_unused_parameters=True, no prefetch in FSDP."
        ),
        cause="communication_bound",
        data={
            "communication_ms": device.communication_ms,
            "exposed_communication_ms": device.exposed_communication_ms,
            "overlap_percent": device.overlap_percent,
        },
    )


def _late(capture: Capture) -> Loss | None:
    """Return the device that keeps the others waiting, if one of them mostly does."""
    met = capture.figures.meeting
    spread = 100.0 * capture.timeline.limit("nccl_waiting_rank", 0.5)
    if met is None or met.spread_percent < spread or met.late_percent < _OFTEN_LAST_PERCENT:
        return None
    device = next((d for d in capture.judged if d.index == met.late_device), None)
    if device is None:
        return None
    waits = 100.0 * met.waited_ms / device.span_ms if device.span_ms else 0.0
    others = [d.index for d in capture.figures.devices if d.index != device.index]
    return capture.loss(
        [(device, waits)],
        met.waited_ms,
        id_="late_gpu",
        entry="nccl_waiting_rank",
        says=(
            f"{capture.name(device)} joins {percent(met.late_percent)} of {met.collectives} "
            f"collectives last; the others wait for it up to {ms(met.waited_ms)} in all. "
            f"{percent(met.spread_percent)} of the time of collectives is waiting, not traffic."
        ),
        action=(
            f"Look at what {gpu(device.index)} does before it joins: its clock and throttle "
            "reasons (nvidia-smi -q -d CLOCK,PERFORMANCE), its data loader, its CPU. The long "
            "collectives of the other GPUs are the effect."
        ),
        cause="straggler",
        data={
            "collectives": met.collectives,
            "spread_percent": met.spread_percent,
            "late_gpu": device.index if device.index >= 0 else None,
            "late_percent": met.late_percent,
            "waited_ms": met.waited_ms,
            "waiting_gpus": others,
        },
        causes=("straggler", "waiting_on_straggler"),
    )
