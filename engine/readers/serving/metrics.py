"""What the metrics of LLM servers in exporter text say: every service judged, oddities named."""

from __future__ import annotations

from engine.catalogue.types import Catalogue
from engine.model import Finding, Severity
from engine.readers.series import Collected
from engine.readers.serving.load import Load
from engine.readers.serving.oddities import oddities
from engine.readers.serving.quantities import Quantities
from engine.readers.serving.services import services
from engine.readers.serving.verdicts import judge

_MAX_SUMMARIES = 16
_SEVERITIES = tuple(Severity)


def serving_findings(collected: Collected, catalogue: Catalogue) -> tuple[list[Finding], list[str]]:
    """Return findings about services, and the causes they name, root first."""
    quantities = Quantities(catalogue)
    loads = services(collected, quantities)
    findings: list[Finding] = []
    causes: list[str] = []
    shown = [judge(load, catalogue) for load in loads if _says_something(load)]
    shown.sort(key=lambda j: min(_SEVERITIES.index(f.severity) for f in j.findings))
    for number, judged in enumerate(shown):
        causes += judged.causes
        quiet = number >= _MAX_SUMMARIES
        findings += [f for f in judged.findings if not (quiet and f.severity is Severity.INFO)]
    if len(shown) > _MAX_SUMMARIES and findings:
        findings[0].data["services"] = len(shown)
    return [*findings, *oddities(collected, loads, quantities, catalogue)], causes


def _says_something(load: Load) -> bool:
    """Leave out models of Triton that only stand there with zeros."""
    return load.server != "triton" or any(any(e.now.values()) for e in load.engines.values())
