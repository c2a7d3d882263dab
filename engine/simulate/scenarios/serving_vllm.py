"""The metrics of vLLM: V1 as of 2026, V1 of 2025 with both spellings, and V0.

Names, labels and buckets are those of ``vllm/v1/metrics/loggers.py`` and ``buckets.py`` at 0.33.0,
0.10.2 and of ``vllm/engine/metrics.py`` at 0.8.5.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from engine.samples import RawSeries
from engine.simulate.scenarios.recorder import Recorder
from engine.simulate.scenarios.serving import State

TTFT_S = (.001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80,
          160, 640, 2560)  # fmt: skip
ITL_S = (.01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40,
         80)  # fmt: skip
REQUEST_S = (.3, .5, .8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920,
             7680)  # fmt: skip
# 1, 2, 5, 10 … up to the model's context, as build_1_2_5_buckets makes them.
TOKENS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000)
STEP_TOKENS = (1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)


def vllm(
    record: Recorder, state: State, model: str, engine: str = "0", *, version: str = "v1",
) -> list[RawSeries]:  # fmt: skip
    """Return the series of one engine.

    Args:
        record: where series go; carries the labels of the target.
        state: what the engine shows.
        model: the label ``model_name``.
        engine: index of the data-parallel engine.
        version: ``v1`` (0.16 and later), ``v1-2025`` (0.10: old and new names) or ``v0`` (no label
            ``engine``).
    """
    labels = {"model_name": model} if version == "v0" else {"model_name": model, "engine": engine}
    _gauges(record, state, labels, version)
    _counters(record, state, labels, version)
    _latencies(record, state, labels, version)
    return record.series


def _gauges(record: Recorder, state: State, labels: Mapping[str, str], version: str) -> None:
    record.gauge("vllm:num_requests_running", state.batch(record.rng), labels)
    deferred = record.wide(state.load.deferred)
    noise = 1.0 + 0.08 * record.rng.standard_normal(record.ts.size).clip(-2, 2)
    capacity, deferred = np.round(state.waiting * noise), np.round(deferred * noise)
    record.gauge("vllm:num_requests_waiting", capacity + deferred, labels)
    kv = np.clip(state.kv + record.rng.normal(0.0, 0.008, record.ts.size), 0.0, 1.0)
    if version == "v1":
        for reason, values in (("capacity", capacity), ("deferred", deferred)):
            record.gauge("vllm:num_requests_waiting_by_reason", values,
                         {**labels, "reason": reason})  # fmt: skip
    if version != "v0":
        record.gauge("vllm:kv_cache_usage_perc", kv, labels)
    if version != "v1":
        record.gauge("vllm:gpu_cache_usage_perc", kv, labels)
    if version == "v0":
        swapped = np.where(record.wide(state.load.preempted) > 0, np.round(state.waiting / 3), 0.0)
        record.gauge("vllm:num_requests_swapped", swapped, labels)
        record.gauge("vllm:cpu_cache_usage_perc", np.minimum(swapped / 40.0, 1.0), labels)
    config = {
        "block_size": "16", "num_gpu_blocks": str(int(state.engine.kv_tokens // 16)),
        "cache_dtype": "auto", "gpu_memory_utilization": "0.9", "enable_prefix_caching": "True",
    }  # fmt: skip
    if np.all(record.wide(state.load.hit) == 0.0):
        config["enable_prefix_caching"] = "False"
    record.gauge("vllm:cache_config_info", 1.0, {**labels, **config})


def _counters(record: Recorder, state: State, labels: Mapping[str, str], version: str) -> None:
    load, rps = state.load, state.rps
    prompt = rps * record.wide(load.prompt)
    hits = prompt * record.wide(load.hit)
    record.count("vllm:prompt_tokens_total", prompt, labels, whole=False)
    record.count("vllm:generation_tokens_total", rps * load.output, labels, whole=False)
    record.count("vllm:num_preemptions_total", rps * load.preempted, labels)
    if version == "v0":
        caching = hits.any()
        record.gauge("vllm:gpu_prefix_cache_hit_rate", load.hit if caching else -1.0, labels)
    elif hits.any():
        record.count("vllm:prefix_cache_queries_total", prompt, labels, whole=False)
        record.count("vllm:prefix_cache_hits_total", hits, labels, whole=False)
    if version == "v1":
        for source, rate in (("local_compute", prompt - hits), ("local_cache_hit", hits)):
            record.count("vllm:prompt_tokens_by_source_total", rate, {**labels, "source": source},
                         whole=False)  # fmt: skip
    aborted, failed = record.wide(load.aborted), record.wide(load.failed)
    good = np.clip(1.0 - aborted - failed, 0.0, 1.0)
    ends = {"stop": good * 0.86, "length": good * 0.14, "abort": aborted}
    if version == "v1":
        ends["error"] = failed
    for reason, share in ends.items():
        record.count("vllm:request_success_total", rps * share,
                     {**labels, "finished_reason": reason})  # fmt: skip
    if np.any(record.wide(load.rejected)):
        refused = {"model_name": labels["model_name"], "reason": "max_num_queued_reqs"}
        record.count("vllm:admission_rejections_total", load.rejected, refused)


def _latencies(record: Recorder, state: State, labels: Mapping[str, str], version: str) -> None:
    load = state.load
    done = record.events(state.rps)
    gaps = record.events(state.rps * np.maximum(record.wide(load.output) - 1.0, 0.0))
    stalls = record.wide(load.stall_share)
    calm = np.maximum(state.itl_s - stalls * load.stall_s, 0.002) / np.maximum(1.0 - stalls, 0.05)
    itl = [(1.0 - stalls, calm), (stalls, record.wide(load.stall_s))]
    record.histogram(
        "vllm:time_to_first_token_seconds", done, [(1.0, state.ttft_s)], TTFT_S, labels
    )
    if version != "v0":
        record.histogram("vllm:inter_token_latency_seconds", gaps, itl, ITL_S, labels, shape=6.0)
    if version != "v1":
        record.histogram("vllm:time_per_output_token_seconds", gaps, itl, ITL_S, labels, shape=6.0)
    spans = {
        "e2e_request_latency": state.ttft_s + state.decode_s,
        "request_queue_time": np.maximum(state.queue_s, 0.0005),
        "request_prefill_time": state.prefill_s,
        "request_decode_time": state.decode_s,
        "request_inference_time": state.prefill_s + state.decode_s,
    }
    for name, mean in spans.items():
        record.histogram(f"vllm:{name}_seconds", done, [(1.0, mean)], REQUEST_S, labels)
    record.histogram("vllm:request_prompt_tokens", done, [(1.0, load.prompt)], TOKENS, labels,
                     shape=3.0)  # fmt: skip
    record.histogram("vllm:request_generation_tokens", done, [(1.0, load.output)], TOKENS, labels,
                     shape=3.0)  # fmt: skip
    steps = record.events(1.0 / np.maximum(state.itl_s, 1e-3))
    # A step that stalls decodes carries as much of a prompt as one step may.
    per_step = [(1.0 - stalls, np.minimum(state.step_tokens, state.engine.max_tokens)),
                (stalls, record.wide(0.95 * state.engine.max_tokens))]  # fmt: skip
    record.histogram("vllm:iteration_tokens_total", steps, per_step, STEP_TOKENS, labels)
    if version == "v1":
        computed = record.wide(load.prompt) * (1.0 - record.wide(load.hit))
        record.histogram("vllm:request_prefill_kv_computed_tokens", done, [(1.0, computed)], TOKENS,
                         labels, shape=3.0)  # fmt: skip


def frontend(record: Recorder, state: State, *, cpu: float = 0.25, refused: str = "5xx") -> None:
    """Add the HTTP layer and the API server's process: ``http_*`` and ``process_*``.

    Args:
        record: where series go.
        state: what the engine shows; failed and rejected requests are answered with ``refused``.
        cpu: CPU that the API server's process uses (cores).
        refused: status class of answers to failed and rejected requests.
    """
    path = {"handler": "/v1/chat/completions", "method": "POST"}
    bad = state.rps * state.load.failed + state.load.rejected
    good = state.rps * (1.0 - record.wide(state.load.failed))
    for status, rate in (("2xx", good), ("4xx", state.rps * 0.004), (refused, bad)):
        record.count("http_requests_total", rate, {**path, "status": status})
    mean = state.ttft_s + state.decode_s + 0.004
    answered = record.events(good)
    record.histogram("http_request_duration_seconds", answered, [(1.0, mean)],
                     (.1, .5, 1, 5, 10, 30), path)  # fmt: skip
    record.count("process_cpu_seconds_total", cpu, whole=False)
    started = record.ts[-1] - record.rng.uniform(1.0, 9.0) * 86_400.0
    record.gauge("process_start_time_seconds", float(np.round(started, 2)))
