"""Observe: numbers become words. Every symptom is true, false or unknown for every entity.

A symptom that is true on one sample only, or whose hold time cannot be proven for lack of
history, is ``weak``: it counts as true, and no verdict that rests on it is more than ``possible``.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from engine.catalogue.types import SymptomRule
from engine.condition import Condition, Memo
from engine.condition.condition import FEW
from engine.diagnosis.homes import Home
from engine.model import Truth, Unknown
from engine.samples import Frame

if TYPE_CHECKING:
    from engine.diagnosis.blocked import BlockedMany
    from engine.diagnosis.judge import Told

Trits = npt.NDArray[np.int8]
Bools = npt.NDArray[np.bool_]

# A missing reading, the causes that it blocks, and what is said of it if that is the same for all.
Lack = tuple[str, tuple[str, ...], Unknown | None]

_TRUTH = {1: Truth.TRUE, 0: Truth.UNKNOWN, -1: Truth.FALSE}


@dataclass(slots=True)
class Observation:
    """The words for all entities of a frame.

    ``truth`` is 1, 0 or -1 per entity for every symptom, ``weak`` marks the true ones that rest
    on a single sample or an unproven hold time. ``few`` says that only a few entities were asked
    about; ``blocked`` keeps what undecided causes of all entities lack, once it was worked out, and
    ``lacks`` what is said of that: most entities of a fleet lack the same. ``alone`` is what is
    said of readings that cannot be compared, ``mates`` how many entities each host has, ``told``
    what the words alone tell, by `row`.
    """

    frame: Frame
    memo: Memo
    truth: dict[str, Trits]
    weak: dict[str, Bools]
    few: bool = True
    blocked: BlockedMany | None = None
    lacks: dict[Hashable, tuple[Lack, ...]] = field(default_factory=dict)
    alone: dict[Hashable, Unknown] = field(default_factory=dict)
    mates: dict[int, int] = field(default_factory=dict)
    told: dict[bytes, Told] = field(default_factory=dict)
    _rows: Trits | None = None

    def row(self, i: int) -> bytes:
        """Return the truths of all symptoms of entity i: most entities of a fleet share a few."""
        if self._rows is None:
            self._rows = np.stack(list(self.truth.values()), axis=1)
        row: bytes = self._rows[i].tobytes()
        return row

    def words(self, i: int, symptoms: Iterable[str]) -> dict[str, Truth]:
        """Return the truth of some symptoms for entity i."""
        truth = self.truth
        return {name: _TRUTH[truth[name].item(i)] for name in symptoms}


class Observer:
    """The symptoms of one scope, conditions compiled once."""

    def __init__(self, rules: Home) -> None:
        self.rules: Mapping[str, SymptomRule] = rules.symptoms
        self.conditions: Mapping[str, Condition] = rules.conditions

    @cached_property
    def signals(self) -> frozenset[str]:
        """Every signal that some symptom reads."""
        return frozenset().union(*(c.signals for c in self.conditions.values()))

    @cached_property
    def sibling_signals(self) -> frozenset[str]:
        """The signals that are compared with the other GPUs of a node."""
        return frozenset().union(*(c.sibling_signals for c in self.conditions.values()))

    @cached_property
    def job_signals(self) -> frozenset[str]:
        """The signals that are compared with the other GPUs of a job."""
        return frozenset().union(*(c.job_signals for c in self.conditions.values()))

    @cached_property
    def sibling_window_s(self) -> float:
        """How far back siblings are looked at (s)."""
        windows = [c.max_window_s for c in self.conditions.values() if c.uses_siblings]
        return max(windows, default=0.0)

    @cached_property
    def window_s(self) -> float:
        """How far back the conditions look (s)."""
        holds = (r.hold_s for r in self.rules.values())
        windows = (c.max_window_s for c in self.conditions.values())
        return max(*windows, *holds, 0.0) if self.conditions else 0.0

    def observe(self, frame: Frame, only: Sequence[int] | None = None) -> Observation:
        """Evaluate every symptom for all entities of a frame, or at least for those asked about."""
        memo = Memo(frame)
        truth: dict[str, Trits] = {}
        weak: dict[str, Bools] = {}
        nowhere: Bools = np.zeros(len(frame), dtype=bool)
        for name, condition in self.conditions.items():
            value = condition.evaluate(frame, memo, only)
            if 1 in value.tolist():  # for few entities cheaper than numpy, for many no dearer
                true = value == 1
                thin = _thin(condition, frame)
                if (hold_s := self.rules[name].hold_s) > 0:
                    held = condition.held(frame, memo, hold_s, only)
                    thin |= held == 0
                    value = np.where(true & (held == -1), np.int8(-1), value)
                weak[name] = thin & (value == 1)
            else:
                weak[name] = nowhere
            truth[name] = value
        few = len(frame if only is None else only) <= FEW
        return Observation(frame, memo, truth, weak, few)

    def since(self, seen: Observation, i: int, symptom: str) -> float | None:
        """Return the first sample time from which a symptom has been true without a break.

        None if it cannot be told: no times, or it was true, or unknown, as far back as is seen.
        """
        frame = seen.frame
        if not frame.timed:
            return None
        condition = self.conditions[symptom]
        began: float | None = None
        for t in reversed(_times(frame, i, condition.signals)):
            truth = condition.truth_at(seen.memo, i, t)
            if truth != 1:
                return began if truth == -1 else None
            began = t
        return None


def _thin(condition: Condition, frame: Frame) -> Bools:
    """Return for which entities all readings of a condition are single samples.

    Samples without times count as one each: nothing says that they are of different moments.
    """
    if not all(frame.has_times(signal) for signal in condition.signals):
        return np.ones(len(frame), dtype=bool)
    most = np.zeros(len(frame), dtype=np.int64)
    for signal in condition.signals:
        if signal in frame.columns:
            offsets = frame.columns[signal].offsets
            np.maximum(most, offsets[1:] - offsets[:-1], out=most)
    single: Bools = most == 1
    return single


def _times(frame: Frame, i: int, signals: Iterable[str]) -> list[float]:
    found = {float(t) for s in signals for t in frame.samples(s, i)[0]}
    return sorted(found)
