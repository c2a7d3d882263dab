"""A configuration for Alertmanager: who is told, what is told together, and what is not told.

Alerts of one cause on one host make one message. A cause silences those that its rule calls its
effects, so that a power brake is one message and not five.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from engine.catalogue.types import Catalogue
from engine.export.alerts import PRODUCT, cause_alerts
from engine.export.codes import INTERVAL_S
from engine.export.names import NODE
from engine.export.verdicts import verdict_rules
from engine.export.yamltext import comment, dump
from engine.model import Class

SECRET = "/etc/alertmanager/secrets/gpuwhy-slack-url"  # noqa: S105 - a path, not a secret

_SAME_GPU = (*NODE, "UUID")
_TITLE = "{{ .CommonAnnotations.summary }}{{ if gt (len .Alerts) 1 }} (+{{ len .Alerts }}){{ end }}"
_TEXT = (
    "{{ range .Alerts }}{{ .Annotations.summary }}\n{{ .Annotations.description }}\n"
    "{{ if .Annotations.runbook_url }}{{ .Annotations.runbook_url }}\n{{ end }}{{ end }}"
)


def alertmanager_config(catalogue: Catalogue) -> str:
    """Return the configuration as YAML."""
    config = {
        "route": {
            # What is not ours goes where it went before: put your own receiver here.
            "receiver": "default",
            "routes": [
                {
                    "matchers": [f'product="{PRODUCT}"'],
                    "receiver": "gpuwhy",
                    "group_by": [*NODE, "cause"],
                    "group_wait": "30s",
                    "group_interval": "5m",
                    "repeat_interval": "12h",
                    "routes": _routes(),
                }
            ],
        },
        "receivers": [
            {"name": "default"},
            {"name": "gpuwhy-nobody"},
            _slack("gpuwhy-urgent", "#gpu-urgent"),
            _slack("gpuwhy", "#gpu"),
            _slack("gpuwhy-workload", "#gpu-efficiency"),
        ],
        "inhibit_rules": _inhibitions(catalogue),
    }
    return comment(_head(catalogue)) + dump(config)


def _routes() -> list[dict[str, Any]]:
    """Return the routes in order; what none of them takes goes to the general channel."""
    return [
        {"matchers": ['severity="info"'], "receiver": "gpuwhy-nobody"},
        {
            # The program is slow, not the GPU: for whoever wrote it, once a day.
            "matchers": [f'class="{Class.WORKLOAD}"'],
            "receiver": "gpuwhy-workload",
            "repeat_interval": "24h",
        },
        {
            "matchers": ['severity="critical"'],
            "receiver": "gpuwhy-urgent",
            "repeat_interval": "4h",
        },
    ]


def _slack(name: str, channel: str) -> dict[str, Any]:
    return {
        "name": name,
        "slack_configs": [
            {
                "api_url_file": SECRET,
                "channel": channel,
                "send_resolved": True,
                "title": _TITLE,
                "text": _TEXT,
            }
        ],
    }


def _inhibitions(catalogue: Catalogue) -> list[dict[str, Any]]:
    """Return what silences what.

    An alert of the knowledge base is silenced by that of the same cause and GPU; an effect by its
    cause: on the same GPU, or on the same host where one of the two is said of the whole node.
    """
    alerts = cause_alerts(catalogue, verdict_rules(catalogue, INTERVAL_S), "")
    alerting = {alert.id for alert in alerts}
    found = [
        _inhibition(
            ['origin="rules"', f'scope="{scope}"'], ['origin="reference"'], ["cause", *same]
        )
        for scope, same in (("gpu", _SAME_GPU), ("node", NODE))
    ]
    for cause in sorted(alerting):
        rule = catalogue.causes[cause]
        effects = sorted(alerting.intersection(rule.effects))
        same_gpu = [e for e in effects if {rule.scope, catalogue.causes[e].scope} == {"gpu"}]
        same_host = [e for e in effects if e not in same_gpu]
        for silenced, equal in ((same_gpu, _SAME_GPU), (same_host, NODE)):
            if silenced:
                target = f'cause=~"{"|".join(silenced)}"'
                found.append(_inhibition([f'cause="{cause}"'], [target], equal))
    return found


def _inhibition(
    source: Iterable[str], target: Iterable[str], equal: Iterable[str]
) -> dict[str, Any]:
    ours = f'product="{PRODUCT}"'
    return {
        "source_matchers": [ours, *source],
        "target_matchers": [ours, *target],
        "equal": list(equal),
    }


def _head(catalogue: Catalogue) -> list[str]:
    return [
        "Made by `gpuwhy export alertmanager`.",
        f"Knowledge and rules: {catalogue.hash}",
        "",
        "It is complete, so that amtool can check it. To put it into what you have already, take",
        'the route with product="gpuwhy", the receivers called gpuwhy..., and inhibit_rules.',
        f"The address of the Slack webhook stands in {SECRET}.",
        "The channels are examples.",
        "",
    ]
