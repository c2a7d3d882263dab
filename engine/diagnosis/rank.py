"""Which cause comes first, and what hangs beneath it. Pure functions of what fired.

Three steps:

1. Effects hang beneath their causes. A rule names the causes that are its consequences; where
   both fired for the same GPU or node, the consequence is not a finding of its own. That it
   accounts for more than its cause does is no objection: the cause brought that about through it,
   and is credited with all that hangs beneath it. Two things never hang, because beneath another
   cause they would lose their evidence and their next steps: what needs action beneath what does
   not (benign, blind), and what is sure beneath what is merely possible, if it accounts for
   something that the possible cause by itself does not (but a straggler and who waits for it say
   where, not why: any cause takes them).
2. Of what is left, the smallest set that accounts for everything seen comes first: one cause that
   explains three symptoms stands before three that explain one each. Causes that need action
   compete among themselves; benign and blind ones follow, in this order, so that "idle" never
   displaces a fault, however much it explains.
3. Ties: fault, limit, workload, victim; then severity, confidence, how much is explained, id.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from engine.model import Class, Confidence, Effect, Entity, Kind, Severity

_CLASSES = {class_: place for place, class_ in enumerate(Class)}
_SEVERITIES = {severity: place for place, severity in enumerate(Severity)}
_CONFIDENCES = {confidence: place for place, confidence in enumerate(Confidence)}
_NOTES = (Class.BENIGN, Class.BLIND)
# These say which rank is slow and who waits, not why: any cause takes them, a possible one too.
_WHERE = frozenset({"straggler", "waiting_on_straggler"})
# Kinds that concern all that is on the same host, or in the same job.
_HOLDS_HOST = frozenset({Kind.NODE, Kind.FILESYSTEM, Kind.SERVICE})
_HOLDS_JOB = frozenset({Kind.JOB, Kind.RANK})
# 2^12 sets are tried in a few milliseconds at worst; real questions have three or four causes.
_EXACT_UP_TO = 12

Key = tuple[str, tuple[str, str, str]]
_Token = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Fired:
    """A cause that was derived for an entity.

    Attributes:
        explains: the true symptoms that it accounts for, those of its own patterns included. Where
            causes of several entities are ranked together, the names must tell the entities apart.
        effects: ids of causes that are consequences of this one.
        seats: what else it was seen at: a cause of a job is seen at one of its GPUs.
    """

    cause: str
    entity: Entity
    class_: Class
    severity: Severity
    confidence: Confidence
    explains: frozenset[str] = frozenset()
    effects: tuple[str, ...] = ()
    seats: tuple[Entity, ...] = ()

    @property
    def key(self) -> Key:
        """Identity: cause and entity."""
        return (self.cause, self.entity.key)


@dataclass(frozen=True, slots=True)
class Ranked:
    """A root cause and the tree of effects beneath it.

    ``explains`` is what the cause and all its effects account for.
    """

    fired: Fired
    effects: tuple[Effect, ...]
    explains: frozenset[str]


def rank(fired: Iterable[Fired]) -> tuple[Ranked, ...]:
    """Return the root causes, most telling first, each fired cause once as a root or an effect.

    Causes that need action (fault, limit, workload, victim) come before benign and blind ones.
    The order of the input does not matter. Of a cause given twice for an entity the better counts.
    """
    causes = {one.key: one for one in sorted(fired, key=_order, reverse=True)}
    children = _children(causes)
    hanging = {child for below in children.values() for child in below}
    roots = [_tree(causes, children, key) for key in causes if key not in hanging]
    groups = (
        [root for root in roots if root.fired.class_ not in _NOTES],
        *([root for root in roots if root.fired.class_ is class_] for class_ in _NOTES),
    )
    return tuple(root for group in groups for root in _smallest_first(group))


def _order(fired: Fired, explained: int | None = None) -> tuple[object, ...]:
    """Sort key of step 3; ``explained`` counts what the effects explain, too."""
    return (
        _CLASSES[fired.class_],
        _SEVERITIES[fired.severity],
        _CONFIDENCES[fired.confidence],
        -(len(fired.explains) if explained is None else explained),
        fired.cause,
        _place(fired.entity),
        # Only for a cause that is given twice: the order must not depend on that of the input.
        sorted(fired.explains),
        fired.effects,
    )


def _place(entity: Entity) -> tuple[object, ...]:
    """Sort key of an entity: a node before its GPUs, GPU 2 before GPU 10."""
    gpu = -1 if entity.gpu is None else entity.gpu
    return (entity.cluster or "", entity.host or "", gpu, *entity.key)


def _root_order(root: Ranked) -> tuple[object, ...]:
    return _order(root.fired, len(root.explains))


# --- step 1: effects beneath their causes


def _children(causes: Mapping[Key, Fired]) -> dict[Key, list[Key]]:
    """Return for each cause what hangs directly beneath it, every effect beneath one cause only.

    An effect of several causes hangs beneath the nearest: where A brings about B and C, and B
    brings about C, then C hangs beneath B. Of causes equally near the first in order takes it.
    """
    if len(causes) < 2:
        return {}
    edges = _edges(causes)
    reach = {key: _reachable(edges, key) for key in causes}
    # Rules in a circle are refused on loading; here the first in order becomes the cause, so that
    # nothing is lost even so.
    edges = {
        key: [e for e in below if key not in reach[e] or _order(causes[key]) < _order(causes[e])]
        for key, below in edges.items()
    }
    reach = {key: _reachable(edges, key) for key in causes}
    parents: dict[Key, list[Key]] = {}
    for key, below in edges.items():
        for effect in below:
            parents.setdefault(effect, []).append(key)
    children: dict[Key, list[Key]] = {}
    for effect, above in parents.items():
        nearest = [one for one in above if not any(other in reach[one] for other in above)]
        parent = min(nearest, key=lambda key: _order(causes[key]))
        children.setdefault(parent, []).append(effect)
    return children


def _edges(causes: Mapping[Key, Fired]) -> dict[Key, list[Key]]:
    """Return for each cause the fired causes that may hang beneath it."""
    at: dict[tuple[str, _Token], dict[Key, Fired]] = {}
    for one in causes.values():
        for token in _tokens(one):
            at.setdefault((one.cause, token), {})[one.key] = one
    edges: dict[Key, list[Key]] = {}
    for cause in causes.values():
        tokens = _tokens(cause)
        for id_ in dict.fromkeys(cause.effects):
            # Of a whole fleet only what shares a name of a place is compared.
            close = {k: e for token in tokens for k, e in at.get((id_, token), {}).items()}
            edges.setdefault(cause.key, []).extend(
                key
                for key, effect in close.items()
                if key != cause.key and _near(cause, effect) and not _stands_alone(effect, cause)
            )
        edges.setdefault(cause.key, [])
    return edges


def _tokens(fired: Fired) -> dict[_Token, None]:
    """Return the names of places that two causes must share one of to be near each other."""
    return dict.fromkeys(
        token
        for one in (fired.entity, *fired.seats)
        for token in (
            ("key", one.key),
            ("host", one.host) if one.host else None,
            ("pod", one.namespace, one.pod) if one.pod else None,
            ("job", one.job) if one.job else None,
        )
        if token is not None
    )


def _near(cause: Fired, effect: Fired) -> bool:
    """Whether one may bring about the other, by where they are and where they were seen."""
    here, there = (cause.entity, *cause.seats), (effect.entity, *effect.seats)
    return any(_same_place(one, other) for one in here for other in there)


def _same_place(one: Entity, other: Entity) -> bool:
    """Whether two entities are the same, or one holds the other: a node, a job, a pod, its GPUs."""
    if one.key == other.key:
        return True
    if (one.cluster or other.cluster) and one.cluster != other.cluster:
        return False
    kinds = {one.kind, other.kind}
    if one.host is not None and one.host == other.host and kinds & _HOLDS_HOST:
        return True
    if one.pod is not None and (one.namespace, one.pod) == (other.namespace, other.pod):
        return True
    return one.job is not None and one.job == other.job and bool(kinds & _HOLDS_JOB)


def _stands_alone(effect: Fired, cause: Fired) -> bool:
    if cause.class_ in _NOTES and effect.class_ not in _NOTES:
        return True
    if effect.cause in _WHERE:
        return False
    guess = cause.confidence is Confidence.POSSIBLE and effect.confidence is not Confidence.POSSIBLE
    return guess and not effect.explains <= cause.explains


def _reachable(edges: Mapping[Key, Sequence[Key]], start: Key) -> set[Key]:
    """Return everything beneath a cause, at any depth."""
    seen: set[Key] = set()
    waiting = list(edges[start])
    while waiting:
        key = waiting.pop()
        if key not in seen:
            seen.add(key)
            waiting += edges[key]
    return seen


def _tree(causes: Mapping[Key, Fired], children: Mapping[Key, list[Key]], key: Key) -> Ranked:
    explains = set(causes[key].explains)

    def effects(above: Key) -> tuple[Effect, ...]:
        below = [causes[child] for child in children.get(above, ())]
        for effect in below:
            explains.update(effect.explains)
        return tuple(Effect(e.cause, e.entity, effects(e.key)) for e in sorted(below, key=_order))

    beneath = effects(key)
    return Ranked(causes[key], beneath, frozenset(explains))


# --- step 2: the smallest set that accounts for what was seen


def _smallest_first(roots: Iterable[Ranked]) -> list[Ranked]:
    """Return the smallest explaining set, then the rest, both in order."""
    in_order = sorted(roots, key=_root_order)
    if len(in_order) < 2:
        return in_order
    first = _smallest_set(in_order)
    chosen = {root.fired.key for root in first}
    return [r for r in in_order if r.fired.key in chosen] + [
        r for r in in_order if r.fired.key not in chosen
    ]


def _smallest_set(roots: Sequence[Ranked]) -> list[Ranked]:
    """Return the fewest roots that explain all that any explains; of equals, the first in order."""
    explained_by: dict[str, list[Ranked]] = {}
    for root in roots:
        for symptom in root.explains:
            explained_by.setdefault(symptom, []).append(root)
    alone = {by[0].fired.key for by in explained_by.values() if len(by) == 1}
    needed = [root for root in roots if root.fired.key in alone]
    left = frozenset(explained_by).difference(*(root.explains for root in needed))
    useful = [root for root in roots if root.explains & left]
    if len(useful) > _EXACT_UP_TO:
        return needed + _greedy_set(useful, left)
    for size in range(len(useful) + 1):
        # Combinations come in the order of their members: the first that fits is the best.
        for chosen in combinations(useful, size):
            if left.issubset(symptom for root in chosen for symptom in root.explains):
                return needed + list(chosen)
    return needed


def _greedy_set(roots: Sequence[Ranked], symptoms: frozenset[str]) -> list[Ranked]:
    """Take the root that explains most of what is left, until nothing is."""
    chosen: list[Ranked] = []
    left = symptoms
    while left:
        best = max(roots, key=lambda root: len(root.explains & left))
        chosen.append(best)
        left -= best.explains
    return chosen
