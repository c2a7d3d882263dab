"""Which causes cannot be told for lack of which reading: for one entity, or for many at once.

Nearly every GPU of a fleet lacks the same readings, so that for many entities this is worked out in
columns, and what is the same for several is put together once.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field

import numpy as np

from engine.catalogue.types import CauseRule
from engine.condition import Condition
from engine.condition.memo import Flags
from engine.diagnosis.observe import Observation, Trits
from engine.model import Class

Blocks = Mapping[str, tuple[str, ...]]
Looks = Mapping[str, tuple[str, ...]]


def looks_of(causes: Mapping[str, CauseRule], symptoms: Container[str]) -> Looks:
    """Return the symptoms that the patterns of each cause look at, those of blind ones left out."""
    found: dict[str, tuple[str, ...]] = {}
    for cause, rule in causes.items():
        if rule.class_ is not Class.BLIND:
            looked_at = dict.fromkeys(s for p in rule.patterns for s in p.all + p.any + p.none)
            found[cause] = tuple(s for s in looked_at if s in symptoms)
    return found


def blocked_one(
    looks: Looks,
    conditions: Mapping[str, Condition],
    seen: Observation,
    states: Mapping[str, Trits],
    i: int,
) -> Blocks:
    """Return, for each reading that entity i lacks, the causes that stay undecided, sorted."""
    found: dict[str, set[str]] = {}
    lacks: dict[str, frozenset[str]] = {}
    for cause, symptoms in looks.items():
        if states[cause].item(i) != 0:
            continue
        for symptom in symptoms:
            lack = lacks.get(symptom)
            if lack is None:
                lack = frozenset()
                if seen.truth[symptom].item(i) == 0:
                    lack = conditions[symptom].missing(seen.frame, i, seen.memo)
                lacks[symptom] = lack
            for signal in lack:
                found.setdefault(signal, set()).add(cause)
    return {signal: tuple(sorted(some)) for signal, some in found.items()}


@dataclass(slots=True)
class BlockedMany:
    """The same for all entities of an observation.

    ``rows[i]`` has a flag for each of ``pairs``, (reading, cause).
    """

    pairs: list[tuple[str, str]]
    rows: Flags
    _known: dict[bytes, Blocks] = field(default_factory=dict)

    def of(self, i: int) -> Blocks:
        """Return what `blocked_one` returns for entity i."""
        key = self.rows[i].tobytes()
        if key not in self._known:
            found: dict[str, list[str]] = {}
            for k in np.flatnonzero(self.rows[i]).tolist():
                signal, cause = self.pairs[k]
                found.setdefault(signal, []).append(cause)
            self._known[key] = {signal: tuple(some) for signal, some in found.items()}
        return self._known[key]


def blocked_many(
    looks: Looks,
    conditions: Mapping[str, Condition],
    seen: Observation,
    states: Mapping[str, Trits],
) -> BlockedMany:
    """Work out for all entities which causes they cannot be told of, and for lack of what."""
    lacks: dict[str, dict[str, Flags]] = {}
    found: dict[tuple[str, str], Flags] = {}
    for cause, symptom in ((c, s) for c, symptoms in looks.items() for s in symptoms):
        if symptom not in lacks:
            unknown = seen.truth[symptom] == 0
            lacks[symptom] = conditions[symptom].lacking(seen.frame, seen.memo, unknown)
        undecided = states[cause] == 0
        for signal, flags in lacks[symptom].items():
            both = undecided & flags
            key = (signal, cause)
            found[key] = found[key] | both if key in found else both
    pairs = sorted(key for key, flags in found.items() if flags.any())
    rows = np.zeros((len(seen.frame), len(pairs)), dtype=np.bool_)
    for k, key in enumerate(pairs):
        rows[:, k] = found[key]
    return BlockedMany(pairs, rows)
