"""A finding with its place in the order of an answer: root causes, symptoms, effects, notes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from engine.model import Finding, Severity

ORDER: Final = {"root": 0, "symptom": 10, "setup": 20, "effect": 30, "note": 40}
"""Smaller is told first. ``setup`` is how a communicator was built: it costs speed, not the job."""

_NETWORK: Final = ("nccl_socket_fallback", "gdr_disabled")


@dataclass(frozen=True, slots=True)
class Told:
    """A finding, and when to tell it: by ``order``, then by line."""

    order: int
    line: int
    finding: Finding


def harmless(told: Told) -> Told:
    """Return a setting of the network of a job that uses none, as a remark."""
    if told.finding.cause not in _NETWORK:
        return told
    finding = replace(told.finding, cause=None, severity=Severity.LOW)
    return Told(ORDER["note"], told.line, finding)


def in_order(told: list[Told]) -> list[Finding]:
    """Return the findings, root causes first."""
    return [one.finding for one in sorted(told, key=lambda one: (one.order, one.line))]
