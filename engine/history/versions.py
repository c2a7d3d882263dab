"""Two versions of rules: which rules differ, and how their firings do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from engine.catalogue.types import Catalogue, CauseRule, SymptomRule
from engine.condition import compile_condition
from engine.history.episodes import Key
from engine.history.replaymodel import Change, Difference, Firing

_CAUSE = "cause/"


def differing(before: Catalogue, after: Catalogue) -> tuple[str, ...]:
    """Return the rules that can fire otherwise in one of two catalogues, sorted by id.

    These are the symptoms whose condition, hold time or thresholds differ, what is only in one of
    the two, the causes whose patterns differ, and the causes that refer to any of those.
    """
    if before.entries.get("signals") != after.entries.get("signals"):
        return tuple(sorted({*before.causes, *before.symptoms, *after.causes, *after.symptoms}))
    limits = {
        name
        for name in {*before.limits, *after.limits}
        if _value(before, name) != _value(after, name)
    }
    found = {
        name
        for name in {*before.symptoms, *after.symptoms}
        if _tells(before.symptoms.get(name)) != _tells(after.symptoms.get(name))
        or _uses(after, name, limits)
    }
    found |= {
        f"{_CAUSE}{name}"
        for name in {*before.causes, *after.causes}
        if _patterns(before.causes.get(name)) != _patterns(after.causes.get(name))
    }
    while True:
        more = {
            f"{_CAUSE}{name}"
            for catalogue in (before, after)
            for name, rule in catalogue.causes.items()
            if any(ref in found for pattern in rule.patterns for ref in pattern.refs)
        }
        if more <= found:
            return tuple(sorted(name.removeprefix(_CAUSE) for name in found))
        found |= more


def _value(catalogue: Catalogue, name: str) -> float | None:
    limit = catalogue.limits.get(name)
    return limit.value if limit else None


def _tells(rule: SymptomRule | None) -> tuple[str, float, str] | None:
    return (rule.when, rule.hold_s, rule.scope) if rule else None


def _patterns(rule: CauseRule | None) -> object:
    return (rule.patterns, rule.scope) if rule else None


def _uses(catalogue: Catalogue, name: str, limits: set[str]) -> bool:
    rule = catalogue.symptoms.get(name)
    if rule is None or not limits:
        return False
    return bool(compile_condition(rule.when, catalogue, rule.when_place).limits & limits)


def compare(before: Sequence[Firing], after: Sequence[Firing]) -> tuple[tuple[Change, ...], int]:
    """Return what differs between the firings of two versions, and how many are the same.

    Firings of one rule on one entity that overlap in time belong together; those that are only in
    one version are new or gone, the others are longer, shorter or the same by how long they last.
    """
    changes: list[Change] = []
    same = 0
    for old, new in _together(before, after):
        lasted = (sum(f.lasted_s for f in old), sum(f.lasted_s for f in new))
        if old and new and lasted[0] == lasted[1]:
            same += 1
            continue
        if not old:
            difference = Difference.NEW
        elif not new:
            difference = Difference.GONE
        else:
            difference = Difference.LONGER if lasted[1] > lasted[0] else Difference.SHORTER
        first = (*old, *new)[0]
        changes.append(Change(difference, first.rule, first.entity, tuple(old), tuple(new)))
    changes.sort(key=lambda c: (_start(c), c.rule, c.entity.key))
    return tuple(changes), same


def _start(change: Change) -> float:
    return min(f.start for f in (*change.before, *change.after))


def _together(
    before: Iterable[Firing], after: Iterable[Firing]
) -> Iterator[tuple[list[Firing], list[Firing]]]:
    """Yield the firings of both versions that hang together by overlapping in time."""
    by_key: dict[Key, list[tuple[Firing, int]]] = {}
    for which, firings in enumerate((before, after)):
        for one in firings:
            by_key.setdefault((one.rule, one.entity.key), []).append((one, which))
    for key in sorted(by_key):
        group: tuple[list[Firing], list[Firing]] = ([], [])
        until = None
        for one, which in sorted(by_key[key], key=lambda pair: (pair[0].start, pair[1])):
            if until is not None and one.start > until:
                yield group
                group, until = ([], []), None
            group[which].append(one)
            until = one.end if until is None else max(until, one.end)
        yield group


def same_readings(one: Catalogue, other: Catalogue) -> bool:
    """Return whether two catalogues make the same of the same samples."""
    return all(
        one.entries.get(concern) == other.entries.get(concern)
        for concern in ("signals", "gpu_models")
    )
