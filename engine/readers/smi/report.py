"""From the GPUs of one or more ``nvidia-smi`` runs to findings, causes and the rules' verdicts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from engine.model import Class, Entity, Finding, Kind, Severity
from engine.readers.base import Context, Result
from engine.readers.listing import at, finding, node
from engine.readers.readings import Readings, absorb, idle_last
from engine.readers.smi.concern import Concern
from engine.readers.smi.counters import counters_finding
from engine.readers.smi.draw import draw_findings, low_draws
from engine.readers.smi.examine import issues, narrow, narrow_by_design
from engine.readers.smi.issue import Issue
from engine.readers.smi.memory import complete
from engine.readers.smi.moments import Moment
from engine.readers.smi.signals import (
    COUNTER_SIGNALS,
    ENUM_SIGNALS,
    FLAG_SIGNALS,
    RATIO_SIGNALS,
    SIGNALS,
)
from engine.readers.smi.state import GpuState, listed, ranges
from engine.readers.smi.summary import spans, summary
from engine.readers.throttle import throttle_finding

_SEVERITIES: Final = tuple(Severity)
_BAD: Final = (Severity.CRITICAL, Severity.HIGH)
# How many GPUs a sentence names with their own values.
_SPELLED_OUT: Final = 8
# GPUs with the same mask from which one finding stands for all.
_MANY: Final = 3


def report(
    records: Sequence[GpuState],
    context: Context,
    *,
    kind: str,
    extra: Iterable[Finding] = (),
    moments: Mapping[int, Sequence[Moment]] | None = None,
) -> Result:
    """Say what runs of the tool show.

    Args:
        records: the GPUs, as they were read.
        context: knowledge, and the judge of readings.
        kind: the form of the output (``nvidia_smi_q`` …).
        extra: findings of the reader itself.
        moments: readings over time by identity of the GPU's state, where there are several.
    """
    gpus = [gpu for gpu in records if gpu.known or gpu.counters_us or gpu.run.listed]
    _number(gpus)
    for gpu in gpus:
        complete(gpu)
    found = [i for gpu in gpus for i in issues(gpu, gpus, context.catalogue)]
    throttled = {
        id(gpu): _throttle(gpu, context)
        for gpu in gpus
        if (gpu.flags or gpu.mask is not None) and gpu.lost is None
    }
    told = {id(gpu) for gpu in gpus if _telling(gpu, gpus, throttled, context)}
    findings = [*extra, *_grouped(found, kind)]
    findings += [
        counters_finding(gpu, kind)
        for gpu in gpus
        if gpu.counters_us and id(gpu) not in throttled and gpu.lost is None
    ]
    findings += _alike([gpu for gpu in gpus if id(gpu) in told], throttled)
    said = {f.entity.name for f in findings if f.entity and f.severity is not Severity.INFO}
    low = low_draws(gpus)
    findings += draw_findings(low, said, kind)
    sick = {id(i.gpu) for i in found if i.concern.severity in _BAD}
    sick |= {key for key, one in throttled.items() if _fault(one.cause, context)}
    named = {f.entity.name for f in findings if f.entity and f.severity in _BAD}
    sick |= {id(gpu) for gpu in gpus if gpu.title in named}
    judged = _judged(gpus, context, moments or {})
    odd = _odd(gpus, findings, judged)
    odd |= {id(one.gpu) for one in low}
    whole = summary(gpus, sick, odd, found, throttled, kind)
    findings.sort(key=lambda f: _SEVERITIES.index(f.severity))
    if whole is not None:
        findings.append(whole)
    result = Result(findings=findings)
    if findings or any(gpu.known for gpu in gpus):
        result.kinds = [kind]
        result.kinds += ["throttle"] if throttled else []
    # A reset is the remedy of what stands beside it, where something does.
    causes = dict.fromkeys(f.cause for f in findings if f.cause)
    result.causes = sorted(causes, key=lambda cause: cause == "gpu_needs_reset")
    absorb(result, judged)
    if any(gpu.busy for gpu in gpus):
        result.causes = idle_last(result.causes)
    return result


def _odd(gpus: Sequence[GpuState], findings: Sequence[Finding], judged: Result) -> set[int]:
    """Identities of GPUs of which a finding or a diagnosis says that something is wrong."""
    named = {f.entity.name for f in findings if f.entity and f.severity is not Severity.INFO}
    for one in judged.diagnoses:
        named.add(one.entity.name)
        if one.entity.kind is not Kind.GPU:
            named |= {e.entity.name for e in one.evidence}
    return {id(g) for place, g in enumerate(gpus) if _judged_as(g, place, gpus).name in named}


def _number(gpus: Sequence[GpuState]) -> None:
    """Give GPUs that nothing names their place in the list."""
    nameless = [g for g in gpus if g.index is None and g.pci is None and g.uuid is None]
    if len(nameless) > 1:
        for place, gpu in enumerate(nameless):
            gpu.place = place


def _mask(gpu: GpuState, context: Context) -> int:
    if gpu.mask is not None:
        return gpu.mask
    bits = context.catalogue.entries["throttle_reasons"]
    return sum(int(bits[reason]["bit"]) for reason, on in gpu.flags.items() if on)


def _throttle(gpu: GpuState, context: Context) -> Finding:
    return throttle_finding(
        _mask(gpu, context),
        gpu.around(),
        context.catalogue,
        entity=gpu.entity,
        subject=gpu.label,
        line=gpu.flags_line or gpu.line,
    )


def _telling(
    gpu: GpuState, gpus: Sequence[GpuState], throttled: dict[int, Finding], context: Context
) -> bool:
    """Return whether a mask deserves a finding of its own beside the summary."""
    one = throttled.get(id(gpu))
    if one is None:
        return False
    named = one.cause is not None and context.catalogue.taxonomy[one.cause].class_
    return len(gpus) == 1 or one.severity in _BAD or (bool(named) and named is not Class.BENIGN)


def _alike(gpus: Sequence[GpuState], throttled: Mapping[int, Finding]) -> list[Finding]:
    """One finding for GPUs that are many and show the same mask for the same cause."""
    groups: dict[tuple[str, str | None, str | None], list[GpuState]] = {}
    for gpu in gpus:
        one = throttled[id(gpu)]
        groups.setdefault((one.id, one.cause, gpu.host), []).append(gpu)
    found = []
    for group in groups.values():
        first = throttled[id(group[0])]
        if len(group) < _MANY:
            found += [throttled[id(gpu)] for gpu in group]
            continue
        places = [g.index for g in group if g.index is not None]
        who = f"GPUs {ranges(places)}" if len(places) == len(group) else f"{len(group)} GPUs"
        says = first.says.replace(f" of {group[0].label}:", f" of {at(group[0].host)}{who}:", 1)
        others = spans(group, ("gpu_temp_c", "memory_temp_c", "power_w", "sm_clock_mhz"))
        if others:
            says += f" These are the readings of {group[0].label}; over all: {others}."
        named: list[int] | list[str] = places or [g.label for g in group]
        data = first.data | {"gpus": named}
        found.append(replace(first, says=says, entity=node(group[0].host), data=data))
    return found


def _fault(cause: str | None, context: Context) -> bool:
    return cause is not None and context.catalogue.taxonomy[cause].class_ is Class.FAULT


def _grouped(found: Sequence[Issue], kind: str) -> list[Finding]:
    """One finding for each concern, whatever the number of GPUs that share it."""
    groups: dict[str, list[Issue]] = {}
    for one in found:
        groups.setdefault(one.concern.id, []).append(one)
    return [_finding(group[0].concern, group, kind) for group in groups.values()]


def _finding(concern: Concern, group: Sequence[Issue], kind: str) -> Finding:
    first = group[0]
    details = {i.detail for i in group}
    who = listed(_names(group))
    if len(details) == 1:
        head = f"{who}: {first.detail}"
    else:
        head = "; ".join(f"{i.gpu.label}: {i.detail}" for i in group[:_SPELLED_OUT])
        if len(group) > _SPELLED_OUT:
            head += f"; and {len(group) - _SPELLED_OUT} more"
    data: dict[str, Any] = dict(first.data) if len(details) == 1 else {}
    if len(group) > 1:
        data["gpus"] = [i.gpu.index if i.gpu.index is not None else i.gpu.label for i in group]
    return finding(
        kind,
        concern.id,
        concern.severity,
        f"{head}. {concern.meaning}",
        _addressed(concern.action, group),
        line=first.gpu.line,
        cause=concern.cause,
        data=data,
        entity=first.gpu.entity if len(group) == 1 else node(first.gpu.host),
        sources=concern.sources,
    )


def _addressed(action: str, group: Sequence[Issue]) -> str:
    """Put the one GPU's index or address into the commands of an action."""
    handle = group[0].gpu.handle if len(group) == 1 else None
    return action if handle is None else action.replace("-i INDEX", f"-i {handle}")


