"""Taking disabled rules out of everything that refers to them.

A disabled symptom can neither be true nor known to be false. So a pattern that needs it (``all``,
``none``) can never hold and goes; where it is one of several or only an exception (``any``,
``unless``, ``explains``, ``against``) the mention goes. A disabled cause is treated alike. A cause
without patterns is disabled too, and so on until nothing changes.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import replace

from engine.catalogue.parts import Entry, Rules, RuleSource

_PATTERN_KEYS = ("all", "any", "none", "unless")


def prune(rules: Rules) -> Rules:
    """Return rules without any mention of disabled ones (``rules.disabled``).

    What the patterns of a cause lost by it is kept in ``thinned``.
    """
    causes = dict(rules.causes)
    disabled = dict(rules.disabled)
    thinned = dict(rules.thinned)
    while True:
        gone = {_reference(name): file for name, file in disabled.items()}
        for name, source in causes.items():
            if lost := _mentioned(source, gone.keys()):
                thinned[name] = tuple(sorted({*thinned.get(name, ()), *lost}))
        pruned = {name: _without(source, gone.keys()) for name, source in causes.items()}
        causes = {name: source for name, source in pruned.items() if source.data["patterns"]}
        emptied = pruned.keys() - causes.keys()
        if not emptied:
            left = {name: lost for name, lost in thinned.items() if name in causes}
            return Rules(dict(rules.symptoms), causes, disabled, left)
        # What took the last pattern away is the file that disabled what the pattern needs.
        for name in sorted(emptied):
            disabled[f"rule/{name}"] = next(gone[lost] for lost in thinned[name] if lost in gone)


def _reference(disabled: str) -> str:
    """Return how patterns refer to what ``disabled`` names (``symptom/ID`` or ``rule/ID``)."""
    kind, _, name = disabled.partition("/")
    return name if kind == "symptom" else f"cause/{name}"


def _mentioned(source: RuleSource, gone: AbstractSet[str]) -> set[str]:
    """Return what the patterns of a cause refer to of what is gone."""
    patterns = source.data["patterns"]
    return {n for p in patterns for key in _PATTERN_KEYS for n in p.get(key, ()) if n in gone}


def _without(source: RuleSource, gone: AbstractSet[str]) -> RuleSource:
    """Return a cause without mentions of what is gone; the same object if it has none."""
    patterns = [
        _thinned(pattern, gone) for pattern in source.data["patterns"] if _can_hold(pattern, gone)
    ]
    data = source.data | {"patterns": patterns}
    for key in ("explains", "against"):
        if key in data:
            data[key] = [name for name in data[key] if name not in gone]
    return source if data == source.data else replace(source, data=data)


def _can_hold(pattern: Entry, gone: AbstractSet[str]) -> bool:
    needed = [*pattern.get("all", ()), *pattern.get("none", ())]
    either = pattern.get("any", ())
    return gone.isdisjoint(needed) and not (either and gone >= set(either))


def _thinned(pattern: Entry, gone: AbstractSet[str]) -> Entry:
    optional = {
        key: [name for name in pattern[key] if name not in gone]
        for key in ("any", "unless")
        if key in pattern
    }
    return pattern | optional
