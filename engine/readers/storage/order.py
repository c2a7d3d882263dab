"""The order of what several storage tools of one text show: the worst first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from engine.model import Severity
from engine.readers.base import Result

_SEVERITIES = tuple(Severity)


def worst_first(results: Sequence[Result]) -> list[Result]:
    """Return the same as results of one finding each, the worst first, and what is left of each.

    Args:
        results: of storage readers, in their order, which holds among equals.
    """
    if sum(bool(result.findings) for result in results) < 2:
        return list(results)
    apart = [
        Result(list(result.kinds), [found], [found.cause] if found.cause else [])
        for result in results
        for found in result.findings
    ]
    apart.sort(key=lambda one: _SEVERITIES.index(one.findings[0].severity))
    said = {cause for one in apart for cause in one.causes}
    left = [
        replace(result, findings=[], causes=[c for c in result.causes if c not in said])
        for result in results
    ]
    return [*apart, *left]
