"""The lines in which LLM servers log their load: vLLM (V0 and V1), SGLang, TensorRT-LLM.

Formats: vllm-project/vllm vllm/v1/metrics/loggers.py 0.33.0 and vllm/engine/metrics.py 0.9.0;
sgl-project/sglang sglang/srt/observability/scheduler_metrics_mixin.py 0.5.23; NVIDIA/TensorRT-LLM
executor statistics and ``print_iter_log``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

_NUMBER = r"(\d{1,12}(?:\.\d{1,6})?)"
_MARK = "Avg prompt throughput: "
_RATES = re.compile(rf"{_NUMBER} tokens/s, (?:Avg )?[Gg]eneration throughput: {_NUMBER} tokens/s")
_VLLM_FIELD = re.compile(
    r"(Running|Waiting|Pending|Swapped|Deferred|Preemptions|Corrupted|GPU KV cache usage"
    r"|CPU KV cache usage|External prefix cache hit rate|(?<!External )Prefix cache hit rate)"
    rf": {_NUMBER}"
)
_VLLM_NAMES: Mapping[str, str] = {
    "Running": "running",
    "Waiting": "waiting",
    "Pending": "waiting",
    "Swapped": "swapped",
    "Deferred": "deferred",
    "Preemptions": "preempted",
    "Corrupted": "corrupted",
    "GPU KV cache usage": "kv_usage",
    "CPU KV cache usage": "cpu_kv_usage",
    "External prefix cache hit rate": "external_hit_rate",
    "Prefix cache hit rate": "prefix_hit_rate",
}
_PERCENT = ("kv_usage", "cpu_kv_usage", "external_hit_rate", "prefix_hit_rate")
_ENGINE = re.compile(r"Engine (\d{1,5}): $")
_AGGREGATED = re.compile(r"(\d{1,5}) Engines Aggregated: $")
_DP = re.compile(r"\bEngineCore_DP(\d{1,5})\b")
_WHEN = re.compile(r"\b(\d{2})-(\d{2}) (\d{2}):(\d{2}):(\d{2})\b")
_SGLANG = re.compile(
    r"(?:\[(?:(\d{4})-(\d{2})-(\d{2}) )?(\d{2}):(\d{2}):(\d{2})([ A-Z0-9]{0,30})\] )?"
    r"(Prefill|Decode) batch(?: \[\d{1,9}\])?[.,] "
)
_SGLANG_FIELD = re.compile(rf"(?:^|, )(#?[a-zA-Z][a-zA-Z /()-]{{1,30}}): {_NUMBER}(%?)")
_SGLANG_NAMES: Mapping[str, str] = {
    "#running-req": "running",
    "#queue-req": "waiting",
    "token usage": "kv_usage",
    "full token usage": "kv_usage",
    "cache hit rate": "prefix_hit_rate",
    "gen throughput (token/s)": "generation_throughput",
    "input throughput (token/s)": "prompt_throughput",
    "#new-token": "new_tokens",
    "#cached-token": "cached_tokens",
    "accept len": "accept_length",
    "accept rate": "accept_rate",
    "#transfer-req": "transfer_queue",
    "#inflight-req": "transfer_queue",
    "#retracted-req": "retracted_now",
}
_DP_RANK = re.compile(r"\bDP(\d{1,5})\b")
_OTHER_RANK = re.compile(r"\b(?:TP|PP|EP)[1-9]")
_TRT_STATS = re.compile(
    r'"(Active Request Count|Max Request Count|Scheduled Requests|Paused Requests'
    r'|Max KV cache blocks|Used KV cache blocks)": ?(\d{1,12})'
)
_TRT_ITER = re.compile(
    r"(num_scheduled_requests|kv_cache_util|host_step_time|prev_device_step_time)"
    rf"(?: = |: ){_NUMBER}"
)
_YEAR = 2000  # vLLM prints no year; a leap year takes any day


@dataclass(slots=True)
class Sample:
    """One line about the load of one engine.

    Attributes:
        server: id of the server.
        line: where it stands.
        engine: how the line calls the engine (``0``, ``DP1``), empty if not at all.
        at: seconds on a clock of its own, None without a time.
        readings: by quantity; ratios from 0 to 1.
        dialect: ``V0`` or ``V1`` of vLLM, ``prefill`` or ``decode`` of SGLang.
        engines: how many engines are added up in it.
    """

    server: str
    line: int
    engine: str = ""
    at: float | None = None
    readings: dict[str, float] = field(default_factory=dict)
    dialect: str = ""
    engines: int = 1


def samples(number: int, text: str) -> Iterator[Sample]:
    """Yield what a line says; two records that ran into one line are told apart."""
    if _MARK in text:
        yield from _vllm(number, text)
    elif "#running-req:" in text:
        yield from _sglang(number, text)
    elif '"Active Request Count"' in text:
        yield from _statistics(number, text)
    elif "host_step_time" in text:
        yield from _iteration(number, text)


def _vllm(number: int, text: str) -> Iterator[Sample]:
    head, *bodies = text.split(_MARK)[:64]
    for body in bodies:
        rates = _RATES.match(body)
        if rates is not None:
            fields = {n: float(v) for n, v in _VLLM_FIELD.findall(body)}
            readings = {
                name: fields[written] / 100 if name in _PERCENT else fields[written]
                for written, name in _VLLM_NAMES.items()
                if written in fields
            }
            readings["prompt_throughput"] = float(rates[1])
            readings["generation_throughput"] = float(rates[2])
            if "Running" in fields:
                old = fields.keys() & {"Pending", "Swapped", "CPU KV cache usage"}
                yield Sample(
                    "vllm",
                    number,
                    _engine(head),
                    _clock(head),
                    readings,
                    "V0" if old else "V1",
                    _aggregated(head),
                )
        head = body


def _engine(head: str) -> str:
    found = _ENGINE.search(head)
    if found:
        return str(int(found[1]))
    core = _DP.search(head[-400:])
    return str(int(core[1])) if core else ""


def _aggregated(head: str) -> int:
    found = _AGGREGATED.search(head)
    return max(1, int(found[1])) if found else 1


def _clock(head: str) -> float | None:
    found = _WHEN.findall(head[-400:])
    return _seconds(_YEAR, *map(int, found[-1])) if found else None


def _seconds(*parts: int) -> float | None:
    try:
        return datetime(*parts, tzinfo=UTC).timestamp()  # type: ignore[misc,arg-type]
    except ValueError:
        return None


def _sglang(number: int, text: str) -> Iterator[Sample]:
    head = _SGLANG.search(text)
    if head is None:
        return
    readings: dict[str, float] = {}
    for written, value, unit in _SGLANG_FIELD.findall(text[head.end() :]):
        name = _SGLANG_NAMES.get(written)
        if name is not None:
            readings.setdefault(name, float(value) / (100 if unit else 1))
    cached, new = readings.pop("cached_tokens", None), readings.pop("new_tokens", None)
    if cached is not None and new is not None and cached + new > 0:
        readings.setdefault("prefix_hit_rate", cached / (cached + new))
    ranks = head[7] or ""
    if "running" not in readings or _OTHER_RANK.search(ranks):
        return  # every rank of tensor parallelism says the same
    year, month, day = (int(part) if part else 1 for part in head.groups()[:3])
    clock = (int(part) for part in head.groups()[3:6] if part)
    at = _seconds(year if head[1] else _YEAR, month, day, *clock) if head[4] else None
    rank = _DP_RANK.search(ranks)
    engine = f"DP{int(rank[1])}" if rank else ""
    yield Sample("sglang", number, engine, at, readings, head[8].lower())


def _statistics(number: int, text: str) -> Iterator[Sample]:
    fields = {name: float(value) for name, value in _TRT_STATS.findall(text)}
    active, scheduled = fields.get("Active Request Count"), fields.get("Scheduled Requests")
    if active is None:
        return
    readings = {"running": active if scheduled is None else scheduled}
    if scheduled is not None:
        readings["waiting"] = max(active - scheduled, 0.0)
    blocks, used = fields.get("Max KV cache blocks"), fields.get("Used KV cache blocks")
    if blocks and used is not None:
        readings["kv_usage"] = used / blocks
    for written, name in (
        ("Paused Requests", "retracted_now"),
        ("Max Request Count", "request_limit"),
    ):
        if written in fields:
            readings[name] = fields[written]
    yield Sample("trtllm", number, readings=readings)


def _iteration(number: int, text: str) -> Iterator[Sample]:
    fields = {name: float(value) for name, value in _TRT_ITER.findall(text)}
    if "num_scheduled_requests" not in fields:
        return
    readings = {"running": fields["num_scheduled_requests"]}
    for written, name in (
        ("kv_cache_util", "kv_usage"),
        ("host_step_time", "host_ms"),
        ("prev_device_step_time", "device_ms"),
    ):
        if written in fields:
            readings[name] = fields[written]
    yield Sample("trtllm", number, readings=readings)
