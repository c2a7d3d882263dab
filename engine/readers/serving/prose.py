"""Readings of a service as people write them: "KV cache 98 percent, 40 running, 212 waiting"."""

from __future__ import annotations

import re
from collections.abc import Mapping

from engine.readers.serving.load import Engine, Load

_N = r"(\d{1,9}(?:\.\d{1,6})?)"
# A use of the cache: the whole number, and not one of bytes, tokens or blocks.
_SHARE = _N + r"(?!\.?\d)(?! ?(?:[KMGTkmgt]i?[Bb]|tok|block|req))"
_IS = r"(?: ?[=:] ?| is(?: at)? | at | of | about | )"
_PATTERNS: Mapping[str, tuple[re.Pattern[str], ...]] = {
    "running": (
        re.compile(rf"num_(?:requests_running|running_reqs){_IS}{_N}"),
        re.compile(rf"{_N} (?:requests? |reqs )?(?:are )?running\b", re.IGNORECASE),
        re.compile(rf"\brunning(?: requests)?{_IS}{_N}", re.IGNORECASE),
    ),
    "waiting": (
        re.compile(rf"num_(?:requests_waiting|queue_reqs){_IS}{_N}"),
        re.compile(
            rf"{_N} (?:requests? |reqs )?(?:are )?(?:waiting|queued|pending)\b", re.IGNORECASE
        ),
        re.compile(
            rf"\b(?:waiting|queued|pending|queue (?:length|depth))(?: requests)?{_IS}{_N}",
            re.IGNORECASE,
        ),
    ),
    "kv_usage": (
        re.compile(rf"(?:kv|gpu)_cache_usage(?:_perc)?{_IS}{_SHARE} ?(%|percent)?"),
        re.compile(
            rf"\bKV[- ]cache(?: usage| use| utili[sz]ation)?{_IS}{_SHARE} ?(%|per ?cent)?",
            re.IGNORECASE,
        ),
        re.compile(rf"\btoken[_ ]usage{_IS}{_SHARE} ?(%|percent)?"),
    ),
    "preemptions": (
        re.compile(rf"num_preemptions(?:_total)?{_IS}{_N}"),
        re.compile(rf"{_N} preemptions?\b", re.IGNORECASE),
        re.compile(rf"\bpreemptions?{_IS}{_N}", re.IGNORECASE),
    ),
}
TRIGGERS = (
    b"KV cache",
    b"kv cache",
    b"KV-cache",
    b"num_requests_",
    b"cache_usage_perc",
    b"num_preemptions",
    b"num_queue_reqs",
)
_METRIC = re.compile(r"num_(?:requests_|running_reqs|queue_reqs|preemptions)|vllm|sglang")
_SGLANG = re.compile(r"sglang|num_queue_reqs|token_usage", re.IGNORECASE)


class Prose:
    """Collects such readings; two different ones make a service."""

    def __init__(self) -> None:
        self.line = 0
        self._found: dict[str, float] = {}
        self._server = "vllm"
        self._served = False

    def __bool__(self) -> bool:
        """Return whether the readings are enough to say something, and are those of a server."""
        return len(self._found) > 1 and self._served

    def feed(self, number: int, text: str) -> bool:
        """Take one line."""
        found: dict[str, float] = {}
        for quantity, patterns in _PATTERNS.items():
            for pattern in patterns:
                match = pattern.search(text)
                if match:
                    found[quantity] = _value(quantity, match)
                    break
        if not found or (len(found) < 2 and not self._found):
            return False
        if _SGLANG.search(text):
            self._server = "sglang"
        self._served |= "kv_usage" in found or bool(_METRIC.search(text))
        self.line = self.line or number
        self._found |= found
        return True

    def load(self) -> Load:
        """Return the readings as a service."""
        load = Load(self._server, "", line=self.line, since="as the text says")
        load.engines[""] = Engine("", now=dict(self._found))
        return load


def _value(quantity: str, match: re.Match[str]) -> float:
    value = float(match[1])
    if quantity != "kv_usage":
        return value
    return value / 100 if match[2] or value > 1.5 else value
