"""The metrics of SGLang, Text Generation Inference, trtllm-serve and Triton with TensorRT-LLM.

Sources of names: sglang ``metrics_collector.py`` at 0.5.23; TGI's router; TensorRT-LLM's
``metrics`` at ``/prometheus/metrics``; Triton's ``docs/user_guide/metrics.md`` and the TensorRT-LLM
backend's README.
"""

from __future__ import annotations

import numpy as np

from engine.samples import RawSeries
from engine.simulate.scenarios.recorder import Recorder
from engine.simulate.scenarios.serving import State
from engine.simulate.scenarios.serving_vllm import ITL_S, REQUEST_S, TTFT_S


def sglang(record: Recorder, state: State, model: str) -> list[RawSeries]:
    """Return what one SGLang scheduler exports with ``--enable-metrics``."""
    labels = {"model_name": model, "engine_type": "unified", "tp_rank": "0", "pp_rank": "0",
              "moe_ep_rank": "0"}  # fmt: skip
    load, rps = state.load, state.rps
    record.gauge("sglang:num_running_reqs", state.batch(record.rng), labels)
    record.shaky("sglang:num_queue_reqs", state.waiting, labels, whole=True, spread=0.08)
    usage = np.clip(state.kv + record.rng.normal(0.0, 0.008, record.ts.size), 0.0, 1.0)
    record.gauge("sglang:token_usage", usage, labels)
    record.gauge("sglang:num_used_tokens", np.round(usage * state.engine.kv_tokens), labels)
    record.gauge("sglang:max_total_num_tokens", state.engine.kv_tokens, labels)
    record.shaky("sglang:gen_throughput", rps * load.output, labels)
    record.shaky("sglang:cache_hit_rate", load.hit, labels, hi=1.0)
    record.count("sglang:num_retracted_requests_total", rps * load.preempted, labels)
    record.count("sglang:prompt_tokens_total", rps * load.prompt, labels, whole=False)
    record.count("sglang:generation_tokens_total", rps * load.output, labels, whole=False)
    hits = rps * load.prompt * load.hit
    record.count("sglang:cached_tokens_total", hits, labels, whole=False)
    record.count("sglang:num_requests_total", rps, labels)
    record.count("sglang:num_aborted_requests_total", rps * load.aborted, labels)
    done, gaps = record.events(rps), record.events(rps * load.output)
    record.histogram("sglang:time_to_first_token_seconds", done, [(1.0, state.ttft_s)], TTFT_S,
                     labels)  # fmt: skip
    record.histogram("sglang:inter_token_latency_seconds", gaps, [(1.0, state.itl_s)], ITL_S,
                     labels, shape=6.0)  # fmt: skip
    whole = state.ttft_s + state.decode_s
    record.histogram("sglang:e2e_request_latency_seconds", done, [(1.0, whole)], REQUEST_S, labels)
    queue = np.maximum(state.queue_s, 0.0005)
    record.histogram("sglang:queue_time_seconds", done, [(1.0, queue)], TTFT_S, labels)
    return record.series


def tgi(record: Recorder, state: State) -> list[RawSeries]:
    """Return what one TGI router exports; it names no model, the target's labels have to."""
    load, rps = state.load, state.rps
    record.gauge("tgi_batch_current_size", state.batch(record.rng))
    record.shaky("tgi_queue_size", state.waiting, whole=True, spread=0.08)
    record.count("tgi_request_count", rps)
    record.count("tgi_request_success", rps * (1.0 - record.wide(load.failed)))
    record.count("tgi_request_failure", rps * load.failed, {"err": "generation"})
    queue, done = np.maximum(state.queue_s, 0.0005), record.events(rps)
    spans = {
        "tgi_request_duration": state.ttft_s + state.decode_s,
        "tgi_request_queue_duration": queue,
        "tgi_request_inference_duration": state.prefill_s + state.decode_s,
        "tgi_request_mean_time_per_token_duration": state.itl_s,
    }
    for name, mean in spans.items():
        record.histogram(name, done, [(1.0, mean)], TTFT_S)
    for name, tokens in (("tgi_request_input_length", load.prompt),
                         ("tgi_request_generated_tokens", load.output)):  # fmt: skip
        record.histogram(name, done, [(1.0, tokens)], (64, 256, 1024, 4096, 16384), shape=3.0)
    return record.series


def trtllm(record: Recorder, state: State, model: str) -> list[RawSeries]:
    """Return what trtllm-serve exports."""
    labels = {"model_name": model, "engine_type": "trtllm"}
    load, rps = state.load, state.rps
    record.gauge("trtllm_num_requests_running", state.batch(record.rng), labels)
    record.shaky("trtllm_num_requests_waiting", state.waiting, labels, whole=True, spread=0.08)
    usage = np.clip(state.kv + record.rng.normal(0.0, 0.006, record.ts.size), 0.0, 1.0)
    record.gauge("trtllm_kv_cache_utilization", usage, labels)
    record.shaky("trtllm_kv_cache_hit_rate", load.hit, labels, hi=1.0)
    record.count("trtllm_request_success_total", rps, {**labels, "finished_reason": "stop"})
    record.count("trtllm_prompt_tokens_total", rps * load.prompt, labels, whole=False)
    record.count("trtllm_generation_tokens_total", rps * load.output, labels, whole=False)
    spans = {
        "time_to_first_token": (state.ttft_s, TTFT_S),
        "time_per_output_token": (state.itl_s, ITL_S),
        "e2e_request_latency": (state.ttft_s + state.decode_s, REQUEST_S),
        "request_queue_time": (np.maximum(state.queue_s, 0.0005), REQUEST_S),
    }
    done = record.events(rps)
    for name, (mean, bounds) in spans.items():
        record.histogram(f"trtllm_{name}_seconds", done, [(1.0, mean)], bounds, labels)
    return record.series


def triton(record: Recorder, state: State, model: str) -> list[RawSeries]:
    """Return what Triton with the TensorRT-LLM backend exports; durations are in microseconds."""
    labels = {"model": model, "version": "1"}
    load, rps = state.load, state.rps
    failed = record.wide(load.failed)
    record.count("nv_inference_request_success", rps * (1.0 - failed), labels)
    for reason, share in (("BACKEND", failed), ("REJECTED", 0.0 * failed), ("OTHER", 0.0 * failed)):
        record.count("nv_inference_request_failure", rps * share, {**labels, "reason": reason})
    record.count("nv_inference_count", rps, labels)
    record.count("nv_inference_exec_count", rps, labels)
    queue, compute = state.queue_s, state.prefill_s + state.decode_s
    for name, mean in (("request", queue + compute), ("queue", queue), ("compute_infer", compute)):
        record.count(f"nv_inference_{name}_duration_us", rps * mean * 1e6, labels, whole=False)
    record.shaky("nv_inference_pending_request_count", state.waiting, labels, whole=True,
                 spread=0.08)  # fmt: skip
    top = float(state.engine.max_seqs)
    for kind, value in (("active", state.running + state.waiting), ("scheduled", state.running),
                        ("max", record.wide(top)), ("waiting", state.waiting)):  # fmt: skip
        record.gauge("nv_trt_llm_request_metrics", np.round(value),
                     {**labels, "request_type": kind})  # fmt: skip
    blocks = state.engine.kv_tokens // 64
    used = np.round(state.kv * blocks)
    for kind, value in (("fraction", used / blocks), ("used", used), ("free", blocks - used),
                        ("max", record.wide(blocks))):  # fmt: skip
        record.gauge("nv_trt_llm_kv_cache_block_metrics", value,
                     {**labels, "kv_cache_block_type": kind})  # fmt: skip
    return record.series
