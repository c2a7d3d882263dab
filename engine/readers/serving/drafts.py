"""Log lines about speculative decoding: how many drafted tokens survive."""

from __future__ import annotations

import re

from engine.model import Finding, Severity
from engine.readers.serving.finding import Limits
from engine.readers.serving.words import percent
from engine.units import number

_N = r"(\d{1,12}(?:\.\d{1,6})?)"
# vllm-project/vllm v1/spec_decode/metrics.py 0.33.0, and engine/metrics.py 0.9.0 (V0).
_SPEC = re.compile(
    rf"SpecDecoding metrics: .{{0,20}}?[Mm]ean acceptance length: {_N}.{{0,120}}?"
    rf"Accepted: {_N} tokens, Drafted: {_N} tokens"
)
_SPEC_V0 = re.compile(rf"Speculative metrics: Draft acceptance rate: {_N}")


class Drafts:
    """Lines about speculative decoding of vLLM (V0 and V1): the newest counts."""

    def __init__(self) -> None:
        self.line = 0
        self._rate: float | None = None
        self._length: float | None = None
        self._accepted = 0.0
        self._drafted = 0.0

    def __bool__(self) -> bool:
        """Return whether there was any."""
        return self._rate is not None

    def feed(self, number_: int, text: str) -> bool:
        """Take one line."""
        found = _SPEC.search(text)
        if found:
            self.line = self.line or number_
            self._length = float(found[1])
            self._accepted += float(found[2])
            self._drafted += float(found[3])
            if self._drafted:
                self._rate = self._accepted / self._drafted
            return True
        old = _SPEC_V0.search(text)
        if old:
            self.line = self.line or number_
            self._rate = float(old[1])
        return bool(old)

    def finding(self, limits: Limits) -> Finding:
        """Say how many drafted tokens survive."""
        rate, length = self._rate or 0.0, self._length
        low = rate < limits["spec_accept_poor"] or (
            rate < limits["spec_accept_low"] and (length is None or length < 2)
        )
        said = f"Speculative decoding: {percent(rate)} of the drafted tokens are accepted"
        if length is not None:
            said += f", {number(length)} tokens a step with the model's own"
        return Finding(
            kind="serving",
            id="spec_decode_mismatch" if low else "spec_decode",
            severity=Severity.LOW if low else Severity.INFO,
            says=said + (": the draft brings little and costs time." if low else "."),
            action="Try fewer speculative tokens, a draft trained for this model and traffic, or "
            "none, and compare tokens per second."
            if low
            else "Nothing to do.",
            entity=None,
            line=self.line,
            cause="spec_decode_mismatch" if low else None,
            data={"acceptance_percent": round(100 * rate, 3)}
            | ({"accept_length": length} if length is not None else {}),
            sources=("vllm-project/vllm v1/spec_decode/metrics.py 0.33.0",),
        )
