"""What to do about a service, in the words of its server's options."""

from __future__ import annotations

from collections.abc import Mapping

# Options as of vLLM 0.33.0 (docs/configuration/optimization.md), SGLang 0.5.23 (hyperparameter
# tuning), TensorRT-LLM 2026 (KvCacheConfig, build and serve options), TGI 3.3 (launcher).
_ROOM: Mapping[str, str] = {
    "vllm": (
        "Give the KV cache more room: raise --gpu-memory-utilization, use more GPUs "
        "(--tensor-parallel-size), or store it in FP8 (--kv-cache-dtype fp8). Or admit less: lower "
        "--max-num-seqs or --max-num-batched-tokens, shorten max_tokens, use fewer sequences per "
        "request (n, best_of), add a replica."
    ),
    "sglang": (
        "Give the KV cache more room: raise --mem-fraction-static or --tp, or store it in FP8 "
        "(--kv-cache-dtype fp8_e5m2). Or admit less: raise --schedule-conservativeness (1.3), "
        "lower --max-running-requests, add a replica."
    ),
    "trtllm": (
        "Give the KV cache more room: raise free_gpu_memory_fraction, or use more GPUs. Or admit "
        "less: lower max_batch_size or max_num_tokens, add a replica."
    ),
    "triton": (
        "Give the KV cache more room: raise kv_cache_free_gpu_mem_fraction, or use more GPUs. Or "
        "admit less: lower max_batch_size, add a replica."
    ),
    "tgi": (
        "Raise --cuda-memory-fraction or --num-shard, or lower --max-batch-total-tokens and "
        "--max-total-tokens."
    ),
    "dynamo": "Give the workers' KV cache more room, or add workers.",
}
_SLOTS: Mapping[str, str] = {
    "vllm": (
        "Compare running with --max-num-seqs: pinned at it, raise it; else raise "
        "--max-num-batched-tokens, or add replicas. vllm:num_requests_waiting_by_reason (0.20 and "
        "newer) tells capacity from deferred."
    ),
    "sglang": (
        "Compare running with --max-running-requests and raise it; lower "
        "--schedule-conservativeness (0.3) if the token usage stays below 0.9; else add replicas."
    ),
    "trtllm": "Raise max_batch_size or max_num_tokens, or add replicas.",
    "triton": (
        "Raise the model's instance count or max batch size, or set a queue policy with a time "
        "limit; else add replicas."
    ),
    "tgi": (
        "Raise --max-batch-total-tokens or --max-batch-size if memory allows; else add replicas."
    ),
    "dynamo": "Add workers, or look which stage holds the requests back.",
}
BALANCE = (
    "Spread requests by the load of each engine: a router that reads every engine's queue and KV "
    "cache use (vLLM's own data-parallel balancer, llm-d, the Gateway API endpoint picker); look "
    "for sessions or prefixes that stick to one engine, and for a router that reads only the last "
    "of several series."
)
PREFILL = (
    "Shorten the prompts or let them share a prefix (prefix cache hits cost no prefill), scale the "
    "prefill out (replicas, disaggregated prefill), and look who sends the long ones "
    "(vllm:request_prompt_tokens). More KV cache does not help."
)


def more_room(server: str) -> str:
    """Return how to get out of a full KV cache."""
    return _ROOM.get(server, _ROOM["dynamo"])


def more_slots(server: str) -> str:
    """Return how to get a queue shorter while the KV cache has room."""
    return _SLOTS.get(server, _SLOTS["dynamo"])
