"""What the knowledge base and the rules say, in the formats of other programs.

    made = prometheus_rules(catalogue)     # recording and alert rules
    made.text                              # YAML
    grafana_dashboard(catalogue)           # JSON, built on the recorded names
    alertmanager_config(catalogue)         # receivers, routes and inhibition

Everything is a pure function of the catalogue: the same knowledge gives the same bytes.
"""

from __future__ import annotations

from engine.export.alertmanager import alertmanager_config
from engine.export.grafana import grafana_dashboard
from engine.export.prometheus import RUNBOOKS, Exported, prometheus_rules

__all__ = [
    "RUNBOOKS",
    "Exported",
    "alertmanager_config",
    "grafana_dashboard",
    "prometheus_rules",
]
