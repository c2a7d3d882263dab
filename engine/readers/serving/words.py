"""Numbers of services in words, and the sentence that sums one up."""

from __future__ import annotations

import math
from typing import Any

from engine.readers.serving.load import Engine, Load
from engine.units import number

_MAX_ENGINES_SHOWN = 8
_LATENCIES = (
    ("ttft", "time to first token"),
    ("itl", "time between tokens"),
    ("queue_time", "time in the queue"),
    ("prefill_time", "prefill"),
    ("e2e", "whole request"),
)


def percent(ratio: float) -> str:
    """Write a ratio as percent: ``97 %``, ``86.1 %``, ``0.000975 %``."""
    return f"{100 * ratio:.3g} %"


def percent_number(ratio: float) -> float:
    """Return a ratio as percent, without the noise of its binary form."""
    return round(100 * ratio, 6)


def seconds(value: float) -> str:
    """Write a time of serving: ``35 ms``, ``2.4 s``, ``3 min``."""
    if value < 1:
        return f"{1000 * value:.3g} ms"
    return f"{value:.3g} s" if value < 120 else f"{value / 60:.3g} min"


def count(value: float, noun: str) -> str:
    """Write a number of things: ``1 request``, ``41 requests``."""
    return f"{number(value)} {noun}{'' if value == 1 else 's'}"


def engine_words(engine: Engine) -> str:
    """Say what one engine does: ``41 running, 17 waiting, KV cache 97 %``."""
    parts = [
        f"{number(engine.now[q])} {word}"
        for q, word in (("running", "running"), ("waiting", "waiting"))
        if q in engine.now
    ]
    if "kv_usage" in engine.now:
        parts.append(f"KV cache {percent(engine.now['kv_usage'])}")
    return ", ".join(parts)


def summary(load: Load) -> str:
    """Sum a service up in one to a few sentences."""
    several = len(load.engines) > 1
    parts = [_requests(load, several=several)]
    parts.append(_cache(load, several=several))
    if several and any(engine_words(e) for e in load.engines.values()):
        parts.append(_each(load))
    parts += [_preemptions(load), _prefix(load), _latencies(load), _means(load), _tokens(load)]
    parts += [_lengths(load), _steps(load)]
    parts.append(_totals(load))
    said = [part for part in parts if part]
    head = f"{load.called}{f' ({len(load.engines)} engines)' if several else ''}: "
    return head + (" ".join(said) if said else "nothing that its load could be told from.")


def data(load: Load) -> dict[str, Any]:
    """Return the readings of a service as finding data."""
    out: dict[str, Any] = {"server": load.server, "engines": max(1, len(load.engines))}
    if load.model:
        out["model"] = load.model
    for quantity in ("running", "waiting", "deferred", "swapped"):
        value = load.total(quantity)
        if value is not None:
            out[quantity] = int(value) if value == int(value) else value
    usage = load.mean("kv_usage")
    if usage is not None:
        out["kv_cache_percent"] = percent_number(usage)
        if load.cache_blocks and load.block_tokens:
            out["kv_cache_tokens"] = load.cache_blocks * load.block_tokens
        top = load.highest("kv_usage")
        if top is not None and len(load.engines) > 1:
            out["kv_cache_max_percent"] = percent_number(top[1])
    hits = hit_rate(load)
    if hits is not None:
        out["prefix_hit_percent"] = percent_number(hits)
    preempted = load.total("preemptions")
    if preempted is not None:
        out["preemptions"] = int(preempted)
    for quantity in ("prompt_throughput", "generation_throughput"):
        value = load.total(quantity)
        if value is not None:
            out[f"{quantity}_tokens_per_s"] = round(value, 3)
    for quantity, _ in _LATENCIES:
        out |= _latency_data(load, quantity)
    return out


def hit_rate(load: Load) -> float | None:
    """Return the share of prompt tokens found in the prefix cache, None if not known."""
    rate = load.mean("prefix_hit_rate")
    if rate is not None:
        return rate
    grown = load.growth("prefix_hits"), load.growth("prefix_queries")
    hits, asked = grown if grown[1] else (load.total("prefix_hits"), load.total("prefix_queries"))
    return min(hits / asked, 1.0) if hits is not None and asked else None


def _requests(load: Load, *, several: bool) -> str:
    running, waiting = load.total("running"), load.total("waiting")
    words = []
    if running is not None:
        words.append(f"{count(running, 'request')} running")
    if waiting is not None:
        words.append(f"{number(waiting)} waiting")
    swapped = load.total("swapped")
    if swapped:
        words.append(f"{number(swapped)} swapped to the CPU")
    deferred = load.total("deferred")
    if deferred:
        words.append(f"{number(deferred)} of them held back (deferred)")
    total = " in total" if several else ""
    return f"{', '.join(words)}{total}." if words else ""


def _cache(load: Load, *, several: bool) -> str:
    mean, top = load.mean("kv_usage"), load.highest("kv_usage")
    if mean is None or top is None:
        return ""
    name = load.written.get("kv_usage", "")
    scale = f" ({name} is a fraction, 1.0 = 100 %)" if "per" in name.rpartition("_")[2] else ""
    size = ""
    if load.cache_blocks and load.block_tokens:
        tokens = load.cache_blocks * load.block_tokens
        size = f" of {number(tokens)} tokens ({load.cache_blocks} blocks of {load.block_tokens})"
    if not several:
        return f"KV cache use {percent(mean)}{size}{scale}."
    return (
        f"KV cache use {percent(mean)} on average, {percent(top[1])} at most{scale}; counts of "
        "engines add up, percentages do not."
    )


