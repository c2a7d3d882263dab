"""The load lines of one engine over time, in bounded memory."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from engine.readers.serving.samples import Sample

_FIRST = 16
_LAST = 512
# vLLM logs every 10 s unless VLLM_LOG_STATS_INTERVAL says otherwise (vllm/envs.py 0.33.0).
_INTERVAL_S = 10.0
_MAX_GAP_S = 7200.0


@dataclass(slots=True)
class Course:
    """The first and the last lines of one engine, and what all of them had at most.

    Attributes:
        name: how the lines call the engine, empty if not at all.
        count: lines seen.
        preempted: preemptions that the lines themselves counted.
    """

    server: str
    name: str
    count: int = 0
    preempted: float = 0.0
    highest: dict[str, float] = field(default_factory=dict)
    dialect: str = ""
    engines: int = 1
    _first: list[Sample] = field(default_factory=list)
    _last: deque[Sample] = field(default_factory=lambda: deque(maxlen=_LAST))

    def add(self, sample: Sample) -> None:
        """Take the next line."""
        self.count += 1
        self.preempted += sample.readings.get("preempted", 0.0)
        self.dialect = sample.dialect or self.dialect
        self.engines = max(self.engines, sample.engines)
        for name, value in sample.readings.items():
            if value > self.highest.get(name, -1.0):
                self.highest[name] = value
        if len(self._first) < _FIRST:
            self._first.append(sample)
        else:
            self._last.append(sample)

    @property
    def kept(self) -> list[Sample]:
        """The lines that are kept, in order; there may be a gap after the first ones."""
        return [*self._first, *self._last]

    @property
    def first(self) -> Sample:
        """The first line."""
        return self._first[0]

    @property
    def last(self) -> Sample:
        """The newest line."""
        return self._last[-1] if self._last else self._first[-1]

    @property
    def latest(self) -> dict[str, float]:
        """The newest reading of each quantity: prefill and decode lines say different things."""
        out: dict[str, float] = {}
        for sample in self.kept[-8:]:
            out |= sample.readings
        return out

    def pairs(self) -> Iterator[tuple[Sample, Sample]]:
        """Yield neighbouring lines."""
        kept = self.kept
        yield from itertools.pairwise(kept)

    def tail(self, wanted: int) -> list[Sample]:
        """Return up to so many of the newest lines."""
        return self.kept[-wanted:]

    def span_s(self, samples: list[Sample]) -> tuple[float, bool] | None:
        """Return the time from the first to the last of some lines, and whether it was printed.

        Without times, lines of vLLM are taken to be 10 s apart.
        """
        if len(samples) < 2:
            return None
        start, end = samples[0].at, samples[-1].at
        if start is not None and end is not None and 0 < end - start <= _MAX_GAP_S * len(samples):
            return end - start, True
        if self.server == "vllm" and (start is None or end is None):
            return _INTERVAL_S * (len(samples) - 1), False
        return None
