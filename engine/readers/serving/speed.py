"""Why answers are slow without a queue: decoding, the front end, drafts, the prefix cache."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from engine.model import Finding, Severity
from engine.readers.serving.advice import PREFILL, more_slots
from engine.readers.serving.finding import FEW, Limits, counted, crowded, finding, mean_of
from engine.readers.serving.load import Load
from engine.readers.serving.words import hit_rate, percent, percent_number, seconds
from engine.units import number


def drafts(load: Load, limits: Limits) -> Iterator[Finding]:
    """Yield how many drafted tokens survive in speculative decoding, and what a step gains."""
    drafted, accepted = counted(load, "draft_tokens"), counted(load, "accepted_tokens")
    steps = counted(load, "drafts")
    rate = accepted / drafted if drafted else load.mean("accept_rate")
    gained = accepted / steps if steps else None
    length = load.mean("accept_length")
    if gained is None and length is not None:
        gained = max(length - 1, 0.0)
    if rate is None or (drafted and drafted < FEW):
        return
    more: dict[str, Any] = {"acceptance_percent": percent_number(rate)}
    if gained is not None:
        more["accepted_per_step"] = round(gained, 3)
    low = rate < limits["spec_accept_poor"] or (
        rate < limits["spec_accept_low"] and (gained is None or gained < 1)
    )
    said = f"Speculative decoding: {percent(rate)} of the drafted tokens are accepted"
    if gained is not None:
        said += f", {number(gained)} per step on top of the model's own"
    if steps and load.positions:
        by_position = [percent(load.positions[p] / steps) for p in sorted(load.positions)]
        said += f" (by position in the draft: {', '.join(by_position)})"
    yield finding(
        load,
        "spec_decode_mismatch" if low else "spec_decode",
        Severity.LOW if low else Severity.INFO,
        said
        + (": the draft fits the traffic badly and costs more than it may bring." if low else "."),
        "Try fewer speculative tokens, a draft trained for this model and traffic, or none, and "
        "compare tokens per second."
        if low
        else "Nothing to do.",
        cause="spec_decode_mismatch" if low else None,
        more=more,
        sources=limits.source("spec_accept_low") if low else (),
    )


def slow(load: Load, limits: Limits) -> Iterator[Finding]:
    """Yield that tokens come slowly although nothing waits."""
    histogram = load.histograms.get("itl")
    mean = histogram.mean if histogram and (histogram.count or 0) >= FEW else None
    running, made = load.total("running"), load.total("generation_throughput")
    if mean is None and running and made and not load.total("prompt_throughput"):
        mean = running / made
    if mean is None or mean < limits["token_gap_slow"] or load.total("waiting"):
        return
    yield finding(
        load,
        "decode_slow",
        Severity.LOW,
        f"{seconds(mean)} a token and request ({number(1 / mean)} tokens/s each) with an empty "
        "queue: decoding itself is slow.",
        "Look at the GPUs: SM clock, throttle reasons and memory bandwidth; then at the batch "
        "size, CUDA graphs (no --enforce-eager), tensor parallelism over a slow link, CPU "
        "offloading.",
        cause="decode_slow",
        more={"token_gap_s": round(mean, 6)},
        sources=limits.source("token_gap_slow"),
    )


def front(load: Load, limits: Limits) -> Iterator[Finding]:
    """Yield a time to first token that neither the queue nor prefill explains."""
    parts = [mean_of(load, q) for q in ("ttft", "queue_time", "prefill_time")]
    if any(p is None for p in parts) or crowded(load, limits):
        return
    first, queue, prefill = (p or 0.0 for p in parts)
    gap = first - queue - prefill
    if gap < limits["front_end_gap"] or gap < limits["latency_part"] * first:
        return
    yield finding(
        load,
        "api_server_cpu_bound",
        Severity.MEDIUM,
        f"Of {seconds(first)} to the first token {seconds(queue)} are queue and {seconds(prefill)} "
        f"prefill; {seconds(gap)} are spent in front of the engine (tokenising, HTTP, network "
        f"between processes; means {load.since}).",
        "See whether the API server keeps a core busy (py-spy top --pid PID); give it more cores, "
        "or more API servers (--api-server-count).",
        cause="api_server_cpu_bound",
        more={"front_end_s": round(gap, 6)},
    )


def first_token(load: Load, limits: Limits) -> Iterator[Finding]:
    """Yield what makes the first token slow in the mean, where no queue of now explains it."""
    histogram = load.histograms.get("ttft")
    mean = histogram.mean if histogram and (histogram.count or 0) >= FEW else None
    usage = load.highest("kv_usage")
    full = usage is not None and usage[1] >= limits["kv_cache_pressure"]
    if mean is None or mean < limits["first_token_slow"] or crowded(load, limits) or full:
        return
    queue, prefill = mean_of(load, "queue_time"), mean_of(load, "prefill_time")
    says = f"{seconds(mean)} to the first token in the mean ({load.since})"
    cause = None
    if queue is not None and queue >= limits["latency_part"] * mean:
        cause, action = "queue_saturation", more_slots(load.server)
        says += f", {seconds(queue)} of them in the queue."
    elif prefill is not None and prefill >= limits["latency_part"] * mean:
        cause, action = "prefill_bound", PREFILL
        says += f", {seconds(prefill)} of them prefill: long prompts, or slow ones."
    elif queue is None or prefill is None:
        says += "; what it is spent on is not in this text."
        action = "Compare the histograms of queue time and prefill time of the same scrape."
    else:
        return
    yield finding(
        load,
        "first_token_slow",
        Severity.LOW,
        says,
        action,
        cause=cause,
        more={"ttft_mean_s": round(mean, 6)},
        sources=limits.source("first_token_slow"),
    )


def prefix(load: Load, limits: Limits) -> Iterator[Finding]:
    """Yield a hit rate that collapsed between two scrapes."""
    hits, asked = load.growth("prefix_hits"), load.growth("prefix_queries")
    before = sum(e.before.get("prefix_queries", 0.0) for e in load.engines.values())
    if hits is None or not asked or not before:
        return
    was = sum(e.before.get("prefix_hits", 0.0) for e in load.engines.values()) / before
    now = hit_rate(load) or 0.0
    if was < limits["prefix_hits_usual"] or now > limits["prefix_hits_fall"] * was:
        return
    yield finding(
        load,
        "prefix_cache_miss",
        Severity.LOW,
        f"The prefix cache hit rate fell from {percent(was)} (until the first scrape) to "
        f"{percent(now)}: prompts that shared a prefix no longer do, or it was evicted.",
        "Look for what changed: prompt template (a time or user id early in it), router, restart, "
        "a KV cache that is too full to keep prefixes.",
        cause="prefix_cache_miss",
        more={"prefix_hit_percent": percent_number(now), "before_percent": percent_number(was)},
    )