def _each(load: Load) -> str:
    engines = [(e, w) for e in load.engines.values() if (w := engine_words(e))]
    shown = "; ".join(f"{e.called}: {words}" for e, words in engines[:_MAX_ENGINES_SHOWN])
    more = len(engines) - _MAX_ENGINES_SHOWN
    return f"{shown}{f'; {more} more engines' if more > 0 else ''}."


def _preemptions(load: Load) -> str:
    grown, total = load.growth("preemptions"), load.total("preemptions")
    if total is None:
        return ""
    if grown is not None:
        return f"{count(grown, 'preemption')} {load.since}."
    return (
        f"{count(total, 'preemption')} {load.since} (a counter: one scrape cannot say when)."
        if total
        else f"No preemption {load.since}."
    )


def _prefix(load: Load) -> str:
    rate, outside = hit_rate(load), _external(load)
    if rate is None:
        return outside
    counted = load.total("prefix_queries") and load.mean("prefix_hit_rate") is None
    of = f" (of prompt tokens, not of requests; {load.since})" if counted else ""
    said = f"Prefix cache hit rate {percent(rate)}{of}."
    return f"{said} {outside}" if outside else said


def _external(load: Load) -> str:
    """What a KV connector found of the prompt tokens that it was asked for."""
    grown = load.growth("external_hits"), load.growth("external_queries")
    totals = load.total("external_hits"), load.total("external_queries")
    hits, asked = grown if grown[1] else totals
    said = load.mean("external_hit_rate")
    if said is None and hits is not None and asked:
        said = min(hits / asked, 1.0)
    if said is None:
        return ""
    return f"Hit rate of the external KV cache (connector) {percent(said)}."


def _latencies(load: Load) -> str:
    said = []
    for quantity, title in _LATENCIES:
        histogram = load.histograms.get(quantity)
        if histogram is None or not histogram.count:
            continue
        words = []
        for q, name in ((0.5, "median"), (0.99, "P99")):
            found = histogram.quantile(q)
            if found is not None:
                words.append(f"{name} {_quantile_words(found.value, found.low, found.high)}")
        if histogram.mean is not None:
            words.append(f"mean {seconds(histogram.mean)}")
        if words:
            said.append(f"{title} {', '.join(words)}")
    if not said:
        return ""
    text = "; ".join(said)
    return f"{text[0].upper()}{text[1:]} ({load.since})."


def _quantile_words(value: float, low: float, high: float) -> str:
    if math.isinf(high):
        return f"over {seconds(low)}"
    return f"under {seconds(high)}" if low == 0 else f"about {seconds(value)}"


def _tokens(load: Load) -> str:
    prompt, made = load.total("prompt_throughput"), load.total("generation_throughput")
    words = []
    if prompt is not None:
        words.append(f"{number(prompt)} prompt tokens/s")
    if made is not None:
        words.append(f"{number(made)} generated tokens/s")
    if not words and load.span_s:
        for quantity, word in (("prompt_tokens", "prompt"), ("generation_tokens", "generated")):
            grown = load.growth(quantity)
            if grown is not None:
                words.append(f"{number(grown / load.span_s)} {word} tokens/s")
    return f"{' and '.join(words)}." if words else ""


def _lengths(load: Load) -> str:
    """How long requests are: what prefill and decoding have to do."""
    words = []
    for quantity, word in (("prompt_length", "prompt"), ("output_length", "answer")):
        histogram = load.histograms.get(quantity)
        mean = histogram.mean if histogram else None
        if mean is not None and math.isfinite(mean):
            words.append(f"{word}s {number(round(mean))}")
    return f"Tokens of a request in the mean: {', '.join(words)}." if words else ""


def _steps(load: Load) -> str:
    """Tokens of one engine step: a histogram, in spite of its name."""
    steps = load.histograms.get("step_tokens")
    if steps is None or steps.mean is None or not math.isfinite(steps.mean):
        return ""
    name = load.written.get("step_tokens", "")
    return f"{number(round(steps.mean))} tokens per engine step in the mean ({name}: a histogram)."


def _means(load: Load) -> str:
    """Means that Triton's cumulative times give."""
    finished = load.growth("finished")
    grown = finished is not None
    if finished is None:
        finished = load.total("finished")
    whole = load.growth("request_time") if grown else load.total("request_time")
    if not finished or whole is None:
        return ""
    words = [f"A request takes {seconds(whole / finished)} in the mean"]
    for quantity, word in (("queue_time_total", "queue"), ("compute_time_total", "model")):
        spent = load.growth(quantity) if grown else load.total(quantity)
        if spent is not None:
            words.append(f"{word} {seconds(spent / finished)}")
    return f"{', '.join(words)} ({load.since})."


def _totals(load: Load) -> str:
    """Say that one scrape of counters holds no rate."""
    if load.total("running") is not None or load.total("waiting") is not None:
        return ""
    totals = [
        f"{number(total)} {word}"
        for quantity, word in (
            ("prompt_tokens", "prompt tokens"),
            ("generation_tokens", "generated tokens"),
            ("finished", "finished requests"),
        )
        if (total := load.total(quantity)) is not None and load.growth(quantity) is None
    ]
    if not totals:
        return ""
    return (
        f"{', '.join(totals)} {load.since}: counters alone, so no rate and no load of this moment "
        "can be told from one scrape. Two, some seconds apart, in one paste show them."
    )


def _latency_data(load: Load, quantity: str) -> dict[str, float]:
    histogram = load.histograms.get(quantity)
    if histogram is None or not histogram.count:
        return {}
    out: dict[str, float] = {f"{quantity}_count": histogram.count}
    if histogram.mean is not None:
        out[f"{quantity}_mean_s"] = round(histogram.mean, 6)
    for q, name in ((0.5, "p50"), (0.99, "p99")):
        found = histogram.quantile(q)
        if found is not None and not found.open:
            out[f"{quantity}_{name}_s"] = round(found.value, 6)
    return out
