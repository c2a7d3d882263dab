"""What the state of a service means: imbalance, a full cache, queues, errors, slow decoding.

The same judgement for readings out of metrics and out of log lines. Thresholds are those of
``knowledge/thresholds.yaml``. A single scrape shows a state and sums since the start of the
server, never a rate.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from engine.catalogue.types import Catalogue
from engine.model import Finding, Severity
from engine.readers.serving.capacity import cache, imbalance
from engine.readers.serving.finding import Limits, finding
from engine.readers.serving.load import Load
from engine.readers.serving.outcomes import aborts, failures
from engine.readers.serving.queues import queue
from engine.readers.serving.speed import drafts, first_token, front, prefix, slow
from engine.readers.serving.words import data, summary

_PARTS = (
    imbalance,
    cache,
    queue,
    failures,
    aborts,
    drafts,
    slow,
    first_token,
    front,
    prefix,
)


@dataclass(slots=True)
class Judgement:
    """Findings about one service, root cause first, and the causes in that order."""

    findings: list[Finding] = field(default_factory=list)

    @property
    def causes(self) -> list[str]:
        """The causes named, each once."""
        return list(dict.fromkeys(f.cause for f in self.findings if f.cause))


def judge(load: Load, catalogue: Catalogue) -> Judgement:
    """Say what the state of a service means, and sum it up last."""
    limits = Limits(catalogue)
    found = Judgement()
    for part in _PARTS:
        found.findings += part(load, limits)
    found.findings += _sleeping(load)
    found.findings.append(_summary(load, found))
    return found


def _summary(load: Load, found: Judgement) -> Finding:
    idle = _idle(load) and not found.causes
    says = summary(load)
    if idle:
        says += " No request runs or waits: it is idle."
    if load.server == "vllm" and "model" in load.labels:
        says += (
            " The labels are model and version instead of model_name and engine: vLLM runs as the "
            "backend of Triton."
        )
    return finding(
        load,
        load.server,
        Severity.INFO,
        says,
        "Nothing to do."
        if idle
        else "Act on the cause, then read it again and compare."
        if found.causes
        else "Take a second scrape some seconds later, and paste both."
        if load.total("running") is None and load.total("waiting") is None
        else "Nothing stands out in these readings; compare with a moment at which it was fast.",
        cause="idle" if idle else None,
        more=data(load),
    )


def _idle(load: Load) -> bool:
    running, waiting = load.total("running"), load.total("waiting")
    moving = (load.growth("generation_tokens") or 0) + (load.total("generation_throughput") or 0)
    return running == 0 and not waiting and not moving


def _sleeping(load: Load) -> Iterator[Finding]:
    if load.asleep:
        yield finding(
            load,
            "sleeping",
            Severity.INFO,
            f"{load.called} sleeps (vllm:engine_sleep_state): its weights are off the GPU, so it "
            "answers nothing until it is woken.",
            "Wake it with: curl -X POST http://HOST:8000/wake_up",
            more={"asleep": True},
        )
