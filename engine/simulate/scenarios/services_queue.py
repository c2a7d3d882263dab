"""Services short of room: KV cache, slots in the batch, limits at the door, uneven replicas."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from engine.samples import Floats, RawSeries
from engine.simulate.scenarios.base import Make, Severity
from engine.simulate.scenarios.nvidia_boards import DECODE
from engine.simulate.scenarios.recorder import Recorder
from engine.simulate.scenarios.services_base import (
    LoadOf,
    onset,
    replica,
    service,
    single,
    ups_and_downs,
)
from engine.simulate.scenarios.serving import (
    HUGE,
    LARGE,
    MEDIUM,
    SMALL,
    Engine,
    Load,
    State,
    settle,
)
from engine.simulate.scenarios.serving_peers import sglang, tgi, triton, trtllm
from engine.simulate.scenarios.serving_vllm import vllm

# Long chats: one request holds some 6,300 tokens, so that memory ends before slots do.
_CHAT = Load(prompt=6000.0, output=600.0, hit=0.55)


def _fits(engine: Engine, load: Load) -> float:
    return float(engine.kv_tokens / (np.mean(load.prompt) + np.mean(load.output) / 2.0))


def _pressure(engine: Engine) -> LoadOf:
    """KV cache nearly full, every request still fits: a share of 0.92 to 0.955."""

    def load(rng: np.random.Generator, severity: Severity, ts: Floats) -> Load:
        users = _fits(engine, _CHAT) * severity.pick(0.92, 0.94, 0.955)
        return replace(_CHAT, users=onset(rng, ts, users * 0.6, users))

    return load


def _cascade(engine: Engine) -> LoadOf:
    """More than fits: requests are preempted and computed again."""

    def load(rng: np.random.Generator, severity: Severity, ts: Floats) -> Load:
        fits = _fits(engine, _CHAT)
        users = onset(rng, ts, fits * 0.75, fits * severity.pick(1.12, 1.4, 2.2))
        full = (users > fits).astype(np.float64)
        return replace(_CHAT, users=users, preempted=full * severity.pick(0.08, 0.4, 1.3))

    return load


def _saturated(engine: Engine) -> LoadOf:
    """All slots taken, KV cache half empty; what waits is a tenth of the slots up to twice them."""

    def load(rng: np.random.Generator, severity: Severity, ts: Floats) -> Load:
        seqs = float(engine.max_seqs)
        users = onset(rng, ts, seqs * 0.7, seqs * severity.pick(1.12, 1.5, 3.0))
        kv = engine.kv_tokens * 0.45 / seqs
        return Load(users=users, prompt=kv * 0.8, output=kv * 0.4, hit=0.3)

    return load


def _peer(
    name: str, app: str, engine: Engine, load: LoadOf, write: Callable[[Recorder, State], object],
) -> Make:  # fmt: skip
    def make(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
        record = replica(rng, app, server=name)
        if name == "tgi":
            record.labels["model_name"] = "mistralai/Mixtral-8x7B-Instruct-v0.1"
        what = load(rng, severity, record.ts)
        what = replace(what, users=ups_and_downs(rng, what.users, record.ts.size))
        write(record, settle(engine, what, record.ts.size))
        return record.series

    return make


def _few_slots(rng: np.random.Generator, severity: Severity, ts: Floats) -> Load:
    """A limit of 16 sequences left over from a test, on a GPU that could do far more."""
    users = onset(rng, ts, 11.0, severity.pick(24.0, 50.0, 150.0))
    return Load(users=users, prompt=700.0, output=300.0, hit=0.4)


def _refused(rng: np.random.Generator, severity: Severity, ts: Floats) -> Load:
    """``max_num_queued_reqs`` refuses what comes on top (HTTP 503); those admitted are fine."""
    users = onset(rng, ts, 40.0, 70.0)
    rejected = np.where(users > 60.0, severity.pick(0.4, 2.0, 12.0), 0.0)
    return Load(users=users, prompt=800.0, output=250.0, rejected=rejected)


# A batch of 16 takes about as long as one of 4: much of each step the GPU waits for memory.
_SPARE = DECODE.but(gr=0.8, sm=0.35, dram=0.38, tensor=0.03, power=0.3)
_LIMITED = replace(LARGE, max_seqs=64)


def _data_parallel(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    """Four engines behind one API server; engine 2 gets what belongs to all."""
    record = replica(rng, "deepseek-v3")
    n = record.ts.size
    fits = _fits(HUGE, _CHAT)
    for index in range(4):
        share = severity.pick(0.3, 0.2, 0.1)
        if index == 2:
            share = severity.pick(1.08, 1.25, 1.6)
        users = ups_and_downs(rng, fits * share * rng.uniform(0.9, 1.05), n)
        state = settle(HUGE, replace(_CHAT, users=users), n)
        vllm(record, state, "deepseek-ai/DeepSeek-V3", str(index))
    return record.series


def _replicas(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    """Four replicas behind a router that sticks to one: its slots are full, the others' empty."""
    found = []
    few = replace(MEDIUM, max_seqs=64)
    for index in range(4):
        record = replica(rng, "qwen2-5-32b-instruct", index, step_s=15.0)
        n = record.ts.size
        level = severity.pick(22.0, 14.0, 5.0)
        if index == 1:
            level = severity.pick(84.0, 120.0, 260.0)
        load = Load(users=ups_and_downs(rng, level, n), prompt=900.0, output=400.0)
        found += vllm(record, settle(few, load, n), "Qwen/Qwen2.5-32B-Instruct")
    return found


