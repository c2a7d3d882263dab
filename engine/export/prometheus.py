"""Rule files for Prometheus: signals recorded under one name each, verdicts, alerts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from engine.catalogue.types import Catalogue
from engine.condition.selectors import duration
from engine.export.alerts import Alert, cause_alerts, reference_alerts, without_alert
from engine.export.codes import INTERVAL_S
from engine.export.recorded import Recording, signal_rules
from engine.export.verdicts import LeftOut, verdict_rules
from engine.export.yamltext import comment, dump, folded

# Where the reference pages lie if nobody says: in the project, relative to its root.
RUNBOOKS = "docs/reference/"
# The alerts of the knowledge base look at windows of 5 minutes and more.
_SLOW = "30s"


@dataclass(frozen=True, slots=True)
class Exported:
    """A rule file and what is in it.

    Attributes:
        text: the YAML.
        recordings: how many series names and symptoms and causes are recorded.
        alerts: the alert rules, those of causes first.
        left_out: causes that PromQL cannot say exactly, with the reason.
        no_alert: causes that are recorded but alert nobody, with the reason.
    """

    text: str
    recordings: tuple[Recording, ...]
    alerts: tuple[Alert, ...]
    left_out: tuple[LeftOut, ...]
    no_alert: tuple[LeftOut, ...]


def prometheus_rules(
    catalogue: Catalogue, *, runbooks: str = RUNBOOKS, interval_s: int = INTERVAL_S
) -> Exported:
    """Return recording and alert rules for what knowledge and rules say.

    Args:
        catalogue: knowledge and rules.
        runbooks: address of the folder with the reference pages, for ``runbook_url``.
        interval_s: how often the rules are evaluated (s); not longer than readings are scraped.
    """
    runbooks = runbooks if runbooks.endswith("/") else f"{runbooks}/"
    verdicts = verdict_rules(catalogue, interval_s)
    recordings = (
        *signal_rules(catalogue),
        *verdicts.derived,
        *verdicts.symptoms,
        *verdicts.causes.values(),
    )
    causes = cause_alerts(catalogue, verdicts, runbooks)
    reference = list(reference_alerts(catalogue, runbooks))
    left_out, no_alert = tuple(verdicts.inexact), tuple(without_alert(catalogue, verdicts))
    every = duration(interval_s)
    groups = [
        {
            # One group: its rules run in this order and at one moment, each sees those before it.
            "name": "gpuwhy",
            "interval": every,
            "rules": [*map(_recording, recordings), *map(_alert, causes)],
        },
        {"name": "gpuwhy_reference", "interval": _SLOW, "rules": [*map(_alert, reference)]},
    ]
    head = _head(catalogue, left_out, no_alert)
    text = comment(head) + dump({"groups": [group for group in groups if group["rules"]]})
    return Exported(text, recordings, (*causes, *reference), left_out, no_alert)


def _recording(rule: Recording) -> dict[str, Any]:
    made: dict[str, Any] = {"record": rule.record, "expr": folded(rule.expr)}
    return {**made, "labels": dict(rule.labels)} if rule.labels else made


def _alert(rule: Alert) -> dict[str, Any]:
    return {
        "alert": rule.name,
        "expr": folded(rule.expr),
        "for": rule.hold,
        "labels": dict(rule.labels),
        "annotations": dict(rule.annotations),
    }


def _head(
    catalogue: Catalogue, left_out: Iterable[LeftOut], no_alert: Iterable[LeftOut]
) -> list[str]:
    lines = [
        "Made by `gpuwhy export prometheus`; changes here are lost.",
        f"Knowledge and rules: {catalogue.hash}",
        "",
        "Group gpuwhy: every signal under one name, then symptoms (gpuwhy:symptom), causes",
        "(gpuwhy:cause) and their alerts, evaluated in this order.",
        "Group gpuwhy_reference: the alerts of the knowledge base; they need no recorded series.",
        "",
        "Left out, since PromQL cannot say the same as the rules:",
        *_listed(left_out),
        "Recorded, but without an alert:",
        *_listed(no_alert),
    ]
    return [*lines, ""]


def _listed(items: Iterable[LeftOut]) -> list[str]:
    return [f"  {item.id}: {item.reason}" for item in items] or ["  nothing"]
