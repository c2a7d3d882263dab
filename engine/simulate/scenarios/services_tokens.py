"""Services slow by what they compute: prompts, missed prefixes, decode, drafts; and by waiting."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from engine.samples import Floats, RawSeries
from engine.simulate.scenarios.base import AT, Make, Severity
from engine.simulate.scenarios.nvidia_boards import DECODE, PREFILL
from engine.simulate.scenarios.recorder import Recorder
from engine.simulate.scenarios.services_base import (
    LoadOf,
    onset,
    replica,
    service,
    single,
    ups_and_downs,
)
from engine.simulate.scenarios.serving import HUGE, LARGE, SMALL, Engine, Load, State, settle
from engine.simulate.scenarios.serving_peers import sglang
from engine.simulate.scenarios.shapes import since

_70B = "meta-llama/Llama-3.1-70B-Instruct"
_8B = "meta-llama/Llama-3.1-8B-Instruct"


def _long_prompts(rng: np.random.Generator, severity: Severity, ts: Floats) -> Load:
    """Whole documents as prompts, a short answer: prefill takes most of each second."""
    prompt = onset(rng, ts, 1500.0, severity.pick(14_000.0, 24_000.0, 45_000.0))
    return Load(users=9.0, prompt=prompt, output=70.0, hit=0.04)


def _missed(level: float) -> LoadOf:
    """The shared prefix is no longer found; prompts stay as long as they were."""

    def load(rng: np.random.Generator, severity: Severity, ts: Floats) -> Load:
        # The collapse lies inside the usual window, so that it can be seen as one.
        lost = severity.pick(0.3, 0.12, 0.01)
        hit = since(ts, AT - rng.uniform(420.0, 840.0), 0.86, lost)
        return Load(users=28.0, prompt=level, output=160.0, hit=hit)

    return load


def _sglang_missed(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    record = replica(rng, "llama-70b", server="sglang")
    load = _missed(9000.0)(rng, severity, record.ts)
    load = replace(load, users=ups_and_downs(rng, load.users, record.ts.size))
    return sglang(record, settle(LARGE, load, record.ts.size), _70B)


def _slow_decode(rng: np.random.Generator, severity: Severity, ts: Floats) -> Load:
    """Large batches of long, cached conversations: each step reads a lot of KV cache."""
    users = onset(rng, ts, 60.0, severity.pick(150.0, 190.0, 225.0))
    return Load(users=users, prompt=2800.0, output=800.0, hit=0.95)


def _dense(severity_step: float) -> Engine:
    return replace(LARGE, per_seq_s=severity_step, kv_tokens=1_000_000)


def _interference(rng: np.random.Generator, severity: Severity, ts: Floats) -> Load:
    """A few very long prompts among chats: their chunks stretch a share of all token gaps."""
    share = onset(rng, ts, 0.0, severity.pick(0.06, 0.12, 0.22))
    return Load(users=36.0, prompt=np.where(share > 0.0, 2600.0, 900.0), output=350.0, hit=0.25,
                stall_share=share, stall_s=severity.pick(0.32, 0.5, 0.85))  # fmt: skip


def _drafts(record: Recorder, state: State, severity: Severity) -> None:
    """Four draft tokens a step, few accepted; a healthy EAGLE head gets 0.6 to 0.8."""
    accepted = severity.pick(0.27, 0.15, 0.05)
    labels = {"model_name": _8B, "engine": "0"}
    drafts = state.rps * state.load.output / (1.0 + 4.0 * accepted)
    record.count("vllm:spec_decode_num_drafts_total", drafts, labels)
    record.count("vllm:spec_decode_num_draft_tokens_total", drafts * 4.0, labels, whole=False)
    record.count("vllm:spec_decode_num_accepted_tokens_total", drafts * 4.0 * accepted, labels,
                 whole=False)  # fmt: skip
    shares = np.array([0.55, 0.25, 0.13, 0.07]) * 4.0 * accepted
    for position, share in enumerate(shares):
        record.count("vllm:spec_decode_num_accepted_tokens_per_pos_total", drafts * share,
                     {**labels, "position": str(position)}, whole=False)  # fmt: skip


def _v0_drafts(record: Recorder, state: State, severity: Severity) -> None:
    accepted = severity.pick(0.27, 0.15, 0.05)
    labels = {"model_name": _8B}
    record.shaky("vllm:spec_decode_draft_acceptance_rate", accepted, labels, spread=0.03)
    record.shaky("vllm:spec_decode_efficiency", (1.0 + 4.0 * accepted) / 5.0, labels, spread=0.03)
    drafted = state.rps * state.load.output * 4.0 / (1.0 + 4.0 * accepted)
    record.count("vllm:spec_decode_num_draft_tokens_total", drafted, labels, whole=False)
    record.count("vllm:spec_decode_num_accepted_tokens_total", drafted * accepted, labels,
                 whole=False)  # fmt: skip


def _drafted(_rng: np.random.Generator, _severity: Severity, _ts: Floats) -> Load:
    """Drafting and verifying make each step two fifths longer; that has to be earned."""
    return Load(users=20.0, prompt=800.0, output=300.0, hit=0.4, slow=1.4)


def _deferred(mild: float, clear: float, severe: float) -> LoadOf:
    """Requests wait for something other than capacity: an adapter slot, or KV from elsewhere."""

    def load(rng: np.random.Generator, severity: Severity, ts: Floats) -> Load:
        held = onset(rng, ts, 0.0, severity.pick(mild, clear, severe))
        return Load(users=24.0, prompt=900.0, output=260.0, hit=0.3, deferred=held)

    return load


def _adapters(record: Recorder, _state: State, severity: Severity) -> None:
    """All four adapter slots taken, others named as waiting; the value is a time (Unix s)."""
    names = [f"customer-{k}" for k in range(12)]
    waiting = int(severity.pick(1, 3, 7))
    cut = record.ts.size // 2
    for start, stop, shift in ((0, cut, 0), (cut, record.ts.size, 1)):
        info = {
            "max_lora": "4",
            "running_lora_adapters": ",".join(names[shift : shift + 4]),
            "waiting_lora_adapters": ",".join(names[shift + 4 : shift + 4 + waiting]),
        }
        values = np.full(record.ts.size, np.nan)
        values[start:stop] = record.ts[start:stop]
        record.gauge("vllm:lora_requests_info", values, info)


def _transfer(record: Recorder, state: State, severity: Severity) -> None:
    """NIXL reads of KV blocks take seconds, and some fail."""
    labels = {"model_name": _70B, "engine": "0"}
    done = record.events(state.rps)
    mean = severity.pick(1.4, 4.0, 12.0)
    record.histogram("vllm:nixl_xfer_time_seconds", done, [(1.0, mean)],
                     (.005, .01, .025, .05, .1, .2, .4, 1, 2.5, 5, 10, 30), labels)  # fmt: skip
    record.histogram("vllm:nixl_bytes_transferred", done, [(1.0, 2.9e8)],
                     (1e6, 1e7, 1e8, 3e8, 1e9, 1e10), labels)  # fmt: skip
    record.count("vllm:nixl_num_failed_transfers_total", severity.pick(0.0, 0.02, 0.3), labels)
    record.count("vllm:nixl_num_kv_expired_reqs_total", severity.pick(0.0, 0.01, 0.1), labels)
    held = np.round(record.wide(state.load.deferred))
    for stage, share in (("waiting_to_start", 0.3), ("in_progress", 0.7),
                         ("completed_waiting", 0.0)):  # fmt: skip
        record.gauge("vllm:num_requests_kv_fetch_by_stage", np.round(held * share),
                     {**labels, "stage": stage})  # fmt: skip


def _by_severity(make: Callable[[float], Make], figures: tuple[float, float, float]) -> Make:
    return lambda rng, severity: make(severity.pick(*figures))(rng, severity)


_BANDWIDTH = DECODE.but(dram=0.84, sm=0.8, power=0.66)

SCENARIOS = (
    service("prefill-bound-vllm", "Long prompts dominate the time to first token", _70B,
            ("prefill_bound",), single(_70B, LARGE, _long_prompts, under=PREFILL)),
    service("prefix-cache-miss-vllm", "Prefix-cache hits collapse at unchanged prompts", _70B,
            ("prefix_cache_miss",), single(_70B, LARGE, _missed(9000.0), under=PREFILL)),
    service("prefix-cache-miss-sglang", "SGLang's cache hit rate collapses", _70B,
            ("prefix_cache_miss",), _sglang_missed),
    service("decode-slow-batch", "Slow tokens without a queue: large batches, HBM busy", _70B,
            ("decode_slow",),
            _by_severity(lambda step: single(_70B, _dense(step), _slow_decode, under=_BANDWIDTH,
                                             shown=0.8), (0.00075, 0.0011, 0.0018))),
    service("prefill-decode-interference", "Long prompts stall the tokens of running requests",
            _70B, ("prefill_decode_interference",),
            single(_70B, LARGE, _interference, under=DECODE)),
    service("spec-decode-mismatch-vllm", "Draft tokens accepted too rarely", _8B,
            ("spec_decode_mismatch",),
            single(_8B, SMALL, _drafted, versions=("v1", "v1-2025"), extra=_drafts)),
    service("spec-decode-mismatch-v0", "Draft acceptance of an old vLLM too low", _8B,
            ("spec_decode_mismatch",),
            single(_8B, SMALL, _drafted, versions=("v0",), extra=_v0_drafts)),
    service("lora-budget", "Requests wait for an adapter slot", _8B, ("lora_budget",),
            single(_8B, SMALL, _deferred(4.0, 15.0, 60.0), versions=("v1",), extra=_adapters)),
    service("kv-transfer-stall", "Disaggregated serving: KV transfers take seconds", _70B,
            ("kv_transfer_stall",),
            single(_70B, HUGE, _deferred(6.0, 20.0, 80.0), versions=("v1",), extra=_transfer)),
)  # fmt: skip
