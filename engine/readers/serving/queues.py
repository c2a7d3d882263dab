"""Why requests wait while the KV cache has room."""

from __future__ import annotations

from collections.abc import Iterator

from engine.model import Finding, Severity
from engine.readers.serving.advice import PREFILL, more_slots
from engine.readers.serving.finding import Limits, counted, crowded, finding, mean_of
from engine.readers.serving.load import Load
from engine.readers.serving.words import count, percent
from engine.units import number


def queue(load: Load, limits: Limits) -> Iterator[Finding]:
    """Yield why requests are refused or wait although the KV cache has room."""
    yield from _refused(load, limits)
    yield from _transfers(load, limits)
    if load.lora_waiting and (load.total("waiting") or load.total("deferred")):
        yield _adapters(load)
        return
    usage = load.highest("kv_usage")
    if not crowded(load, limits) or (usage and usage[1] >= limits["kv_cache_pressure"]):
        return
    room = f" although the KV cache has room ({percent(usage[1])})" if usage else ""
    ratio = _prompt_ratio(load)
    if ratio is not None and ratio >= limits["prefill_ratio"]:
        yield _prefill(load, room, ratio)
    else:
        yield _slots(load, room, limits)


def _refused(load: Load, limits: Limits) -> Iterator[Finding]:
    rejected = counted(load, "rejected")
    if not rejected:
        return
    if rejected < limits["serving_error_share"] * (rejected + counted(load, "finished")):
        return
    limit = ", ".join(name for name in load.refused_by if name)
    yield finding(
        load,
        "admission_limit",
        Severity.MEDIUM,
        f"{count(rejected, 'request')} {'was' if rejected == 1 else 'were'} refused "
        f"{load.since}: a configured limit of the queue or of concurrency was reached"
        + (f" ({limit}); clients get HTTP 503." if limit else "."),
        "Raise the limit if there is hardware to spare, else add replicas; clients should wait "
        "before they try again.",
        cause="admission_limit",
        more={"rejected": int(rejected)},
    )


def _transfers(load: Load, limits: Limits) -> Iterator[Finding]:
    """Where prefill and decode are separate: failed transfers, and requests that wait for one."""
    failed = counted(load, "transfer_failures")
    if failed < limits["serving_error_share"] * counted(load, "finished"):
        failed = 0.0
    moving = load.total("transfer_queue") or 0.0
    if not failed and moving < limits["queue_waiting"]:
        return
    what = (
        f"{count(failed, 'KV transfer')} failed {load.since}"
        if failed
        else f"{count(moving, 'request')} wait for a KV transfer"
    )
    yield finding(
        load,
        "kv_transfer_stall",
        Severity.HIGH if failed else Severity.MEDIUM,
        f"{what}: prefill and decode are separate here, and the way between them is the "
        "bottleneck.",
        "Check the network between the prefill and the decode nodes (RDMA device, link rate, "
        "NIXL or Mooncake log), and that the receivers keep up.",
        cause="kv_transfer_stall",
        more={"transfer_failures": int(failed), "waiting_for_transfer": int(moving)},
    )


def _prefill(load: Load, room: str, ratio: float) -> Finding:
    waiting = load.total("waiting") or 0.0
    return finding(
        load,
        "prefill_bound",
        Severity.MEDIUM,
        f"{count(waiting, 'request')} wait{room}: prefill is the bottleneck, with "
        f"{number(round(ratio))} prompt tokens for each generated one. Long prompts dominate.",
        PREFILL,
        cause="prefill_bound",
        more={"waiting": int(waiting), "prompt_tokens_per_output_token": round(ratio, 1)},
    )


def _slots(load: Load, room: str, limits: Limits) -> Finding:
    waiting, running = load.total("waiting") or 0.0, load.total("running")
    cap = load.total("request_limit")
    pinned = cap is not None and running is not None and running >= cap > 0
    if running == 0:
        return _none_runs(load, waiting)
    return finding(
        load,
        "queue_saturation",
        Severity.MEDIUM,
        f"{count(waiting, 'request')} wait for a slot{room}"
        + (f", {number(running)} are running" if running is not None else "")
        + (f": the cap of {number(cap)} is reached." if pinned and cap is not None else "."),
        more_slots(load.server),
        cause="queue_saturation",
        more={"waiting": int(waiting), "running": running},
        sources=limits.source("queue_waiting"),
    )


def _none_runs(load: Load, waiting: float) -> Finding:
    return finding(
        load,
        "queue_stuck",
        Severity.MEDIUM,
        f"{count(waiting, 'request')} wait and none runs: the engine hangs or is not ready, or the "
        "next request needs more KV cache than there is. One scrape cannot tell which.",
        "Read it again in 10 s, and the server's log; if it stays: py-spy dump --pid PID of engine "
        "and workers, and compare the longest prompt with the size of the KV cache.",
        cause="queue_saturation",
        more={"waiting": int(waiting), "running": 0},
    )


def _adapters(load: Load) -> Finding:
    waiting, slots = load.lora_waiting, load.lora_slots
    return finding(
        load,
        "lora_budget",
        Severity.MEDIUM,
        f"Requests wait for a LoRA adapter: {', '.join(waiting[:6])} "
        f"{'wait' if len(waiting) > 1 else 'waits'}"
        + (f", {slots} slot{'' if slots == 1 else 's'} (max_lora) are taken." if slots else "."),
        "Raise --max-loras (GPU memory allowing), or spread adapters over replicas.",
        cause="lora_budget",
        more={"lora_waiting": len(waiting), "max_lora": slots},
    )


def _prompt_ratio(load: Load) -> float | None:
    """Prompt tokens for each generated one, of requests or since the start."""
    for prompt, made in (
        (load.growth("prompt_tokens"), load.growth("generation_tokens")),
        (load.total("prompt_throughput"), load.total("generation_throughput")),
        (load.total("prompt_tokens"), load.total("generation_tokens")),
        (mean_of(load, "prompt_length"), mean_of(load, "output_length")),
    ):
        if prompt and made is not None:
            return prompt / max(made, 1.0)
    return None
