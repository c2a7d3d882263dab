"""Reports of ``dcgmi health -c``, from whichever form, and what they show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from engine.catalogue.types import Catalogue
from engine.model import Finding, Severity
from engine.readers.base import Context, Result
from engine.readers.dcgmi.diag_result import entity_of, known_error
from engine.readers.listing import finding
from engine.readers.quantities import short

KIND: Final = "dcgmi_health"
SOURCE: Final = "NVIDIA/DCGM dcgmi/Health.cpp, dcgmlib/dcgm_errors.h 4.6.0"
MAX_INCIDENTS: Final = 1_024
_ORDER: Final = tuple(Severity)
# What a system's incident is about, where its message names no known error.
_SYSTEMS: Final = {
    "PCIe": "pcie_errors",
    "NVLINK": "nvlink_errors",
    "NvSwitch NF": "nvswitch_fault",
    "NvSwitch F": "nvswitch_fault",
    "Thermal": "thermal_slowdown_sw",
}


@dataclass(slots=True)
class Incident:
    """One system of one entity that is not healthy."""

    line: int
    kind: str
    id: int | None
    system: str
    health: str
    text: str = ""

    def add(self, text: str) -> None:
        """Add a wrapped line of the message."""
        if len(self.text) < 1_024:
            self.text = f"{self.text} {text}".strip()


@dataclass(slots=True)
class Report:
    """One check. ``enabled`` is False where no watches were set, so nothing was checked."""

    line: int
    host: str | None = None
    overall: str | None = None
    enabled: bool = True
    incidents: list[Incident] = field(default_factory=list)
    left_out: int = 0

    def add(self, incident: Incident) -> None:
        """Keep an incident."""
        if len(self.incidents) < MAX_INCIDENTS:
            self.incidents.append(incident)
        else:
            self.left_out += 1


def report(records: Sequence[Report], context: Context) -> Result:
    """Say what health checks show, the worst first."""
    findings = [f for one in records for f in _of_report(one, context.catalogue)]
    findings.sort(key=lambda f: _ORDER.index(f.severity))
    causes = list(dict.fromkeys(f.cause for f in findings if f.cause))
    result = Result(kinds=[KIND], findings=findings, causes=causes)
    left_out = sum(one.left_out for one in records)
    if left_out:
        result.notes.append(f"{left_out} more health incidents are counted only.")
    return result


def _of_report(one: Report, catalogue: Catalogue) -> Iterator[Finding]:
    host = f"{one.host}: " if one.host else ""
    if not one.enabled:
        yield finding(
            KIND,
            "not_watched",
            Severity.MEDIUM,
            f"{host}dcgmi health checked nothing: no health watches are set. That is not healthy, "
            "it is unknown.",
            "Set them, wait a minute, and check again: dcgmi health -s a; dcgmi health -c.",
            line=one.line,
            entity=entity_of(None, one.host),
            sources=(SOURCE,),
        )
        return
    for incident in one.incidents:
        yield _of_incident(incident, one, catalogue)
    if not one.incidents:
        healthy = one.overall == "Healthy"
        yield finding(
            KIND,
            "overall",
            Severity.INFO if healthy else Severity.MEDIUM,
            f"{host}dcgmi health: overall {(one.overall or 'not told').lower()}"
            + (
                ", no incident since the watches were set (PCIe, memory, NVLink, InfoROM, heat, "
                "power). It does not measure speed."
                if healthy
                else "; the incidents are not in this text."
            ),
            "Nothing. For a test under load: dcgmi diag -r 3."
            if healthy
            else "Run it again and read all of it: dcgmi health -c -j.",
            line=one.line,
            data={"overall": one.overall},
            entity=entity_of(None, one.host),
            sources=(SOURCE,),
        )


def _of_incident(incident: Incident, one: Report, catalogue: Catalogue) -> Finding:
    entry = known_error(catalogue, None, incident.text)
    failure = incident.health == "Failure"
    number = "" if incident.id is None else f" {incident.id}"
    host = f"{one.host}: " if one.host else ""
    meaning = (
        f" {entry['meaning']}"
        if entry
        else f" It says: {short(incident.text, 120)}."
        if incident.text
        else ""
    )
    gpu = incident.id if incident.kind == "GPU" else None
    system = incident.system
    return finding(
        KIND,
        system.lower().replace(" ", "_"),
        Severity.CRITICAL if failure else Severity.HIGH,
        f"{host}dcgmi health reports {incident.health.lower()} for {incident.kind}{number}, "
        f"{system}.{meaning}",
        str(entry["action"])
        if entry and entry.get("action")
        else "Find out more: dcgmi diag -r 2 -v, nvidia-smi -q, dmesg | grep -i xid. Take the GPU "
        "out of service while it reports a failure.",
        line=incident.line,
        cause=(entry.get("taxonomy") if entry else None) or _SYSTEMS.get(system),
        data={
            "system": system,
            "health": incident.health,
            "gpu": gpu,
            "error": entry["name"] if entry else None,
            "error_id": entry["id"] if entry else None,
        },
        entity=entity_of(gpu, one.host),
        sources=(SOURCE,),
    )
