"""The timeline table as rules: observation, diagnosis, action, over the figures of a capture.

Limits come from the knowledge's ``timeline`` entries. Each rule yields what it finds as a loss of
time; the largest loss is the first cause.
"""

from __future__ import annotations

from dataclasses import replace

from engine.model import Finding, Severity
from engine.traces.judging.base import KIND, Capture, Loss, Rule
from engine.traces.judging.communication import exposed
from engine.traces.judging.copies import copies, migrations
from engine.traces.judging.host import idle
from engine.traces.judging.notes import no_work, notes, remarks
from engine.traces.judging.steps import long_steps
from engine.traces.model import Figures
from engine.traces.summary import in_words, of_capture, of_device, overview
from engine.traces.timeline import Timeline
from engine.traces.wording import ms, percent

# From here on idle time is a problem (rule of thumb of timeline/gaps_between_kernels).
_HEALTHY_IDLE_PERCENT = 10.0
# Figures of so many GPUs are listed.
_DEVICES = 16
_COMPARE = "Compare with a capture of a healthy GPU, or of an earlier run."

RULES: tuple[Rule, ...] = (idle, exposed, copies, migrations, long_steps)


def judge(figures: Figures, timeline: Timeline) -> tuple[list[Finding], list[str], list[str]]:
    """Return findings with the largest loss first, causes in the same order, and remarks."""
    capture = Capture(figures, timeline)
    if not figures.gpu_traced:
        return [_no_work(figures, timeline)], ["no_data"], list(remarks(capture))
    losses = [loss for rule in RULES for loss in rule(capture)]
    losses.sort(key=lambda loss: -loss.ms)
    findings = [loss.finding for loss in losses]
    causes = list(dict.fromkeys(cause for loss in losses for cause in loss.causes))
    if not losses and len(capture.judged) == len(figures.devices):
        findings.append(_no_loss(capture))
        causes += [cause for cause in (findings[-1].cause,) if cause]
    findings += notes(capture)
    findings += _figures(capture)
    return findings, causes, list(remarks(capture))


def _figures(capture: Capture) -> list[Finding]:
    """Return the figures themselves: of each GPU, and of the capture."""
    figures = capture.figures
    out = [
        replace(
            capture.note("gpu_figures", in_words(device), _COMPARE, **of_device(device)),
            entity=capture.entity(device),
        )
        for device in figures.devices[:_DEVICES]
    ]
    out.append(capture.note("capture", overview(figures), "", **of_capture(figures)))
    return out


def _no_loss(capture: Capture) -> Finding:
    """Return that no rule holds: healthy, unless the GPUs idle for small reasons that add up."""
    device = max(capture.judged, key=lambda d: (d.idle_percent, -d.index))
    dense = device.idle_percent < capture.timeline.limit("gpu_row_dense", 5.0)
    healthy = device.idle_percent < _HEALTHY_IDLE_PERCENT
    row = "the row is dense" if dense else "no single reason stands out"
    return Finding(
        kind=KIND,
        id="dense" if dense else "no_single_loss",
        severity=Severity.INFO,
        says=(
            f"{capture.name(device)} is idle for {percent(device.idle_percent)} of "
            f"{ms(device.span_ms)}"
            + (", the most of all" if len(capture.judged) > 1 else "")
            + f": {row}, and neither communication nor copies hold it up. A timeline does not "
            "show clocks, nor how well the kernels use the SMs."
        ),
        action="To go further look at the top kernels with ncu --set full (roofline).",
        entity=capture.entity(device),
        line=None,
        cause="healthy" if healthy else None,
        data={
            "idle_percent": device.idle_percent,
            "gpus": [d.index for d in capture.judged if d.index >= 0],
        },
        errata=capture.timeline.errata("gpu_row_dense") if dense else (),
        sources=capture.timeline.sources("gpu_row_dense"),
    )


def _no_work(figures: Figures, timeline: Timeline) -> Finding:
    says, action = no_work(figures)
    return Finding(
        kind=KIND,
        id="no_gpu_work",
        severity=Severity.LOW,
        says=says,
        action=action,
        entity=None,
        line=None,
        cause="no_data",
        data=of_capture(figures),
        sources=timeline.sources("gpu_row_dense"),
    )


__all__ = ["RULES", "Loss", "judge"]