def _names(group: Sequence[Issue]) -> list[str]:
    labels = list(dict.fromkeys(i.gpu.label for i in group))
    indices = [i.gpu.index for i in group if i.gpu.index is not None]
    hosts = {i.gpu.host for i in group}
    if len(labels) > 1 and len(indices) == len(group) and len(hosts) == 1:
        return [f"{at(group[0].gpu.host)}GPUs {ranges(indices)}"]
    return labels


def _judged_as(gpu: GpuState, place: int, gpus: Sequence[GpuState]) -> Entity:
    alone = f"GPU {place}" if len(gpus) > 1 else "GPU"
    return gpu.entity or Entity(Kind.GPU, alone, model=gpu.name)


def _judged(
    gpus: Sequence[GpuState], context: Context, moments: Mapping[int, Sequence[Moment]]
) -> Result:
    readings = Readings(context.catalogue, together=True)
    for place, gpu in enumerate(gpus):
        if gpu.lost is None:
            entity = _judged_as(gpu, place, gpus)
            # No alarm from a GPU without work: a server holds all memory, by intent.
            left_out = {"fb_free_mib"} if gpu.busy is False else set()
            if narrow(gpu) and narrow_by_design(gpu, gpus, context.catalogue):
                left_out |= {"pcie_width", "pcie_width_max"}
            course = moments.get(id(gpu)) or ()
            if len(course) > 1:
                for moment in course:
                    _feed_numbers(readings, moment.numbers, entity, left_out, at=moment.at)
                    if moment.mask is not None:
                        mask = float(moment.mask)
                        readings.add("throttle_reasons", mask, entity=entity, at=moment.at)
            else:
                _feed_numbers(readings, gpu.numbers, entity, left_out)
                _feed_mask(readings, gpu, entity, context)
            _feed_words(readings, gpu, entity)
    return readings.judge(context.diagnose)


