"""Log lines that say that requests were thrown out of the batch for lack of KV cache."""

from __future__ import annotations

import re

from engine.model import Finding, Severity
from engine.readers.serving.advice import more_room
from engine.readers.serving.load import Load
from engine.readers.serving.words import count, percent, percent_number
from engine.units import number

# vllm-project/vllm vllm/core/scheduler.py (V0), 0.5 to 0.10.
_V0 = re.compile(r"Sequence group \S{1,120} is preempted by PreemptionMode\.([A-Z]{1,20})")
_CUMULATIVE = re.compile(r"total_(?:num_)?cumulative_preemption(?:_cnt)?=(\d{1,12})")
# Per-request lines of V1, as far as releases and forks have them.
_V1 = re.compile(r"Preempt(?:ing|ed) request \S{1,120}(?:: (\d{1,9}) computed tokens)?")
# sgl-project/sglang managers/scheduler.py; the second wording until 2025.
_SGLANG = re.compile(
    r"(?:KV cache pool is full\. Retract requests\.|Decode out of memory happened\.)"
    r".{0,20}#retracted_reqs: (\d{1,6})"
)
_MODES = {"RECOMPUTE": "recomputing", "SWAP": "swapping"}


class Preemptions:
    """Counts such lines."""

    def __init__(self) -> None:
        self.line = 0
        self.server = ""
        self._lines = 0
        self._requests = 0
        self._cumulative: int | None = None
        self._modes: dict[str, int] = {}

    def __bool__(self) -> bool:
        """Return whether there was any."""
        return self._lines > 0

    def feed(self, number: int, text: str) -> bool:
        """Take one line."""
        old = _V0.search(text)
        if old:
            self._take("vllm", number, 1)
            self._modes[old[1]] = self._modes.get(old[1], 0) + 1
            total = _CUMULATIVE.search(text)
            if total:
                self._cumulative = max(self._cumulative or 0, int(total[1]))
            return True
        retracted = _SGLANG.search(text)
        if retracted:
            self._take("sglang", number, int(retracted[1]))
            return True
        new = _V1.search(text)
        if new and "been resumed" not in text:
            self._take("vllm", number, 1)
            return True
        return bool(new)

    def finding(self, load: Load | None) -> Finding:
        """Say what was thrown out, with the load of the engine if lines tell it."""
        shown = load or Load(self.server, "")
        usage = shown.highest("kv_usage")
        more: dict[str, object] = {"preemption_lines": self._lines}
        more["preemptions"] = max(self._cumulative or 0, self._requests)
        if usage:
            more["kv_cache_percent"] = percent_number(usage[1])
        for quantity in ("running", "waiting"):
            value = shown.total(quantity)
            if value is not None:
                more[quantity] = int(value)
        return Finding(
            kind="serving",
            id="kv_cache_cascade",
            severity=Severity.HIGH,
            says=f"{self._said()} The KV cache is too small for this load.{self._load(shown)}",
            action=more_room(self.server),
            entity=shown.entity,
            line=self.line,
            cause="kv_cache_cascade",
            data={"server": self.server, **more},
            sources=("vllm-project/vllm docs/configuration/optimization.md 0.33.0",)
            if self.server == "vllm"
            else ("sgl-project/sglang docs, hyperparameter tuning",),
        )

    def _take(self, server: str, number: int, requests: int) -> None:
        self.line = self.line or number
        self.server = self.server or server
        self._lines += 1
        self._requests += requests

    def _said(self) -> str:
        if self.server == "sglang":
            return (
                f"SGLang retracted {count(self._requests, 'request')} ({count(self._lines, 'line')}"
                "): the KV cache pool was full, they wait and are prefilled again. Once a minute "
                "is harmless, many are not."
            )
        modes = " and ".join(_MODES.get(m, m.lower()) for m in self._modes) or "recomputing"
        said = f"{count(self._requests, 'preemption')} by {modes} in these lines"
        if self._cumulative is not None:
            said += f", {number(self._cumulative)} preemptions so far since the engine started"
            said += " (a cumulative count, no rate)"
        if "SWAP" in self._modes:
            said += ": requests are thrown out and their KV cache is swapped to host memory"
        elif "RECOMPUTE" in self._modes or not self._modes:
            said += ": requests are thrown out and prefilled again (recompute)"
        return said + "."

    def _load(self, load: Load) -> str:
        usage, running = load.highest("kv_usage"), load.total("running")
        if usage is None or not running:
            return ""
        each = usage[1] / running
        many = (
            " each request holds several sequences (n, best_of, beam search) or a very long one"
            if each >= 0.1
            else ""
        )
        return (
            f" {count(running, 'running request')} hold {percent(usage[1])} of it"
            f"{':' + many if many else ''}."
        )
