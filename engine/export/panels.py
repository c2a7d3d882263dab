"""Parts of a Grafana dashboard: panels with queries, units and a place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

SOURCE = {"type": "prometheus", "uid": "${DS_PROMETHEUS}"}
COLUMNS = 24

_THRESHOLDS = {"mode": "absolute", "steps": [{"color": "green", "value": None}]}


@dataclass(frozen=True, slots=True)
class Query:
    """One query of a panel; ``legend`` is Grafana's template for the names of its series."""

    expr: str
    legend: str = ""


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel.

    Attributes:
        title: what it shows.
        queries: at least one.
        unit: Grafana's name of the unit.
        kind: timeseries, stat, table or state-timeline.
        width: of 24 columns.
        text: what to look for.
        low, high: bounds of the axis.
        steps: (value from which, colour), for coloured values.
    """

    title: str
    queries: tuple[Query, ...]
    unit: str
    kind: str = "timeseries"
    width: int = 8
    height: int = 8
    text: str = ""
    low: float | None = None
    high: float | None = None
    steps: tuple[tuple[float, str], ...] = ()
    hidden: tuple[str, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class Row:
    """A headed part of the dashboard."""

    title: str
    panels: tuple[Panel, ...]


def laid_out(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return the panels of all rows with their places; ids count up in their order."""
    out: list[dict[str, Any]] = []
    y = 0
    for row in rows:
        place = {"h": 1, "w": COLUMNS, "x": 0, "y": y}
        out.append(
            {
                "id": len(out) + 1,
                "type": "row",
                "title": row.title,
                "collapsed": False,
                "gridPos": place,
                "panels": [],
            }
        )
        y += 1
        x = below = 0
        for panel in row.panels:
            if x + panel.width > COLUMNS:
                x, y, below = 0, y + below, 0
            place = {"h": panel.height, "w": panel.width, "x": x, "y": y}
            out.append({"id": len(out) + 1, "gridPos": place, **_panel(panel)})
            x, below = x + panel.width, max(below, panel.height)
        y += below
    return out


def _panel(panel: Panel) -> dict[str, Any]:
    instant = panel.kind in {"table", "stat"}
    return {
        "type": panel.kind,
        "title": panel.title,
        "description": panel.text,
        "datasource": SOURCE,
        "targets": [
            _target(query, chr(ord("A") + k), panel.kind, instant=instant)
            for k, query in enumerate(panel.queries)
        ],
        "fieldConfig": {"defaults": _defaults(panel), "overrides": []},
        "options": _options(panel.kind),
        "transformations": _transformations(panel),
    }


def _target(query: Query, ref: str, kind: str, *, instant: bool) -> dict[str, Any]:
    return {
        "refId": ref,
        "datasource": SOURCE,
        "expr": query.expr,
        "legendFormat": query.legend or "__auto",
        "instant": instant,
        "range": not instant,
        "format": "table" if kind == "table" else "time_series",
    }


def _defaults(panel: Panel) -> dict[str, Any]:
    made: dict[str, Any] = {"unit": panel.unit, "thresholds": _THRESHOLDS}
    if panel.steps:
        first = {"color": panel.steps[0][1], "value": None}
        rest = [{"color": colour, "value": value} for value, colour in panel.steps[1:]]
        made["thresholds"] = {"mode": "absolute", "steps": [first, *rest]}
        made["color"] = {"mode": "thresholds"}
    if panel.low is not None:
        made["min"] = panel.low
    if panel.high is not None:
        made["max"] = panel.high
    return made


def _options(kind: str) -> dict[str, Any]:
    options: Mapping[str, dict[str, Any]] = {
        "timeseries": {
            "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
            "tooltip": {"mode": "multi", "sort": "desc"},
        },
        "stat": {"reduceOptions": {"calcs": ["lastNotNull"]}, "colorMode": "background"},
        "table": {"showHeader": True},
        "state-timeline": {"showValue": "never", "mergeValues": True, "rowHeight": 0.9},
    }
    return options[kind]


def _transformations(panel: Panel) -> list[dict[str, Any]]:
    if not panel.hidden:
        return []
    excluded = dict.fromkeys(panel.hidden, True)
    return [{"id": "organize", "options": {"excludeByName": excluded}}]
