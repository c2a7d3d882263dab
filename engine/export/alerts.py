"""Alert rules: one for each cause that means trouble, and those of the knowledge base."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.catalogue.types import Catalogue, CauseRule
from engine.export.names import CAUSE, NODE, by
from engine.export.verdicts import LeftOut, Verdicts
from engine.model import Class

# The label that tells these alerts from all others, and which set one belongs to.
PRODUCT = "gpuwhy"
# A verdict must have been there at several evaluations: one alone is no reason to wake somebody.
HOLD = "1m"

_QUIET = {
    Class.BENIGN: "benign: it says that nothing is wrong, so nobody has to be told",
    Class.BLIND: (
        "blind: its series end with the readings, 15 minutes after they stop; the alerts of the"
        " knowledge base on missing metrics stay"
    ),
}


@dataclass(frozen=True, slots=True)
class Alert:
    """One alert rule.

    ``origin`` is ``rules`` (a cause) or ``reference`` (an entry of the knowledge base), ``id`` the
    cause or the entry.
    """

    id: str
    origin: str
    name: str
    expr: str
    hold: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str] = field(default_factory=dict)


def cause_alerts(catalogue: Catalogue, verdicts: Verdicts, runbooks: str) -> list[Alert]:
    """Return the alerts of the causes that were compiled and mean trouble."""
    rules = (catalogue.causes[cause] for cause in sorted(verdicts.causes))
    return [_of_cause(rule, catalogue, runbooks) for rule in rules if not _quiet(rule)]


def without_alert(catalogue: Catalogue, verdicts: Verdicts) -> list[LeftOut]:
    """Return the causes that are recorded but give no alert."""
    rules = (catalogue.causes[cause] for cause in sorted(verdicts.causes))
    return [LeftOut(rule.id, reason) for rule in rules if (reason := _quiet(rule))]


def reference_alerts(catalogue: Catalogue, runbooks: str) -> Iterator[Alert]:
    """Yield the alert entries of the knowledge base as they are written."""
    for key, entry in catalogue.entries.get("alerts", {}).items():
        cause = entry.get("rule") or ""
        labels = {
            "severity": str(entry["severity"]),
            **_class(cause, catalogue),
            "product": PRODUCT,
            "origin": "reference",
            **({"cause": cause} if cause else {}),
            # Exporters spell the host's label two ways; routes need one.
            "host": "{{ or $labels.Hostname $labels.hostname }}",
        }
        yield Alert(
            id=key,
            origin="reference",
            name=_reference_name(key, entry),
            expr=" ".join(str(entry["expr"]).split()),
            hold=str(entry["for"]),
            labels=labels,
            annotations={
                "summary": str(entry["summary"]),
                "description": _literal(str(entry["text"])),
                "runbook_url": f"{runbooks}alerts.md#{key}",
            },
        )


def alert_name(cause: str) -> str:
    """Return the alert's name of a cause: ``power_brake`` gives ``GpuwhyPowerBrake``."""
    return "Gpuwhy" + "".join(word.capitalize() for word in cause.split("_"))


def _quiet(rule: CauseRule) -> str:
    if rule.status == "deprecated":
        return "deprecated: the rule will be removed"
    return _QUIET.get(rule.class_, "")


def _of_cause(rule: CauseRule, catalogue: Catalogue, runbooks: str) -> Alert:
    node = rule.scope == "node"
    verdict = f'{CAUSE}{{cause="{rule.id}"}}'
    where = "{{ $labels.host }}" if node else "GPU {{ $labels.gpu }} of {{ $labels.host }}"
    target = "{{ $labels.host }}" if node else "{{ $labels.host }}:{{ $labels.gpu }}"
    meaning = catalogue.taxonomy[rule.id].is_ if rule.id in catalogue.taxonomy else rule.title
    return Alert(
        id=rule.id,
        origin="rules",
        name=alert_name(rule.id),
        # What is said of a node is said once, not for each of its GPUs.
        expr=f"max {by(NODE)} ({verdict})" if node else verdict,
        hold=HOLD,
        labels={
            "severity": str(rule.severity),
            "class": str(rule.class_),
            "product": PRODUCT,
            "origin": "rules",
            "scope": rule.scope,
            "cause": rule.id,
        },
        annotations={
            "summary": f"{_literal(rule.title)}: {where}",
            "description": f"{_literal(meaning).rstrip('.')}. For the proof: gpuwhy why {target}",
            "runbook_url": f"{runbooks}taxonomy.md#{rule.id}",
        },
    )


def _class(cause: str, catalogue: Catalogue) -> dict[str, str]:
    info = catalogue.taxonomy.get(cause)
    return {"class": str(info.class_)} if info else {}


def _reference_name(key: str, entry: Mapping[str, Any]) -> str:
    names = entry.get("names") or ()
    return str(names[0]) if names else "".join(word.capitalize() for word in key.split("_"))


def _literal(text: str) -> str:
    """Return a text of which no template engine takes a part for its own."""
    return text.replace("{{", "{ {").strip()