def _feed_numbers(
    readings: Readings,
    numbers: Mapping[str, float],
    entity: Entity,
    left_out: Collection[str],
    *,
    at: float | None = None,
) -> None:
    for name, signal in SIGNALS.items():
        if name in numbers and name not in left_out:
            readings.add(signal, numbers[name], entity=entity, at=at)
    for name, signal in RATIO_SIGNALS.items():
        if name in numbers:
            readings.add(signal, numbers[name] / 100, entity=entity, at=at)


def _feed_words(readings: Readings, gpu: GpuState, entity: Entity) -> None:
    for name, signal in FLAG_SIGNALS.items():
        if name in gpu.words:
            yes = gpu.words[name].lower() in ("yes", "1", "true")
            readings.add(signal, float(yes), entity=entity)
    for name, (signal, numbers) in ENUM_SIGNALS.items():
        value = numbers.get(gpu.words.get(name, "").lower())
        if value is not None:
            readings.add(signal, float(value), entity=entity)
    for reason, signal in COUNTER_SIGNALS.items():
        if reason in gpu.counters_us:
            readings.add(signal, gpu.counters_us[reason] * 1e3, entity=entity)


def _feed_mask(readings: Readings, gpu: GpuState, entity: Entity, context: Context) -> None:
    if gpu.flags or gpu.mask is not None:
        readings.add("throttle_reasons", float(_mask(gpu, context)), entity=entity)
