"""A capture's figures as plain data, for answers and for comparing captures; and in words."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from engine.traces.model import Device, Figures
from engine.traces.wording import clipped, gpu, ms, percent, short

_ROWS, _NAMED = 5, 3


def summary(figures: Figures) -> dict[str, Any]:
    """Return the figures as dicts and lists of plain numbers and texts, for comparing captures."""
    found: dict[str, Any] = _lists(asdict(figures))
    return found


def of_device(device: Device) -> dict[str, Any]:
    """Return the main figures of one GPU, flat."""
    idle = {f"idle_{name}": value for name, value in asdict(device.idle).items() if value}
    return {
        "gpu": device.index if device.index >= 0 else None,
        "span_ms": device.span_ms,
        "busy_ms": device.busy_ms,
        "idle_ms": device.idle_ms,
        "idle_percent": device.idle_percent,
        "compute_ms": device.compute_ms,
        "communication_ms": device.communication_ms,
        "overlap_percent": device.overlap_percent,
        "exposed_communication_ms": device.exposed_communication_ms,
        "copy_ms": device.copy_ms,
        "exposed_copy_ms": device.exposed_copy_ms,
        "kernels": device.kernels,
        "small_kernel_percent": device.small_kernel_percent,
        "gap_count": device.gaps.count,
        "gap_total_ms": device.gaps.total_ms,
        "longest_gap_ms": device.gaps.longest_ms,
        "queued_launch_percent": device.queued_launch_percent,
        "launch_delay_median_us": device.launch_delay_median_us,
        "graph_launches": device.graph_launches,
        **idle,
        "top_kernels": [
            f"{short(k.name)}: {k.count} x {k.mean_us:.6g} us, {percent(k.share_percent)}"
            for k in device.top_kernels[:_ROWS]
        ],
        "copies": [
            f"{c.direction}{f' {c.memory}' if c.memory else ''}: {c.count}, {ms(c.total_ms)}"
            for c in device.copies[:_ROWS]
        ],
    }


def of_capture(figures: Figures) -> dict[str, Any]:
    """Return the main figures of the host and of the capture, flat."""
    out: dict[str, Any] = {"events": figures.events, "captured_ms": figures.captured_ms}
    for name, calls in (
        ("launch", figures.launches),
        ("graph_launch", figures.graphs),
        ("sync", figures.syncs),
        ("sync_copy", figures.sync_copies),
        ("allocation", figures.allocations),
    ):
        if calls is not None and calls.count:
            out[f"{name}_calls"], out[f"{name}_ms"] = calls.count, calls.total_ms
    if figures.data_wait is not None:
        out["data_wait_count"] = figures.data_wait.count
        out["data_wait_ms"] = figures.data_wait.total_ms
    if figures.steps is not None:
        out["steps"], out["step_median_ms"] = figures.steps.count, figures.steps.median_ms
        out["step_max_ms"] = figures.steps.max_ms
    out["phases"] = [
        f"{clipped(p.name)}: {p.count}, {ms(p.total_ms)}" for p in figures.phases[:_ROWS]
    ]
    return out


def overview(figures: Figures) -> str:
    """Return what was captured, in a few sentences."""
    first = figures.tool
    if figures.rank is not None:
        world = f" of {figures.world_size}" if figures.world_size else ""
        first += f", rank {figures.rank}{world}"
    parts = [f"{first}: {figures.events} events, {len(figures.devices)} GPU(s) with work."]
    if figures.steps is not None:
        steps = figures.steps
        parts.append(
            f"{steps.count} steps ({steps.name}), median {ms(steps.median_ms)}, longest "
            f"{ms(steps.max_ms)}."
        )
    own = [p for p in figures.phases if figures.steps is None or p.name != figures.steps.name]
    if own:
        listed = ", ".join(f"{clipped(p.name)} {ms(p.total_ms)}" for p in own[:_NAMED])
        parts.append(f"Longest ranges: {listed}.")
    return " ".join(parts)


def in_words(device: Device) -> str:
    """Return the main figures of one GPU in a few sentences."""
    name = f" ({device.name})" if device.name else ""
    shares = [f"compute {percent(_part(device.compute_ms, device))}"]
    if device.communication_ms:
        hidden = percent(device.overlap_percent or 0.0)
        shares.append(
            f"communication {percent(_part(device.communication_ms, device))}, {hidden} of it "
            "hidden"
        )
    if device.copy_ms:
        shares.append(f"copies {percent(_part(device.copy_ms, device))}")
    says = (
        f"{gpu(device.index)}{name}: {ms(device.span_ms)} from first to last work, idle "
        f"{percent(device.idle_percent)}; {', '.join(shares)}; {device.kernels} kernels, "
        f"{percent(device.small_kernel_percent)} under {device.small_kernel_us:g} us; "
        f"{device.gaps.count} gaps over {ms(device.gaps.over_ms)}."
    )
    if device.top_kernels:
        listed = ", ".join(
            f"{short(k.name)} {percent(k.share_percent)}" for k in device.top_kernels[:_NAMED]
        )
        says += f" Top kernels: {listed}."
    return says


def _part(value: float, device: Device) -> float:
    return 100.0 * value / device.span_ms if device.span_ms else 0.0


def _lists(value: Any) -> Any:
    """Return the same with lists for tuples, as JSON would give it back."""
    if isinstance(value, dict):
        return {k: _lists(v) for k, v in value.items()}
    if isinstance(value, tuple | list):
        return [_lists(one) for one in value]
    return value