_70B = "meta-llama/Llama-3.1-70B-Instruct"
_8B = "meta-llama/Llama-3.1-8B-Instruct"

SCENARIOS = (
    service("kv-cache-pressure-vllm", "KV cache nearly full, nothing preempted yet", _70B,
             ("kv_cache_pressure",), single(_70B, LARGE, _pressure(LARGE), under=DECODE)),
    service("kv-cache-pressure-trtllm", "KV cache of trtllm-serve nearly full", _8B,
             ("kv_cache_pressure",), _peer("trtllm", "llama-8b", SMALL, _pressure(SMALL),
                                           lambda r, s: trtllm(r, s, _8B))),
    service("kv-cache-cascade-vllm", "KV cache full, requests preempted", _70B,
             ("kv_cache_cascade",), single(_70B, LARGE, _cascade(LARGE), under=DECODE)),
    service("kv-cache-cascade-v0", "KV cache of an old vLLM full, requests preempted and swapped",
             _8B, ("kv_cache_cascade",), single(_8B, SMALL, _cascade(SMALL), versions=("v0",))),
    service("kv-cache-cascade-sglang", "SGLang retracts requests for lack of tokens", _70B,
             ("kv_cache_cascade",), _peer("sglang", "llama-70b", LARGE, _cascade(LARGE),
                                          lambda r, s: sglang(r, s, _70B))),
    service("queue-saturation-vllm", "All slots taken while the KV cache has room", _8B,
             ("queue_saturation", "admission_limit"),
             single(_8B, SMALL, _saturated(SMALL), under=DECODE)),
    service("queue-saturation-tgi", "TGI's queue grows at a full batch",
             "mistralai/Mixtral-8x7B-Instruct-v0.1", ("queue_saturation", "admission_limit"),
             _peer("tgi", "mixtral", _LIMITED, _saturated(_LIMITED), tgi)),
    service("queue-saturation-triton", "TensorRT-LLM in Triton: scheduled at its maximum",
             "tensorrt_llm", ("queue_saturation", "admission_limit"),
             _peer("triton", "triton-llama", _LIMITED, _saturated(_LIMITED),
                   lambda r, s: triton(r, s, "tensorrt_llm"))),
    service("admission-limit-seqs", "max_num_seqs of 16 holds requests back", _8B,
             ("admission_limit", "queue_saturation"),
             single(_8B, replace(SMALL, max_seqs=16), _few_slots, under=_SPARE)),
    service("admission-limit-rejections", "Requests refused at a queue limit", _70B,
             ("admission_limit",), single(_70B, LARGE, _refused, versions=("v1",))),
    service("engine-imbalance-dp", "One data-parallel engine is full, three are not",
             "deepseek-ai/DeepSeek-V3", ("engine_imbalance",), _data_parallel),
    service("engine-imbalance-replicas", "One replica queues, three idle",
             "Qwen/Qwen2.5-32B-Instruct", ("engine_imbalance",), _replicas),
)  # fmt: skip
