"""What is told in words and needs no message of a tool: missing GPUs, a tool that hangs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from engine.model import Entity, Finding, Kind, Severity
from engine.readers.listing import at, finding, node
from engine.readers.smi.concerns import CONCERNS
from engine.readers.smi.errors import ERRORS
from engine.readers.smi.messages import Message
from engine.readers.smi.prose import spoken

_KIND: Final = "nvidia_smi_error"


def missing(records: Sequence[Message]) -> Iterator[Finding]:
    """Say that fewer GPUs are seen than the node is said to have."""
    one = next((m for m in records if m.id == "missing"), None)
    if one is None or one.total is None or one.visible is None:
        return
    known = ERRORS["missing"]
    gone = one.total - one.visible
    yield finding(
        _KIND,
        known.id,
        known.severity,
        f"{at(one.host)}{one.visible} of {one.total} GPUs are seen, {gone} "
        f"{'is' if gone == 1 else 'are'} missing. {known.meaning}",
        known.action,
        line=one.line,
        cause=known.cause,
        data={"gpu_count": one.visible, "gpus_missing": gone},
        entity=node(one.host),
        sources=known.sources,
    )


def hung(records: Sequence[Message]) -> Iterator[Finding]:
    """Say that the tool does not come back, where nothing in the paste tells why."""
    one = next((m for m in records if m.id == "hung"), None)
    if one is not None:
        known = ERRORS["hung"]
        yield finding(
            _KIND,
            known.id,
            known.severity,
            f"{at(one.host)}{known.meaning}",
            known.action,
            line=one.line,
            cause=known.cause,
            entity=node(one.host),
            sources=known.sources,
        )


def unreadable(records: Sequence[Message]) -> Iterator[Finding]:
    """Say which GPUs are told to show ``ERR!`` instead of readings."""
    for one in [m for m in records if m.id == "unreadable"][:16]:
        several = "," in one.detail or not one.detail
        name = "fan_unreadable" if one.detail == "fan" else "sensor_unreadable"
        known = CONCERNS["unreadable" if several else name]
        verb = "shows" if len(one.gpus) == 1 else "show"
        what = f" for {one.detail}" if one.detail else ""
        yield finding(
            _KIND,
            known.id,
            known.severity,
            f"{at(one.host)}{spoken(one.gpus)} {verb} 'ERR!'{what}. {known.meaning}",
            known.action,
            line=one.line,
            cause=known.cause,
            data={"faulted_gpus": one.gpus},
            entity=_gpu(one.gpus[0], one.host) if len(one.gpus) == 1 else node(one.host),
            sources=known.sources,
        )


def _gpu(index: int, host: str | None) -> Entity:
    return Entity(Kind.GPU, f"{host}:{index}" if host else f"GPU {index}", host=host, gpu=index)


def loads(records: Sequence[Message]) -> Iterator[Finding]:
    """Say which GPUs are told to work and which not."""
    told = [m for m in records if m.id == "load"]
    if not told:
        return
    idle = sorted({gpu for m in told if not m.count for gpu in m.gpus})
    busy = sorted({gpu for m in told if m.count for gpu in m.gpus} - set(idle))
    parts = [f"{spoken(m.gpus)} at {m.count} %" for m in told[:16]]
    says = f"{at(told[0].host)}Utilisation as it is told: {', '.join(parts)}."
    action = "Nothing to do for what is told here."
    if idle and busy:
        verb = "is" if len(idle) == 1 else "are"
        says += (
            f" {spoken(idle)} {verb} idle beside GPUs that work: the process there never started, "
            "died, waits outside the GPU (data, host, a barrier), or the job does not use it. "
            "100 % on the others can be a collective that spins and waits for it."
        )
        action = (
            "See which process holds it (nvidia-smi, fuser -v /dev/nvidia*) and what it does "
            "(py-spy dump of that rank, its log); then dmesg -T for Xids."
        )
    yield finding(
        _KIND,
        "loads",
        Severity.INFO,
        says,
        action,
        line=told[0].line,
        cause="idle" if idle and not busy else None,
        data={"idle_gpus": idle, "busy_gpus": busy},
        entity=node(told[0].host),
        sources=("nvidia-smi manual page",),
    )
