"""Messages by which LLM servers say that they did not start, died or refuse requests."""

from __future__ import annotations

import re
from dataclasses import dataclass

from engine.model import Severity

_GIB = r"(-?\d{1,6}(?:\.\d{1,4})?) ?GiB?"
_SOURCE = ("vllm-project/vllm, messages of 0.6 to 0.33",)


@dataclass(frozen=True, slots=True)
class FailureKind:
    """A message: its pattern, what it means, what to do, and the cause that it is evidence of."""

    id: str
    pattern: re.Pattern[str]
    says: str
    action: str
    cause: str | None
    severity: Severity = Severity.HIGH
    names: tuple[str, ...] = ()
    sources: tuple[str, ...] = _SOURCE


# vllm-project/vllm v1/core/kv_cache_utils.py, v1/worker/gpu_worker.py, worker/worker.py;
# sgl-project/sglang managers/scheduler.py, model_executor/model_runner.py;
# huggingface/text-generation-inference launcher; triton-inference-server/server.
KINDS: tuple[FailureKind, ...] = (
    FailureKind(
        "no_cache_memory",
        re.compile(r"No available memory for the cache blocks"),
        "Weights and activations leave no memory for the KV cache, so the server cannot start.",
        "Raise --gpu-memory-utilization if the GPU is otherwise empty, use more GPUs "
        "(--tensor-parallel-size), a quantised model, a smaller --max-num-batched-tokens, or "
        "--enforce-eager (no memory for CUDA graphs).",
        "gpu_memory_full",
    ),
    FailureKind(
        "cache_too_small",
        re.compile(
            rf"max seq len \((\d{{1,9}})\),? \(?{_GIB} KV cache is needed, which is larger than "
            rf"the available KV cache memory \({_GIB}\)"
            r"(?:.{0,80}maximum model length is (\d{1,9}))?"
        ),
        "One request of full length ({max_model_len} tokens) needs {needed_gib} GiB of KV cache, "
        "{available_gib} GiB are there.",
        "Lower --max-model-len{fits}, raise --gpu-memory-utilization, use more GPUs, or "
        "--kv-cache-dtype fp8.",
        "gpu_memory_full",
        names=("max_model_len", "needed_gib", "available_gib", "fitting_model_len"),
    ),
    FailureKind(
        "cache_too_small",
        re.compile(
            r"max seq len \((\d{1,9})\) is larger than the maximum number of tokens that can be "
            r"stored in KV cache \((\d{1,12})\)"
        ),
        "The longest request ({max_model_len} tokens) is longer than the KV cache "
        "({kv_cache_tokens} tokens).",
        "Lower --max-model-len to what fits, raise --gpu-memory-utilization, or use more GPUs.",
        "gpu_memory_full",
        names=("max_model_len", "kv_cache_tokens"),
    ),
    FailureKind(
        "memory_taken",
        re.compile(
            rf"Free memory on device.{{0,20}} \((\d{{1,6}}(?:\.\d{{1,4}})?)/{_GIB}\) on startup is "
            rf"less than desired GPU memory utilization \((\d(?:\.\d{{1,4}})?), {_GIB}\)"
        ),
        "Only {free_gib} of {total_gib} GiB are free when the server starts, and it is to take "
        "{wanted_gib} GiB: something else holds {taken_gib} GiB of this GPU.",
        "nvidia-smi shows who: end it (an old server that did not quit?), or lower "
        "--gpu-memory-utilization.",
        "gpu_contention",
        names=("free_gib", "total_gib", "gpu_memory_utilization", "wanted_gib"),
    ),
    FailureKind(
        "not_enough_memory",
        re.compile(r"Not enough memory\. Please try to increase --mem-fraction-static"),
        "SGLang's share of the GPU (--mem-fraction-static) does not hold weights and a KV cache.",
        "Raise --mem-fraction-static, use more GPUs (--tp), or a quantised model.",
        "gpu_memory_full",
        sources=("sgl-project/sglang model_executor/model_runner.py",),
    ),
    FailureKind(
        "not_enough_memory",
        re.compile(r"Not enough memory to handle (?:\d{1,9} prefill tokens|`max_total_tokens)"),
        "TGI's warm-up does not fit: too many prefill or total tokens for the memory that is left.",
        "Lower --max-batch-prefill-tokens, --max-input-tokens or --max-total-tokens, or use more "
        "shards (--num-shard).",
        "gpu_memory_full",
        sources=("huggingface/text-generation-inference 3.3 flash_causal_lm.py",),
    ),
    FailureKind(
        "prefill_out_of_memory",
        re.compile(r"(?:Prefill|Decode) out of memory\. Try to lower your batch size"),
        "SGLang had no KV cache left for a batch that it had planned.",
        "Lower --max-running-requests or --chunked-prefill-size, raise --mem-fraction-static.",
        "kv_cache_pressure",
        sources=("sgl-project/sglang managers/schedule_batch.py",),
    ),
    FailureKind(
        "engine_died",
        re.compile(
            r"EngineDeadError|EngineCore (?:encountered|hit an exception)|AsyncEngineDeadError"
            r"|(?:[Ee]ngine core|Worker) proc \S{1,60} died unexpectedly"
            r"|Engine core initialization failed|Engine process failed to start"
            r"|Background loop has errored already|MQLLMEngine.{0,20}(?:dead|crash)"
        ),
        "The engine process is dead; the API answers with errors until the server is restarted. "
        "The first error above these lines is the reason.",
        "Find the first error (a traceback of the worker or EngineCore, out of memory, CUDA "
        "error); without any, look in dmesg: the kernel's OOM killer (Killed process) or an Xid. "
        "Then restart the server.",
        "serving_errors",
    ),
    FailureKind(
        "engine_died",
        re.compile(
            r"Scheduler hit an exception|Rank \d{1,4} scheduler is dead|Watchdog timeout \("
        ),
        "SGLang's scheduler process is dead or hangs; the first error above is the reason.",
        "Find the first traceback; without any, look in dmesg for the OOM killer and Xids, and at "
        "py-spy dump of the scheduler.",
        "serving_errors",
        sources=("sgl-project/sglang managers/scheduler.py",),
    ),
    FailureKind(
        "engine_died",
        re.compile(
            r"Shard \d{1,3} (?:terminated|failed to start)|Webserver Crashed|Shard process was "
            r"signaled to shutdown"
        ),
        "A shard of TGI ended, and the server with it.",
        "Read the shard's error above; signal 9 means the kernel's OOM killer or the container's "
        "memory limit.",
        "serving_errors",
        sources=("huggingface/text-generation-inference 3.3 launcher/src/main.rs",),
    ),
    FailureKind(
        "model_not_loaded",
        re.compile(r"failed to load '([^']{1,120})' version (\d{1,9})"),
        "Triton could not load a model; requests to it fail.",
        "Read the reason after it in the same line; then tritonserver --log-verbose=1.",
        "serving_errors",
        sources=("triton-inference-server/core src/model_lifecycle.cc",),
    ),
    FailureKind(
        "swap_space",
        re.compile(r"Aborted due to the lack of CPU swap space"),
        "The V0 engine of vLLM wanted to swap preempted requests to host memory, and the swap "
        "space (4 GiB by default) was full: it ends.",
        "Raise --swap-space, or better give the KV cache more room: --gpu-memory-utilization, "
        "--tensor-parallel-size, fewer sequences per request (n, best_of).",
        "kv_cache_cascade",
    ),
    FailureKind(
        "p2p_test_failed",
        re.compile(r"Custom allreduce is disabled because your platform lacks GPU P2P capability"),
        "vLLM's own AllReduce is off since the GPUs cannot reach each other's memory, or the test "
        "of it failed: tensor parallelism goes through NCCL, with more time between tokens. On "
        "GPUs without NVLink and peer access that is as designed.",
        "nvidia-smi topo -p2p r shows which pairs can. Where they should (NVLink): containers need "
        "--ipc=host and all GPUs visible; delete VLLM_CACHE_ROOT/gpu_p2p_access_cache_for_*.json "
        "to have it tested again.",
        "p2p_disabled",
        Severity.LOW,
        sources=("vllm-project/vllm distributed/device_communicators/custom_all_reduce.py",),
    ),
    FailureKind(
        "moe_not_tuned",
        re.compile(r"Using default MoE config\. Performance might be sub-optimal"),
        "The kernels of the mixture of experts have no tuned configuration for this GPU and "
        "shape, and run with a default: results are right, speed may be lower.",
        "Tune them with benchmarks/kernels/benchmark_moe.py and set VLLM_TUNED_CONFIG_FOLDER, or "
        "try another MoE back end.",
        None,
        Severity.INFO,
        sources=("vllm-project/vllm model_executor/layers/fused_moe/fused_moe.py",),
    ),
    FailureKind(
        "overloaded",
        re.compile(r"Model is overloaded|The request queue is full|Exceeds maximum queue"),
        "Requests are refused: the concurrency limit or the queue is full.",
        "Raise the limit (TGI --max-concurrent-requests, SGLang --max-queued-requests, Triton's "
        "max_queue_size) if there is hardware to spare, else add replicas.",
        "admission_limit",
        Severity.MEDIUM,
        sources=("huggingface/text-generation-inference router/src/infer/mod.rs",),
    ),
)


PATTERN = rb"Shard \d{1,3} (?:terminated|failed to start)"
TRIGGERS = (
    b"No available memory for the cache blocks",
    b"max seq len (",
    b"Free memory on device",
    b"Not enough memory",
    b"Try to lower your batch size",
    b"EngineDeadError",
    b"EngineCore encountered",
    b"EngineCore hit an exception",
    b"died unexpectedly",
    b"ngine core initialization failed",
    b"Engine process failed to start",
    b"Background loop has errored already",
    b"MQLLMEngine",
    b"Scheduler hit an exception",
    b"scheduler is dead",
    b"Watchdog timeout (",
    b"Shard process was signaled",
    b"Webserver Crashed",
    b"failed to load '",
    b"lack of CPU swap space",
    b"lacks GPU P2P capability",
    b"Using default MoE config",
    b"Model is overloaded",
    b"The request queue is full",
    b"Exceeds maximum queue",
    b"shared memory broadcast block",
    b'HTTP/1.1" 5',
    b'HTTP/1.0" 5',
)
