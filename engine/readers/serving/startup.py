"""The start of an LLM server: phases and how long they took, and why it did not come up."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from engine.model import Finding, Severity
from engine.readers.serving.words import seconds
from engine.units import number

_N = r"(\d{1,9}(?:\.\d{1,6})?)"
# Phase, pattern, and the groups that hold seconds and GiB. vllm-project/vllm 0.6 to 0.33,
# sgl-project/sglang 0.5, huggingface/text-generation-inference 3.3.
_PHASES: tuple[tuple[str, re.Pattern[str], int, int], ...] = (
    ("loading weights", re.compile(rf"Loading weights took {_N} s"), 1, 0),
    ("loading the model", re.compile(rf"Model loading took {_N} GiB?(?: and {_N} s)?"), 2, 1),
    ("loading weights", re.compile(rf"Loading model weights took {_N} GiB?"), 0, 1),
    ("compiling", re.compile(rf"torch\.compile (?:takes|took) {_N} s in total"), 1, 0),
    ("compiling", re.compile(rf"Compiling a graph for .{{0,60}} takes {_N} s"), 1, 0),
    ("capturing CUDA graphs", re.compile(rf"Graph capturing finished in {_N} sec"), 1, 0),
    ("capturing CUDA graphs", re.compile(rf"Capture cuda graph end\. Time elapsed: {_N} s"), 1, 0),
    ("profiling and warming up", re.compile(rf"init engine \(.{{0,80}}\) took {_N} s"), 1, 0),
    ("loading weights", re.compile(rf"Load weight end\. .{{0,60}}?elapsed={_N} s"), 1, 0),
    ("starting the shard", re.compile(rf"Shard ready in {_N}s"), 1, 0),
)
_SIGNS: tuple[tuple[str, str], ...] = (
    ("loading weights", "Starting to load model"),
    ("loading weights", "Loading safetensors checkpoint shards"),
    ("loading weights", "Loading pt checkpoint shards"),
    ("loading weights", "Load weight begin"),
    ("compiling", "for vLLM's torch.compile"),
    ("compiling", "Dynamo bytecode transform time"),
    ("capturing CUDA graphs", "Capturing CUDA graph"),
    ("capturing CUDA graphs", "Capturing cudagraphs"),
    ("capturing CUDA graphs", "Capture cuda graph begin"),
    ("waiting for engine processes", "core engine proc(s) to"),
    ("starting the shard", "Waiting for shard to be ready"),
    ("warming up", "Warming up model"),
)
_READY = (
    "Application startup complete",
    "The server is fired up and ready to roll",
    "Uvicorn running on",
    "Started HTTPService at",
)
_FACTS: tuple[tuple[str, re.Pattern[str], float], ...] = (
    ("available_kv_cache_gib", re.compile(r"Available KV cache memory: (-?[\d.]{1,12}) GiB"), 1),
    ("kv_cache_tokens", re.compile(r"GPU KV cache size: ([\d,]{1,15}) tokens"), 1),
    ("max_concurrency", re.compile(r"Maximum concurrency for .{1,40}?: ([\d.]{1,12})x"), 1),
    ("gpu_blocks", re.compile(r"# (?:GPU|cuda) blocks: (\d{1,12})"), 1),
    ("max_total_tokens", re.compile(r"max_total_num_tokens=(\d{1,12})"), 1),
)
_SHARDS = re.compile(r"checkpoint shards: {0,4}(\d{1,3})% Completed \| (\d{1,6})/(\d{1,6})")
_LOW_CONCURRENCY = 2.0
_ALL = 100  # percent

TRIGGERS = (
    b"Loading weights took",
    b"Model loading took",
    b"Loading model weights took",
    b"torch.compile takes",
    b"torch.compile took",
    b"vLLM's torch.compile",
    b"Dynamo bytecode transform time",
    b"Graph capturing finished",
    b"Capturing CUDA graph",
    b"Capturing cudagraphs",
    b"Capture cuda graph",
    b"init engine (",
    b"checkpoint shards",
    b"Starting to load model",
    b"Load weight begin",
    b"Load weight end",
    b"core engine proc(s) to",
    b"Waiting for shard to be ready",
    b"Shard ready in",
    b"Warming up model",
    b"Application startup complete",
    b"fired up and ready to roll",
    b"Available KV cache memory",
    b"GPU KV cache size",
    b"Maximum concurrency for",
    b"# GPU blocks:",
    b"# cuda blocks:",
    b"max_total_num_tokens=",
)


@dataclass(slots=True)
class StartUp:
    """What start-up lines said.

    Attributes:
        phases: how long each took (s), None where its end or its time is not told.
        last: the newest phase; ``under_way`` unless its end or a later line is there.
        shards: percent, files loaded, files in all.
    """

    line: int = 0
    phases: dict[str, float | None] = field(default_factory=dict)
    facts: dict[str, float] = field(default_factory=dict)
    ready: bool = False
    last: str = ""
    under_way: bool = False
    shards: tuple[int, int, int] | None = None

    def __bool__(self) -> bool:
        """Return whether the text shows a start."""
        return bool(self.phases or self.facts)

    def feed(self, number: int, text: str) -> bool:
        """Take one line."""
        taken = self._phase(text) or self._sign(text)
        for name, pattern, scale in _FACTS:
            found = pattern.search(text)
            if found:
                self.facts[name] = _float(found[1].replace(",", "")) * scale
                self.under_way = False
                taken = True
        if any(word in text for word in _READY):
            self.ready = True
            return bool(self)
        if taken:
            self.line = self.line or number
        return taken

    def finding(self, *, served: bool) -> Finding:
        """Say how the start went; ``served`` where later lines show requests."""
        up = self.ready or served
        spent = {name: s for name, s in self.phases.items() if s}
        took = ", ".join(f"{name} {seconds(s)}" for name, s in spent.items())
        if up:
            says = "The server is up."
        elif self.under_way:
            says = f"Cold start: the server is still {self._now()}."
        else:
            says = "Lines of a start; whether the server came up is not in this text."
        if took:
            says += f" Start-up took: {took}."
        says += self._room()
        data: dict[str, Any] = {"ready": up, "phases_s": spent, **self.facts}
        return Finding(
            kind="serving",
            id="startup",
            severity=Severity.INFO,
            says=says,
            action=self._action(up=up),
            entity=None,
            line=self.line,
            cause="cold_start" if self.under_way and not up else None,
            data=data,
            sources=("vllm-project/vllm, start-up log of 0.6 to 0.33",),
        )

    def _phase(self, text: str) -> bool:
        for name, pattern, at, gib in _PHASES:
            found = pattern.search(text)
            if found is None:
                continue
            took = _float(found[at]) if at and found[at] else None
            before = self.phases.get(name)
            self.phases[name] = max(took or 0.0, before or 0.0) or None
            if gib and found[gib]:
                self.facts["model_gib"] = _float(found[gib])
            self.last, self.under_way = name, False
            return True
        return False

    def _sign(self, text: str) -> bool:
        for name, words in _SIGNS:
            if words in text:
                self.phases.setdefault(name, None)
                self.last, self.under_way = name, True
                shards = _SHARDS.search(text)
                if shards:
                    self.shards = (int(shards[1]), int(shards[2]), int(shards[3]))
                    self.under_way = self.shards[0] < _ALL
                return True
        return False

    def _now(self) -> str:
        if self.shards and self.last == "loading weights" and self.shards[0] < _ALL:
            percent, done, of = self.shards
            return f"loading weights ({done} of {of} shards, {percent} %)"
        return self.last or "starting"

    def _room(self) -> str:
        parts = []
        if "available_kv_cache_gib" in self.facts:
            parts.append(f"{number(self.facts['available_kv_cache_gib'])} GiB for the KV cache")
        if "kv_cache_tokens" in self.facts:
            parts.append(f"{number(self.facts['kv_cache_tokens'])} tokens fit")
        if "max_concurrency" in self.facts:
            concurrency = self.facts["max_concurrency"]
            parts.append(f"{number(concurrency)} requests of full length at once")
            if concurrency < _LOW_CONCURRENCY:
                parts.append("which is little: long requests will queue or be preempted")
        return f" Room: {', '.join(parts)}." if parts else ""

    def _action(self, *, up: bool) -> str:
        if self.facts.get("max_concurrency", _LOW_CONCURRENCY) < _LOW_CONCURRENCY:
            return (
                "More room for requests: lower --max-model-len if prompts are shorter, raise "
                "--gpu-memory-utilization or the tensor parallel size, or --kv-cache-dtype fp8."
            )
        if up:
            return (
                "To start faster: weights on local NVMe or in the page cache, a kept compile cache "
                "(VLLM_CACHE_ROOT), fewer --cudagraph-capture-sizes."
            )
        return (
            "Wait, and keep probes from killing it (startupProbe). Slow loading: weights on a "
            "network file system; slow compiling: keep the cache (VLLM_CACHE_ROOT) on a volume."
        )


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0
