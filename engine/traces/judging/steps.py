"""A rule over iterations: one in many that takes much longer."""

from __future__ import annotations

from collections.abc import Iterator

from engine.traces.judging.base import Capture, Loss, part
from engine.traces.wording import ms

_LEAST_STEPS = 5
# The first steps warm up.
_WARM_UP = 2


def long_steps(capture: Capture) -> Iterator[Loss]:
    """Yield that the longest step is far above the median."""
    steps = capture.figures.steps
    factor = capture.timeline.limit("periodic_long_step", 1.5)
    if (
        steps is None
        or steps.count < _LEAST_STEPS
        or steps.longest_index < _WARM_UP
        or steps.max_ms <= factor * steps.median_ms
        or not capture.judged
    ):
        return
    lost = steps.max_ms - steps.median_ms
    saved = capture.figures.checkpoints
    saves = saved is not None and saved.max_ms >= 0.5 * lost
    device = max(capture.judged, key=lambda d: (d.span_ms, -d.index))
    yield capture.loss(
        [(device, part(lost, device.span_ms))],
        lost,
        id_="long_step",
        entry="periodic_long_step",
        says=(
            f"Step {steps.longest_index + 1} of {steps.count} takes {ms(steps.max_ms)}, the median "
            f"is {ms(steps.median_ms)} ({steps.name}, at {ms(steps.longest_at_ms)})."
            + (" A checkpoint of about that length was written." if saves else "")
        ),
        action=(
            "Compare that step with its neighbours in the viewer: checkpoint, validation, logging, "
            "Python's garbage collection, an allocator retry or a recompile."
        ),
        cause="checkpoint_stall" if saves else None,
        data={
            "steps": steps.count,
            "step_median_ms": steps.median_ms,
            "step_max_ms": steps.max_ms,
            "step_longest_index": steps.longest_index,
            "step_longest_at_ms": steps.longest_at_ms,
        },
    )
