"""A dashboard for Grafana, built on the names that `prometheus_rules` records.

Fleet first: what is wrong and where. Then one GPU (or several) of the chosen hosts in detail. The
data source is a variable, so that nothing has to be edited to import it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from engine.catalogue.types import Catalogue
from engine.export.names import CAUSE, GPU_INFO, recorded_name
from engine.export.panels import SOURCE, Panel, Query, Row, laid_out

# Dashboard JSON of Grafana 10.0; newer versions read it and migrate it on their own.
SCHEMA_VERSION = 38
UID = "gpuwhy-fleet"

_ONE = '{host=~"$host",gpu=~"$gpu"}'
_LEGEND = "{{host}}:{{gpu}}"
_WORST = ((0, "green"), (1, "red"))
# The classes of causes that mean trouble; the others explain or say that readings are missing.
_TROUBLE = 'class=~"fault|limit|victim|workload"'


def grafana_dashboard(catalogue: Catalogue) -> str:
    """Return the dashboard as JSON."""
    board = {
        "__inputs": [],
        "__requires": [
            {"type": "grafana", "id": "grafana", "name": "Grafana", "version": "10.0.0"},
            {"type": "datasource", "id": "prometheus", "name": "Prometheus", "version": "1.0.0"},
        ],
        "uid": UID,
        "title": "GPUs: what is slow, and why",
        "description": f"Made by gpuwhy export grafana; knowledge and rules {catalogue.hash}",
        "tags": ["gpu", "gpuwhy"],
        "schemaVersion": SCHEMA_VERSION,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "timezone": "browser",
        "annotations": {"list": []},
        "links": [],
        "templating": {"list": _variables()},
        "panels": laid_out(_rows(_Names(catalogue), catalogue)),
    }
    return json.dumps(board, indent=2, ensure_ascii=True) + "\n"


class _Names(dict[str, str]):
    """Signal id to the name of its recorded series."""

    def __init__(self, catalogue: Catalogue) -> None:
        super().__init__({s.id: recorded_name(s) for s in catalogue.signals.values()})


def _variables() -> list[dict[str, Any]]:
    return [
        {
            "name": "DS_PROMETHEUS",
            "label": "Data source",
            "type": "datasource",
            "query": "prometheus",
            "hide": 0,
            "refresh": 1,
            "regex": "",
            "current": {},
            "options": [],
        },
        _variable("host", "Host", f"label_values({GPU_INFO}, host)"),
        _variable("gpu", "GPU", f'label_values({GPU_INFO}{{host=~"$host"}}, gpu)'),
    ]


def _variable(name: str, label: str, query: str) -> dict[str, Any]:
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": SOURCE,
        "definition": query,
        "query": {"query": query, "refId": f"{name}-values"},
        "refresh": 2,
        "sort": 3,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
        "options": [],
        "hide": 0,
        "regex": "",
    }


def _rows(names: Mapping[str, str], catalogue: Catalogue) -> list[Row]:
    return [
        _fleet(names),
        Row(
            "Work",
            (
                _lines(names, "GPU utilisation (any kernel)", "gpu_util", "percent", high=100),
                _lines(names, "SM active", "sm_active", "percentunit", high=1),
                _lines(names, "Tensor pipes active", "tensor_active", "percentunit", high=1),
                _lines(names, "Memory interface active", "dram_active", "percentunit", high=1),
                _lines(names, "SM occupancy", "sm_occupancy", "percentunit", high=1),
                _lines(names, "Graphics and compute engine active", "gr_engine_active",
                       "percentunit", high=1),
            ),
        ),
        _clocks(names, catalogue),
        Row(
            "Heat and power",
            (
                _lines(names, "Die temperature", "gpu_temp", "celsius"),
                _lines(names, "Memory temperature", "memory_temp", "celsius"),
                _lines(names, "Power", "power_usage", "watt"),
                Panel(
                    "Power of the enforced limit",
                    (Query(f"{names['power_usage']}{_ONE} / {names['enforced_power_limit']}{_ONE}",
                           _LEGEND),),
                    "percentunit",
                    text="Near 100 % under load is normal; far below it with a low clock is not.",
                    low=0,
                ),
            ),
        ),
        Row(
            "Memory, NVLink, PCIe",
            (
                _lines(names, "Device memory used", "fb_used", "mbytes"),
                _lines(names, "Device memory free", "fb_free", "mbytes"),
                _lines(names, "NVLink traffic, both directions", "nvlink_bandwidth", "Bps"),
                _lines(names, "PCIe traffic sent", "pcie_tx_bytes", "Bps"),
                _lines(names, "PCIe traffic received", "pcie_rx_bytes", "Bps"),
                Panel(
                    "PCIe lanes missing",
                    (Query(f"{names['pcie_max_link_width']}{_ONE}"
                           f" - {names['pcie_link_width']}{_ONE}", _LEGEND),),
                    "short",
                    text="0 at any load; the generation, unlike the width, drops at idle.",
                ),
            ),
        ),
        _errors(names),
    ]  # fmt: skip


def _fleet(names: Mapping[str, str]) -> Row:
    trouble = f"{CAUSE}{{{_TROUBLE}}}"
    return Row(
        "Fleet",
        (
            Panel("GPUs", (Query(f"count({GPU_INFO})"),), "none", "stat", 4, 5),
            Panel(
                "GPUs with a fault",
                (
                    Query(
                        f'count(group by (UUID) ({CAUSE}{{class="fault"}})) or vector(0)',
                    ),
                ),
                "none", "stat", 4, 5, steps=_WORST,
            ),
            Panel(
                "GPUs held back by a limit",
                (Query(f'count(group by (UUID) ({CAUSE}{{class="limit"}})) or vector(0)'),),
                "none", "stat", 4, 5, steps=((0, "green"), (1, "orange")),
            ),
            Panel(
                "Fleet power",
                (Query(f"sum({names['power_usage']})"),),
                "watt", "stat", 4, 5,
            ),
            Panel(
                "Busy GPUs",
                (Query(f"count({names['gr_engine_active']} >= 0.5) / count({GPU_INFO})"),),
                "percentunit", "stat", 4, 5,
            ),
            Panel(
                "Hottest die",
                (Query(f"max({names['gpu_temp']})"),),
                "celsius", "stat", 4, 5,
            ),
            Panel(
                "What is wrong",
                (Query(trouble),),
                "none", "table", 16, 9,
                text="Every cause that holds now; gpuwhy why HOST:GPU gives the proof.",
                hidden=("Time", "Value", "__name__", "UUID"),
            ),
            Panel(
                "By cause",
                (Query(f"count by (cause) ({trouble})", "{{cause}}"),),
                "none", width=8, height=9, low=0,
            ),
        ),
    )  # fmt: skip


def _clocks(names: Mapping[str, str], catalogue: Catalogue) -> Row:
    mask = names["throttle_reasons"]
    reasons = catalogue.entries.get("throttle_reasons", {}).values()
    bits = tuple(
        Query(f"max by (host, gpu) (floor({mask}{_ONE} / {int(r['bit'])}) % 2)",
              f"{_LEGEND} {r['id']}")
        for r in sorted(reasons, key=lambda r: int(r["bit"]))
    )  # fmt: skip
    return Row(
        "Clocks and what holds them down",
        (
            _lines(names, "SM clock", "sm_clock", "rotmhz"),
            Panel(
                "SM clock of its maximum",
                (Query(f"{names['sm_clock']}{_ONE} / {names['max_sm_clock']}{_ONE}", _LEGEND),),
                "percentunit",
                text="Idle GPUs rest at a low clock: look at busy ones.",
                low=0, high=1,
            ),
            _lines(names, "Memory clock", "mem_clock", "rotmhz"),
            Panel(
                "Clock event (throttle) reasons",
                bits,
                "none", "state-timeline", 24, 10,
                text="Bits of DCGM field 112. gpu_idle and sw_power_cap are normal by themselves.",
                steps=((0, "transparent"), (1, "orange")),
            ),
        ),
    )  # fmt: skip


def _errors(names: Mapping[str, str]) -> Row:
    def grown(title: str, *signals: str, text: str = "") -> Panel:
        queries = tuple(
            Query(f"increase({names[s]}{_ONE}[15m])", f"{_LEGEND} {s}") for s in signals
        )
        return Panel(title, queries, "short", text=text, low=0)

    return Row(
        "Errors",
        (
            _lines(
                names, "Last Xid", "xid", "none",
                text="Sticky for days: only a change is an event.",
            ),
            grown("ECC errors in 15 minutes", "ecc_dbe_volatile", "ecc_sbe_volatile"),
            grown(
                "Rows remapped in 15 minutes", "remapped_uncorrectable", "remapped_correctable"
            ),
            grown("PCIe replays in 15 minutes", "pcie_replay"),
            grown(
                "NVLink errors in 15 minutes",
                "nvlink_replay_errors", "nvlink_recovery_errors", "nvlink_crc_flit_errors",
                "nvlink_crc_data_errors",
                text="NVLink 4 and older; on one end the neighbour of what is broken.",
            ),
            Panel(
                "Row remapping waits for a reset, or failed",
                (
                    Query(f"{names['row_remap_pending']}{_ONE}", f"{_LEGEND} waits"),
                    Query(f"{names['row_remap_failure']}{_ONE}", f"{_LEGEND} failed"),
                ),
                "none", low=0, high=1,
            ),
        ),
    )  # fmt: skip


def _lines(
    names: Mapping[str, str],
    title: str,
    signal: str,
    unit: str,
    *,
    high: float | None = None,
    text: str = "",
) -> Panel:
    low = 0 if high is not None else None
    query = Query(f"{names[signal]}{_ONE}", _LEGEND)
    return Panel(title, (query,), unit, text=text, low=low, high=high)
