"""The shape of a verdict on a run, and how its numbers are written."""

from __future__ import annotations

from dataclasses import dataclass

from engine.model import Severity

HEALTHY = "healthy"
DEGRADED = "degraded"
TOPOLOGY_LIMIT = "topology_limit"
LATENCY_BOUND = "latency_bound"
CORRUPTION = "corruption"
NOT_A_TEST = "not_a_test"
UNKNOWN = "unknown"


@dataclass(slots=True)
class Verdict:
    """What a run shows.

    Attributes:
        verdict: one of the constants of this module.
        says: sentences that follow the one with the run and its figure.
        action: what to do next, with the command.
        cause: id of the taxonomy.
        limit_gbs: line rate of a node's network cards, GB/s.
        expected: the healthy figure for people, GB/s.
    """

    verdict: str
    says: list[str]
    action: str = ""
    cause: str | None = None
    severity: Severity = Severity.INFO
    limit_gbs: float | None = None
    expected: str | None = None
    sources: tuple[str, ...] = ()


def rounded(value: float) -> float:
    """Round to three significant digits, as far as runs of a test repeat; whole from 100 on."""
    return float(f"{value:.3g}")


def gbs(value: float) -> str:
    """Write a bandwidth of GB/s without its unit: ``370``, ``12.1``."""
    return f"{rounded(value):g}" if value < 100_000 else f"{value:.0f}"


def micros(value: float) -> str:
    """Write a time given in microseconds: ``62100.9 us``, from a second on ``1.45 s``."""
    return f"{value / 1e6:.3g} s" if value >= 1e6 else f"{value:.7g} us"


def size_words(size: int) -> str:
    """Write a message size: ``8 GiB``, ``128 MiB``, ``512 B``."""
    for power, unit in ((40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")):
        if size >= 1 << power:
            return f"{size / (1 << power):.4g} {unit}"
    return f"{size} B"


def share(value: float, whole: float) -> str:
    """Write a part of a whole in percent."""
    return f"{100 * value / whole:.0f} %"
