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


def prune(rules: Rules) -> Rules:
    """Return rules without any mention of disabled ones (``rules.disabled``)."""
    causes = dict(rules.causes)
    disabled = dict(rules.disabled)
    while True:
        gone = {_reference(name): file for name, file in disabled.items()}
        pruned = {name: _without(source, gone.keys()) for name, source in causes.items()}
        causes = {name: source for name, source in pruned.items() if source.data["patterns"]}
        emptied = pruned.keys() - causes.keys()
        if not emptied:
            return Rules(dict(rules.symptoms), causes, disabled)
        # It is the overlay files that took the last pattern away; name the first of them.
        culprit = min(disabled.values())
        disabled |= {f"rule/{name}": culprit for name in sorted(emptied)}


def _reference(disabled: str) -> str:
    """Return how patterns refer to what ``disabled`` names (``symptom/ID`` or ``rule/ID``)."""
    kind, _, name = disabled.partition("/")
    return name if kind == "symptom" else f"cause/{name}"


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
