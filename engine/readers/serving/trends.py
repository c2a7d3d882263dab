"""What the load lines of an engine show over time: thrashing, stalls, a cache that fills up."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from engine.model import Finding, Severity
from engine.readers.serving.advice import PREFILL, more_room
from engine.readers.serving.course import Course
from engine.readers.serving.finding import Limits, finding
from engine.readers.serving.load import Load
from engine.readers.serving.samples import Sample
from engine.readers.serving.stalls import TAIL, named, stuck
from engine.readers.serving.words import count, percent, percent_number, seconds
from engine.units import number

# Preemption begins when no block is free; what a log rounds to 95 % has few left.
_FULL = 0.95
# Part of the generation speed that is left when requests are thrown out and computed again.
_COLLAPSED = 0.6
# Prompt tokens for each generated one in the same seconds, from which prefill fills them.
_PREFILL_RATIO = 20.0
_FLAT = 0.1
# How much more time the host needs for a step than the GPU, from which it sets the pace.
_HOST_RATIO = 1.5


def trends(course: Course, load: Load, limits: Limits) -> Iterator[Finding]:
    """Yield what the course of one engine shows, worst first."""
    thrown = _thrown_out(course, load)
    if thrown:
        yield thrown
    stalled = stuck(course, load)
    yield from stalled
    if not stalled:
        yield from _prefill(course, load, limits)
        if not thrown:
            yield from _filling(course, load, limits)
    yield from _hits(course, load, limits)
    yield from _host(course, load)


def _thrown_out(course: Course, load: Load) -> Finding | None:
    """Requests that went from running back to waiting at a full cache, or a counted preemption."""
    full = [s for s in course.kept if s.readings.get("kv_usage", 0.0) >= _FULL]
    back = 0.0
    for one, two in course.pairs():
        # Of requests that ended, blocks would be free afterwards.
        usage = two.readings.get("kv_usage", 0.0)
        left = one.readings.get("running", 0.0) - two.readings.get("running", 0.0)
        came = two.readings.get("waiting", 0.0) - one.readings.get("waiting", 0.0)
        if usage >= _FULL and left > 0 and came > 0:
            back += min(left, came)
    if course.preempted:
        seen = f"{count(course.preempted, 'preemption')} logged"
    elif back:
        seen = f"{count(back, 'request')} went from running back to the queue"
    else:
        return None
    speed = _collapse(full)
    return finding(
        load,
        "kv_cache_cascade",
        Severity.HIGH,
        f"The KV cache is full ({percent(course.highest.get('kv_usage', 0.0))}{named(course)}) "
        f"and {seen}: they are preempted and prefilled again later, V1 of vLLM recomputes them."
        + (f" Generation fell from {speed[0]} to {speed[1]} tokens/s meanwhile." if speed else ""),
        more_room(load.server),
        cause="kv_cache_cascade",
        more={
            "kv_cache_percent": percent_number(course.highest.get("kv_usage", 0.0)),
            "preemptions": int(course.preempted or back),
        },
    )


def _collapse(samples: list[Sample]) -> tuple[str, str] | None:
    rates = [r for s in samples if (r := s.readings.get("generation_throughput"))]
    if len(rates) < 2:
        return None
    top, low = max(rates), min(rates[rates.index(max(rates)) :])
    return (number(top), number(low)) if low <= _COLLAPSED * top else None


def _prefill(course: Course, load: Load, limits: Limits) -> Iterator[Finding]:
    """A queue that prefill causes: prompt tokens at a ceiling, a cache with room."""
    tail = [
        s.readings
        for s in course.tail(TAIL)
        if s.readings.get("waiting", 0.0) >= limits["queue_waiting"]
        and s.readings.get("prompt_throughput", 0.0) > 0
        and "generation_throughput" in s.readings
    ]
    usage = max((r.get("kv_usage", 0.0) for r in tail), default=1.0)
    if not tail or usage >= limits["kv_cache_pressure"]:
        return
    rates = [r["prompt_throughput"] for r in tail]
    made = sum(r["generation_throughput"] for r in tail)
    mean = sum(rates) / len(rates)
    if sum(rates) < _PREFILL_RATIO * max(made, 1.0):
        return
    flat = len(rates) > 1 and max(rates) - min(rates) <= _FLAT * mean
    waiting = tail[-1]["waiting"]
    yield finding(
        load,
        "prefill_bound",
        Severity.MEDIUM,
        f"{count(waiting, 'request')} wait for prefill{named(course)}: "
        f"{number(round(mean))} prompt tokens/s against {number(round(made / len(tail), 1))} "
        "generated ones"
        + (", flat at the ceiling of what the GPUs prefill" if flat else "")
        + f". The KV cache has room (at most {percent(usage)}), so it is not the limit yet: long "
        "prompts are.",
        PREFILL,
        cause="prefill_bound",
        more={
            "prompt_throughput_tokens_per_s": round(mean, 1),
            "waiting": int(waiting),
            "kv_cache_percent": percent_number(tail[-1].get("kv_usage", usage)),
        },
        sources=limits.source("queue_waiting"),
    )


def _filling(course: Course, load: Load, limits: Limits) -> Iterator[Finding]:
    """A cache that grows steadily: when it will be full."""
    tail = [s for s in course.tail(TAIL) if "kv_usage" in s.readings]
    while len(tail) > 2 and tail[1].readings["kv_usage"] < tail[0].readings["kv_usage"]:
        tail = tail[1:]
    usages = [s.readings["kv_usage"] for s in tail]
    if any(s.readings.get("waiting") for s in tail):
        return  # a queue refills the cache at once
    span = course.span_s(tail)
    if span is None or usages[-1] < limits["kv_cache_note"]:
        return
    if any(two < one for one, two in itertools.pairwise(usages)):
        return
    per_second = (usages[-1] - usages[0]) / span[0]
    left_s = (1 - usages[-1]) / per_second if per_second > 0 else None
    if left_s is None or left_s > 3600 or usages[-1] >= 1:
        return
    about = "" if span[1] else " (lines taken to be 10 s apart)"
    yield finding(
        load,
        "kv_cache_filling",
        Severity.LOW,
        f"The KV cache grows by {1000 * per_second:.2g} points per 10 s{named(course)}{about}, "
        f"from {percent(usages[0])} to {percent(usages[-1])}: it is full in about "
        f"{_minutes(left_s)} if no request ends, and then {_then(course)}.",
        more_room(load.server),
        more={
            "kv_cache_percent": percent_number(usages[-1]),
            "kv_cache_percent_per_10s": round(1000 * per_second, 3),
            "full_in_s": round(left_s),
        },
        sources=("vllm-project/vllm vllm/v1/core/sched/scheduler.py 0.33.0",),
    )


def _then(course: Course) -> str:
    if course.server == "sglang":
        return "requests are retracted and prefilled again"
    if course.dialect == "V0":
        return "requests are preempted, by swapping or recomputing"
    return "requests are preempted (V1 of vLLM recomputes them)"


def _minutes(left_s: float) -> str:
    return f"{number(round(left_s / 60))} minutes" if left_s >= 90 else seconds(left_s)


def _hits(course: Course, load: Load, limits: Limits) -> Iterator[Finding]:
    """A prefix cache hit rate that collapsed."""
    rates = [
        s.readings["prefix_hit_rate"]
        for s in course.kept
        if "prefix_hit_rate" in s.readings and s.dialect != "prefill"
    ]
    if len(rates) < 2 or load.server != "vllm":
        return
    was, now = max(rates[: max(1, len(rates) // 2)]), rates[-1]
    if was < limits["prefix_hits_usual"] or now > limits["prefix_hits_fall"] * was:
        return
    yield finding(
        load,
        "prefix_cache_miss",
        Severity.LOW,
        f"The prefix cache hit rate fell from {percent(was)} to {percent(now)}{named(course)}: "
        "prompts that shared a prefix no longer do, or the prefixes were evicted.",
        "Look for what changed: prompt template (a time or user id early in it), router, a cache "
        "too full to keep prefixes.",
        cause="prefix_cache_miss",
        more={"prefix_hit_percent": percent_number(now), "before_percent": percent_number(was)},
    )


def _host(course: Course, load: Load) -> Iterator[Finding]:
    """Steps that take the host longer than the GPU (TensorRT-LLM prints both)."""
    steps = [
        (s.readings["host_ms"], s.readings["device_ms"])
        for s in course.kept
        if s.readings.get("device_ms") and s.readings.get("running")
    ]
    if len(steps) < 3:
        return
    host = sum(h for h, _ in steps) / len(steps)
    device = sum(d for _, d in steps) / len(steps)
    if host < _HOST_RATIO * device:
        return
    yield finding(
        load,
        "engine_cpu_bound",
        Severity.MEDIUM,
        f"A step takes the host {number(host)} ms and the GPU {number(device)} ms (means of "
        f"{len(steps)} steps): the engine's CPU side sets the pace.",
        "Give the engine's processes cores of their own, use the overlap scheduler and CUDA "
        "graphs; py-spy record --pid PID shows where the time goes.",
        cause="engine_cpu_bound",
        more={"host_step_ms": round(host, 3), "device_step_ms": round(device, 3)},
    )
