"""What pasted readings leave open, kept short: for which GPUs, the first of many, what matters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from engine.model import Entity, Finding, Severity, Unknown, Why

# Signals that no GPU of a text has, and those that some have, named in one answer.
_SHOWN: Final = 10
_NAMES: Final = 4
_MISSING: Final = "metrics_missing"
_NOT_EXPORTED: Final = "not exported"


@dataclass(slots=True)
class Gaps:
    """What could not be seen.

    Attributes:
        unknown: the entries to show.
        untold: GPUs that are visibly slow without a reading that says why.
        notes: how many entries are left out.
    """

    unknown: list[Unknown] = field(default_factory=list)
    untold: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def gaps_of(
    answers: Sequence[Why],
    exported: Mapping[str, Sequence[str]],
    lines: Mapping[str, int],
) -> Gaps:
    """Put together what the answers about the GPUs of one text could not see.

    Args:
        answers: one for each GPU.
        exported: by signal, the names of the GPUs for which the text has it.
        lines: by name of a GPU, its first line.
    """
    found: dict[tuple[str, str, bool], tuple[Unknown, list[str]]] = {}
    slow: list[tuple[Entity, Unknown]] = []
    for answer in answers:
        for gap in answer.unknown:
            if gap.cause == _MISSING and gap.why.startswith(f"{answer.target.name} "):
                slow.append((answer.target, gap))
                continue
            key = (gap.cause, gap.needs, _absent(gap))
            _, lacking = found.setdefault(key, (gap, []))
            lacking.append(answer.target.name)
    gaps = Gaps(untold=_untold(slow, lines))
    shown = {True: 0, False: 0}
    for gap, lacking in found.values():
        if not _absent(gap):
            # Of a signal that some GPUs do not have at all, that is said.
            if (gap.cause, gap.needs, True) not in found:
                gaps.unknown.append(gap)
            continue
        having = [name for name in exported.get(gap.needs, ()) if name not in lacking]
        shown[bool(having)] += 1
        if shown[bool(having)] <= _SHOWN:
            gaps.unknown.append(_partly(gap, lacking, having) if having else gap)
    more = sum(max(0, count - _SHOWN) for count in shown.values())
    if more:
        gaps.notes.append(
            f"{more} more signal{'s' if more > 1 else ''} that rules use "
            f"{'are' if more > 1 else 'is'} not exported; for all of them, "
            "gpuwhy why TARGET --metrics FILE."
        )
    return gaps


def _absent(gap: Unknown) -> bool:
    return gap.cause == _MISSING and gap.why == _NOT_EXPORTED


def _partly(gap: Unknown, lacking: Sequence[str], having: Sequence[str]) -> Unknown:
    return replace(
        gap,
        why=f"{_NOT_EXPORTED} for {_names(lacking)}",
        fix=f"the text has it for {_names(having)}: give the lines of the other "
        f"GPU{'s' if len(lacking) > 1 else ''} too, or see in the exporter's log why there are "
        "none",
    )


def _untold(slow: Sequence[tuple[Entity, Unknown]], lines: Mapping[str, int]) -> list[Finding]:
    """One finding for all GPUs that are slow and do not say why."""
    if not slow:
        return []
    entity, gap = slow[0]
    others = [other.name for other, _ in slow[1:]]
    says = gap.why.partition(": ")[0].rstrip(".")
    return [
        Finding(
            kind="metrics",
            id="slow_untold",
            severity=Severity.MEDIUM,
            says=f"{says}.{f' The same on {_names(others)}.' if others else ''}",
            action=(
                f"On the host: nvidia-smi {_index(entity)}-q -d PERFORMANCE,CLOCK,POWER. For the "
                f"exporter's counters file: {gap.fix}"
            ),
            entity=entity,
            line=lines.get(entity.name),
            cause=None,
            data={"gpus": [other.name for other, _ in slow]},
        )
    ]


def _index(entity: Entity) -> str:
    return "" if entity.gpu is None else f"-i {entity.gpu} "


def _names(names: Sequence[str]) -> str:
    more = len(names) - _NAMES
    return ", ".join(names[:_NAMES]) + (f" and {more} more" if more > 0 else "")
