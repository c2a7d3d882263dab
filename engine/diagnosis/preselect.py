"""What must be true of a GPU before any cause can be found at it: the least that has to be asked.

A cause fires only if all symptoms of one of its patterns are true. These positive symptoms are
asked of the server; what a pattern excludes (``none``, ``unless``) is not, as the answers are
supersets: a server may say yes where the samples say no, never the other way round. Benign causes
need no asking, but "idle" is a verdict of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from engine.catalogue.types import CauseRule, Pattern
from engine.diagnosis.observe import Bools
from engine.model import Class

_CAUSE = "cause/"
_IDLE = "idle"


@dataclass(frozen=True, slots=True)
class Need:
    """One way for a GPU to be suspicious: all of some symptoms, and any of others if there are."""

    all: frozenset[str]
    any: frozenset[str] = frozenset()

    @property
    def symptoms(self) -> frozenset[str]:
        """Every symptom that is asked for."""
        return self.all | self.any


def needs_of(causes: Mapping[str, CauseRule], compared: Collection[str] = ()) -> list[Need]:
    """Return what the causes that are told need, one entry a pattern.

    Of several symptoms of a pattern that compare with other GPUs (``compared``) only the first is
    kept: rules begin with what defines a cause, and each comparison costs a pass over all GPUs.

    A pattern that rests on other causes is left out where these stand in for it: it cannot hold
    unless one of their own patterns does, so these are asked for, benign or not.
    """
    wanted = [name for name, rule in causes.items() if rule.class_ is not Class.BENIGN]
    seen = set(wanted)
    found: list[Need] = []
    while wanted:
        for pattern in causes[wanted.pop()].patterns:
            own, other = _told(pattern, compared)
            found += own
            new = [name for name in other if name in causes and name not in seen]
            seen.update(new)
            wanted += new
    return sorted(set(found), key=lambda need: (sorted(need.all), sorted(need.any)))


def _told(pattern: Pattern, compared: Collection[str]) -> tuple[list[Need], set[str]]:
    """Return what a pattern needs of symptoms, and the causes that it rests on."""
    spare = [s for s in pattern.all if s in compared][1:]
    all_ = frozenset(s for s in pattern.all if not s.startswith(_CAUSE) and s not in spare)
    any_ = frozenset(s for s in pattern.any if not s.startswith(_CAUSE))
    causes = {s.removeprefix(_CAUSE) for s in (*pattern.all, *pattern.any) if s.startswith(_CAUSE)}
    if all_:
        return [Need(all_, any_ if len(any_) == len(pattern.any) else frozenset())], causes
    if any_:
        return [Need(frozenset({s})) for s in sorted(any_)], causes
    return [], causes


def reduced(
    needs: Iterable[Need], never: frozenset[str], untold: frozenset[str]
) -> list[Need] | None:
    """Return the needs that are left once some symptoms are settled, the weaker ones absorbed.

    Args:
        needs: all of them.
        never: symptoms that are true nowhere.
        untold: symptoms that are true everywhere, or of which the server cannot tell.

    Returns:
        None if a need has nothing left: then every GPU is suspicious.
    """
    kept: set[Need] = set()
    for need in needs:
        if need.all & never or (need.any and need.any <= never):
            continue
        all_ = need.all - untold
        any_ = frozenset() if need.any & untold else need.any - never
        if len(any_) == 1:
            all_, any_ = all_ | any_, frozenset()
        if not all_ and not any_:
            return None
        kept.add(Need(all_, any_))
    plain = [need for need in kept if not need.any]
    strongest = [need for need in kept if not any(o.all <= need.all and o != need for o in plain)]
    return sorted(strongest, key=lambda need: (sorted(need.all), sorted(need.any)))


def suspicious(needs: Sequence[Need], may_be: Mapping[str, Bools], n: int) -> Bools:
    """Return which of n GPUs meet a need, given for each symptom where it may be true."""
    found = np.zeros(n, dtype=np.bool_)
    for need in needs:
        met = np.ones(n, dtype=np.bool_)
        for symptom in need.all:
            met &= may_be[symptom]
        if need.any:
            met &= np.logical_or.reduce([may_be[symptom] for symptom in sorted(need.any)])
        found |= met
    return found


@dataclass(frozen=True, slots=True)
class Idle:
    """The patterns of the idle verdict, as far as symptoms alone decide them.

    ``plain``: (symptoms that must be true, symptoms that must not be) a pattern.
    """

    plain: tuple[tuple[frozenset[str], frozenset[str]], ...]

    @property
    def symptoms(self) -> frozenset[str]:
        """Every symptom that decides."""
        return frozenset().union(*(all_ | unless for all_, unless in self.plain))


def idle_of(causes: Mapping[str, CauseRule]) -> Idle | None:
    """Return how to tell idle GPUs; None if a pattern rests on more than symptoms."""
    rule = causes.get(_IDLE)
    if rule is None:
        return Idle(())
    plain = []
    for pattern in rule.patterns:
        if pattern.any or pattern.none or any(s.startswith(_CAUSE) for s in pattern.refs):
            return None
        plain.append((frozenset(pattern.all), frozenset(pattern.unless)))
    return Idle(tuple(plain))


def idle(how: Idle, true: Mapping[str, Bools], n: int) -> Bools:
    """Return which of n GPUs are idle, given for each symptom where it is true."""
    found = np.zeros(n, dtype=np.bool_)
    for all_, unless in how.plain:
        holds = np.ones(n, dtype=np.bool_)
        for symptom in all_:
            holds &= true[symptom]
        for symptom in unless:
            holds &= ~true[symptom]
        found |= holds
    return found
