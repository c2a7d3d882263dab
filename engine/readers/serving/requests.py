"""Request lines of TGI: how long requests waited and how fast they were answered."""

from __future__ import annotations

import re

from engine.catalogue.types import Catalogue
from engine.model import Finding, Severity
from engine.readers.serving.advice import more_slots
from engine.readers.serving.finding import Limits
from engine.readers.serving.words import count, seconds
from engine.units import number

# huggingface/text-generation-inference router/src/server.rs: Rust's Debug of a Duration.
_FIELD = re.compile(
    r'(total_time|queue_time|inference_time|time_per_token)="(\d{1,9}(?:\.\d{1,9})?)(ns|µs|us|ms|s)"'
)
_SCALE = {"ns": 1e-9, "µs": 1e-6, "us": 1e-6, "ms": 1e-3, "s": 1.0}
_SOURCE = "huggingface/text-generation-inference 3.3 router/src/server.rs"
# Mean wait from which a queue is felt, and the part of the whole request that it is.
_QUEUE_S = 1.0
_QUEUE_SHARE = 0.3


class Requests:
    """Adds up request lines."""

    def __init__(self) -> None:
        self.line = 0
        self.count = 0
        self._sums: dict[str, float] = {}
        self._worst: dict[str, float] = {}

    def feed(self, number_: int, text: str) -> bool:
        """Take one line."""
        found = {n: float(v) * _SCALE[u] for n, v, u in _FIELD.findall(text)}
        if "time_per_token" not in found or "queue_time" not in found:
            return False
        self.line = self.line or number_
        self.count += 1
        for name, value in found.items():
            self._sums[name] = self._sums.get(name, 0.0) + value
            self._worst[name] = max(self._worst.get(name, 0.0), value)
        return True

    def finding(self, catalogue: Catalogue) -> Finding:
        """Sum the requests up."""
        limits = Limits(catalogue)
        mean = {name: total / self.count for name, total in self._sums.items()}
        queue, gap = mean["queue_time"], mean["time_per_token"]
        whole = mean.get("total_time") or queue + mean.get("inference_time", 0.0)
        waits = queue >= _QUEUE_S and queue >= _QUEUE_SHARE * whole
        slow = gap >= limits["token_gap_slow"] and not waits
        cause = "queue_saturation" if waits else "decode_slow" if slow else None
        says = (
            f"{count(self.count, 'request')} of TGI: {seconds(whole)} in all on average, "
            f"{seconds(queue)} of them in the queue "
            f"(at most {seconds(self._worst['queue_time'])}), {seconds(gap)} a token."
        )
        if waits:
            says += " Waiting for a place in the batch is the larger part."
        elif slow:
            says += f" {number(1 / gap)} tokens/s each is slow, and no queue explains it."
        return Finding(
            kind="serving",
            id="tgi_requests",
            severity=Severity.MEDIUM if cause else Severity.INFO,
            says=says,
            action=more_slots("tgi")
            if waits
            else "Look at the GPUs' clocks and throttle reasons, and at the batch size."
            if slow
            else "Nothing stands out in these lines.",
            entity=None,
            line=self.line,
            cause=cause,
            data={"server": "tgi", "requests": self.count}
            | {f"{name}_mean_s": round(value, 6) for name, value in mean.items()},
            sources=(_SOURCE,),
        )
