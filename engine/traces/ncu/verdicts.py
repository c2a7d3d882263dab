"""What a kernel's readings show, by the table `kernel_verdicts`."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from engine.catalogue.profileschema import CLAUSE
from engine.catalogue.types import Catalogue
from engine.model import Severity
from engine.traces.ncu.profile import Kernel

_COMPARE: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_UNITS: Final = {"percent": " %", "us": " us", "GHz": " GHz", "GB/s": " GB/s"}
# What the reader derives (engine.traces.ncu.profile) in percent.
_DERIVED: Final = {
    "bank_conflict_share": "percent",
    "host_share": "percent",
    "top_stall": "percent",
}
_FIELD: Final = re.compile(r"\{([a-z][a-z0-9_]*)\}")


@dataclass(frozen=True, slots=True)
class Verdict:
    """A verdict on one kernel."""

    id: str
    severity: Severity
    cause: str | None
    says: str
    action: str
    sources: tuple[str, ...]


def verdicts(kernel: Kernel, catalogue: Catalogue) -> list[Verdict]:
    """Return what limits a kernel, then what else its readings show."""
    readings = kernel.readings()
    table = catalogue.entries.get("kernel_verdicts", {}).values()
    bound = [e for e in table if e["group"] == "bound" and _holds(e, readings)][:1]
    seen = [e for e in table if e["group"] == "observation" and _holds(e, readings)]
    units = {k: str(e["unit"]) for k, e in catalogue.entries.get("kernel_readings", {}).items()}
    return [_verdict(e, kernel, readings, units, catalogue) for e in (*bound, *seen)]


def shown(key: str, value: float, units: Mapping[str, str]) -> str:
    """Return a reading with its unit: ``34.2 %``."""
    unit = _UNITS.get({**units, **_DERIVED}.get(key, ""), "")
    digits = (
        0
        if abs(value) >= 1_000 or (not unit and value == int(value))
        else 1
        if abs(value) >= 10 or unit == " %"
        else 2
    )
    return f"{value:,.{digits}f}{unit}"


def _verdict(
    entry: Mapping[str, Any],
    kernel: Kernel,
    readings: Mapping[str, float],
    units: Mapping[str, str],
    catalogue: Catalogue,
) -> Verdict:
    def fill(text: str) -> str:
        return _FIELD.sub(
            lambda hit: shown(hit[1], readings[hit[1]], units) if hit[1] in readings else "?", text
        )

    says, action = fill(entry["says"]), fill(entry["action"])
    stall = kernel.top_stall()
    if "top_stall" in entry["says"] and stall is not None:
        remedies = catalogue.entries.get("ncu_metrics", {}).get("stall_reasons", {})
        remedy = remedies.get("facts", {}).get("remedy", {}).get(stall)
        says = f"{says[:-1]}: {stall}."
        action = f"For {stall}: {remedy}." if remedy else action
    return Verdict(
        id=str(entry["id"]),
        severity=Severity(entry["severity"]),
        cause=entry.get("cause"),
        says=says,
        action=action,
        sources=tuple(entry["source"]),
    )


def _holds(entry: Mapping[str, Any], readings: Mapping[str, float]) -> bool:
    return all(_clause(c, readings) for c in entry["when"]) and not any(
        _clause(c, readings) for c in entry.get("unless", ())
    )


def _clause(clause: str, readings: Mapping[str, float]) -> bool:
    """Return whether a comparison holds; one with a reading that is not there does not."""
    return all(_compared(clause, readings))


def _compared(clause: str, readings: Mapping[str, float]) -> Iterator[bool]:
    hit = CLAUSE.match(clause)
    left = readings.get(hit["left"]) if hit else None
    if hit is None or left is None:
        yield False
        return
    right = readings.get(hit["name"]) if hit["name"] else float(hit["right"])
    if right is None:
        yield False
        return
    yield _COMPARE[hit["op"]](left, right * float(hit["factor"] or 1))
